//! A built-in tool called without a Session: schema, the tool's own checks, and the work. No permissions, no slots, no
//! deadline: whoever calls a tool directly has decided all that.

use serde_json::{Map, Value};

use super::validate::invalid_arguments;
use crate::contract::{
    AnyTool, Arguments, PrepareContext, ToolContext, ToolError, ToolErrorType, ToolFailure, ToolOutcome,
};
use crate::error::{Error, ErrorCode};

/// Runs a tool with parsed parameters.
///
/// # Errors
/// `TOOL_VALIDATION_ERROR` with the issues when the parameters do not match the schema. Everything else is an outcome.
pub async fn run_direct(tool: &dyn AnyTool, params: Value, cx: ToolContext) -> Result<ToolOutcome, Error> {
    let name = &tool.spec().name;
    let Value::Object(mut object) = params else {
        return Err(Error::new(ErrorCode::ToolValidationError, format!("parameters of {name} must be an object")));
    };
    if let Err(issues) = tool.spec().schema.check(&mut object) {
        let ToolFailure { error, .. } = invalid_arguments(name, &issues);
        let details = error.details.unwrap_or(Value::Object(Map::new()));
        return Err(Error::new(ErrorCode::ToolValidationError, error.message).with_details(details));
    }
    if cx.cancel.is_cancelled() {
        let error = ToolError::new(ToolErrorType::Interrupted, "the operation was aborted before it began");
        return Ok(ToolOutcome::Error(error.with_code("ABORT").into()));
    }
    let prepare = PrepareContext {
        session_id: cx.session_id.clone(),
        snapshot: cx.snapshot.clone(),
        permission_mode: cx.permission_mode,
        cancel: cx.cancel.clone(),
    };
    match tool.prepare(Arguments::from_object(object), &prepare).await {
        Ok(prepared) => Ok(tool.execute(prepared.arguments, cx).await),
        Err(failure) => Ok(ToolOutcome::Error(failure)),
    }
}
