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
    /// The changed input; `None` where it is the very object the middleware was given, and so the model's own text.
    pub arguments: Option<Arguments>,
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
    /// The middleware was given the outcome.
    seen: bool,
}

/// The core of one call, as its middleware sees it.
pub struct CoreCall {
    name: String,
    interrupt_changes: Box<dyn Fn(&Arguments) -> bool + Send + Sync>,
    state: Mutex<CoreState>,
    start: mpsc::UnboundedSender<Option<Arguments>>,
    steps: AsyncMutex<mpsc::Receiver<ToolYield>>,
    done: CancelToken,
    /// The middleware is over: its steps are taken by the pipeline.
    left: CancelToken,
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
        } else if request.arguments.as_ref().is_some_and(&self.interrupt_changes) {
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
        match self.take(&self.done, &self.left).await {
            Some(item) => Some(CoreStep::Yield(item)),
            None => {
                self.done.cancelled().await;
                let mut state = self.lock();
                state.seen = state.outcome.is_some();
                state.outcome.clone().map(CoreStep::Done)
            }
        }
    }

    /// The next yield, until `end`, from when on only those that are there count, or until `left`.
    ///
    /// Whoever is asked to let go does so at once: a middleware may leave while a step it asked for is under way.
    async fn take(&self, end: &CancelToken, left: &CancelToken) -> Option<ToolYield> {
        let taking = async {
            let mut steps = self.steps.lock().await;
            tokio::select! {
                biased;
                item = steps.recv() => item,
                () = end.cancelled() => steps.try_recv().ok(),
            }
        };
        left.run_until(taking).await.flatten()
    }

    /// Publishes what the core still says until `work` is done. Nothing that was said is lost, and nothing overtakes.
    async fn publishing<T>(&self, work: impl Future<Output = T>, outer: &dyn YieldSink) -> T {
        self.left.cancel(CancelReason::Gone);
        let (end, never) = (CancelToken::new(), CancelToken::new());
        let work = async {
            let answer = work.await;
            end.cancel(CancelReason::Gone);
            answer
        };
        let publish = async {
            while let Some(item) = self.take(&end, &never).await {
                outer.emit(item).await;
            }
        };
        tokio::join!(work, publish).0
    }

    fn finish(&self, outcome: Option<ToolOutcome>) {
        self.lock().outcome = outcome;
        self.done.cancel(CancelReason::Gone);
    }
}

/// Yields of a core on their way to its middleware.
struct CoreYields {
    steps: mpsc::Sender<ToolYield>,
    over: CancelToken,
}

impl YieldSink for CoreYields {
    fn emit(&self, item: ToolYield) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // What is said after the call has no place any more.
            let _ = self.over.run_until(self.steps.send(item)).await;
        })
    }
}

/// The end of a call, however it ends.
struct Over(CancelToken);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.cancel(CancelReason::Gone);
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
            left: CancelToken::new(),
        });
        let over = Over(CancelToken::new());
        let sink: Arc<dyn YieldSink> = Arc::new(CoreYields { steps, over: over.0.clone() });
        let request = MiddlewareCall {
            tool_name: call.name.clone(),
            arguments: arguments.clone(),
            message_id: cx.message_id.clone(),
            mode: cx.mode,
            snapshot: Arc::clone(&cx.snapshot),
            yields: Arc::clone(&yields),
            cancel: cx.cancel.clone(),
        };
        let run = |changed: Option<Arguments>| -> BoxFuture<'_, CallReport> {
            let arguments = changed.unwrap_or_else(|| arguments.clone());
            Box::pin(self.core(call, Some(arguments), cx, Arc::clone(&sink), invocation))
        };
        let mut layers = middleware.run(request, Arc::clone(&core));
        let mut running: Option<BoxFuture<'_, CallReport>> = None;
        let mut report: Option<CallReport> = None;
        let late = overdue(&cx.cancel, CLEANUP_GRACE * 2);
        tokio::pin!(late);
        let answer = loop {
            tokio::select! {
                biased;
                Some(changed) = started.recv(), if running.is_none() && report.is_none() => running = Some(run(changed)),
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
            if let Some(report) = report {
                return report;
            }
            let mut cancelled = self.cancelled_report(call, cx);
            self.settle(call, cx, &mut cancelled).await;
            return cancelled;
        };
        if running.is_none()
            && report.is_none()
            && let Ok(changed) = started.try_recv()
        {
            // It asked for the core and left in the same breath.
            running = Some(run(changed));
        }
        // How far the core got is nothing that anybody can rely on: what counts is whether its end was awaited.
        let unfinished = (running.is_some() || report.is_some()) && !core.lock().seen;
        match running {
            Some(running) => report = Some(core.publishing(running, &*yields).await),
            None if unfinished => core.publishing(std::future::ready(()), &*yields).await,
            None => {}
        }
        core.finish(report.as_ref().map(|report| report.outcome.clone()));
        let violation = core.lock().violation.clone();
        let cancelled = cx.cancel.is_cancelled();
        let verdict = decide(report.as_ref().map(|report| &report.outcome), unfinished, answer, violation, cancelled);
        let mut own = match (verdict, report) {
            (Verdict::Core, Some(report)) => return report,
            (Verdict::Core | Verdict::Cancelled, _) => self.cancelled_report(call, cx),
            (Verdict::Own(outcome), Some(mut report)) => match self.may_act(cx).await {
                Ok(()) => {
                    self.settle_again(call, cx, &mut report, *outcome).await;
                    return report;
                }
                Err(refusal) => CallReport::refused(refusal, call.arguments.clone()),
            },
            (Verdict::Own(outcome), None) => match self.in_place(*outcome, call, &arguments, cx, invocation).await {
                Ok(report) => report,
                Err(refusal) => CallReport::refused(refusal, call.arguments.clone()),
            },
        };
        self.settle(call, cx, &mut own).await;
        own
    }

    /// An answer in the place of a call that did not run.
    async fn in_place(
        &self,
        outcome: ToolOutcome,
        call: &ToolCall,
        arguments: &Arguments,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> std::result::Result<CallReport, Refusal> {
        // The same as around a call that runs: nothing counts that somebody else has taken over.
        self.may_act(cx).await?;
        if matches!(outcome, ToolOutcome::Success(_)) {
            // Nothing ran, but from here on the model believes that it did.
            self.answered(call, arguments, cx, invocation).await?;
        }
        Ok(CallReport { outcome, input: call.arguments.clone(), duration: Duration::ZERO, exit_loop: false })
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
    Own(Box<ToolOutcome>),
    /// Nobody's: the request was cancelled first.
    Cancelled,
}

/// Decides whose result counts. `core` is how the core ended, if it was started; `unfinished` says that the middleware
/// answered without having seen its end.
fn decide(
    core: Option<&ToolOutcome>,
    unfinished: bool,
    answer: Result<ToolOutcome>,
    violation: Option<String>,
    cancelled: bool,
) -> Verdict {
    // A layer that failed did not leave: what it was handed and could not hand on is lost, so the call cannot count.
    let left = unfinished && answer.is_ok();
    if let Some(core) = core
        && (cancelled || left || core.is_error() && answer_is_no_error(&answer) || is_timeout(core))
    {
        return Verdict::Core;
    }
    if cancelled {
        return Verdict::Cancelled;
    }
    match (violation, answer) {
        (Some(violation), _) => own(failed(&Error::new(ErrorCode::ToolMiddlewareFailed, violation))),
        (None, Ok(outcome)) => own(outcome),
        // A failing core explains more than what its middleware made of it.
        (None, Err(_)) if core.is_some_and(ToolOutcome::is_error) => Verdict::Core,
        (None, Err(error)) => own(failed(&error)),
    }
}

fn own(outcome: ToolOutcome) -> Verdict {
    Verdict::Own(Box::new(outcome))
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
