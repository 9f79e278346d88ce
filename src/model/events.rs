//! Events of a Session's stream, except the text deltas, which never become objects on this side.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::usage::TokenUsage;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultSubtype {
    /// The model finished.
    Success,
    /// It did not.
    Error,
}

/// One event of the stream. `content` and `thinking` deltas travel apart, as packed text; every event
/// gets its `sessionId` on the JavaScript side.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum SessionEvent {
    /// A turn begins.
    TurnStart {
        /// Turn number, from 1 within the request.
        turn: u32,
    },
    /// A turn is over.
    TurnEnd {
        /// Turn number.
        turn: u32,
    },
    /// The model called a tool.
    ToolUse {
        /// Call id.
        id: String,
        /// Tool name as the model wrote it.
        name: String,
        /// Parsed arguments, or the raw string where they are not JSON.
        input: Box<RawValue>,
    },
    /// A progress yield of a running tool.
    ToolProgress {
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
        /// The whole yield.
        progress: Value,
    },
    /// A message yield of a running tool.
    ToolMessage {
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
        /// `{summary, detail?}`.
        content: Value,
    },
    /// A `runtimePatch` effect.
    ToolRuntimePatch {
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
        /// The patch.
        patch: Value,
    },
    /// A `contextPatch` effect.
    ToolContextPatch {
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
        /// The patch.
        patch: Value,
    },
    /// A `newMessages` effect.
    ToolNewMessages {
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
        /// The messages.
        messages: Value,
    },
    /// A `permissionUpdates` effect.
    ToolPermissionUpdates {
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
        /// The updates.
        updates: Value,
    },
    /// A tool call has its result.
    ToolResult {
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
        /// What the model is told.
        output: Box<RawValue>,
        /// What a user interface may show.
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<Value>,
        /// Whether the call failed.
        is_error: bool,
    },
    /// Token counts of the whole request.
    Usage {
        /// The counts.
        usage: TokenUsage,
    },
    /// The request is over.
    Result {
        /// How it ended.
        subtype: ResultSubtype,
        /// The final text.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The request failed.
    Error {
        /// What happened and what to do.
        message: String,
        /// Stable code.
        code: &'static str,
    },
}
