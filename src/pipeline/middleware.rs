//! Middleware of the application around whole calls: it may change the input, answer in the tool's place, or let the
//! call run and change its result (pipeline.md §4).
//!
//! The call itself, with all its stages, is the *core*. Middleware starts it at most once and takes its yields one by
//! one; the pipeline polls it. Whatever the middleware does, a core that was started is run to its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::lifecycle::InvocationLifecycle;
use super::refusal::Refusal;
use super::{CLEANUP_GRACE, CallContext, CallReport, Pipeline};
use crate::contract::{
    Arguments, BoxFuture, ContextSnapshot, PermissionMode, ToolError, ToolErrorType, ToolFailure, ToolOutcome,
    ToolYield, YieldSink,
};
use crate::error::{Error, ErrorCode, Result};
use crate::host::{CancelReason, CancelToken};
use crate::model::{MessageId, ToolCall};

/// Yields a core may be ahead of its middleware.
const AHEAD: usize = 64;

/// What middleware is told of a call.
#[derive(Clone)]
pub struct MiddlewareCall {
    /// The name the model called.
    pub tool_name: String,
    /// Arguments as the model sent them.
    pub arguments: Arguments,
    /// The assistant message that made the call.
    pub message_id: MessageId,
    /// Mode of the request.
    pub mode: PermissionMode,
    /// Runtime context of the call.
    pub snapshot: Arc<ContextSnapshot>,
    /// Where yields of the middleware go.
    pub yields: Arc<dyn YieldSink>,
    /// The request's token.
    pub cancel: CancelToken,
}

/// The application's middleware as one: composed, the outermost layer first.
pub trait ToolMiddleware: Send + Sync {
    /// Runs around one call.
    ///
    /// # Errors
    /// It threw, or answered in the wrong form.
    fn run(&self, call: MiddlewareCall, core: Arc<CoreCall>) -> BoxFuture<'static, Result<ToolOutcome>>;
}

/// What the innermost `next()` was given.
pub struct CoreRequest {
    /// Must be the name that was called.
    pub tool_name: String,
    /// Whether the context is the very object the middleware was given.
    pub same_context: bool,
    /// The input, changed or not.
    pub arguments: Arguments,
}

/// One step of a core.
#[derive(Debug)]
pub enum CoreStep {
    /// It said something.
    Yield(ToolYield),
    /// It ended.
    Done(ToolOutcome),
}

#[derive(Default)]
struct CoreState {
    asked: bool,
    violation: Option<String>,
    outcome: Option<ToolOutcome>,
}

/// The core of one call, as its middleware sees it.
pub struct CoreCall {
    name: String,
    interrupt_changes: Box<dyn Fn(&Arguments) -> bool + Send + Sync>,
    state: Mutex<CoreState>,
    start: mpsc::UnboundedSender<Arguments>,
    steps: AsyncMutex<mpsc::Receiver<ToolYield>>,
    done: CancelToken,
}

impl CoreCall {
    fn lock(&self) -> MutexGuard<'_, CoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the core.
    ///
    /// # Errors
    /// It was started before, or the request breaks a rule of middleware; then the call fails, whatever follows.
    pub fn start(&self, request: CoreRequest) -> Result<()> {
        let mut state = self.lock();
        let violation = if std::mem::replace(&mut state.asked, true) {
            Some("next() called multiple times".to_owned())
        } else if request.tool_name != self.name {
            Some(format!("toolName may not be changed (from {} to {})", self.name, request.tool_name))
        } else if !request.same_context {
            Some("context may not be replaced".to_owned())
        } else if (self.interrupt_changes)(&request.arguments) {
            Some("the changed input would change how the call reacts to an interruption".to_owned())
        } else {
            None
        };
        if let Some(violation) = violation {
            let error = Error::new(ErrorCode::ToolMiddlewareFailed, violation.clone());
            state.violation.get_or_insert(violation);
            return Err(error);
        }
        drop(state);
        self.start
            .send(request.arguments)
            .map_err(|_| Error::new(ErrorCode::ToolMiddlewareFailed, "the call is over; next() came too late"))
    }

    /// The next thing the core says; `None` when it was not started or its end was taken before the call was over.
    pub async fn next(&self) -> Option<CoreStep> {
        let mut steps = self.steps.lock().await;
        let item = tokio::select! {
            biased;
            item = steps.recv() => item,
            () = self.done.cancelled() => steps.try_recv().ok(),
        };
        match item {
            Some(item) => Some(CoreStep::Yield(item)),
            None => {
                self.done.cancelled().await;
                self.lock().outcome.clone().map(CoreStep::Done)
            }
        }
    }

    fn finish(&self, outcome: Option<ToolOutcome>) {
        self.lock().outcome = outcome;
        self.done.cancel(CancelReason::Gone);
    }
}

/// Yields of a core on their way to its middleware.
struct CoreYields {
    steps: mpsc::Sender<ToolYield>,
    /// Where they go once no middleware takes them any more.
    outer: Arc<dyn YieldSink>,
    /// The middleware is over.
    left: CancelToken,
}

impl YieldSink for CoreYields {
    // What the middleware takes counts when it hands it on.
    fn admit(&self, item: &ToolYield) -> Result<()> {
        if self.left.is_cancelled() { self.outer.admit(item) } else { Ok(()) }
    }

    fn emit(&self, item: ToolYield) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            if self.left.is_cancelled() {
                return self.outer.emit(item).await;
            }
            let place = self.left.run_until(self.steps.reserve()).await;
            match place {
                Some(Ok(place)) => place.send(item),
                Some(Err(_)) | None => self.outer.emit(item).await,
            }
        })
    }
}

impl Pipeline {
    /// With the application's middleware.
    #[must_use]
    pub fn with_middleware(mut self, middleware: Arc<dyn ToolMiddleware>) -> Self {
        self.middleware = Some(middleware);
        self
    }

    /// Runs a call inside of its middleware.
    pub(super) async fn within_middleware(
        &self,
        middleware: &dyn ToolMiddleware,
        call: &ToolCall,
        arguments: Arguments,
        cx: &CallContext,
        yields: Arc<dyn YieldSink>,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> CallReport {
        let (start, mut started) = mpsc::unbounded_channel();
        let (steps, taken) = mpsc::channel(AHEAD);
        let tool = self.registry.get(&call.name).map(|tool| Arc::clone(&tool.tool));
        let before = tool.as_ref().map(|tool| tool.behavior_of(&arguments).interrupt);
        let core = Arc::new(CoreCall {
            name: call.name.clone(),
            interrupt_changes: Box::new(move |changed| {
                tool.as_ref().map(|tool| tool.behavior_of(changed).interrupt) != before
            }),
            state: Mutex::default(),
            start,
            steps: AsyncMutex::new(taken),
            done: CancelToken::new(),
        });
        let left = CancelToken::new();
        let sink = Arc::new(CoreYields { steps, outer: Arc::clone(&yields), left: left.clone() });
        let request = MiddlewareCall {
            tool_name: call.name.clone(),
            arguments: arguments.clone(),
            message_id: cx.message_id.clone(),
            mode: cx.mode,
            snapshot: Arc::clone(&cx.snapshot),
            yields: Arc::clone(&yields),
            cancel: cx.cancel.clone(),
        };
        let mut layers = middleware.run(request, Arc::clone(&core));
        let mut running: Option<BoxFuture<'_, CallReport>> = None;
        let mut report: Option<CallReport> = None;
        let late = overdue(&cx.cancel, CLEANUP_GRACE * 2);
        tokio::pin!(late);
        let answer = loop {
            tokio::select! {
                biased;
                Some(arguments) = started.recv(), if running.is_none() && report.is_none() => {
                    let sink: Arc<dyn YieldSink> = sink.clone();
                    running = Some(Box::pin(self.core(call, Some(arguments), cx, sink, invocation)));
                }
                ended = poll(&mut running) => {
                    running = None;
                    core.finish(Some(ended.outcome.clone()));
                    report = Some(ended);
                }
                answer = &mut layers => break Some(answer),
                () = &mut late => break None,
            }
        };
        let Some(answer) = answer else {
            // The core has ended long since: it is bounded by itself. The layers around it did not hear the signal.
            self.cleanup.finish_in_background("a tool middleware", &self.tasks, async move { drop(layers.await) });
            core.finish(None);
            return report.unwrap_or_else(|| self.cancelled_report(call, cx));
        };
        if running.is_none()
            && report.is_none()
            && let Ok(arguments) = started.try_recv()
        {
            // It asked for the core and left in the same breath.
            let sink: Arc<dyn YieldSink> = sink.clone();
            running = Some(Box::pin(self.core(call, Some(arguments), cx, sink, invocation)));
        }
        let unfinished = running.is_some();
        if let Some(running) = running {
            left.cancel(CancelReason::Gone);
            report = Some(self.drained(&core, running, &*yields).await);
        }
        core.finish(report.as_ref().map(|report| report.outcome.clone()));
        let violation = core.lock().violation.clone();
        let cancelled = cx.cancel.is_cancelled();
        match decide(report.as_ref().map(|report| &report.outcome), unfinished, answer, violation, cancelled) {
            Verdict::Core => report.unwrap_or_else(|| self.cancelled_report(call, cx)),
            Verdict::Cancelled => self.cancelled_report(call, cx),
            Verdict::Own(outcome) => {
                let mut own = match report {
                    Some(report) => CallReport { outcome, ..report },
                    None => {
                        // Nothing ran, but from here on the model believes that it did.
                        if matches!(outcome, ToolOutcome::Success(_))
                            && let Err(refusal) = self.answered(call, &arguments, cx, invocation).await
                        {
                            return CallReport::refused(refusal, call.arguments.clone());
                        }
                        CallReport {
                            outcome,
                            input: call.arguments.clone(),
                            duration: Duration::ZERO,
                            exit_loop: false,
                        }
                    }
                };
                self.settle(call, cx, &mut own).await;
                own
            }
        }
    }

    /// Runs a core to its end whose middleware is gone; what it still says is published.
    async fn drained(
        &self,
        core: &CoreCall,
        mut running: BoxFuture<'_, CallReport>,
        outer: &dyn YieldSink,
    ) -> CallReport {
        let mut steps = core.steps.lock().await;
        let report = loop {
            tokio::select! {
                biased;
                Some(item) = steps.recv() => outer.emit(item).await,
                report = &mut running => break report,
            }
        };
        while let Ok(item) = steps.try_recv() {
            outer.emit(item).await;
        }
        report
    }

    fn cancelled_report(&self, call: &ToolCall, cx: &CallContext) -> CallReport {
        CallReport::refused(Refusal::cancelled(&cx.cancel), call.arguments.clone())
    }
}

async fn overdue(cancel: &CancelToken, grace: Duration) {
    cancel.cancelled().await;
    tokio::time::sleep(grace).await;
}

async fn poll(running: &mut Option<BoxFuture<'_, CallReport>>) -> CallReport {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}

/// Whose result a call has.
#[derive(Debug)]
enum Verdict {
    /// The core's.
    Core,
    /// The middleware's.
    Own(ToolOutcome),
    /// Nobody's: the request was cancelled first.
    Cancelled,
}

/// Decides whose result counts. `core` is how the core ended, if it was started; `unfinished` says that the middleware
/// answered before it had ended.
fn decide(
    core: Option<&ToolOutcome>,
    unfinished: bool,
    answer: Result<ToolOutcome>,
    violation: Option<String>,
    cancelled: bool,
) -> Verdict {
    if let Some(core) = core
        && (cancelled || unfinished || core.is_error() && answer_is_no_error(&answer) || is_timeout(core))
    {
        return Verdict::Core;
    }
    if cancelled {
        return Verdict::Cancelled;
    }
    match (violation, answer) {
        (Some(violation), _) => Verdict::Own(failed(&Error::new(ErrorCode::ToolMiddlewareFailed, violation))),
        (None, Ok(outcome)) => Verdict::Own(outcome),
        // A failing core explains more than what its middleware made of it.
        (None, Err(_)) if core.is_some_and(ToolOutcome::is_error) => Verdict::Core,
        (None, Err(error)) => Verdict::Own(failed(&error)),
    }
}

fn answer_is_no_error(answer: &Result<ToolOutcome>) -> bool {
    answer.as_ref().is_ok_and(|outcome| !outcome.is_error())
}

fn is_timeout(outcome: &ToolOutcome) -> bool {
    outcome.error().is_some_and(|error| error.kind == ToolErrorType::TimeoutError)
}

fn failed(error: &Error) -> ToolOutcome {
    let message = format!("Tool middleware failed: {}", error.message);
    let mut failure =
        ToolError::new(ToolErrorType::ExecutionError, message).with_code(ErrorCode::ToolMiddlewareFailed.as_str());
    failure.details = error.cause.as_ref().and_then(|cause| serde_json::to_value(cause).ok());
    ToolOutcome::Error(ToolFailure::from(failure))
}

#[cfg(test)]
mod tests;
