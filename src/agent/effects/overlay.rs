//! What patches changed, one layer a scope, and what the layers amount to. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::context;
use crate::contract::{ContextPatch, PatchScope, PromptHook, RuntimePatch, ToolPolicy};

/// Between the system prompt and each text that was appended to it.
const SEPARATOR: &str = "\n\n---\n\n";

/// Texts of one kind that are kept for one scope, and their size together in bytes: they are sent with every request.
const MAX_TEXTS: usize = 1000;
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Size of all environment variables of one scope in bytes: what a process can be given.
const MAX_ENVIRONMENT_BYTES: usize = 1 << 20;

/// What the patches of one scope changed so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Overlay {
    policy: PolicyLayer,
    appends: Vec<String>,
    environment: BTreeMap<String, String>,
    /// Texts for the messages that start later requests.
    pub hooks: Vec<PromptHook>,
    context: Option<Map<String, Value>>,
    /// Whether the context of the layer below does not count.
    alone: bool,
}

impl Overlay {
    /// Forgets context patches and variables.
    pub fn forget_context(&mut self) {
        self.context = None;
        self.environment.clear();
    }
}

impl Overlay {
    fn add_variables(&mut self, added: BTreeMap<String, String>) {
        let size = |variables: &BTreeMap<String, String>| -> usize {
            variables.iter().map(|(name, value)| name.len() + value.len() + 2).sum()
        };
        if added.is_empty() {
            return;
        }
        let mut all = self.environment.clone();
        all.extend(added);
        if size(&all) > MAX_ENVIRONMENT_BYTES {
            tracing::warn!(limit = MAX_ENVIRONMENT_BYTES, "environment of a runtime patch has no room and is left out");
            return;
        }
        self.environment = all;
    }
}

/// Whether one more text of `bytes` fits to those there are.
fn has_room(there: impl ExactSizeIterator<Item = usize>, bytes: usize, field: &str) -> bool {
    let fits = there.len() < MAX_TEXTS && there.sum::<usize>().saturating_add(bytes) <= MAX_TEXT_BYTES;
    if !fits {
        tracing::warn!(field, limit = MAX_TEXT_BYTES, "a text of a runtime patch has no room and is left out");
    }
    fits
}

#[derive(Debug, Clone, Default, PartialEq)]
enum PolicyLayer {
    /// The layer below decides.
    #[default]
    Unset,
    /// There is no limit, whatever the layer below says.
    Lifted,
    Set(ToolPolicy),
}

/// The layers of the request under way. The turn's ends with the request and lies above the Session's.
pub(super) struct Layers<'a> {
    pub session: &'a mut Overlay,
    pub turn: &'a mut Overlay,
}

impl Layers<'_> {
    /// Applies a runtime patch, except what it says about discovery and the model.
    pub fn apply_runtime(&mut self, patch: RuntimePatch) {
        match (patch.tool_policy, patch.skill.is_some(), patch.scope) {
            (Some(policy), _, scope) => self.at(scope).policy = PolicyLayer::Set(policy),
            // A Skill without a policy of its own runs without the one of the Skill before.
            (None, true, PatchScope::Turn) => self.turn.policy = PolicyLayer::Lifted,
            (None, true, PatchScope::Session) => {
                self.session.policy = PolicyLayer::Unset;
                self.turn.policy = PolicyLayer::Unset;
            }
            (None, false, _) => {}
        }
        let layer = self.at(patch.scope);
        if let Some(text) = patch.system_prompt_append
            && !layer.appends.contains(&text)
            && has_room(layer.appends.iter().map(String::len), text.len(), "systemPromptAppend")
        {
            layer.appends.push(text);
        }
        layer.add_variables(patch.environment);
        for hook in patch.hooks {
            if !layer.hooks.contains(&hook)
                && has_room(layer.hooks.iter().map(|hook| hook.value.len()), hook.value.len(), "hooks")
            {
                layer.hooks.push(hook);
            }
        }
    }

    /// Applies a context patch: it replaces the one before of its scope.
    pub fn apply_context(&mut self, patch: ContextPatch) {
        let ContextPatch { scope, reset, direct, context, .. } = patch;
        let fields = match context::merge(&Value::Object(direct), &Value::Object(context)) {
            Value::Object(fields) if !fields.is_empty() => Some(fields),
            _ => None,
        };
        match scope {
            PatchScope::Session => {
                self.session.context = fields;
                if reset {
                    self.turn.context = None;
                    self.turn.alone = false;
                }
            }
            PatchScope::Turn => {
                self.turn.context = fields;
                self.turn.alone |= reset;
            }
        }
    }

    fn at(&mut self, scope: PatchScope) -> &mut Overlay {
        match scope {
            PatchScope::Turn => self.turn,
            PatchScope::Session => self.session,
        }
    }
}

/// The tool policy in force, if any.
pub(super) fn policy<'a>(session: &'a Overlay, turn: &'a Overlay) -> Option<&'a ToolPolicy> {
    match (&turn.policy, &session.policy) {
        (PolicyLayer::Set(policy), _) | (PolicyLayer::Unset, PolicyLayer::Set(policy)) => Some(policy),
        _ => None,
    }
}

/// The system prompt with what was appended, or `None` where nothing was.
pub(super) fn system_prompt(base: Option<&str>, session: &Overlay, turn: &Overlay) -> Option<String> {
    let fresh = turn.appends.iter().filter(|text| !session.appends.contains(text));
    let appended: Vec<&str> = session.appends.iter().chain(fresh).map(String::as_str).collect();
    if appended.is_empty() {
        return None;
    }
    let texts: Vec<&str> = base.into_iter().chain(appended).collect();
    Some(texts.join(SEPARATOR))
}

/// The runtime context with what was changed, or `None` where nothing was.
pub(super) fn merged_context(base: &Value, session: &Overlay, turn: &Overlay) -> Option<Value> {
    let below = session.context.as_ref().filter(|_| !turn.alone);
    let environment: BTreeMap<_, _> = session.environment.iter().chain(&turn.environment).collect();
    if below.is_none() && turn.context.is_none() && environment.is_empty() {
        return None;
    }
    let mut context = base.clone();
    for fields in [below, turn.context.as_ref()].into_iter().flatten() {
        context = context::merge(&context, &Value::Object(fields.clone()));
    }
    if !environment.is_empty() {
        context = context::merge(&context, &serde_json::json!({ "environment": environment }));
    }
    Some(context)
}
