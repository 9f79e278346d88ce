//! Stage 2: the arguments are an object that matches the schema, and the tool's own checks hold.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::invoke::contained;
use super::refusal::Refusal;
use super::resolve::Resolved;
use super::{CallContext, Pipeline};
use crate::contract::{Arguments, PrepareContext, Prepared, ToolError, ToolErrorType, ToolFailure};
use crate::registry::Registered;
use crate::schema::{Issue, render_issues};

/// A call whose arguments match.
pub(super) struct Validated {
    pub tool: Registered,
    pub call_id: String,
    pub prepared: Prepared,
}

impl Pipeline {
    /// `given` are arguments that replace those of the model.
    pub(super) async fn validate(
        &self,
        resolved: Resolved<'_>,
        given: Option<Arguments>,
        cx: &CallContext,
    ) -> Result<Validated, Refusal> {
        let Resolved { call, tool } = resolved;
        let mut arguments = match given {
            Some(arguments) => arguments,
            None => parse_arguments(&call.arguments).map_err(|why| invalid_json(&call.name, &why))?,
        };
        self.before_tool(&tool.spec().name, &mut arguments, cx).await?;
        let prepared = self.prepare(&tool, arguments, cx).await?;
        Ok(Validated { tool, call_id: call.id.clone(), prepared })
    }

    /// Schema, defaults and the tool's own checks; used again after each rewrite of the input.
    pub(super) async fn prepare(
        &self,
        tool: &Registered,
        mut arguments: Arguments,
        cx: &CallContext,
    ) -> Result<Prepared, Refusal> {
        let spec = tool.spec();
        match spec.schema.check(&mut arguments.object) {
            Ok(false) => {}
            Ok(true) => arguments.text = None,
            Err(issues) => return Err(invalid_arguments(&spec.name, &issues).into()),
        }
        let prepare = PrepareContext {
            session_id: Some(cx.session_id.clone()),
            snapshot: cx.snapshot.clone(),
            permission_mode: cx.mode,
            cancel: cx.cancel.clone(),
        };
        let checked = Arc::clone(&tool.tool);
        // Boxed and owned: a check that ignores the cancellation goes on behind the cleanup gate.
        let work = Box::pin(contained(async move { checked.prepare(arguments, &prepare).await }));
        match self.cleanup.race("a check of a tool's input", &self.tasks, &cx.cancel, work).await {
            Some(prepared) => {
                let mut prepared = prepared??;
                prepared.behavior = spec.behavior.narrowed(Some(prepared.behavior));
                Ok(prepared)
            }
            None => Err(Refusal::cancelled(&cx.cancel)),
        }
    }
}

/// The failure of arguments that do not match; shared with direct execution.
pub(crate) fn invalid_arguments(tool: &str, issues: &[Issue]) -> ToolFailure {
    let details = serde_json::json!({ "issues": issues });
    ToolError::new(ToolErrorType::ValidationError, render_issues(tool, issues))
        .with_code("TOOL_VALIDATION_ERROR")
        .with_details(details)
        .into()
}

/// Blank text counts as an empty object; anything but an object is refused.
pub(super) fn parse_arguments(text: &str) -> Result<Arguments, String> {
    if text.trim().is_empty() {
        return Ok(Arguments { object: Map::new(), text: Some("{}".to_owned()) });
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Arguments { object, text: Some(text.to_owned()) }),
        Ok(other) => Err(format!("they are {}, not an object", kind_of(&other))),
        Err(error) => Err(error.to_string()),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn invalid_json(tool: &str, why: &str) -> Refusal {
    ToolError::new(
        ToolErrorType::ValidationError,
        format!("arguments of {tool} are not a JSON object ({why}); send them as one complete JSON object"),
    )
    .with_code("INVALID_TOOL_ARGUMENTS")
    .into()
}
