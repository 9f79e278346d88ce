//! Stage 2: the arguments are an object that matches the schema, and the tool's own checks hold.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::invoke::contained;
use super::refusal::Refusal;
use super::resolve::Resolved;
use super::{CallContext, Pipeline};
use crate::contract::{Arguments, Input, Prepared, ToolError, ToolErrorType, ToolFailure};
use crate::hooks::HookEvent;
use crate::model::ToolCall;
use crate::registry::Registered;
use crate::schema::{self, Issue, Schema, render_issues};

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
        let spec = tool.spec();
        let unseen = given.is_none() && !self.hooks.has(HookEvent::PreToolUse);
        let prepared = match unseen.then(|| spec.schema.matches(&call.arguments)).flatten() {
            // Nobody looks at the object before the tool, so it is not even made.
            Some(matched) => {
                let input = Input::matched(&call.arguments, matched);
                self.prepare_valid(&tool, Arguments::new(input), cx).await?
            }
            None => {
                let mut arguments = match given {
                    Some(arguments) => arguments,
                    None => parse_arguments(&call.arguments, Some(&spec.schema))
                        .map_err(|why| invalid_json(&call.name, &why))?,
                };
                self.before_tool(&spec.name, &mut arguments, cx).await?;
                self.prepare(&tool, arguments, cx).await?
            }
        };
        Ok(Validated { tool, call_id: call.id.clone(), prepared })
    }

    /// The arguments of a call as an object, where they are one.
    pub(super) fn arguments_of(&self, call: &ToolCall) -> Option<Arguments> {
        let tool = self.registry.get(&call.name);
        parse_arguments(&call.arguments, tool.map(|tool| &*tool.spec().schema)).ok()
    }

    /// Schema, defaults and the tool's own checks: once for the input as it came, and once for each rewrite.
    pub(super) async fn prepare(
        &self,
        tool: &Registered,
        arguments: Arguments,
        cx: &CallContext,
    ) -> Result<Prepared, Refusal> {
        let spec = tool.spec();
        let text = arguments.object.text().map(str::to_owned);
        let mut object = arguments.object.into_object();
        let input = match (spec.schema.check(&mut object), text) {
            (Ok(false), Some(text)) => Input::parsed(&text, object),
            (Ok(_), _) => object.into(),
            (Err(issues), _) => return Err(invalid_arguments(&spec.name, &issues).into()),
        };
        self.prepare_valid(tool, Arguments::new(input), cx).await
    }

    /// The tool's own checks on arguments that match its schema.
    async fn prepare_valid(
        &self,
        tool: &Registered,
        arguments: Arguments,
        cx: &CallContext,
    ) -> Result<Prepared, Refusal> {
        let prepare = cx.preparing();
        let checked = Arc::clone(&tool.tool);
        // Boxed and owned: a check that ignores the cancellation goes on behind the cleanup gate.
        let work = Box::pin(contained(async move { checked.prepare(arguments, &prepare).await }));
        match self.cleanup.race("a check of a tool's input", &self.tasks, &cx.cancel, work).await {
            Some(prepared) => {
                let mut prepared = prepared??;
                prepared.behavior = tool.spec().behavior.narrowed(Some(prepared.behavior));
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
fn parse_arguments(text: &str, schema: Option<&Schema>) -> Result<Arguments, String> {
    if text.trim().is_empty() {
        return Ok(Arguments::new(Input::parsed("{}", Map::new())));
    }
    match schema::read(text) {
        Ok(Value::Object(object)) => {
            let mut arguments = Arguments::new(Input::parsed(text, object));
            if let Some(schema) = schema {
                repair(&mut arguments, schema);
            }
            Ok(arguments)
        }
        Ok(other) => Err(format!("they are {}, not an object", kind_of(&other))),
        Err(error) => Err(error.to_string()),
    }
}

/// The field whose list models like to send as the text of a list.
const TODOS: &str = "todos";

/// A string `todos` is read as the JSON it holds, where the schema wants a list there and nothing else. No other field is
/// guessed at: a tool that runs with what nobody wrote is worse than one that is called again.
fn repair(arguments: &mut Arguments, schema: &Schema) {
    let Some(Value::String(text)) = arguments.object.get(TODOS) else { return };
    let wanted = schema.value().pointer("/properties/todos/type");
    if wanted.and_then(Value::as_str) != Some("array") {
        return;
    }
    if let Ok(list @ Value::Array(_)) = schema::read(text) {
        arguments.set(TODOS, list);
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

#[cfg(test)]
mod tests;
