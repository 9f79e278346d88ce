//! Plain data: ids, messages, tool calls, usage and Session events. No I/O, no runtime.

mod events;
mod ids;
mod message;
mod usage;

pub use events::{ResultSubtype, SessionEvent};
pub use ids::{ExecutionId, InputId, MessageId, PermissionRequestId, RequestId, SessionId, ToolUseId};
pub use message::{Content, ContentPart, ImageUrl, Message, Provenance, Role, ToolCall};
pub use usage::{ModelUsage, TokenUsage};
