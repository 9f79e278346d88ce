use serde_json::json;

use super::*;
use crate::contract::ToolYield;

fn read(effect: Value) -> Result<ToolEffect, String> {
    let item: Result<ToolYield, _> = serde_json::from_value(json!({ "kind": "effect", "effect": effect }));
    match item.map_err(|error| error.to_string())? {
        ToolYield::Effect { effect } => Ok(effect),
        other => panic!("not an effect: {other:?}"),
    }
}

fn runtime(fields: Value) -> Value {
    let mut patch = json!({ "scope": "turn", "source": "tool" });
    patch.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "type": "runtimePatch", "patch": patch })
}

#[test]
fn a_runtime_patch_is_read_whole_and_shown_as_it_was_given() {
    let given = json!({
        "scope": "session", "source": "skill", "skill": { "id": "s", "name": "S", "basePath": "/s" },
        "toolPolicy": { "allow": ["Read", "Bash(git:*)"], "deny": [] },
        "toolDiscovery": { "discover": ["Later"], "reset": true },
        "modelOverride": { "modelId": "default", "effort": "low" }, "systemPromptAppend": "More.",
        "environment": { "A": "1" },
        "hooks": [{ "event": "UserPromptSubmit", "type": "append_prompt", "value": "v", "once": true, "tools": [] }],
    });
    let effect = read(json!({ "type": "runtimePatch", "patch": given })).unwrap();
    let ToolEffect::RuntimePatch { patch } = &effect else { panic!("another effect") };
    assert_eq!(patch.scope, PatchScope::Session);
    assert_eq!(patch.skill.as_ref().map(|skill| skill.base_path.as_str()), Some("/s"));
    let allow = patch.tool_policy.as_ref().and_then(|policy| policy.allow.as_ref()).unwrap();
    assert!(allow[1].selects("Bash") && !allow[1].selects("Read"));
    assert_eq!(patch.discovery, Some(ToolDiscovery { discover: vec!["Later".into()], reset: true }));
    assert_eq!(patch.model.as_ref().map(|model| model.model_id.as_str()), Some("default"));
    assert_eq!(patch.hooks, [PromptHook { value: "v".into(), once: true }]);
    assert_eq!(serde_json::to_value(&effect).unwrap(), json!({ "type": "runtimePatch", "patch": given }));
}

#[test]
fn missing_and_null_fields_change_nothing() {
    let all = ["skill", "toolPolicy", "toolDiscovery", "modelOverride", "systemPromptAppend", "environment", "hooks"];
    let nulls: Value =
        all.iter().map(|name| ((*name).to_owned(), Value::Null)).collect::<serde_json::Map<_, _>>().into();
    for fields in [json!({}), nulls, json!({ "systemPromptAppend": " \n" })] {
        let ToolEffect::RuntimePatch { patch } = read(runtime(fields)).unwrap() else { panic!("another effect") };
        assert!(patch.skill.is_none() && patch.tool_policy.is_none() && patch.discovery.is_none());
        assert!(patch.model.is_none() && patch.system_prompt_append.is_none());
        assert!(patch.environment.is_empty() && patch.hooks.is_empty());
    }
    let ToolEffect::RuntimePatch { patch } = read(runtime(json!({ "toolPolicy": { "allow": [] } }))).unwrap() else {
        panic!("another effect")
    };
    assert_eq!(patch.tool_policy, Some(ToolPolicy { allow: Some(Vec::new()), deny: Vec::new() }), "empty is a limit");
}

#[test]
fn the_built_in_discovery_patch_is_what_reading_it_gives() {
    let made = RuntimePatch::discovering(&["A", "B"]);
    assert_eq!(RuntimePatch::read(serde_json::to_value(&made).unwrap()).unwrap(), made);
}

#[test]
fn what_is_wrong_with_a_runtime_patch_is_named() {
    for (given, says) in [
        (json!({ "type": "runtimePatch", "patch": { "source": "tool" } }), "runtimePatch.scope is missing"),
        (json!({ "type": "runtimePatch", "patch": { "scope": "turn" } }), "runtimePatch.source is missing"),
        (json!({ "type": "runtimePatch", "patch": [] }), "runtimePatch must be an object, got []"),
        (runtime(json!({ "scope": "forever" })), "runtimePatch.scope must be \"turn\" or \"session\", got \"forever\""),
        (runtime(json!({ "source": "me" })), "runtimePatch.source must be \"skill\", \"tool\" or \"system\""),
        (runtime(json!({ "toolpolicy": {} })), "runtimePatch.toolpolicy is no field of it; the fields are scope,"),
        (runtime(json!({ "skill": { "id": "s", "name": "n" } })), "runtimePatch.skill.basePath is missing"),
        (runtime(json!({ "skill": { "id": " ", "name": "n" } })), "runtimePatch.skill.id must be a non-empty string"),
        (runtime(json!({ "toolPolicy": { "allow": ["A", 5] } })), "runtimePatch.toolPolicy.allow[1] must be a string"),
        (runtime(json!({ "toolPolicy": { "deny": "A" } })), "runtimePatch.toolPolicy.deny must be an array, got \"A\""),
        (
            runtime(json!({ "toolPolicy": { "deny": ["B(x"] } })),
            "runtimePatch.toolPolicy.deny[0] must be the name of a tool",
        ),
        (runtime(json!({ "toolPolicy": { "allowed": [] } })), "runtimePatch.toolPolicy.allowed is no field of it"),
        (
            runtime(json!({ "toolDiscovery": { "discover": [""] } })),
            "runtimePatch.toolDiscovery.discover[0] must be a non-",
        ),
        (runtime(json!({ "toolDiscovery": { "reset": 1 } })), "runtimePatch.toolDiscovery.reset must be true or false"),
        (runtime(json!({ "modelOverride": {} })), "runtimePatch.modelOverride.modelId is missing"),
        (runtime(json!({ "systemPromptAppend": 5 })), "runtimePatch.systemPromptAppend must be a string, got 5"),
        (runtime(json!({ "environment": { "A": 1 } })), "runtimePatch.environment.A must be a string, got 1"),
        (runtime(json!({ "environment": { "A=B": "" } })), "runtimePatch.environment.A=B: names of variables"),
        (runtime(json!({ "environment": { "A": "\0" } })), "runtimePatch.environment.A: values of variables"),
        (
            runtime(json!({ "hooks": [{ "event": "UserPromptSubmit", "type": "run" }] })),
            "runtimePatch.hooks[0].type must be",
        ),
        (
            runtime(json!({ "hooks": [{ "event": "PreToolUse", "type": "append_prompt", "value": "v" }] })),
            "runtimePatch.hooks[0].event must be \"UserPromptSubmit\"",
        ),
        (
            runtime(json!({ "hooks": [{ "event": "UserPromptSubmit", "type": "append_prompt", "value": "" }] })),
            "runtimePatch.hooks[0].value must be a non-empty string",
        ),
    ] {
        let error = read(given).unwrap_err();
        assert!(error.contains(says), "{error:?} should say {says:?}");
    }
}

#[test]
fn a_context_patch_lasts_for_the_session_unless_it_says_otherwise() {
    let given =
        json!({ "metadata": { "a": 1 }, "context": { "id": "x" }, "reset": true, "own": 1, "environment": null });
    let effect = read(json!({ "type": "contextPatch", "patch": given })).unwrap();
    let ToolEffect::ContextPatch { patch } = &effect else { panic!("another effect") };
    assert_eq!((patch.scope, patch.reset), (PatchScope::Session, true));
    assert_eq!(Value::Object(patch.direct.clone()), json!({ "metadata": { "a": 1 }, "own": 1 }));
    assert_eq!(Value::Object(patch.context.clone()), json!({ "id": "x" }));
    assert!(!patch.changes_reach());
    assert_eq!(serde_json::to_value(&effect).unwrap(), json!({ "type": "contextPatch", "patch": given }));
    for given in [json!({ "environment": {} }), json!({ "context": { "capabilities": {} } })] {
        assert!(ContextPatch::read(given).unwrap().changes_reach());
    }
}

#[test]
fn what_is_wrong_with_a_context_patch_is_named() {
    for (patch, says) in [
        (json!("x"), "contextPatch must be an object, got \"x\""),
        (json!({ "scope": "always" }), "contextPatch.scope must be"),
        (json!({ "reset": "yes" }), "contextPatch.reset must be true or false"),
        (json!({ "id": 5 }), "contextPatch.id must be a string"),
        (json!({ "metadata": [] }), "contextPatch.metadata must be an object"),
        (json!({ "context": 1 }), "contextPatch.context must be an object"),
        (json!({ "context": { "environment": { "A": null } } }), "contextPatch.context.environment.A must be a string"),
        (json!({ "capabilities": 1 }), "contextPatch.capabilities must be an object"),
        (json!({ "capabilities": { "network": 1 } }), "contextPatch.capabilities.network must be an object"),
        (
            json!({ "capabilities": { "filesystem": { "roots": "/" } } }),
            "capabilities.filesystem.roots must be an array",
        ),
        (
            json!({ "capabilities": { "filesystem": { "roots": [1] } } }),
            "capabilities.filesystem.roots[0] must be a string",
        ),
        (json!({ "capabilities": { "filesystem": { "roots": null } } }), "contextPatch.capabilities.filesystem: "),
        (json!({ "capabilities": { "filesystem": { "cwd": "" } } }), "capabilities.filesystem.cwd must be a non-empty"),
    ] {
        let error = read(json!({ "type": "contextPatch", "patch": patch })).unwrap_err();
        assert!(error.contains(says), "{error:?} should say {says:?}");
    }
}

#[test]
fn messages_and_permission_updates_are_checked_and_kept_as_they_are() {
    let messages = json!([{ "role": "user", "content": "hi", "own": 1 }]);
    let effect = read(json!({ "type": "newMessages", "messages": messages })).unwrap();
    assert_eq!(effect, ToolEffect::NewMessages { messages });
    let updates = json!([
        { "type": "addRules", "behavior": "allow", "rules": [{ "toolName": "A" }, { "toolName": "B", "ruleContent": "x" }] },
        { "type": "removeRules", "rules": [] },
    ]);
    let effect = read(json!({ "type": "permissionUpdates", "updates": updates })).unwrap();
    assert_eq!(effect, ToolEffect::PermissionUpdates { updates });
    for (effect, says) in [
        (json!({ "type": "newMessages", "messages": "hi" }), "newMessages.messages must be an array"),
        (
            json!({ "type": "newMessages", "messages": [{ "content": "x" }] }),
            "newMessages.messages[0]: missing field `role`",
        ),
        (json!({ "type": "newMessages", "messages": [1] }), "newMessages.messages[0] must be an object"),
        (json!({ "type": "newMessages" }), "missing field `messages`"),
        (json!({ "type": "permissionUpdates", "updates": {} }), "permissionUpdates.updates must be an array"),
        (
            json!({ "type": "permissionUpdates", "updates": [{ "type": "grant" }] }),
            "permissionUpdates.updates[0].type must be",
        ),
        (
            json!({ "type": "permissionUpdates", "updates": [{ "type": "addRules", "rules": [] }] }),
            "permissionUpdates.updates[0].behavior is missing",
        ),
        (
            json!({ "type": "permissionUpdates", "updates": [{ "type": "removeRules", "rules": [{ "toolName": 1 }] }] }),
            "permissionUpdates.updates[0].rules[0].toolName must be a string",
        ),
    ] {
        let error = read(effect).unwrap_err();
        assert!(error.contains(says), "{error:?} should say {says:?}");
    }
}
