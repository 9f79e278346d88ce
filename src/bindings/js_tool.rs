//! A tool written in JavaScript as a tool of the contract. Registry, pipeline and permissions cannot tell.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::js_ports::{ask, until_settled};
use super::mailbox::{About, Answer, Mailbox};
use crate::contract::{
    AnyTool, Arguments, Behavior, BoxFuture, Exposure, InterruptBehavior, ModelContent, PrepareContext, Prepared,
    SideEffect, SourceInfo, Subject, ToolContext, ToolDescription, ToolError, ToolErrorType, ToolFailure, ToolKind,
    ToolOutcome, ToolSpec, ToolSuccess, ToolVerdict,
};
use crate::error::{Cause, Error, ErrorCode, Result};
use crate::permissions::argument_paths;
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
    #[serde(default)]
    runtime: Runtime,
    /// The plugin it belongs to, if any.
    #[serde(default)]
    plugin: Option<String>,
}

/// What only a definition in the runtime protocol can say.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Runtime {
    is_read_only: Option<bool>,
    is_concurrency_safe: Option<bool>,
    is_destructive: Option<bool>,
    interrupt_behavior: Option<InterruptBehavior>,
    max_result_size_chars: Option<NonZeroU32>,
    resolve_behavior: bool,
    validate: bool,
    check_permissions: bool,
}

/// What a resolver said of one call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resolved {
    kind: Option<ToolKind>,
    side_effect: Option<SideEffect>,
    is_read_only: Option<bool>,
    is_concurrency_safe: Option<bool>,
    is_destructive: Option<bool>,
    interrupt_behavior: Option<InterruptBehavior>,
}

impl Resolved {
    fn over(self, declared: Behavior) -> Behavior {
        Behavior {
            kind: self.kind.unwrap_or(declared.kind),
            side_effect: self.side_effect.unwrap_or(declared.side_effect),
            read_only: self.is_read_only.unwrap_or(declared.read_only),
            concurrency_safe: self.is_concurrency_safe.unwrap_or(declared.concurrency_safe),
            destructive: self.is_destructive.unwrap_or(declared.destructive),
            interrupt: self.interrupt_behavior.unwrap_or(declared.interrupt),
        }
    }
}

/// What a tool's own check found wrong.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    message: String,
    model: Option<Value>,
    display: Option<crate::contract::Display>,
    #[serde(default)]
    metadata: Map<String, Value>,
    error_type: Option<ToolErrorType>,
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

/// The tools of a Session's options, with where they come from.
///
/// # Errors
/// `TOOL_DEFINITION_ERROR` naming the tool and what is wrong.
pub fn parse_tools(json: &str, mailbox: &Arc<Mailbox>) -> Result<Vec<(Arc<dyn AnyTool>, SourceInfo)>> {
    let list: Vec<Box<RawValue>> = serde_json::from_str(json)
        .map_err(|error| refused(format!("tools must be an array of definitions: {error}")))?;
    list.iter().enumerate().map(|(index, raw)| parse_tool(index, raw.get(), mailbox)).collect()
}

fn parse_tool(index: usize, json: &str, mailbox: &Arc<Mailbox>) -> Result<(Arc<dyn AnyTool>, SourceInfo)> {
    if let Ok(Builtin { builtin }) = serde_json::from_str(json) {
        let tool = tools::builtin_tools()
            .into_iter()
            .find(|tool| *tool.spec().name == *builtin)
            .ok_or_else(|| refused(format!("tools[{index}]: no built-in tool {builtin}")))?;
        return Ok((tool, SourceInfo::custom()));
    }
    let definition: Definition =
        serde_json::from_str(json).map_err(|error| refused(format!("tools[{index}]{}: {error}", named(json))))?;
    let schema = Schema::compile(definition.parameters.get())
        .map_err(|error| refused(format!("parameters of tool \"{}\": {error}", definition.name)))?;
    let source = definition.plugin.as_deref().map_or_else(SourceInfo::custom, SourceInfo::plugin);
    let Runtime { resolve_behavior, validate, check_permissions, .. } = definition.runtime;
    let mailbox = Arc::clone(mailbox);
    let spec = spec(definition, schema);
    let tool = JsTool { spec, index, mailbox, resolve_behavior, validate, check_permissions };
    Ok((Arc::new(tool), source))
}

/// The name of a definition that cannot be read, where that much can.
fn named(json: &str) -> String {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str(json).map_or_else(|_| String::new(), |Named { name }| format!(" (\"{name}\")"))
}

fn refused(message: String) -> Error {
    Error::new(ErrorCode::ToolDefinitionError, message)
}

fn spec(definition: Definition, schema: Arc<Schema>) -> ToolSpec {
    let kind = definition.kind.unwrap_or(ToolKind::Execute);
    let declared = Behavior::of(kind).with_side_effect(definition.side_effect.unwrap_or(SideEffect::NonIdempotent));
    let runtime = definition.runtime;
    let behavior = Behavior {
        read_only: runtime.is_read_only.unwrap_or(declared.read_only),
        concurrency_safe: runtime.is_concurrency_safe.unwrap_or(declared.concurrency_safe),
        destructive: runtime.is_destructive.unwrap_or(false),
        interrupt: runtime.interrupt_behavior.unwrap_or(InterruptBehavior::Block),
        ..declared
    };
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
        max_result_chars: runtime.max_result_size_chars.map(|chars| chars.get() as usize),
        ..ToolSpec::new(definition.name, description, schema, behavior)
    }
}

struct JsTool {
    spec: ToolSpec,
    /// Place in the facade's list of definitions.
    index: usize,
    mailbox: Arc<Mailbox>,
    resolve_behavior: bool,
    validate: bool,
    check_permissions: bool,
}

impl JsTool {
    /// The tool's own check.
    async fn check(&self, arguments: &Arguments, cx: &PrepareContext) -> std::result::Result<(), ToolFailure> {
        let mode = serde_json::to_string(&cx.permission_mode).unwrap_or_else(|_| "null".to_owned());
        let tail = format!("{},{},{mode}", self.index, arguments.to_json());
        let invalid = |message: String| {
            ToolError::new(ToolErrorType::ValidationError, message).with_code("TOOL_VALIDATION_ERROR")
        };
        match ask::<Option<Found>>(&self.mailbox, "validate", &tail, &cx.cancel).await {
            Ok(None) => Ok(()),
            Ok(Some(Found { message, model, display, metadata, error_type })) => {
                let mut error = invalid(message.clone());
                error.kind = error_type.unwrap_or(error.kind);
                let model = model.map_or(ModelContent::Text(message), ModelContent::from);
                Err(ToolFailure { display, metadata, ..ToolFailure::new(model, error) })
            }
            Err(error) => Err(invalid(format!("the check of {} failed: {}", self.spec.name, error.message)).into()),
        }
    }

    /// What this call does.
    async fn resolve(&self, arguments: &Arguments, cx: &PrepareContext) -> Behavior {
        let declared = self.spec.behavior;
        let tail = format!("{},{}", self.index, arguments.to_json());
        let said = ask::<Resolved>(&self.mailbox, "behavior", &tail, &cx.cancel).await;
        if let Err(error) = &said {
            tracing::warn!(tool = %self.spec.name, %error, "resolveBehavior failed; the call counts as executing");
        }
        declared.narrowed(said.ok().map(|said| said.over(declared)))
    }
}

impl AnyTool for JsTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a PrepareContext,
    ) -> BoxFuture<'a, std::result::Result<Prepared, ToolFailure>> {
        let subject = Subject { affected_paths: argument_paths(&arguments.object), ..Subject::default() };
        if !self.validate && !self.resolve_behavior {
            return Box::pin(std::future::ready(Ok(Prepared { arguments, behavior: self.spec.behavior, subject })));
        }
        Box::pin(async move {
            if self.validate {
                self.check(&arguments, cx).await?;
            }
            let behavior = if self.resolve_behavior { self.resolve(&arguments, cx).await } else { self.spec.behavior };
            Ok(Prepared { arguments, behavior, subject })
        })
    }

    fn judges_itself(&self) -> bool {
        self.check_permissions
    }

    fn permission<'a>(
        &'a self,
        arguments: &'a Arguments,
        cx: &'a PrepareContext,
    ) -> BoxFuture<'a, std::result::Result<ToolVerdict, ToolError>> {
        let mode = serde_json::to_string(&cx.permission_mode).unwrap_or_else(|_| "null".to_owned());
        let tail = format!("{},{},{mode}", self.index, arguments.to_json());
        Box::pin(async move {
            ask(&self.mailbox, "checkPermissions", &tail, &cx.cancel)
                .await
                .map_err(|error| ToolError::new(ToolErrorType::PermissionDenied, error.message))
        })
    }

    fn execute(&self, arguments: Arguments, cx: ToolContext) -> BoxFuture<'_, ToolOutcome> {
        let cx = Arc::new(cx);
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
            let call = self.mailbox.call("tool", &tail, Some(About::Tool(Arc::clone(&cx))));
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
pub(super) fn outcome(json: String) -> ToolOutcome {
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
        #[serde(default, deserialize_with = "given")]
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

/// A field that is there, also where it is `null`.
fn given<'de, D: serde::Deserializer<'de>>(field: D) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
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
                    terminal: false,
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

pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}
