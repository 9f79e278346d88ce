use serde_json::json;

use super::*;
use crate::contract::ToolKind;
use crate::permissions::ToolMeta;

fn call(tool: &str, content: Option<&str>, input: Value) -> PermissionRequest {
    let signature = content.map_or_else(|| tool.to_owned(), |content| format!("{tool}:{content}"));
    PermissionRequest {
        tool_name: tool.into(),
        input: input.as_object().cloned().unwrap_or_default().into(),
        permission_mode: None,
        session_approved: false,
        affected_paths: Vec::new(),
        tool_kind: ToolKind::Execute,
        tool_meta: ToolMeta { signature: Some(signature), ..ToolMeta::default() },
    }
}

fn bash(command: &str) -> PermissionRequest {
    call("Bash", Some(command), json!({}))
}

fn apply(rules: &SessionRules, updates: Value) {
    rules.apply(PermissionUpdates::parse(&updates).unwrap());
}

fn add(behavior: &str, tool: &str, content: Option<&str>) -> Value {
    json!([{"type": "addRules", "behavior": behavior, "rules": [{"toolName": tool, "ruleContent": content}]}])
}

fn remove(tool: &str, content: Option<&str>) -> Value {
    json!([{"type": "removeRules", "rules": [{"toolName": tool, "ruleContent": content}]}])
}

#[test]
fn added_rules_deny_and_allow_with_patterns_until_they_are_removed() {
    let rules = SessionRules::default();
    apply(&rules, add("deny", "Bash", Some("rm:*")));
    assert_eq!(
        rules.denial(&bash("rm -rf x")).as_deref(),
        Some("denied by the permission rule \"Bash(rm:*)\" of this Session for Bash:rm -rf x")
    );
    assert_eq!(rules.denial(&bash("rmdir x")), None);
    // A rule that allows takes nothing back.
    apply(&rules, add("allow", "Bash", Some("rm:*")));
    assert!(rules.denial(&bash("rm x")).is_some());
    assert!(rules.standing(&bash("rm x")).allowed, "both are said; the denial comes first");
    apply(&rules, remove("Bash", Some("rm:*")));
    assert_eq!(rules.denial(&bash("rm x")), None);
    assert_eq!(rules.standing(&bash("rm x")), Standing::default());
    assert!(rules.is_empty());
    // A denial takes back what was allowed by the same rule.
    apply(&rules, add("allow", "Bash", None));
    assert!(rules.standing(&bash("anything")).allowed);
    apply(&rules, add("deny", "Bash", None));
    apply(&rules, remove("Bash", None));
    assert!(!rules.standing(&bash("anything")).allowed);
}

#[test]
fn an_approval_holds_for_the_same_signature_and_without_one_for_the_same_arguments() {
    let rules = SessionRules::default();
    rules.approve(&bash("make x"));
    rules.approve(&call("Search", None, json!({"a": {"x": 1, "y": [1, "2"]}, "b": true})));
    for (request, approved) in [
        (bash("make x"), true),
        (call("Bash", Some("make x"), json!({"timeout": 5})), true),
        (bash("make y"), false),
        (call("Search", None, json!({"b": true, "a": {"y": [1, "2"], "x": 1}})), true),
        (call("Search", None, json!({"b": true, "a": {"y": [1, 2], "x": 1}})), false),
        (call("Search", None, json!({"b": true, "a": {"y": ["2", 1], "x": 1}})), false),
        (call("Search", None, json!({})), false),
        (call("Other", None, json!({"a": {"x": 1, "y": [1, "2"]}, "b": true})), false),
    ] {
        assert_eq!(rules.standing(&request), Standing { approved, allowed: false }, "{request:?}");
    }
    apply(&rules, remove("Bash", Some("make x")));
    assert!(!rules.standing(&bash("make x")).approved);
    apply(&rules, remove("Search", None));
    assert!(rules.is_empty());
}

#[test]
fn updates_that_mean_nothing_are_refused_as_a_whole() {
    for updates in [
        json!("x"),
        json!({}),
        json!([{"type": "addRules", "rules": []}]),
        json!([{"type": "addRules", "behavior": "ask", "rules": []}]),
        json!([{"type": "grow", "rules": []}]),
        json!([{"type": "removeRules"}]),
        json!([{"type": "addRules", "behavior": "deny", "rules": [{"ruleContent": "x"}]}]),
        json!([{"type": "addRules", "behavior": "deny", "rules": [{"toolName": ""}]}]),
        json!([{"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Read", "ruleContent": "[a"}]}]),
        json!([{"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Read"}]}, 5]),
    ] {
        let error = PermissionUpdates::parse(&updates).unwrap_err();
        assert_eq!(error.code, crate::error::ErrorCode::ConfigError, "{updates}");
    }
}

#[test]
fn what_is_remembered_is_bounded_and_each_rule_is_kept_once() {
    let rules = SessionRules::default();
    for n in 0..MOST + 10 {
        rules.approve(&bash(&n.to_string()));
    }
    let state = rules.lock();
    assert_eq!(state.approvals.len(), MOST);
    drop(state);
    apply(&rules, add("deny", "T", None));
    apply(&rules, add("deny", "T", None));
    assert_eq!(rules.lock().deny.len(), 1);
}

#[test]
fn whoever_continues_from_a_session_is_denied_the_same_and_approved_nothing() {
    let (parent, child) = (SessionRules::default(), SessionRules::default());
    apply(&parent, add("deny", "Bash", None));
    apply(&parent, add("allow", "Read", None));
    parent.approve(&bash("x"));
    child.inherit_denials(&parent);
    assert!(child.denial(&bash("x")).is_some());
    assert_eq!(child.standing(&call("Read", None, json!({}))), Standing::default());
}
