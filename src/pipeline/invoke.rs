//! Stage 5: the tool runs, bounded by its deadline and the request's cancellation.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::released::Released;
use super::schedule::Scheduled;
use super::{CLEANUP_GRACE, CallContext, CallReport, Pipeline};
use crate::contract::{
    BoxFuture, InterruptBehavior, ToolContext, ToolError, ToolErrorType, ToolFailure, ToolOutcome, ToolServices,
    YieldSink,
};
use crate::host::{CancelReason, CancelToken};
use crate::model::ToolUseId;

impl Pipeline {
    pub(super) async fn invoke(&self, call: Scheduled, cx: &CallContext, yields: Arc<dyn YieldSink>) -> CallReport {
        let Scheduled { tool, call_id, prepared, leases } = call;
        let cancel = cx.cancel.child();
        let context = ToolContext {
            call_id: ToolUseId::new(call_id),
            session_id: Some(cx.session_id.clone()),
            message_id: Some(cx.message_id.clone()),
            snapshot: cx.snapshot.clone(),
            permission_mode: cx.mode,
            cancel: cancel.clone(),
            host_env: cx.host_env.clone(),
            services: ToolServices { catalog: Some(self.catalog(cx)) },
            yields: Arc::new(Released::new(yields, cancel.clone())),
        };
        let name = Arc::clone(&tool.spec().name);
        let interrupt = prepared.behavior.interrupt;
        let input = prepared.arguments.to_json();
        let started = Instant::now();
        // The leases belong to the work, not to this stage: what ignores its cancellation keeps its slot and its file.
        let work: BoxFuture<'static, ToolOutcome> = Box::pin(async move {
            let outcome = contained(async { tool.tool.execute(prepared.arguments, context).await }).await;
            drop(leases);
            outcome.unwrap_or_else(ToolOutcome::Error)
        });
        let steer = match interrupt {
            InterruptBehavior::Cancel => Some(&cx.steer),
            InterruptBehavior::Block => None,
        };
        let outcome = self.bounded(&name, work, &cancel, steer, cx).await;
        CallReport { outcome, input, duration: started.elapsed(), exit_loop: false }
    }

    async fn bounded(
        &self,
        name: &str,
        mut work: BoxFuture<'static, ToolOutcome>,
        cancel: &CancelToken,
        steer: Option<&CancelToken>,
        cx: &CallContext,
    ) -> ToolOutcome {
        let limit = self.config.tool_timeout;
        let steered = async {
            match steer {
                Some(steer) => steer.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let timed_out = tokio::select! {
            biased;
            outcome = &mut work => return match outcome {
                // A tool that listens may end before the cancellation is noticed here.
                ToolOutcome::Error(failure) if cx.cancel.is_cancelled() => ToolOutcome::Error(interrupted(Some(failure))),
                outcome => outcome,
            },
            () = cx.cancel.cancelled() => false,
            () = steered => {
                cancel.cancel(CancelReason::Steered);
                false
            }
            () = tokio::time::sleep(limit) => true,
        };
        if timed_out {
            cancel.cancel(CancelReason::Deadline);
        }
        let settled = tokio::time::timeout(CLEANUP_GRACE, &mut work).await;
        if settled.is_err() {
            self.cleanup.finish_in_background(name, &self.tasks, async move { drop(work.await) });
        }
        match (timed_out, settled) {
            (true, settled) => ToolOutcome::Error(timeout(limit, settled.ok())),
            // It ended by itself after the cancellation: what it says about its end is kept.
            (false, Ok(ToolOutcome::Error(failure))) => ToolOutcome::Error(interrupted(Some(failure))),
            (false, Ok(success)) => success,
            (false, Err(_)) if cancel.reason() == Some(CancelReason::Steered) => {
                let why = CancelReason::Steered.to_string();
                let error = ToolError::new(ToolErrorType::Interrupted, why.clone()).with_code("ABORT");
                ToolOutcome::Error(ToolFailure::new(why, error))
            }
            (false, Err(_)) => ToolOutcome::Error(interrupted(None)),
        }
    }
}

/// A timeout stays a timeout, whatever the tool said while cleaning up; its facts are kept.
fn timeout(limit: Duration, settled: Option<ToolOutcome>) -> ToolFailure {
    let ms = limit.as_millis();
    let message = format!("Tool execution timeout after {ms}ms");
    let mut failure = ToolFailure::new(
        message.clone(),
        ToolError::new(ToolErrorType::TimeoutError, message).with_code("TOOL_TIMEOUT"),
    );
    if let Some(mut outcome) = settled {
        failure.metadata = std::mem::take(outcome.metadata_mut());
    }
    failure
}

fn interrupted(own: Option<ToolFailure>) -> ToolFailure {
    match own {
        Some(mut failure) => {
            failure.error.kind = ToolErrorType::Interrupted;
            failure
        }
        None => ToolFailure::new(
            "Tool execution aborted: the request was cancelled",
            ToolError::new(ToolErrorType::Interrupted, "the request was cancelled").with_code("ABORT"),
        ),
    }
}

/// Runs code of a tool. `work` makes the tool's future itself, so that a panic before its first await counts too.
pub(super) async fn contained<T>(work: impl Future<Output = T>) -> Result<T, ToolFailure> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| panicked(&*panic))
}

/// A panic is a bug of ours: contained, named, and not the end of the host process.
fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolFailure {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_owned());
    // What it says may quote what the tool worked on; the result has it.
    tracing::error!("a tool panicked");
    ToolError::new(ToolErrorType::ExecutionError, format!("internal failure in the tool: {what}"))
        .with_code("INTERNAL")
        .into()
}
