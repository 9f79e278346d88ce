//! Durable boundaries of a call: an observer that must have stored a step before the step happens.
//!
//! Order of a call: scheduled → published → (permission requested → asked → permission resolved) → started → runs →
//! settled → result published. Each step is awaited, and a step the observer rejects does not happen. Not telemetry: a
//! call whose arguments are no JSON object never was an invocation and is not told of.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::refusal::Refusal;
use super::{CLEANUP_GRACE, CallContext, CallReport, Pipeline};
use crate::contract::{
    Arguments, BoxFuture, Input, InterruptBehavior, Prepared, SideEffect, ToolError, ToolErrorType, ToolFailure,
    ToolOutcome,
};
use crate::error::{Error, ErrorCode, Result};
use crate::host::CancelToken;
use crate::model::ToolCall;
use crate::permissions::{ConfirmationRequest, ConfirmationScope};
use crate::schema;

/// What the cleanup gate calls a callback of the observer.
const CALLBACK: &str = "a tool lifecycle callback";

/// `ToolScheduledLifecycle`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledCall {
    /// The call.
    pub tool_call_id: String,
    /// The name the model called.
    pub tool_name: String,
    /// Arguments as the model sent them.
    pub model_input: Input,
    /// Arguments the pipeline starts from.
    pub input: Input,
    /// What repeating the call may do, as far as its arguments tell; non-idempotent for an unknown tool.
    pub side_effect: SideEffect,
    /// Reaction to steering.
    pub interrupt_behavior: InterruptBehavior,
}

/// `ToolExecutionStartedLifecycle`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedCall {
    /// Final arguments.
    pub input: Input,
    /// Resolved for them.
    pub side_effect: SideEffect,
}

/// `ToolSettledLifecycle`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettledCall<'a> {
    /// The call.
    pub tool_call_id: &'a str,
    /// The name the model called.
    pub tool_name: &'a str,
    /// How it ended.
    pub result: &'a ToolOutcome,
}

/// What became of a question to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionEnd {
    /// Approved.
    Allow,
    /// Rejected, or the handler failed.
    Deny,
    /// The request ended before an answer came.
    Cancel,
}

/// `ToolPermissionResolution`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionResolution {
    /// The id the observer gave the question.
    pub permission_request_id: String,
    /// The answer.
    pub decision: QuestionEnd,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long an approval lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<ConfirmationScope>,
}

/// The observer. A step it rejects does not happen.
pub trait ToolLifecycle: Send + Sync {
    /// Before a call is published. Gives the observer of this call; `None` when it wants to hear of its end only.
    ///
    /// # Errors
    /// The call could not be stored; its request ends.
    fn scheduled(
        &self,
        event: ScheduledCall,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<Option<Arc<dyn InvocationLifecycle>>>>;

    /// Before a result is published.
    ///
    /// # Errors
    /// The result could not be stored; it is not published, and its request ends.
    fn settled(&self, event: &SettledCall<'_>, cancel: CancelToken) -> BoxFuture<'static, Result<()>>;
}

/// The observer of one call.
pub trait InvocationLifecycle: Send + Sync {
    /// Before a person is asked. Gives the id of the question.
    ///
    /// # Errors
    /// The question could not be stored; nobody is asked, and the call is an error result.
    fn permission_requested(
        &self,
        details: &ConfirmationRequest,
        input: &Input,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<Option<String>>>;

    /// Before an answer counts.
    ///
    /// # Errors
    /// The answer could not be stored; it does not count, and the call is an error result.
    fn permission_resolved(
        &self,
        resolution: PermissionResolution,
        cancel: CancelToken,
    ) -> BoxFuture<'static, Result<()>>;

    /// Before the tool runs.
    ///
    /// # Errors
    /// The start could not be stored; the tool does not run, and the call is an error result.
    fn execution_started(&self, event: StartedCall, cancel: CancelToken) -> BoxFuture<'static, Result<()>>;
}

impl Pipeline {
    /// With an observer of durable boundaries.
    #[must_use]
    pub fn with_lifecycle(mut self, lifecycle: Arc<dyn ToolLifecycle>) -> Self {
        self.lifecycle = Some(lifecycle);
        self
    }

    /// Tells the observer of a call that is about to be published. `None` when nobody observes it.
    ///
    /// # Errors
    /// `TOOL_LIFECYCLE_FAILED`: the call must not be published and nothing of this turn may run. `ABORT` when the
    /// request was cancelled meanwhile.
    pub async fn scheduled(&self, call: &ToolCall, cx: &CallContext) -> Result<Option<Arc<dyn InvocationLifecycle>>> {
        let Some(lifecycle) = &self.lifecycle else { return Ok(None) };
        let Some(arguments) = self.arguments_of(call) else { return Ok(None) };
        let behavior = self.registry.get(&call.name).map(|tool| tool.tool.behavior_of(&arguments));
        let event = ScheduledCall {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            model_input: raw(call, &arguments),
            input: arguments.object,
            side_effect: behavior.map_or(SideEffect::NonIdempotent, |behavior| behavior.side_effect),
            interrupt_behavior: behavior.map_or(InterruptBehavior::Block, |behavior| behavior.interrupt),
        };
        match self.stored(lifecycle.scheduled(event, cx.cancel.clone()), cx).await {
            Some(Err(error)) => Err(failed("scheduling", &call.name, error)),
            Some(Ok(invocation)) if !cx.cancel.is_cancelled() => Ok(invocation),
            Some(Ok(_)) | None => Err(Error::new(ErrorCode::Abort, "the request was aborted")),
        }
    }

    /// Tells the observer of a result that is about to be published. A cancelled request still waits for it, for as
    /// long as callbacks may clean up.
    ///
    /// # Errors
    /// `TOOL_LIFECYCLE_FAILED`: the result must not be published.
    pub async fn settled(&self, call: &ToolCall, report: &CallReport, cx: &CallContext) -> Result<()> {
        let Some(lifecycle) = &self.lifecycle else { return Ok(()) };
        if self.arguments_of(call).is_none() {
            return Ok(());
        }
        let event = SettledCall { tool_call_id: &call.id, tool_name: &call.name, result: &report.outcome };
        let work = lifecycle.settled(&event, cx.cancel.clone());
        self.unhurried(work, cx).await.map_err(|error| failed("the result", &call.name, error))
    }

    /// Waits for a boundary; a cancelled request waits for as long as cleaning up may take, so that no step of a call is
    /// stored after the next one. What takes longer goes on behind the cleanup gate; `None` stands for it.
    async fn stored<T: Send + 'static>(
        &self,
        mut work: BoxFuture<'static, Result<T>>,
        cx: &CallContext,
    ) -> Option<Result<T>> {
        let late = async {
            cx.cancel.cancelled().await;
            tokio::time::sleep(CLEANUP_GRACE).await;
        };
        tokio::select! {
            biased;
            stored = &mut work => Some(stored),
            () = late => {
                self.cleanup.finish_in_background(CALLBACK, &self.tasks, async move { drop(work.await) });
                None
            }
        }
    }

    /// The same for a boundary that has to be stored although the request may be over.
    async fn unhurried(&self, work: BoxFuture<'static, Result<()>>, cx: &CallContext) -> Result<()> {
        let late = || Error::new(ErrorCode::SessionBusy, "the callback did not settle after the request was cancelled");
        self.stored(work, cx).await.unwrap_or_else(|| Err(late()))
    }

    /// Before a person is asked: the id of the question, where the observer gave one.
    pub(super) async fn permission_requested(
        &self,
        details: &ConfirmationRequest,
        input: &Input,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> std::result::Result<Option<String>, Refusal> {
        let Some(invocation) = invocation else { return Ok(None) };
        let work = invocation.permission_requested(details, input, cx.cancel.clone());
        match self.stored(work, cx).await {
            Some(Ok(id)) => Ok(id),
            Some(Err(error)) => Err(refused("the permission request", &error)),
            None => Err(Refusal::cancelled(&cx.cancel)),
        }
    }

    /// Before an answer counts; also for a question that was cancelled.
    pub(super) async fn permission_resolved(
        &self,
        resolution: PermissionResolution,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> std::result::Result<(), Refusal> {
        let Some(invocation) = invocation else { return Ok(()) };
        let work = invocation.permission_resolved(resolution, cx.cancel.clone());
        self.unhurried(work, cx).await.map_err(|error| refused("the permission decision", &error))
    }

    /// Before the tool runs.
    pub(super) async fn execution_started(
        &self,
        prepared: &Prepared,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> std::result::Result<(), Refusal> {
        let Some(invocation) = invocation else { return Ok(()) };
        self.started(prepared.arguments.object.clone(), prepared.behavior.side_effect, cx, invocation).await
    }

    /// The same for a call that is answered in the tool's place.
    pub(super) async fn answered(
        &self,
        call: &ToolCall,
        arguments: &Arguments,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> std::result::Result<(), Refusal> {
        let Some(invocation) = invocation else { return Ok(()) };
        let side_effect = self
            .registry
            .get(&call.name)
            .map_or(SideEffect::NonIdempotent, |tool| tool.tool.behavior_of(arguments).side_effect);
        self.started(arguments.object.clone(), side_effect, cx, invocation).await
    }

    async fn started(
        &self,
        input: Input,
        side_effect: SideEffect,
        cx: &CallContext,
        invocation: &Arc<dyn InvocationLifecycle>,
    ) -> std::result::Result<(), Refusal> {
        let work = invocation.execution_started(StartedCall { input, side_effect }, cx.cancel.clone());
        match self.stored(work, cx).await {
            Some(Err(error)) => Err(refused("the start of the tool", &error)),
            Some(Ok(())) if !cx.cancel.is_cancelled() => Ok(()),
            // A tool that was stored as started and did not run is no harm; the other way round is.
            Some(Ok(())) | None => Err(Refusal::cancelled(&cx.cancel)),
        }
    }
}

/// The arguments as the model sent them, where they were repaired.
fn raw(call: &ToolCall, arguments: &Arguments) -> Input {
    if arguments.object.text().is_some() {
        return arguments.object.clone();
    }
    match schema::read(&call.arguments) {
        Ok(Value::Object(object)) => Input::parsed(&call.arguments, object),
        _ => arguments.object.clone(),
    }
}

fn failed(what: &str, tool: &str, error: Error) -> Error {
    let message = format!("{what} of a call of {tool} could not be stored: {}", error.message);
    Error { code: ErrorCode::ToolLifecycleFailed, message, ..error }
}

fn refused(what: &str, error: &Error) -> Refusal {
    let message = format!("{what} could not be stored, so the call did not go on: {}", error.message);
    ToolFailure::new(
        format!("Tool execution aborted: {message}"),
        ToolError::new(ToolErrorType::ExecutionError, message).with_code(ErrorCode::ToolLifecycleFailed.as_str()),
    )
    .into()
}
