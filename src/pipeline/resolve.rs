//! Stage 1: the tool exists, and nothing hides it from the model.

use serde_json::json;

use super::refusal::Refusal;
use super::{CallContext, Pipeline};
use crate::contract::{ToolError, ToolErrorType};
use crate::model::ToolCall;
use crate::registry::Registered;

/// A call whose tool is known.
pub(super) struct Resolved<'a> {
    pub call: &'a ToolCall,
    pub tool: Registered,
}

impl Pipeline {
    pub(super) fn resolve<'a>(&self, call: &'a ToolCall, cx: &CallContext) -> Result<Resolved<'a>, Refusal> {
        let Some(tool) = self.registry.get(&call.name) else {
            let message = format!("Tool \"{}\" not found; call one of the declared tools", call.name);
            return Err(ToolError::new(ToolErrorType::ExecutionError, message).with_code("TOOL_NOT_FOUND").into());
        };
        if let Some(why) = cx.exposure.uncallable(tool) {
            let message = format!(
                "Tool \"{}\" is not available in this request: {}; call one of the declared tools",
                call.name,
                why.explanation()
            );
            return Err(ToolError::new(ToolErrorType::ExecutionError, message)
                .with_code("TOOL_NOT_AVAILABLE")
                .with_details(json!({ "reason": why.as_str() }))
                .into());
        }
        Ok(Resolved { call, tool: tool.clone() })
    }
}
