//! What tools change in their Session: the one place where effects of calls that ended in success are applied.
//!
//! Effects are collected while a call runs and published at once; they are applied here after the results of the turn,
//! in the declared order of the calls. Changes of scope `turn` end with the request, because they live in
//! [`RequestEffects`]; those of scope `session` live in [`SessionEffects`].

mod overlay;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use self::overlay::{Layers, Overlay};
use super::driver::RequestOptions;
use crate::context;
use crate::contract::{
    ContextSnapshot, ModelOverride, PatchScope, PromptHook, RuntimePatch, ToolDiscovery, ToolEffect, TrustLevel,
};
use crate::model::{Content, ContentPart, Message, Provenance, Role};
use crate::pipeline::Pipeline;
use crate::registry::{ExposurePolicy, ToolRegistry};

/// Id of the Session's own model.
const DEFAULT_MODEL: &str = "default";

/// What effects of tools changed for the rest of a Session; shared by its requests.
#[derive(Debug, Default)]
pub struct SessionEffects {
    state: Mutex<State>,
}

#[derive(Debug, Clone, Default)]
struct State {
    overlay: Overlay,
    discovered: HashSet<String>,
}

impl SessionEffects {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same changes for a Session that goes on from here.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { state: Mutex::new(self.lock().clone()) }
    }

    /// Forgets what tools changed of the runtime context: the application gave another one.
    pub fn forget_context(&self) {
        self.lock().overlay.forget_context();
    }

    /// The user's message followed by the texts that tools registered for it, each after a blank line. Texts for one
    /// message only are used up.
    pub fn with_prompts(&self, content: Content) -> Content {
        let hooks = &mut self.lock().overlay.hooks;
        if hooks.is_empty() {
            return content;
        }
        let content = hooks.iter().fold(content, followed_by);
        hooks.retain(|hook| !hook.once);
        content
    }
}

fn followed_by(content: Content, hook: &PromptHook) -> Content {
    let join = |text: &str| if text.is_empty() { hook.value.clone() } else { format!("{text}\n\n{}", hook.value) };
    match content {
        Content::Text(text) => Content::Text(join(&text)),
        Content::Parts(mut parts) => {
            let last = parts.iter_mut().rev().find_map(|part| match part {
                ContentPart::Text { text, .. } => Some(text),
                ContentPart::ImageUrl { .. } => None,
            });
            match last {
                Some(text) => *text = join(text),
                None => parts.insert(0, ContentPart::Text { text: hook.value.clone(), provider_options: None }),
            }
            Content::Parts(parts)
        }
    }
}

/// What the effects so far amount to for the turns of one request.
pub(super) struct RequestEffects<'a> {
    options: &'a RequestOptions,
    turn: Overlay,
    snapshot: Arc<ContextSnapshot>,
    system: Option<Arc<Message>>,
}

impl<'a> RequestEffects<'a> {
    pub fn new(options: &'a RequestOptions) -> Self {
        let (snapshot, system) = (options.snapshot.clone(), options.system.clone());
        let mut effects = Self { options, turn: Overlay::default(), snapshot, system };
        effects.refresh();
        effects
    }

    /// The runtime context of the calls that follow.
    pub fn snapshot(&self) -> Arc<ContextSnapshot> {
        self.snapshot.clone()
    }

    /// The system prompt of the turns that follow.
    pub fn system(&self) -> Option<Arc<Message>> {
        self.system.clone()
    }

    /// What the turns that follow may show and call.
    pub fn exposure(&self) -> ExposurePolicy {
        let state = self.options.effects.lock();
        ExposurePolicy {
            mode: self.options.mode,
            sources: self.options.sources.clone(),
            tools: overlay::policy(&state.overlay, &self.turn).cloned(),
            discovered: state.discovered.clone(),
        }
    }

    /// Applies the effects of a call that ended in success, in the order of its yields, and gives the messages that
    /// follow the results of the turn. Only the first runtime patch of a call counts.
    pub fn apply(&mut self, pipeline: &Pipeline, tool: &str, effects: Vec<ToolEffect>) -> Vec<Message> {
        let mut injected = Vec::new();
        if effects.is_empty() {
            return injected;
        }
        let registry = pipeline.registry();
        // A result that hooks gave in the place of a tool has no effects, so the tool is there.
        let trust = registry.get(tool).map_or(TrustLevel::Remote, |tool| tool.source.trust_level);
        let mut patched = false;
        for effect in effects {
            if let Some(why) = refusal(&effect, trust) {
                tracing::warn!(tool, why, "an effect of a remote tool is not applied");
                continue;
            }
            match effect {
                ToolEffect::RuntimePatch { patch } => {
                    if !std::mem::replace(&mut patched, true) {
                        self.apply_runtime(registry, *patch);
                    }
                }
                ToolEffect::ContextPatch { patch } => {
                    let mut state = self.options.effects.lock();
                    Layers { session: &mut state.overlay, turn: &mut self.turn }.apply_context(patch);
                }
                ToolEffect::NewMessages { messages } => injected.extend(injectable(messages, trust)),
                ToolEffect::PermissionUpdates { updates } => hand_over_permission_updates(pipeline, tool, &updates),
            }
        }
        self.refresh();
        injected
    }

    fn apply_runtime(&mut self, registry: &ToolRegistry, mut patch: RuntimePatch) {
        if let Some(model) = &patch.model {
            check_model(model, &self.options.model_name);
        }
        if patch.scope == PatchScope::Turn {
            // The message of this request is sent already, and none joins it later.
            patch.hooks.clear();
        }
        let mut state = self.options.effects.lock();
        if let Some(discovery) = &patch.discovery {
            discover(&mut state.discovered, registry, discovery);
        }
        Layers { session: &mut state.overlay, turn: &mut self.turn }.apply_runtime(patch);
    }

    /// Makes what the layers amount to. Values that nobody changed stay the same, so that requests share their prefix.
    fn refresh(&mut self) {
        let options = self.options;
        let state = options.effects.lock();
        let base = options.system.as_ref().map(|message| message.content.text());
        self.system = match overlay::system_prompt(base.as_deref(), &state.overlay, &self.turn) {
            None => options.system.clone(),
            Some(text) => match &self.system {
                Some(known) if known.content.text() == text => Some(known.clone()),
                _ => Some(Arc::new(Message::system(text))),
            },
        };
        let base = &options.snapshot;
        self.snapshot = match overlay::merged_context(&base.context, &state.overlay, &self.turn) {
            None => base.clone(),
            Some(merged) => match context::snapshot(&base.session_id, &base.turn_id, merged) {
                Ok(snapshot) => Arc::new(snapshot),
                Err(error) => {
                    // Patches are checked when they are yielded; whatever slipped through changes nothing.
                    tracing::warn!(%error, "the patched runtime context cannot be used and stays as it was");
                    self.snapshot.clone()
                }
            },
        };
    }
}

/// Why an effect is not applied. What a remote tool sends is somebody else's text: it must not widen what calls may
/// reach, choose what their processes are given, speak as the system or permit itself anything.
fn refusal(effect: &ToolEffect, trust: TrustLevel) -> Option<&'static str> {
    match (trust, effect) {
        (TrustLevel::Trusted | TrustLevel::Workspace, _) => None,
        (TrustLevel::Remote, ToolEffect::RuntimePatch { .. }) => Some("it changes policy, prompt or environment"),
        (TrustLevel::Remote, ToolEffect::ContextPatch { patch }) if patch.changes_reach() => {
            Some("it changes capabilities or environment")
        }
        (TrustLevel::Remote, ToolEffect::PermissionUpdates { .. }) => Some("it changes permissions"),
        (TrustLevel::Remote, ToolEffect::ContextPatch { .. } | ToolEffect::NewMessages { .. }) => None,
    }
}

/// The one place where permission updates of successful calls leave for the pipeline, which owns the rules of the
/// Session.
fn hand_over_permission_updates(pipeline: &Pipeline, tool: &str, updates: &Value) {
    if let Err(error) = pipeline.apply_permission_updates(updates) {
        // Updates are checked when they are yielded.
        tracing::warn!(tool, %error, "permission updates of a tool mean nothing and are left out");
    }
}

/// Adds tools to those that are declared. Names nobody has are left out: they would only grow the set.
fn discover(discovered: &mut HashSet<String>, registry: &ToolRegistry, discovery: &ToolDiscovery) {
    if discovery.reset {
        discovered.clear();
    }
    for name in &discovery.discover {
        match registry.get(name) {
            Some(tool) => drop(discovered.insert(tool.spec().name.to_string())),
            None => tracing::debug!(%name, "there is no tool of this name to discover"),
        }
    }
}

/// A Session of this version has one model, so an override either names it or cannot be followed.
fn check_model(model: &ModelOverride, name: &str) {
    if model.model_id != DEFAULT_MODEL && model.model_id != name {
        tracing::warn!(model = %model.model_id, "modelOverride names a model that is not configured and is ignored");
    } else if model.effort.is_some() {
        tracing::debug!("modelOverride.effort is not applied by this version");
    }
}

/// The messages of a tool that can stand in a conversation. Calls and results come in pairs that only the Session
/// makes: an injected half would spoil every later request.
fn injectable(messages: Value, trust: TrustLevel) -> Vec<Message> {
    let messages = match serde_json::from_value::<Vec<Message>>(messages) {
        Ok(messages) => messages,
        Err(error) => {
            tracing::warn!(%error, "newMessages of a tool are not messages and are left out");
            return Vec::new();
        }
    };
    let stands = |message: &Message| {
        let alone = message.role != Role::Tool && message.tool_calls.is_empty();
        let trusted = message.role != Role::System || trust != TrustLevel::Remote;
        if !(alone && trusted) {
            tracing::warn!("newMessages of a tool hold a call, a result or a remote system message, which is left out");
        }
        alone && trusted
    };
    let mut messages: Vec<Message> = messages.into_iter().filter(stands).collect();
    for message in messages.iter_mut().filter(|message| message.role == Role::System) {
        message.provenance = Some(Provenance::ToolInjection);
    }
    messages
}
