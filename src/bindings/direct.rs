//! Built-in tools called directly from JavaScript (`getBuiltinTools()`).

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use napi::bindgen_prelude::External;
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value, json};

use super::env::NativeEnv;
use super::error::thrown;
use super::mailbox::{Answer, Mailbox};
use crate::contract::{ContextSnapshot, PermissionMode, ToolContext, ToolServices, ToolYield, YieldSink};
use crate::error::{Error, ErrorCode};
use crate::host::{CancelReason, CancelToken, EnvSnapshot, Tasks};
use crate::model::{MessageId, SessionId, ToolUseId};
use crate::{pipeline, session, tools};

/// The direct calls of one environment.
pub struct NativeDirect {
    mailbox: Arc<Mailbox>,
    tasks: Tasks,
    running: Arc<Mutex<HashMap<u32, CancelToken>>>,
}

impl Drop for NativeDirect {
    fn drop(&mut self) {
        self.mailbox.retire();
        for cancel in self.running.lock().unwrap_or_else(PoisonError::into_inner).values() {
            cancel.cancel(CancelReason::Gone);
        }
    }
}

/// Opens the mailbox of direct calls.
#[napi(catch_unwind)]
pub fn open_direct(env: &External<NativeEnv>, key: u32) -> External<NativeDirect> {
    External::new(NativeDirect { mailbox: env.port.open(key), tasks: Tasks::new(), running: Arc::default() })
}

/// The built-in tools as JSON text: what a `ToolDefinition` shows of them.
#[napi(catch_unwind)]
pub fn builtin_tools() -> String {
    let list: Vec<Value> = tools::builtin_tools()
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            json!({
                "name": spec.name,
                "displayName": spec.display_name,
                "description": spec.description,
                "parameters": spec.schema.value(),
                "kind": spec.behavior.kind,
                "sideEffect": spec.behavior.side_effect,
                "group": spec.group,
                "exposure": spec.exposure,
                "services": spec.services,
                "requiresRuntime": spec.requires_runtime,
            })
        })
        .collect();
    Value::Array(list).to_string()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DirectContext {
    session_id: Option<String>,
    message_id: Option<String>,
    permission_mode: Option<PermissionMode>,
    context_snapshot: Option<ContextSnapshot>,
    aborted: bool,
}

struct MailboxYields {
    mailbox: Arc<Mailbox>,
    operation: u32,
}

impl YieldSink for MailboxYields {
    fn emit(&self, item: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let Ok(item) = serde_json::to_string(&item) else { return };
            let mut call = self.mailbox.call("yield", &format!("{},{item}", self.operation), None);
            // Answered when the consumer took it; an environment that ended takes nothing any more.
            let _ = call.answer().await;
        })
    }
}

/// Starts a direct call; `operation` is completed with the `ToolResult`.
#[napi(catch_unwind)]
pub fn run_builtin(
    direct: &External<NativeDirect>,
    operation: u32,
    name: String,
    params: String,
    context: String,
) -> napi::Result<()> {
    let tool = tools::builtin_tools()
        .into_iter()
        .find(|tool| *tool.spec().name == *name)
        .ok_or_else(|| thrown(&Error::internal(format!("no built-in tool {name}"))))?;
    let params: Value = serde_json::from_str(&params).map_err(|error| thrown(&Error::internal(error.to_string())))?;
    let context: DirectContext = serde_json::from_str(&context)
        .map_err(|error| thrown(&Error::config(format!("execution context: {error}"))))?;
    let cancel = CancelToken::new();
    if context.aborted {
        cancel.cancel(CancelReason::Abort);
    }
    let mailbox = Arc::clone(&direct.mailbox);
    let cx = ToolContext {
        services: ToolServices::default(),
        call_id: ToolUseId::generate(),
        session_id: context.session_id.map(SessionId::new),
        message_id: context.message_id.map(MessageId::new),
        snapshot: Arc::new(context.context_snapshot.unwrap_or_default()),
        permission_mode: context.permission_mode.unwrap_or_default(),
        cancel: cancel.clone(),
        host_env: EnvSnapshot::capture(),
        yields: Arc::new(MailboxYields { mailbox: Arc::clone(&mailbox), operation }),
    };
    let handle = session::runtime().map_err(|error| thrown(&error))?;
    let running = Arc::clone(&direct.running);
    running.lock().unwrap_or_else(PoisonError::into_inner).insert(operation, cancel);
    let task = direct.tasks.spawn_on(async move { pipeline::run_direct(&*tool, params, cx).await }, &handle);
    direct.tasks.spawn_on(
        async move {
            let outcome = task.await.unwrap_or_else(|failure| {
                Err(Error::new(ErrorCode::Internal, format!("internal failure in the tool: {failure}")))
            });
            running.lock().unwrap_or_else(PoisonError::into_inner).remove(&operation);
            match outcome.map(|outcome| serde_json::to_string(&outcome)) {
                Ok(Ok(json)) => mailbox.complete(operation, Ok(&json)),
                Ok(Err(error)) => mailbox.complete(operation, Err(&Error::internal(error.to_string()))),
                Err(error) => mailbox.complete(operation, Err(&error)),
            }
        },
        &handle,
    );
    Ok(())
}

/// Cancels a direct call.
#[napi(catch_unwind)]
pub fn abort_builtin(direct: &External<NativeDirect>, operation: u32) {
    if let Some(cancel) = direct.running.lock().unwrap_or_else(PoisonError::into_inner).get(&operation) {
        cancel.cancel(CancelReason::Abort);
    }
}

/// The consumer took a yield.
#[napi(catch_unwind)]
pub fn took_yield(direct: &External<NativeDirect>, call: u32) {
    direct.mailbox.settle(call, Answer::Json("null".to_owned()));
}
