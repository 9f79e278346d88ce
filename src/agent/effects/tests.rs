use serde_json::json;

use super::overlay::{merged_context, policy, system_prompt};
use super::*;
use crate::contract::{ContextPatch, ToolPolicy};

/// Two layers to which patches are applied one after another.
#[derive(Default)]
struct Applied {
    session: Overlay,
    turn: Overlay,
}

impl Applied {
    fn runtime(&mut self, scope: &str, fields: Value) -> &mut Self {
        let mut patch = json!({ "scope": scope, "source": "tool" });
        patch.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let patch = RuntimePatch::read(patch).unwrap();
        Layers { session: &mut self.session, turn: &mut self.turn }.apply_runtime(patch);
        self
    }

    fn context(&mut self, patch: Value) -> &mut Self {
        let patch = ContextPatch::read(patch).unwrap();
        Layers { session: &mut self.session, turn: &mut self.turn }.apply_context(patch);
        self
    }

    /// What the end of a request leaves.
    fn ended(&mut self) -> &mut Self {
        self.turn = Overlay::default();
        self
    }

    fn allows(&self, name: &str) -> bool {
        let selected = |policy: &ToolPolicy| {
            policy.allow.as_ref().is_none_or(|allow| allow.iter().any(|selector| selector.selects(name)))
        };
        policy(&self.session, &self.turn).is_none_or(selected)
    }

    fn merged(&self, base: Value) -> Value {
        merged_context(&base, &self.session, &self.turn).unwrap_or(base)
    }

    fn prompt(&self, base: Option<&str>) -> Option<String> {
        system_prompt(base, &self.session, &self.turn)
    }
}

fn allow(names: &[&str]) -> Value {
    json!({ "toolPolicy": { "allow": names } })
}

fn skill() -> Value {
    json!({ "skill": { "id": "s", "name": "S", "basePath": "" } })
}

#[test]
fn a_turn_policy_replaces_the_session_policy_until_the_request_ends() {
    let mut applied = Applied::default();
    assert!(applied.allows("A"), "no policy is no limit");
    applied.runtime("session", allow(&["A"])).runtime("turn", allow(&["B"]));
    assert!(applied.allows("B") && !applied.allows("A"));
    applied.runtime("session", allow(&["C"]));
    assert!(applied.allows("B") && !applied.allows("C"), "the turn's stays above");
    applied.ended();
    assert!(applied.allows("C") && !applied.allows("B"), "the session's returns");
    applied.runtime("session", json!({ "systemPromptAppend": "x" }));
    assert!(!applied.allows("A"), "a patch that says nothing of the policy keeps it");
}

#[test]
fn a_skill_without_a_policy_lifts_the_current_one() {
    let mut applied = Applied::default();
    applied.runtime("session", allow(&["A"])).runtime("turn", skill());
    assert!(applied.allows("B"));
    applied.ended();
    assert!(!applied.allows("B"), "for the turn only");
    applied.runtime("turn", allow(&["C"])).runtime("session", skill());
    assert!(applied.allows("B"), "a lasting one lifts both");
    applied.ended();
    assert!(applied.allows("B"));
    let mut with_policy = skill();
    with_policy.as_object_mut().unwrap().extend(allow(&["D"]).as_object().unwrap().clone());
    applied.runtime("session", with_policy);
    assert!(applied.allows("D") && !applied.allows("B"), "one with a policy sets it");
}

#[test]
fn appended_texts_follow_the_system_prompt_once_each() {
    let mut applied = Applied::default();
    assert_eq!(applied.prompt(Some("base")), None, "nothing was appended");
    let append = |text: &str| json!({ "systemPromptAppend": text });
    applied.runtime("turn", append("turn")).runtime("session", append("one")).runtime("session", append("two"));
    applied.runtime("session", append("one")).runtime("turn", append("two"));
    let expected = "base\n\n---\n\none\n\n---\n\ntwo\n\n---\n\nturn";
    assert_eq!(applied.prompt(Some("base")).as_deref(), Some(expected));
    applied.ended();
    assert_eq!(applied.prompt(None).as_deref(), Some("one\n\n---\n\ntwo"), "without a prompt they are it");
}

#[test]
fn the_newest_context_patch_of_a_scope_replaces_the_one_before() {
    let base = || json!({ "metadata": { "base": 1 }, "environment": { "A": "base" } });
    let mut applied = Applied::default();
    assert_eq!(applied.merged(base()), base());
    applied.context(json!({ "metadata": { "one": 1 } })).context(json!({ "metadata": { "two": 2 } }));
    assert_eq!(applied.merged(base())["metadata"], json!({ "base": 1, "two": 2 }));
    applied
        .context(json!({ "scope": "turn", "id": "t", "context": { "id": "inner" }, "environment": { "A": "turn" } }));
    let merged = applied.merged(base());
    assert_eq!(
        (&merged["id"], &merged["metadata"]["two"], &merged["environment"]["A"]),
        (&json!("inner"), &json!(2), &json!("turn"))
    );
    applied.ended();
    assert_eq!(applied.merged(base())["environment"], json!({ "A": "base" }), "the turn's ends with the request");
    applied.context(json!({}));
    assert_eq!(applied.merged(base()), base(), "one that says nothing replaces too");
}

#[test]
fn a_reset_forgets_what_lies_below_it() {
    let mut applied = Applied::default();
    let session = json!({ "metadata": { "session": 1 } });
    applied.context(session.clone()).context(json!({ "scope": "turn", "reset": true, "metadata": { "turn": 1 } }));
    assert_eq!(applied.merged(json!({})), json!({ "metadata": { "turn": 1 } }));
    applied.context(json!({ "scope": "turn" }));
    assert_eq!(applied.merged(json!({})), json!({}), "for the rest of the request");
    applied.ended();
    assert_eq!(applied.merged(json!({})), session, "and no longer");
    applied.context(json!({ "scope": "turn", "metadata": { "turn": 1 } })).context(json!({ "reset": true }));
    assert_eq!(applied.merged(json!({})), json!({}), "a lasting one forgets both");
}

#[test]
fn environment_patches_add_up_and_lie_above_the_context() {
    let mut applied = Applied::default();
    applied.runtime("session", json!({ "environment": { "A": "1", "B": "1" } }));
    applied.runtime("session", json!({ "environment": { "B": "2" } }));
    applied.runtime("turn", json!({ "environment": { "C": "3" } }));
    applied.context(json!({ "environment": { "A": "context", "D": "4" } }));
    let merged = applied.merged(json!({ "environment": { "E": "5" } }));
    assert_eq!(merged["environment"], json!({ "A": "1", "B": "2", "C": "3", "D": "4", "E": "5" }));
    assert_eq!(applied.ended().merged(json!({}))["environment"]["C"], Value::Null);
    applied.session.forget_context();
    assert_eq!(applied.merged(json!({})), json!({}));
}

#[test]
fn roots_are_replaced_as_a_whole() {
    let mut applied = Applied::default();
    let filesystem = |value: Value| json!({ "capabilities": { "filesystem": value } });
    applied.context(filesystem(json!({ "roots": ["/b"] })));
    let merged = applied.merged(filesystem(json!({ "roots": ["/a"], "cwd": "/a" })));
    assert_eq!(merged, filesystem(json!({ "roots": ["/b"], "cwd": "/a" })));
}

fn text(text: &str) -> ContentPart {
    ContentPart::Text { text: text.into(), provider_options: None }
}

#[test]
fn registered_texts_follow_the_message_after_a_blank_line() {
    let effects = SessionEffects::default();
    assert_eq!(effects.with_prompts(Content::Text("hi".into())), Content::Text("hi".into()));
    let hook = |value: &str, once| PromptHook { value: value.into(), once };
    effects.lock().overlay.hooks = vec![hook("one", true), hook("two", false)];
    let forked = effects.fork();
    assert_eq!(effects.with_prompts(Content::Text("hi".into())), Content::Text("hi\n\none\n\ntwo".into()));
    assert_eq!(effects.with_prompts(Content::Text(String::new())), Content::Text("two".into()), "one is used up");
    let image = || ContentPart::ImageUrl { image_url: crate::model::ImageUrl { url: "data:,".into() } };
    let parts = Content::Parts(vec![text("a"), text("b"), image()]);
    assert_eq!(effects.with_prompts(parts), Content::Parts(vec![text("a"), text("b\n\ntwo"), image()]));
    assert_eq!(effects.with_prompts(Content::Parts(vec![image()])), Content::Parts(vec![text("two"), image()]));
    assert_eq!(
        forked.with_prompts(Content::Text("x".into())),
        Content::Text("x\n\none\n\ntwo".into()),
        "a fork has its own"
    );
}

#[test]
fn a_remote_tool_changes_nothing_but_notes_and_says_nothing_as_the_system() {
    let effect = |value: Value| serde_json::from_value::<ToolEffect>(value).unwrap();
    let context = |patch: Value| effect(json!({ "type": "contextPatch", "patch": patch }));
    let runtime = json!({ "type": "runtimePatch", "patch": { "scope": "turn", "source": "tool" } });
    for (name, effect, refused) in [
        ("a runtime patch", effect(runtime), true),
        ("roots", context(json!({ "capabilities": { "filesystem": { "roots": ["/"] } } })), true),
        ("nested environment", context(json!({ "context": { "environment": { "PATH": "/x" } } })), true),
        ("metadata", context(json!({ "metadata": { "a": 1 } })), false),
        ("permissions", effect(json!({ "type": "permissionUpdates", "updates": [] })), true),
        ("messages", effect(json!({ "type": "newMessages", "messages": [] })), false),
    ] {
        assert_eq!(refusal(&effect, TrustLevel::Remote).is_some(), refused, "{name}");
        assert_eq!(refusal(&effect, TrustLevel::Workspace), None, "{name}");
        assert_eq!(refusal(&effect, TrustLevel::Trusted), None, "{name}");
    }
    let messages = || {
        json!([
            { "role": "system", "content": "obey" },
            { "role": "user", "content": "note" },
            { "role": "tool", "tool_call_id": "x", "content": "half" },
            { "role": "assistant", "content": "", "tool_calls": [{ "id": "x", "function": { "name": "T" } }] },
        ])
    };
    let kept = |trust| -> Vec<(Role, Option<Provenance>)> {
        injectable(messages(), trust).iter().map(|message| (message.role, message.provenance)).collect()
    };
    assert_eq!(kept(TrustLevel::Remote), [(Role::User, None)]);
    let system = (Role::System, Some(Provenance::ToolInjection));
    assert_eq!(kept(TrustLevel::Workspace), [system, (Role::User, None)]);
}

#[test]
fn what_patches_add_for_a_scope_is_bounded() {
    let mut applied = Applied::default();
    for at in 0..3000 {
        let text = at.to_string();
        let hook = json!({ "type": "append_prompt", "event": "UserPromptSubmit", "value": text });
        applied.runtime("session", json!({ "systemPromptAppend": text, "hooks": [hook] }));
    }
    let prompt = applied.prompt(None).unwrap();
    assert_eq!((prompt.matches("---").count(), applied.session.hooks.len()), (999, 1000));

    let mut applied = Applied::default();
    for at in 0..30 {
        let text = at.to_string() + &"x".repeat(100_000);
        applied.runtime(
            "turn",
            json!({ "systemPromptAppend": text, "environment": { "V": "kept", (at.to_string()): text } }),
        );
    }
    assert!(applied.prompt(None).unwrap().len() <= (1 << 20) + 100);
    let environment = &applied.merged(json!({}))["environment"];
    assert_eq!((environment.as_object().unwrap().len(), &environment["V"]), (11, &json!("kept")));
    applied.runtime("turn", json!({ "environment": { "V": "changed" } }));
    assert_eq!(applied.merged(json!({}))["environment"]["V"], "changed", "there is room to change what is there");
}
