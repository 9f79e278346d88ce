//! Shapes that cross to the application and the ports they cross through.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::places::Place;
use crate::contract::{BoxFuture, Input, PermissionMode, SideEffect, ToolKind};
use crate::error::Result;
use crate::host::CancelToken;
use crate::model::PermissionRequestId;

/// Facts about the call beyond its input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMeta {
    /// Resolved side effect.
    #[serde(default = "non_idempotent")]
    pub side_effect: SideEffect,
    /// Resolved: only reads.
    #[serde(default)]
    pub is_read_only: bool,
    /// Resolved: may run beside others on the same file.
    #[serde(default)]
    pub is_concurrency_safe: bool,
    /// Resolved: needs explicit confirmation.
    #[serde(default)]
    pub is_destructive: bool,
    /// `Name` or `Name:<content>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Signatures of what the call consists of, where it is more than one thing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// Other names of the tool: rules that refuse or ask hold under these too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Where the affected paths lead, in their order, by every name rules may know them under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Place>,
    /// Sentence about the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Default for ToolMeta {
    /// The most conservative behaviour, and nothing else known.
    fn default() -> Self {
        Self {
            side_effect: non_idempotent(),
            is_read_only: false,
            is_concurrency_safe: false,
            is_destructive: false,
            signature: None,
            parts: Vec::new(),
            aliases: Vec::new(),
            paths: Vec::new(),
            description: None,
        }
    }
}

fn non_idempotent() -> SideEffect {
    SideEffect::NonIdempotent
}

/// What a permission handler is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// Main name of the tool.
    pub tool_name: String,
    /// Validated input.
    #[serde(default)]
    pub input: Input,
    /// Mode of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// Whether the signature was approved for the Session.
    #[serde(default)]
    pub session_approved: bool,
    /// Paths the call touches.
    #[serde(default)]
    pub affected_paths: Vec<String>,
    /// Resolved kind.
    #[serde(default = "execute")]
    pub tool_kind: ToolKind,
    /// Facts about the call.
    pub tool_meta: ToolMeta,
}

fn execute() -> ToolKind {
    ToolKind::Execute
}

impl PermissionRequest {
    /// The signature rules match on.
    pub fn signature(&self) -> &str {
        self.tool_meta.signature.as_deref().map(str::trim).filter(|s| !s.is_empty()).unwrap_or(&self.tool_name)
    }
}

/// A decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "behavior", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum PermissionDecision {
    /// Run it.
    Allow {
        /// Fields to merge into the input; validated again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_input: Option<Map<String, Value>>,
        /// Rules to add or remove.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_permissions: Option<Value>,
        /// Effects to apply with the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effects: Option<Value>,
    },
    /// Do not run it.
    Deny {
        /// Why, for the model.
        message: String,
        /// End the request after this call.
        #[serde(default)]
        interrupt: bool,
    },
    /// Ask a person.
    Ask {
        /// What to ask.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

impl PermissionDecision {
    /// Plain permission.
    pub const fn allow() -> Self {
        Self::Allow { updated_input: None, updated_permissions: None, effects: None }
    }

    /// Plain refusal.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into(), interrupt: false }
    }

    /// A question.
    pub fn ask(message: impl Into<String>) -> Self {
        Self::Ask { message: Some(message.into()) }
    }
}

/// What a person is asked. The application gets its own copy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmationRequest {
    /// Always `permission` here.
    pub r#type: &'static str,
    /// Id of the question: the one an observer of durable boundaries gave it, where there is one.
    pub permission_request_id: PermissionRequestId,
    /// Resolved kind.
    pub kind: ToolKind,
    /// Tool name.
    pub tool_name: String,
    /// Input as it would run.
    pub args: Input,
    /// Headline.
    pub title: String,
    /// What will happen and why it is asked.
    pub message: String,
    /// Named risks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// Paths the call touches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affected_files: Vec<String>,
}

/// How long an approval lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmationScope {
    /// This call.
    #[default]
    Once,
    /// Calls of the same signature in this Session.
    Session,
}

/// A person's answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Confirmation {
    /// Whether to run it.
    pub approved: bool,
    /// Why not.
    pub reason: Option<String>,
    /// How long the approval lasts.
    pub scope: ConfirmationScope,
    /// Words for the model.
    pub feedback: Option<String>,
}

/// The application's permission handler.
pub trait PermissionPort: Send + Sync {
    /// Decides about a call. The future ends early only when dropped; `cancel` is forwarded to the application.
    ///
    /// # Errors
    /// The handler threw or answered in the wrong form; the call is then refused.
    fn decide<'a>(
        &'a self,
        request: &'a PermissionRequest,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<PermissionDecision>>;
}

/// The application's confirmation handler.
pub trait ConfirmationPort: Send + Sync {
    /// Asks a person. No time limit; `cancel` is forwarded to the application.
    ///
    /// # Errors
    /// The handler threw or answered in the wrong form; the call is then refused.
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Confirmation>>;
}
