//! The events, what a callback answers, and the port to the application's callbacks.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::contract::BoxFuture;
use crate::error::Result;
use crate::host::CancelToken;

/// When a hook runs. The public text equals the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HookEvent {
    /// The Session was opened.
    SessionStart,
    /// A message was accepted, before any model call.
    UserPromptSubmit,
    /// A tool call is about to be validated.
    PreToolUse,
    /// A tool call is about to be judged.
    PermissionRequest,
    /// A tool call succeeded.
    PostToolUse,
    /// A tool call failed, or was refused.
    PostToolUseFailure,
    /// A request succeeded.
    TaskCompleted,
    /// The Session closes.
    SessionEnd,
}

impl HookEvent {
    /// The public text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::TaskCompleted => "TaskCompleted",
            Self::SessionEnd => "SessionEnd",
        }
    }
}

/// How many callbacks each event has. Events without any never cross to the application.
pub type HookCounts = HashMap<HookEvent, usize>;

/// What a callback wants to happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookAction {
    /// Go on.
    #[default]
    Continue,
    /// Do not do it, and call that a success.
    Skip,
    /// Do not do it, and call that a failure.
    Abort,
}

/// What a callback answers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookOutput {
    /// What shall happen.
    pub action: HookAction,
    /// Fields to merge into the input.
    #[serde(default)]
    pub modified_input: Option<Map<String, Value>>,
    /// What the model is told instead.
    #[serde(default)]
    pub modified_output: Option<Value>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The application's callbacks.
pub trait HookPort: Send + Sync {
    /// Runs the `index`-th callback of an event. `input` is JSON text; `cancel` is forwarded to the callback.
    ///
    /// # Errors
    /// The callback threw, or answered in the wrong form.
    fn run<'a>(
        &'a self,
        event: HookEvent,
        index: usize,
        input: &'a str,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<HookOutput>>;
}
