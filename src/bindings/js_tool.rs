//! A tool written in JavaScript as a tool of the contract. Registry, pipeline and permissions cannot tell.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::js_ports::until_settled;
use super::mailbox::{Answer, Mailbox};
use crate::contract::{
    AnyTool, Arguments, Behavior, BoxFuture, Exposure, Input, ModelContent, PrepareContext, Prepared, SideEffect,
    Subject, ToolContext, ToolDescription, ToolError, ToolErrorType, ToolFailure, ToolKind, ToolOutcome, ToolSpec,
    ToolSuccess,
};
use crate::error::{Cause, Error, ErrorCode, Result};
use crate::schema::Schema;
use crate::tools;

/// A definition as the facade sends it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    display_name: Option<String>,
    description: Description,
    parameters: Box<RawValue>,
    #[serde(default)]
    kind: Option<ToolKind>,
    #[serde(default)]
    side_effect: Option<SideEffect>,
    #[serde(default)]
    group: Option<String>,
    #[serde(default)]
    exposure: Option<Exposure>,
    #[serde(default)]
    services: Vec<String>,
    #[serde(default)]
    requires_runtime: bool,
}

/// A built-in tool that was handed in as a definition: it is registered as itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Builtin {
    builtin: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Description {
    Text(String),
    Structured(ToolDescription),
}

/// The tools of a Session's options.
///
/// # Errors
/// `TOOL_DEFINITION_ERROR` naming the tool and what is wrong.
pub fn parse_tools(json: &str, mailbox: &Arc<Mailbox>) -> Result<Vec<Arc<dyn AnyTool>>> {
    let bad = |message: String| Error::new(ErrorCode::ToolDefinitionError, message);
    let list: Vec<Box<RawValue>> =
        serde_json::from_str(json).map_err(|error| bad(format!("tools must be an array of definitions: {error}")))?;
    list.iter()
        .enumerate()
        .map(|(index, raw)| {
            if let Ok(Builtin { builtin }) = serde_json::from_str(raw.get()) {
                return tools::builtin_tools()
                    .into_iter()
                    .find(|tool| *tool.spec().name == *builtin)
                    .ok_or_else(|| bad(format!("tools[{index}]: no built-in tool {builtin}")));
            }
            let definition: Definition =
                serde_json::from_str(raw.get()).map_err(|error| bad(format!("tools[{index}]: {error}")))?;
            let schema = Schema::compile(definition.parameters.get())
                .map_err(|error| bad(format!("parameters of tool \"{}\": {error}", definition.name)))?;
            let tool = JsTool { spec: spec(definition, schema), index, mailbox: Arc::clone(mailbox) };
            Ok(Arc::new(tool) as Arc<dyn AnyTool>)
        })
        .collect()
}

fn spec(definition: Definition, schema: Arc<Schema>) -> ToolSpec {
    let kind = definition.kind.unwrap_or(ToolKind::Execute);
    let behavior = Behavior::of(kind).with_side_effect(definition.side_effect.unwrap_or(SideEffect::NonIdempotent));
    let description = match definition.description {
        Description::Text(text) => text,
        Description::Structured(parts) => parts.render(),
    };
    ToolSpec {
        aliases: definition.aliases.into_iter().map(Arc::from).collect(),
        display_name: definition.display_name,
        group: definition.group,
        exposure: definition.exposure.unwrap_or_default(),
        services: definition.services,
        requires_runtime: definition.requires_runtime,
        ..ToolSpec::new(definition.name, description, schema, behavior)
    }
}

struct JsTool {
    spec: ToolSpec,
    /// Place in the facade's list of definitions.
    index: usize,
    mailbox: Arc<Mailbox>,
}

impl AnyTool for JsTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a PrepareContext,
    ) -> BoxFuture<'a, std::result::Result<Prepared, ToolFailure>> {
        let subject = Subject { affected_paths: affected_paths(&arguments.object), ..Subject::default() };
        Box::pin(std::future::ready(Ok(Prepared { arguments, behavior: self.spec.behavior, subject })))
    }

    fn execute(&self, arguments: Arguments, cx: ToolContext) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let message = cx.message_id.as_ref().map_or("", |id| id.as_str());
            let tail = [
                self.index.to_string(),
                arguments.to_json(),
                quoted(cx.call_id.as_str()),
                quoted(message),
                serde_json::to_string(&cx.permission_mode).unwrap_or_else(|_| "null".to_owned()),
            ]
            .join(",");
            let call = self.mailbox.call("tool", &tail, Some(Arc::clone(&cx.yields)));
            match until_settled(call, &cx.cancel).await {
                Ok(Answer::Text(text)) => ToolOutcome::Success(success(ModelContent::Text(text))),
                Ok(Answer::Json(json)) => outcome(json),
                Ok(Answer::Thrown(cause)) => ToolOutcome::Error(thrown(&cause)),
                Err(error) => ToolOutcome::Error(
                    ToolError::new(ToolErrorType::Interrupted, error.message).with_code(error.code.as_str()).into(),
                ),
            }
        })
    }
}

fn success(model: ModelContent) -> ToolSuccess {
    let data = Some(model.to_raw());
    ToolSuccess { data, ..ToolSuccess::new(model) }
}

/// JSON text of a plain result, or of a whole `ToolResult` behind the facade's mark.
fn outcome(json: String) -> ToolOutcome {
    match json.strip_prefix('\u{1}') {
        None => match RawValue::from_string(json) {
            Ok(raw) => ToolOutcome::Success(success(ModelContent::Json(raw))),
            Err(error) => ToolOutcome::Error(broken(&format!("the result is not JSON: {error}"))),
        },
        Some(result) => match serde_json::from_str::<WholeResult>(result) {
            Ok(result) => result.into(),
            Err(error) => ToolOutcome::Error(broken(&format!("the result is not a ToolResult: {error}"))),
        },
    }
}

/// A `ToolResult` returned by the generator protocol.
#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum WholeResult {
    Success {
        model: Value,
        #[serde(default)]
        display: Option<crate::contract::Display>,
        #[serde(default)]
        data: Option<Value>,
        #[serde(default)]
        metadata: Map<String, Value>,
    },
    Error {
        model: Value,
        #[serde(default)]
        display: Option<crate::contract::Display>,
        error: WholeError,
        #[serde(default)]
        metadata: Map<String, Value>,
    },
}

#[derive(Deserialize)]
struct WholeError {
    message: String,
    r#type: ToolErrorType,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    details: Option<Value>,
}

impl From<WholeResult> for ToolOutcome {
    fn from(result: WholeResult) -> Self {
        match result {
            WholeResult::Success { model, display, data, metadata } => Self::Success(ToolSuccess {
                model: model.into(),
                display,
                data: data.and_then(|data| serde_json::value::to_raw_value(&data).ok()),
                metadata,
            }),
            WholeResult::Error { model, display, error, metadata } => Self::Error(ToolFailure {
                model: model.into(),
                display,
                error: ToolError {
                    message: error.message,
                    kind: error.r#type,
                    code: error.code,
                    details: error.details,
                },
                metadata,
            }),
        }
    }
}

fn thrown(cause: &Cause) -> ToolFailure {
    let details = serde_json::to_value(cause).unwrap_or_default();
    let mut error = ToolError::new(ToolErrorType::ExecutionError, cause.message.clone()).with_details(details);
    error.code.clone_from(&cause.code);
    ToolFailure::new(format!("Tool execution failed: {}", cause.message), error)
}

fn broken(why: &str) -> ToolFailure {
    ToolFailure::new(
        format!("Tool execution failed: {why}"),
        ToolError::new(ToolErrorType::ExecutionError, why).with_code("INVALID_TOOL_RESULT"),
    )
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

/// Parameters that name paths by convention: `path`, `file`, `directory`, `*_path`, `*Path`, and the
/// arrays `paths` and `files`.
fn affected_paths(input: &Input) -> Vec<String> {
    let names_one =
        |key: &str| matches!(key, "path" | "file" | "directory") || key.ends_with("_path") || key.ends_with("Path");
    let names_many = |key: &str| matches!(key, "paths" | "files");
    let mut paths: Vec<String> = Vec::new();
    // Most inputs name none, which their text tells.
    if !input.has_key(|key| names_one(key) || names_many(key)) {
        return paths;
    }
    let mut add = |value: &Value| {
        if let Some(path) = value.as_str().map(str::trim).filter(|path| !path.is_empty())
            && !paths.iter().any(|known| known == path)
        {
            paths.push(path.to_owned());
        }
    };
    for (key, value) in input {
        if names_one(key) {
            add(value);
        } else if names_many(key) {
            value.as_array().into_iter().flatten().for_each(&mut add);
        }
    }
    paths
}
