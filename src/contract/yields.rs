//! What a running tool reports before its result.

use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::effects::ToolEffect;
use crate::error::Result;

/// One yield of a running tool, in the public shape (`{kind: 'progress' | 'message' | 'effect', …}`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ToolYield {
    /// How far it got. The whole yield object is kept, so that fields survive as given.
    Progress(#[serde(default)] serde_json::Map<String, Value>),
    /// Something to show.
    Message {
        /// `{summary, detail?}`.
        content: Value,
    },
    /// An effect.
    Effect {
        /// The effect.
        effect: ToolEffect,
    },
}

impl ToolYield {
    /// A message with a summary line.
    pub fn message(summary: impl Into<String>) -> Self {
        Self::Message { content: serde_json::json!({ "summary": summary.into() }) }
    }

    /// Progress with a message and data.
    pub fn progress(message: impl Into<String>, data: Value) -> Self {
        let mut map = serde_json::Map::new();
        map.insert("message".into(), Value::String(message.into()));
        map.insert("data".into(), data);
        Self::Progress(map)
    }
}

/// Where yields go. Awaiting the future gives backpressure: a slow consumer slows the tool down.
pub trait YieldSink: Send + Sync {
    /// Whether there is room for a yield. Asked before [`YieldSink::emit`] where the yielder can be told.
    ///
    /// # Errors
    /// `INVALID_TOOL_YIELD`: the call has yielded as much of this kind as one call may.
    fn admit(&self, _item: &ToolYield) -> Result<()> {
        Ok(())
    }

    /// Hands one yield over. Cancelling the future may lose the yield, never an earlier one.
    fn emit(&self, item: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
