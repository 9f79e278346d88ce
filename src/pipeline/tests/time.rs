//! What counts toward the deadline of a call, exactly: time is paused.

use super::*;
use crate::contract::Input;
use crate::model::PermissionRequestId;
use crate::pipeline::{InvocationLifecycle, PermissionResolution, StartedCall};

const HOUR: Duration = Duration::from_secs(3600);

/// Everybody who is asked before a tool runs takes an hour.
struct Unhurried;

impl PermissionPort for Unhurried {
    fn decide<'a>(&'a self, _: &'a PermissionRequest, _: &'a CancelToken) -> BoxFuture<'a, Result<PermissionDecision>> {
        Box::pin(async {
            tokio::time::sleep(HOUR).await;
            Ok(PermissionDecision::ask("sure?"))
        })
    }
}

impl ConfirmationPort for Unhurried {
    fn confirm<'a>(&'a self, _: &'a ConfirmationRequest, _: &'a CancelToken) -> BoxFuture<'a, Result<Confirmation>> {
        Box::pin(async {
            tokio::time::sleep(HOUR).await;
            Ok(Confirmation { approved: true, ..Confirmation::default() })
        })
    }
}

impl InvocationLifecycle for Unhurried {
    fn permission_requested(
        &self,
        _: &ConfirmationRequest,
        _: &Input,
        _: CancelToken,
    ) -> BoxFuture<'static, Result<Option<String>>> {
        Box::pin(async {
            tokio::time::sleep(HOUR).await;
            Ok(Some(PermissionRequestId::generate().as_str().to_owned()))
        })
    }

    fn permission_resolved(&self, _: PermissionResolution, _: CancelToken) -> BoxFuture<'static, Result<()>> {
        Box::pin(async {
            tokio::time::sleep(HOUR).await;
            Ok(())
        })
    }

    fn execution_started(&self, _: StartedCall, _: CancelToken) -> BoxFuture<'static, Result<()>> {
        Box::pin(async {
            tokio::time::sleep(HOUR).await;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_are_the_default_and_start_after_permission_and_the_durable_boundary() {
    for (works, ends) in [(599, true), (601, false)] {
        let mut bench = Bench::default().tool("Long", ToolKind::Execute, Deed::Works(Duration::from_secs(works)));
        bench.permission = Some(Arc::new(Unhurried));
        bench.confirmation = Some(Arc::new(Unhurried));
        let pipeline = bench.build();
        let before = Instant::now();
        let calling = call("Long", "{}");
        let cx = context(PermissionMode::Default);
        let report = pipeline.run_observed(&calling, &cx, Arc::new(Silent), Some(Arc::new(Unhurried))).await;
        assert_eq!(before.elapsed().as_secs(), 5 * 3600 + works.min(600));
        if ends {
            assert_eq!(text(&report), "worked");
        } else {
            assert_eq!(error(&report).0, ToolErrorType::TimeoutError);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_slot_or_a_file_does_not_count() {
    for (limits, arguments) in [
        (Limits { execute: 1, ..Limits::default() }, json!({})),
        (Limits::default(), json!({ "file_path": "/w/file" })),
    ] {
        let mut bench = Bench::default().tool("Work", ToolKind::Execute, Deed::Works(Duration::from_secs(8)));
        bench.config.tool_timeout = Duration::from_secs(10);
        let pipeline = bench.limits(limits).build();
        let cx = context(YOLO);
        let calls: Vec<ToolCall> = (0..3).map(|_| call("Work", &arguments)).collect();
        let before = Instant::now();
        let reports = join_all(calls.iter().map(|one| run(&pipeline, one, &cx))).await;
        assert_eq!(before.elapsed().as_secs(), 24, "they ran one after the other");
        for report in &reports {
            assert_eq!(text(report), "worked");
        }
    }
}

/// A tool that says how far it is for as long as somebody takes it.
struct Talks(ToolSpec);

impl AnyTool for Talks {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a PrepareContext,
    ) -> BoxFuture<'a, std::result::Result<Prepared, ToolFailure>> {
        let behavior = self.0.behavior;
        Box::pin(std::future::ready(Ok(Prepared { arguments, behavior, subject: Subject::default() })))
    }

    fn execute(&self, _: Arguments, cx: ToolContext) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            while !cx.cancel.is_cancelled() {
                cx.yields.emit(ToolYield::message("still here")).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            ToolOutcome::Success(ToolSuccess::new("stopped"))
        })
    }
}

/// A consumer that takes so many yields and then does not come back.
struct Paused(Semaphore);

impl YieldSink for Paused {
    fn emit(&self, _: ToolYield) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if let Ok(taken) = self.0.acquire().await {
                taken.forget();
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_runs_across_yields_whether_or_not_somebody_takes_them() {
    for takes in [0, 10, 1_000_000] {
        let schema = Schema::compile(r#"{"type":"object"}"#).unwrap();
        let spec = ToolSpec::new("Talks", "talks", schema, Behavior::of(ToolKind::ReadOnly));
        let mut bench = Bench::default();
        bench.builder.register(Arc::new(Talks(spec)), SourceInfo::custom()).unwrap();
        bench.config.tool_timeout = Duration::from_secs(10);
        let pipeline = bench.build();
        let before = Instant::now();
        let yields = Arc::new(Paused(Semaphore::new(takes)));
        let report = pipeline.run(&call("Talks", "{}"), &context(YOLO), yields).await;
        assert_eq!(error(&report).0, ToolErrorType::TimeoutError);
        assert!(before.elapsed() < Duration::from_secs(11), "{takes}: the tool could stop");
        assert!(pipeline.cleanup().pending().is_empty());
    }
}
