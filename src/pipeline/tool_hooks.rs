//! The application's hooks around a tool call: before its input is validated, when it is judged, and after its result
//! has its final form.

use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::settle::supersede;
use super::{CallContext, CallReport, Pipeline};
use crate::contract::{Arguments, ModelContent, ToolError, ToolErrorType, ToolFailure};
use crate::error::Error;
use crate::hooks::{HookEvent, HookFailure, Stop, merged_input, merged_output, stop_of};
use crate::model::ToolCall;
use crate::permissions::PermissionRequest;

impl Pipeline {
    /// `PreToolUse`: may change the input, answer in the tool's place, or refuse the call.
    pub(super) async fn before_tool(
        &self,
        name: &str,
        arguments: &mut Arguments,
        cx: &CallContext,
    ) -> Result<(), Refusal> {
        if !self.hooks.has(HookEvent::PreToolUse) {
            return Ok(());
        }
        let outputs = Box::pin(self.hooks.run(HookEvent::PreToolUse, tool_fields(name, &arguments.object), &cx.cancel))
            .await
            .map_err(|failure| hook_failed(HookEvent::PreToolUse, failure, cx))?;
        match stop_of(&outputs) {
            Some(Stop::Skip(reason)) => {
                return Err(Refusal::answered(reason.unwrap_or_else(|| format!("{name} was skipped by a hook"))));
            }
            Some(Stop::Abort(reason)) => {
                return Err(Refusal::denied(reason.unwrap_or_else(|| format!("a hook refused {name}"))));
            }
            None => {}
        }
        arguments.merge(merged_input(&outputs));
        Ok(())
    }

    /// `PermissionRequest`: may refuse the call, or change its input.
    pub(super) async fn hooks_permit(
        &self,
        request: &PermissionRequest,
        cx: &CallContext,
    ) -> Result<Map<String, Value>, Refusal> {
        if !self.hooks.has(HookEvent::PermissionRequest) {
            return Ok(Map::new());
        }
        let mut fields = tool_fields(&request.tool_name, &request.input);
        fields.insert("affectedPaths".to_owned(), json!(request.affected_paths));
        fields.insert("toolKind".to_owned(), json!(request.tool_kind));
        let outputs = Box::pin(self.hooks.run(HookEvent::PermissionRequest, fields, &cx.cancel))
            .await
            .map_err(|failure| hook_failed(HookEvent::PermissionRequest, failure, cx))?;
        let why = |reason: Option<String>| reason.unwrap_or_else(|| "a permission hook refused the call".to_owned());
        match stop_of(&outputs) {
            Some(Stop::Skip(reason)) => Err(Refusal::denied(why(reason))),
            Some(Stop::Abort(reason)) => Err(Refusal::denied(why(reason)).ending_request()),
            None => Ok(merged_input(&outputs)),
        }
    }

    /// `PostToolUse` or `PostToolUseFailure`: may replace what the model is told, or turn the result into a failure.
    /// A failure never becomes a success, and a cancelled call runs no hooks.
    pub(super) async fn after_tool(&self, call: &ToolCall, cx: &CallContext, report: &mut CallReport) {
        let failed = report.outcome.is_error();
        let event = if failed { HookEvent::PostToolUseFailure } else { HookEvent::PostToolUse };
        if cx.cancel.is_cancelled() || !self.hooks.has(event) {
            return;
        }
        let name = self.registry.get(&call.name).map_or_else(|| call.name.clone(), |tool| tool.spec().name.to_string());
        let input = match crate::schema::read(&report.input) {
            Ok(Value::Object(object)) => object,
            _ => Map::new(),
        };
        let mut fields = tool_fields(&name, &input);
        fields.insert("toolOutput".to_owned(), json!(report.outcome.model()));
        if let Some(error) = report.outcome.error() {
            let name = if error.kind == ToolErrorType::TimeoutError { "TimeoutError" } else { "Error" };
            fields.insert("error".to_owned(), json!({ "name": name, "message": error.message, "code": error.code }));
        }
        match Box::pin(self.hooks.run(event, fields, &cx.cancel)).await {
            Ok(outputs) => {
                if let Some(output) = merged_output(&outputs) {
                    *report.outcome.model_mut() = match output {
                        Value::String(text) => ModelContent::Text(text),
                        other => ModelContent::Text(other.to_string()),
                    };
                }
                if let Some(Stop::Abort(reason)) = stop_of(&outputs) {
                    let reason = reason.unwrap_or_else(|| format!("a hook refused the result of {name}"));
                    supersede(report, rejected(reason));
                }
            }
            Err(HookFailure::Cancelled) => {}
            Err(HookFailure::Failed(error)) if failed => {
                tracing::warn!(tool = %name, %error, "a PostToolUseFailure hook failed; the call's own error stays");
            }
            Err(HookFailure::Failed(error)) => supersede(report, broken(event, &error)),
        }
    }
}

fn tool_fields(name: &str, input: &Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([
        ("toolName".to_owned(), Value::String(name.to_owned())),
        ("toolInput".to_owned(), Value::Object(input.clone())),
    ])
}

fn rejected(reason: String) -> ToolFailure {
    ToolFailure::new(
        format!("Tool execution aborted: {reason}"),
        ToolError::new(ToolErrorType::ExecutionError, reason).with_code("HOOK_ABORTED"),
    )
}

fn broken(event: HookEvent, error: &Error) -> ToolFailure {
    let message = format!("a {} hook failed: {}", event.as_str(), error.message);
    let kind = if error.code == crate::error::ErrorCode::HookTimeout {
        ToolErrorType::TimeoutError
    } else {
        ToolErrorType::ExecutionError
    };
    ToolFailure::new(
        format!("Tool execution aborted: {message}"),
        ToolError::new(kind, message).with_code(error.code.as_str()),
    )
}

fn hook_failed(event: HookEvent, failure: HookFailure, cx: &CallContext) -> Refusal {
    match failure {
        HookFailure::Cancelled => Refusal::cancelled(&cx.cancel),
        HookFailure::Failed(error) => broken(event, &error).into(),
    }
}
