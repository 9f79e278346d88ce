//! Stage 1: the tool exists and is exposed to the model.

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
            return Err(not_found(&call.name, "not found; call one of the declared tools"));
        };
        if !cx.exposure.is_callable(tool) {
            return Err(not_found(&call.name, "not available in this request; call one of the declared tools"));
        }
        Ok(Resolved { call, tool: tool.clone() })
    }
}

fn not_found(name: &str, why: &str) -> Refusal {
    ToolError::new(ToolErrorType::ExecutionError, format!("Tool \"{name}\" {why}")).with_code("TOOL_NOT_FOUND").into()
}
