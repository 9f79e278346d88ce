//! Allow, ask and deny lists matched on the permission signature.

use serde::Deserialize;

use super::request::{PermissionDecision, PermissionRequest};

/// `PermissionsConfig`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleLists {
    /// Runs without a question.
    pub allow: Vec<String>,
    /// Always asks.
    pub ask: Vec<String>,
    /// Never runs.
    pub deny: Vec<String>,
}

/// Whether one rule covers a signature: `*` covers all, a trailing `*` makes a prefix, anything else is exact.
/// `Tool(content)` is read as `Tool:content`, with `Tool(content:*)` as the prefix form.
pub fn rule_matches(rule: &str, signature: &str) -> bool {
    let rule = rule.trim();
    if let Some((tool, content)) = rule.strip_suffix(')').and_then(|open| open.split_once('(')) {
        let content = content.strip_suffix(":*").map_or_else(|| content.to_owned(), |prefix| format!("{prefix}*"));
        return matches_plain(&format!("{tool}:{content}"), signature);
    }
    matches_plain(rule, signature)
}

fn matches_plain(rule: &str, signature: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => signature.starts_with(prefix),
        None => rule == signature,
    }
}

/// Whether a rule is this signature, in either notation, and not merely its beginning.
fn is_exact(rule: &str, signature: &str) -> bool {
    let rule = rule.trim();
    rule == signature
        || rule.strip_suffix(')').and_then(|open| open.split_once('(')).is_some_and(|(tool, content)| {
            signature.strip_prefix(tool).and_then(|rest| rest.strip_prefix(':')) == Some(content)
        })
}

/// Decides by the lists: deny before allow before ask; no match asks.
///
/// A call of several parts, such as `a && b`, is denied or asked about for each of them. It is allowed by rules that
/// cover all of them together, or by one that is exactly its signature; a prefix of the whole says nothing about the
/// rest.
pub fn decide_by_rules(request: &PermissionRequest, lists: &RuleLists) -> PermissionDecision {
    let signature = request.signature();
    let parts = &request.tool_meta.parts;
    let covered = |rules: &[String], signature: &str| rules.iter().any(|rule| rule_matches(rule, signature));
    let any = |rules: &[String]| covered(rules, signature) || parts.iter().any(|part| covered(rules, part));
    let allowed = if parts.is_empty() {
        covered(&lists.allow, signature)
    } else {
        lists.allow.iter().any(|rule| is_exact(rule, signature)) || parts.iter().all(|part| covered(&lists.allow, part))
    };
    if any(&lists.deny) {
        PermissionDecision::deny(format!("denied by a permission rule for {signature}"))
    } else if allowed {
        PermissionDecision::allow()
    } else if any(&lists.ask) {
        PermissionDecision::ask(format!("a permission rule requires confirmation for {signature}"))
    } else {
        PermissionDecision::ask("no permission rule matches, so confirmation is required")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{SideEffect, ToolKind};
    use crate::permissions::ToolMeta;

    fn decide(content: &str, parts: &[&str], lists: &RuleLists) -> &'static str {
        let request = PermissionRequest {
            tool_name: "Bash".into(),
            input: Default::default(),
            permission_mode: None,
            session_approved: false,
            affected_paths: Vec::new(),
            tool_kind: ToolKind::Execute,
            tool_meta: ToolMeta {
                side_effect: SideEffect::NonIdempotent,
                is_read_only: false,
                is_concurrency_safe: false,
                is_destructive: false,
                signature: Some(format!("Bash:{content}")),
                parts: parts.iter().map(|part| format!("Bash:{part}")).collect(),
                description: None,
            },
        };
        match decide_by_rules(&request, lists) {
            PermissionDecision::Allow { .. } => "allow",
            PermissionDecision::Deny { .. } => "deny",
            PermissionDecision::Ask { .. } => "ask",
        }
    }

    #[test]
    fn every_part_of_a_call_must_be_allowed_and_none_denied() {
        let rules = |allow: &[&str], deny: &[&str]| RuleLists {
            allow: allow.iter().map(|rule| (*rule).to_owned()).collect(),
            deny: deny.iter().map(|rule| (*rule).to_owned()).collect(),
            ask: Vec::new(),
        };
        let git = rules(&["Bash:git *", "Bash(ls:*)"], &["Bash:rm*"]);
        let all = rules(&["Bash:*"], &["Bash:rm*"]);
        for (content, parts, lists, expected) in [
            ("git log", &[][..], &git, "allow"),
            ("git log; touch x", &["git log", "touch x"], &git, "ask"),
            ("git log && ls", &["git log", "ls"], &git, "allow"),
            ("git log; rm x", &["git log", "rm x"], &git, "deny"),
            ("git log; rm x", &["git log", "rm x"], &all, "deny"),
            ("git log (", &["", "git log"], &git, "ask"),
            ("a; b", &["a", "b"], &all, "allow"),
            ("a (", &["", "a"], &all, "allow"),
            ("a; b", &["a", "b"], &rules(&["Bash:a; b"], &[]), "allow"),
            ("a; b", &["a", "b"], &rules(&["Bash(a; b)"], &[]), "allow"),
            ("a; b", &["a", "b"], &rules(&["Bash:a*"], &[]), "ask"),
            ("a; b", &["a", "b"], &rules(&["*"], &[]), "allow"),
        ] {
            assert_eq!(decide(content, parts, lists), expected, "{content} {lists:?}");
        }
    }

    #[test]
    fn rules_match_exactly_by_prefix_or_everything() {
        for (rule, signature, expected) in [
            ("*", "Bash:rm x", true),
            ("Bash", "Bash", true),
            ("Bash", "Bash:npm test", false),
            ("Bash:npm test", "Bash:npm test", true),
            ("Bash:npm test", "Bash:npm test -- x", false),
            ("Bash:npm test*", "Bash:npm test -- x", true),
            ("Bash(npm test)", "Bash:npm test", true),
            ("Bash(npm test:*)", "Bash:npm test -- x", true),
            ("Bash(npm test:*)", "Bash:npm run", false),
            ("Read(/repo/*)", "Read:/repo/a.ts", true),
        ] {
            assert_eq!(rule_matches(rule, signature), expected, "{rule} on {signature}");
        }
    }
}
