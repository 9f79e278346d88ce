//! What the application puts around tool calls: its middleware, and its observer of durable boundaries.

use std::sync::Arc;

use napi::bindgen_prelude::External;
use napi_derive::napi;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::thrown;
use super::js_ports::{ask, until_settled, wrong_form};
use super::js_tool::{outcome, quoted};
use super::mailbox::{About, Answer, Mailbox};
use super::session::NativeSession;
use crate::contract::{Arguments, BoxFuture, Input, ToolOutcome};
use crate::error::{Error, ErrorCode, Result};
use crate::host::CancelToken;
use crate::permissions::ConfirmationRequest;
use crate::pipeline::{
    CoreCall, CoreRequest, CoreStep, InvocationLifecycle, MiddlewareCall, PermissionResolution, ScheduledCall,
    SettledCall, StartedCall, ToolLifecycle, ToolMiddleware,
};
use crate::{schema, session};

/// The composed middleware of a Session.
pub struct JsMiddleware {
    mailbox: Arc<Mailbox>,
}

impl JsMiddleware {
    /// Middleware reached through a mailbox.
    pub fn new(mailbox: Arc<Mailbox>) -> Self {
        Self { mailbox }
    }
}

impl ToolMiddleware for JsMiddleware {
    fn run(&self, call: MiddlewareCall, core: Arc<CoreCall>) -> BoxFuture<'static, Result<ToolOutcome>> {
        let tail = [
            quoted(&call.tool_name),
            call.arguments.to_json(),
            quoted(call.message_id.as_str()),
            serde_json::to_string(&call.mode).unwrap_or_else(|_| "null".to_owned()),
        ]
        .join(",");
        let mailbox = Arc::clone(&self.mailbox);
        Box::pin(async move {
            let about = About::Around { core, yields: call.yields, snapshot: call.snapshot };
            let around = mailbox.call("middleware", &tail, Some(about));
            match until_settled(around, &call.cancel).await? {
                Answer::Json(json) => Ok(outcome(json)),
                Answer::Text(text) => Err(wrong_form("tool middleware", &format!("a string \"{text}\""))),
                Answer::Thrown(cause) => {
                    Err(Error::new(ErrorCode::ToolMiddlewareFailed, cause.message.clone()).with_cause(cause))
                }
            }
        })
    }
}

/// The call itself, while its middleware runs.
fn core_of(handle: &NativeSession, call: u32) -> napi::Result<Arc<CoreCall>> {
    match handle.mailbox.about(call) {
        Some(About::Around { core, .. }) => Ok(core),
        _ => Err(thrown(&over())),
    }
}

/// The innermost `next()`: starts the call itself. No `input` stands for that of the request, unchanged.
#[napi(catch_unwind)]
pub fn core_start(
    handle: &External<NativeSession>,
    call: u32,
    tool_name: String,
    same_context: bool,
    input: Option<String>,
) -> napi::Result<()> {
    let core = core_of(handle, call)?;
    let changed = |input: String| match schema::read(&input) {
        // The text is kept, so that a tool in JavaScript gets it as it is.
        Ok(Value::Object(object)) => Ok(Arguments::new(Input::parsed(&input, object))),
        _ => {
            let message = "the input given to next() must be a JSON object";
            Err(thrown(&Error::new(ErrorCode::ToolMiddlewareFailed, message)))
        }
    };
    let arguments = input.map(changed).transpose()?;
    core.start(CoreRequest { tool_name, same_context, arguments }).map_err(|error| thrown(&error))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Step {
    Yield(crate::contract::ToolYield),
    Done(ToolOutcome),
}

/// The next thing the call itself says: completes `operation` with `{yield}` or `{done}`.
#[napi(catch_unwind)]
pub fn core_next(handle: &External<NativeSession>, call: u32, operation: u32) -> napi::Result<()> {
    let core = core_of(handle, call)?;
    let mailbox = Arc::clone(&handle.mailbox);
    let work = async move {
        let step = match core.next().await {
            Some(CoreStep::Yield(item)) => Step::Yield(item),
            Some(CoreStep::Done(outcome)) => Step::Done(outcome),
            None => return mailbox.complete(operation, Err(&over())),
        };
        match serde_json::to_string(&step) {
            Ok(json) => mailbox.complete(operation, Ok(&json)),
            Err(error) => mailbox.complete(operation, Err(&Error::internal(error.to_string()))),
        }
    };
    handle.session.background(session::runtime().map_err(|error| thrown(&error))?, work);
    Ok(())
}

fn over() -> Error {
    Error::new(ErrorCode::ToolMiddlewareFailed, "the tool call is over")
}

/// The observer of a Session.
pub struct JsLifecycle {
    mailbox: Arc<Mailbox>,
}

impl JsLifecycle {
    /// An observer reached through a mailbox.
    pub fn new(mailbox: Arc<Mailbox>) -> Self {
        Self { mailbox }
    }
}

/// Which boundaries of a call its observer wants to hear of.
#[derive(Clone, Copy, Deserialize)]
struct Wants {
    /// What the facade calls this observer.
    observer: u32,
    requested: bool,
    resolved: bool,
    started: bool,
}

/// The observer of one call. The facade keeps it for exactly as long: ids of calls may come again, and an answer that
/// comes late must not touch what belongs to another call.
struct JsInvocation {
    mailbox: Arc<Mailbox>,
    wants: Wants,
}

impl Drop for JsInvocation {
    fn drop(&mut self) {
        self.mailbox.forget(self.wants.observer);
    }
}

fn step<T: serde::de::DeserializeOwned + Send + 'static>(
    mailbox: &Arc<Mailbox>,
    arguments: String,
    cancel: CancelToken,
) -> BoxFuture<'static, Result<T>> {
    let mailbox = Arc::clone(mailbox);
    Box::pin(async move { ask(&mailbox, "lifecycle", &arguments, &cancel).await })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

impl ToolLifecycle for JsLifecycle {
    fn scheduled(
        &self,
        event: ScheduledCall,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<Option<Arc<dyn InvocationLifecycle>>>> {
        let mailbox = Arc::clone(&self.mailbox);
        Box::pin(async move {
            let arguments = format!("\"scheduled\",{}", json(&event));
            let wants: Option<Wants> = ask(&mailbox, "lifecycle", &arguments, &cancel).await?;
            Ok(wants.map(|wants| Arc::new(JsInvocation { mailbox, wants }) as Arc<dyn InvocationLifecycle>))
        })
    }

    fn settled(&self, event: &SettledCall<'_>, cancel: CancelToken) -> BoxFuture<'static, Result<()>> {
        step(&self.mailbox, format!("\"settled\",{}", json(event)), cancel)
    }
}

impl JsInvocation {
    fn tell<T: serde::de::DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        arguments: &str,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<T>> {
        step(&self.mailbox, format!("\"{name}\",{},{arguments}", self.wants.observer), cancel)
    }
}

impl InvocationLifecycle for JsInvocation {
    fn permission_requested(
        &self,
        details: &ConfirmationRequest,
        input: &Input,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<Option<String>>> {
        if !self.wants.requested {
            return Box::pin(std::future::ready(Ok(None)));
        }
        self.tell("requested", &format!("{},{}", json(details), json(input)), cancel)
    }

    fn permission_resolved(
        &self,
        resolution: PermissionResolution,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<()>> {
        if !self.wants.resolved {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.tell("resolved", &json(&resolution), cancel)
    }

    fn execution_started(&self, event: StartedCall, cancel: CancelToken) -> BoxFuture<'static, Result<()>> {
        if !self.wants.started {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.tell("started", &json(&event), cancel)
    }
}
