//! Tests of what surrounds the stages: observers of durable boundaries, middleware, steering, leases and quarantine.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::tests::*;
use super::*;
use crate::contract::{
    AnyTool, Behavior, BoxFuture, Input, InterruptBehavior, PrepareContext, Prepared, SideEffect, SourceInfo, Subject,
    ToolContext, ToolError, ToolErrorType, ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield,
};
use crate::error::{Error, ErrorCode};
use crate::host::CancelReason;
use crate::permissions::{Confirmation, ConfirmationRequest, PermissionDecision};
use crate::registry::RegistryBuilder;
use crate::schema::Schema;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// An observer that notes every boundary, and rejects or never answers the one it was told to.
struct Observer {
    log: Arc<Log>,
    rejects: Option<&'static str>,
    hangs: Option<&'static str>,
    /// Takes two seconds.
    slow: Option<&'static str>,
}

impl Observer {
    fn new(log: &Arc<Log>) -> Self {
        Self { log: Arc::clone(log), rejects: None, hangs: None, slow: None }
    }

    fn step<T: Send + 'static>(
        self: &Arc<Self>,
        step: &'static str,
        note: String,
        answer: T,
    ) -> BoxFuture<'static, crate::error::Result<T>> {
        let this = Arc::clone(self);
        Box::pin(async move {
            this.log.note(note);
            if this.hangs == Some(step) {
                std::future::pending::<()>().await;
            }
            if this.slow == Some(step) {
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            // The pipeline waits for the end of the step, not for its beginning.
            tokio::task::yield_now().await;
            this.log.note(format!("{step} stored"));
            if this.rejects == Some(step) { Err(Error::internal("disk full")) } else { Ok(answer) }
        })
    }
}

struct Observing(Arc<Observer>);

impl ToolLifecycle for Observing {
    fn scheduled(
        &self,
        event: ScheduledCall,
        _: CancelToken,
    ) -> BoxFuture<'static, crate::error::Result<Option<Arc<dyn InvocationLifecycle>>>> {
        let note = format!(
            "scheduled {} {} {}",
            event.tool_name,
            event.input.to_json(),
            serde_json::to_string(&(event.side_effect, event.interrupt_behavior)).unwrap()
        );
        let one: Arc<dyn InvocationLifecycle> = Arc::new(Observing(Arc::clone(&self.0)));
        self.0.step("scheduled", note, Some(one))
    }

    fn settled(&self, event: &SettledCall<'_>, _: CancelToken) -> BoxFuture<'static, crate::error::Result<()>> {
        self.0.step("settled", format!("settled {}", event.result.model().as_text()), ())
    }
}

impl InvocationLifecycle for Observing {
    fn permission_requested(
        &self,
        details: &ConfirmationRequest,
        input: &Input,
        _: CancelToken,
    ) -> BoxFuture<'static, crate::error::Result<Option<String>>> {
        assert_eq!(&details.args, input);
        self.0.step("requested", format!("requested {}", details.tool_name), Some("question-1".to_owned()))
    }

    fn permission_resolved(
        &self,
        resolution: PermissionResolution,
        _: CancelToken,
    ) -> BoxFuture<'static, crate::error::Result<()>> {
        assert_eq!(resolution.permission_request_id, "question-1");
        self.0.step("resolved", format!("resolved {:?}", resolution.decision), ())
    }

    fn execution_started(&self, event: StartedCall, _: CancelToken) -> BoxFuture<'static, crate::error::Result<()>> {
        let note = format!("started {} {:?}", event.input.to_json(), event.side_effect);
        self.0.step("started", note, ())
    }
}

/// A call as the turn loop makes it: scheduled, run, settled.
async fn observed(pipeline: &Pipeline, call: &ToolCall, cx: &CallContext) -> crate::error::Result<CallReport> {
    let observer = pipeline.scheduled(call, cx).await?;
    let report = pipeline.run_observed(call, cx, Arc::new(Silent), observer).await;
    pipeline.settled(call, &report, cx).await?;
    Ok(report)
}

fn asked(log: &Arc<Log>, deed: Deed) -> Bench {
    Bench { log: Arc::clone(log), ..Bench::default() }
        .tool("T", ToolKind::Execute, deed)
        .judged(|_| Ok(PermissionDecision::ask("sure?")))
}

fn yes(_: &ConfirmationRequest) -> crate::error::Result<Confirmation> {
    Ok(Confirmation { approved: true, ..Confirmation::default() })
}

#[tokio::test]
async fn each_boundary_is_stored_before_its_step() {
    let log = Arc::new(Log::default());
    let pipeline = asked(&log, Deed::Answers("done".into()))
        .confirmed(|details| {
            assert_eq!(details.permission_request_id.as_str(), "question-1");
            yes(details)
        })
        .build()
        .with_lifecycle(Arc::new(Observing(Arc::new(Observer::new(&log)))));
    let report = observed(&pipeline, &call("T", json!({"n": 1})), &context(YOLO)).await.unwrap();
    assert_eq!(text(&report), "done");
    assert_eq!(
        log.taken(),
        [
            r#"scheduled T {"n":1} ["non_idempotent","block"]"#,
            "scheduled stored",
            "prepare",
            "decide",
            "requested T",
            "requested stored",
            "confirm",
            "resolved Allow",
            "resolved stored",
            r#"started {"n":1,"d":"filled"} NonIdempotent"#,
            "started stored",
            "run call of T",
            "settled done",
            "settled stored",
        ]
    );
}

#[tokio::test]
async fn a_boundary_that_is_rejected_stops_the_next_step() {
    for (rejected, last, runs) in
        [("requested", "decide", false), ("resolved", "confirm", false), ("started", "confirm", false)]
    {
        let log = Arc::new(Log::default());
        let observer = Observer { rejects: Some(rejected), ..Observer::new(&log) };
        let pipeline = asked(&log, Deed::Answers("done".into()))
            .confirmed(yes)
            .build()
            .with_lifecycle(Arc::new(Observing(Arc::new(observer))));
        let report = observed(&pipeline, &call("T", "{}"), &context(YOLO)).await.unwrap();
        let (kind, code, message) = error(&report);
        assert_eq!((kind, code.as_str()), (ToolErrorType::ExecutionError, "TOOL_LIFECYCLE_FAILED"));
        assert!(message.contains("disk full"), "{message}");
        let log = log.taken();
        let steps: Vec<&str> = log.iter().map(String::as_str).filter(|s| ["decide", "confirm"].contains(s)).collect();
        assert_eq!(steps.last(), Some(&last), "{log:?}");
        assert_eq!(log.iter().any(|step| step.starts_with("run")), runs);
        assert!(log.last().is_some_and(|step| step == "settled stored"), "the failure itself is settled: {log:?}");
    }
    for rejected in ["scheduled", "settled"] {
        let log = Arc::new(Log::default());
        let observer = Observer { rejects: Some(rejected), ..Observer::new(&log) };
        let pipeline = asked(&log, Deed::Answers("done".into()))
            .confirmed(yes)
            .build()
            .with_lifecycle(Arc::new(Observing(Arc::new(observer))));
        let failure = observed(&pipeline, &call("T", "{}"), &context(YOLO)).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::ToolLifecycleFailed, "{rejected}");
        assert_eq!(log.taken().iter().any(|step| step.starts_with("run")), rejected == "settled");
    }
}

#[tokio::test]
async fn what_is_no_invocation_is_not_told_of() {
    let log = Arc::new(Log::default());
    let pipeline = asked(&log, Deed::Answers("done".into()))
        .build()
        .with_lifecycle(Arc::new(Observing(Arc::new(Observer::new(&log)))));
    for arguments in ["{", "[]", "3"] {
        let report = observed(&pipeline, &call("T", arguments), &context(YOLO)).await.unwrap();
        assert_eq!(error(&report).1, "INVALID_TOOL_ARGUMENTS");
    }
    assert_eq!(log.taken(), Vec::<String>::new());
    observed(&pipeline, &call("Nope", "{}"), &context(YOLO)).await.unwrap();
    assert_eq!(log.taken()[0], r#"scheduled Nope {} ["non_idempotent","block"]"#);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_cancelled_is_resolved_as_cancelled_once() {
    for rejects in [None, Some("resolved")] {
        let log = Arc::new(Log::default());
        let observer = Observer { rejects, ..Observer::new(&log) };
        let mut bench = asked(&log, Deed::Answers("done".into()));
        bench.confirmation = Some(Arc::new(Nobody));
        let pipeline = bench.build().with_lifecycle(Arc::new(Observing(Arc::new(observer))));
        let cx = context(YOLO);
        let call = call("T", "{}");
        let run = observed(&pipeline, &call, &cx);
        let cancel = async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            cx.cancel.cancel(CancelReason::Abort);
        };
        let (report, ()) = tokio::join!(run, cancel);
        let (kind, _, message) = error(&report.unwrap());
        assert_eq!(kind, ToolErrorType::Interrupted);
        assert_eq!(message.contains("disk full"), rejects.is_some(), "{message}");
        let log = log.taken();
        assert_eq!(log.iter().filter(|step| step.starts_with("resolved ")).count(), 2, "{log:?}");
        assert!(log.contains(&"resolved Cancel".to_owned()), "{log:?}");
        assert!(!log.iter().any(|step| step.starts_with("run") || step.starts_with("started")), "{log:?}");
    }
}

/// A person who never answers.
struct Nobody;

impl ConfirmationPort for Nobody {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
        _: &'a CancelToken,
    ) -> BoxFuture<'a, crate::error::Result<Confirmation>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_hangs_holds_an_aborted_request_for_the_grace_and_then_the_gate() {
    for hangs in ["scheduled", "started", "settled"] {
        let log = Arc::new(Log::default());
        let observer = Observer { hangs: Some(hangs), ..Observer::new(&log) };
        let pipeline = Bench { log: Arc::clone(&log), ..Bench::default() }
            .tool("T", ToolKind::Execute, Deed::Answers("done".into()))
            .build()
            .with_lifecycle(Arc::new(Observing(Arc::new(observer))));
        let cx = context(YOLO);
        let call = call("T", "{}");
        let abort = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cx.cancel.cancel(CancelReason::Abort);
        };
        let (ended, ()) = tokio::join!(observed(&pipeline, &call, &cx), abort);
        assert_eq!(ended.is_err(), hangs != "started", "{hangs}");
        assert_eq!(pipeline.cleanup().pending().len(), 1, "{hangs}");
        let next = run(&pipeline, &call, &context(YOLO)).await;
        assert_eq!(error(&next).1, "CLEANUP_PENDING", "{hangs}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_while_a_step_is_stored_lets_no_step_overtake_it_and_runs_nothing() {
    for (slow, expected) in [
        ("scheduled", vec!["scheduled stored"]),
        ("requested", vec!["scheduled stored", "requested stored", "resolved stored", "settled stored"]),
        (
            "started",
            vec!["scheduled stored", "requested stored", "resolved stored", "started stored", "settled stored"],
        ),
    ] {
        let log = Arc::new(Log::default());
        let observer = Observer { slow: Some(slow), ..Observer::new(&log) };
        let pipeline = asked(&log, Deed::Answers("done".into()))
            .confirmed(yes)
            .build()
            .with_lifecycle(Arc::new(Observing(Arc::new(observer))));
        let cx = context(YOLO);
        let call = call("T", "{}");
        let abort = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cx.cancel.cancel(CancelReason::Abort);
        };
        let (ended, ()) = tokio::join!(observed(&pipeline, &call, &cx), abort);
        match ended {
            Ok(report) => assert_eq!(error(&report).0, ToolErrorType::Interrupted, "{slow}"),
            Err(error) => assert_eq!((error.code, slow), (crate::error::ErrorCode::Abort, "scheduled")),
        }
        let log = log.taken();
        let stored: Vec<_> = log.iter().filter(|step| step.ends_with(" stored")).collect();
        assert_eq!(stored, expected, "{slow}: {log:?}");
        assert!(!log.iter().any(|step| step.starts_with("run")), "{slow}: {log:?}");
        assert_eq!(log.iter().any(|step| step == "resolved Cancel"), slow == "requested", "{log:?}");
        assert_eq!(log.iter().any(|step| step == "confirm"), slow == "started", "nobody is asked: {log:?}");
        assert_eq!(pipeline.cleanup().pending().len(), 0, "{slow}");
    }
}

/// Middleware that does one thing to every call.
#[derive(Clone)]
enum Layer {
    /// Lets the call run and gives its result on.
    Through,
    /// Gives the core another input.
    Input(Value),
    /// Gives the core another name.
    Renames,
    /// Brings its own context.
    Replaces,
    /// Asks twice.
    Twice,
    /// Answers without the core.
    Answers(ToolOutcome),
    /// Starts the core and answers before it has ended.
    Leaves,
    /// Lets the call run and answers something else.
    Instead(ToolOutcome),
    /// Fails after the core.
    Throws,
    /// Never answers.
    Hangs,
}

impl ToolMiddleware for Layer {
    fn run(&self, call: MiddlewareCall, core: Arc<CoreCall>) -> BoxFuture<'static, crate::error::Result<ToolOutcome>> {
        let layer = self.clone();
        Box::pin(async move {
            let request = |arguments: Arguments| CoreRequest {
                tool_name: call.tool_name.clone(),
                same_context: true,
                arguments: Some(arguments),
            };
            let through = async |request: CoreRequest| -> crate::error::Result<ToolOutcome> {
                core.start(request)?;
                loop {
                    match core.next().await {
                        Some(CoreStep::Yield(item)) => call.yields.emit(item).await,
                        Some(CoreStep::Done(outcome)) => return Ok(outcome),
                        None => return Err(Error::internal("a started core has an end")),
                    }
                }
            };
            let given = call.arguments.clone();
            match layer {
                Layer::Through => through(CoreRequest { arguments: None, ..request(given) }).await,
                Layer::Input(Value::Object(object)) => through(request(Arguments::from_object(object))).await,
                Layer::Input(_) => unreachable!("inputs are objects"),
                Layer::Renames => through(CoreRequest { tool_name: "Other".into(), ..request(given) }).await,
                Layer::Replaces => through(CoreRequest { same_context: false, ..request(given) }).await,
                Layer::Twice => {
                    through(request(given.clone())).await?;
                    let _ = through(request(given)).await;
                    Ok(ToolOutcome::Success(ToolSuccess::new("twice")))
                }
                Layer::Answers(outcome) => Ok(outcome),
                Layer::Leaves => {
                    core.start(request(given))?;
                    Ok(ToolOutcome::Success(ToolSuccess::new("left")))
                }
                Layer::Instead(outcome) => {
                    through(request(given)).await?;
                    Ok(outcome)
                }
                Layer::Throws => {
                    through(request(given)).await?;
                    Err(Error::internal("the layer broke"))
                }
                Layer::Hangs => {
                    through(request(given)).await?;
                    std::future::pending().await
                }
            }
        })
    }
}

fn layered(log: &Arc<Log>, layer: Layer, deed: Deed) -> Pipeline {
    Bench { log: Arc::clone(log), ..Bench::default() }
        .tool("T", ToolKind::Execute, deed)
        .tool("Other", ToolKind::Execute, Deed::Answers("other".into()))
        .build()
        .with_middleware(Arc::new(layer))
}

#[tokio::test]
async fn middleware_runs_around_the_call_and_cannot_leave_its_bounds() {
    let success = |text: &str| ToolOutcome::Success(ToolSuccess::new(text));
    let failed = |text: &str| format!("Tool middleware failed: {text}");
    let done = || Deed::Answers("done".into());
    let fails = || Deed::Ends(|| ToolOutcome::Error(ToolError::new(ToolErrorType::ExecutionError, "broken").into()));
    for (name, layer, deed, expected, ran) in [
        ("through", Layer::Through, done(), "done".to_owned(), true),
        ("input", Layer::Input(json!({"n": 4})), done(), "done".to_owned(), true),
        ("bad input", Layer::Input(json!({"n": "x"})), done(), "integer".to_owned(), false),
        ("renames", Layer::Renames, done(), failed("toolName"), false),
        ("replaces", Layer::Replaces, done(), failed("context"), false),
        ("twice", Layer::Twice, done(), failed("next() called multiple times"), true),
        ("answers", Layer::Answers(success("own")), done(), "own".to_owned(), false),
        ("answers nothing", Layer::Answers(success("")), done(), "Execution completed".to_owned(), false),
        ("leaves", Layer::Leaves, done(), "done".to_owned(), true),
        ("instead", Layer::Instead(success("changed")), done(), "changed".to_owned(), true),
        ("no rescue", Layer::Instead(success("changed")), fails(), "broken".to_owned(), true),
        ("throws", Layer::Throws, done(), failed("the layer broke"), true),
        ("throws over a failure", Layer::Throws, fails(), "broken".to_owned(), true),
        ("panics below", Layer::Through, Deed::Panics, "internal failure".to_owned(), true),
    ] {
        let log = Arc::new(Log::default());
        let pipeline = layered(&log, layer, deed);
        let report = run(&pipeline, &call("T", json!({"n": 1})), &context(YOLO)).await;
        assert!(text(&report).contains(&expected), "{name}: {}", text(&report));
        assert_eq!(log.taken().iter().any(|step| step.starts_with("run call of T")), ran, "{name}");
    }
}

#[tokio::test]
async fn an_answer_without_a_call_is_told_as_started_before_it_counts() {
    for (rejects, expected) in [(None, "own"), (Some("started"), "could not be stored")] {
        let log = Arc::new(Log::default());
        let answer = ToolOutcome::Success(ToolSuccess::new("own"));
        let observer = Observer { rejects, ..Observer::new(&log) };
        let pipeline = layered(&log, Layer::Answers(answer), Deed::Answers("done".into()))
            .with_lifecycle(Arc::new(Observing(Arc::new(observer))));
        let report = observed(&pipeline, &call("T", "{}"), &context(YOLO)).await.unwrap();
        assert!(text(&report).contains(expected), "{}", text(&report));
        let log = log.taken();
        assert!(log.contains(&"started {} NonIdempotent".to_owned()), "{log:?}");
    }
    // An answer that fails started nothing.
    let log = Arc::new(Log::default());
    let answer = ToolOutcome::Error(ToolError::new(ToolErrorType::ExecutionError, "own").into());
    let pipeline = layered(&log, Layer::Answers(answer), Deed::Answers("done".into()))
        .with_lifecycle(Arc::new(Observing(Arc::new(Observer::new(&log)))));
    observed(&pipeline, &call("T", "{}"), &context(YOLO)).await.unwrap();
    assert!(!log.taken().iter().any(|step| step.starts_with("started")));
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_does_not_hear_the_abort_keeps_the_gate_and_the_core_keeps_its_result() {
    let log = Arc::new(Log::default());
    let pipeline = layered(&log, Layer::Hangs, Deed::Answers("done".into()));
    let cx = context(YOLO);
    let call = call("T", "{}");
    let abort = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cx.cancel.cancel(CancelReason::Abort);
    };
    let (report, ()) = tokio::join!(run(&pipeline, &call, &cx), abort);
    assert_eq!(text(&report), "done");
    assert_eq!(pipeline.cleanup().pending(), ["a tool middleware".into()]);
    assert_eq!(error(&run(&pipeline, &call, &context(YOLO)).await).1, "CLEANUP_PENDING");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_stays_one_whatever_the_middleware_says() {
    let log = Arc::new(Log::default());
    let mut bench = Bench { log: Arc::clone(&log), ..Bench::default() };
    bench.config.tool_timeout = Duration::from_millis(50);
    let own = ToolOutcome::Error(ToolError::new(ToolErrorType::NetworkError, "mine").into());
    let pipeline = bench
        .tool("T", ToolKind::Execute, Deed::Works(Duration::from_secs(60)))
        .build()
        .with_middleware(Arc::new(Layer::Instead(own)));
    let report = run(&pipeline, &call("T", "{}"), &context(YOLO)).await;
    assert_eq!(error(&report).0, ToolErrorType::TimeoutError);
}

/// Takes yields down.
#[derive(Default)]
struct Taken(std::sync::Mutex<Vec<String>>);

impl YieldSink for Taken {
    fn emit(&self, item: ToolYield) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.lock().unwrap().push(serde_json::to_string(&item).unwrap());
        Box::pin(std::future::ready(()))
    }
}

struct Chatty(ToolSpec, usize);

impl AnyTool for Chatty {
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
            for n in 0..self.1 {
                cx.emit(ToolYield::message(n.to_string())).await;
            }
            ToolOutcome::Success(ToolSuccess::new("said all"))
        })
    }
}

#[tokio::test]
async fn everything_a_core_says_arrives_in_order_whoever_takes_it() {
    for layer in [Layer::Through, Layer::Leaves] {
        let mut builder = RegistryBuilder::default();
        let schema = Schema::compile(r#"{"type":"object"}"#).unwrap();
        let spec = ToolSpec::new("C", "says a lot", schema, Behavior::of(ToolKind::ReadOnly));
        builder.register(Arc::new(Chatty(spec, 500)), SourceInfo::custom()).unwrap();
        let pipeline = Pipeline::new(Arc::new(builder.build()), PipelineConfig::default(), None, None)
            .with_middleware(Arc::new(layer));
        let taken = Arc::new(Taken::default());
        let report = pipeline.run(&call("C", "{}"), &context(YOLO), taken.clone()).await;
        assert_eq!(text(&report), "said all");
        let expected: Vec<String> =
            (0..500).map(|n| serde_json::to_string(&ToolYield::message(n.to_string())).unwrap()).collect();
        assert_eq!(*taken.0.lock().unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_instruction_stops_only_calls_that_may_be_interrupted() {
    let interruptible = |spec: &mut ToolSpec| spec.behavior = spec.behavior.with_interrupt(InterruptBehavior::Cancel);
    let works = || Deed::Works(Duration::from_secs(5));
    let pipeline = Bench::default()
        .tool_with("Stops", ToolKind::Execute, works(), interruptible)
        .tool("Goes", ToolKind::Execute, works())
        .tool_with("Deaf", ToolKind::Execute, Deed::Deaf(Arc::new(Notify::new())), interruptible)
        .build();
    let cx = context(YOLO);
    let (stops, goes, deaf) = (call("Stops", "{}"), call("Goes", "{}"), call("Deaf", "{}"));
    let steer = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cx.steer.cancel(CancelReason::Steered);
    };
    let (stopped, went, heard_nothing, ()) =
        tokio::join!(run(&pipeline, &stops, &cx), run(&pipeline, &goes, &cx), run(&pipeline, &deaf, &cx), steer);
    assert_eq!(error(&stopped).0, ToolErrorType::Interrupted);
    assert_eq!(error(&stopped).2, "stopped in good order", "the tool's own words are kept");
    assert_eq!(text(&went), "worked");
    assert_eq!(error(&heard_nothing).2, "Interrupted by a new instruction");
    assert_eq!(pipeline.cleanup().pending().len(), 1);
}

#[tokio::test]
async fn a_terminal_failure_is_the_last_thing_that_happens() {
    fn uncontained() -> ToolOutcome {
        let error = ToolError::new(ToolErrorType::TimeoutError, "process 7 is still alive");
        ToolOutcome::Error(error.with_code("PROCESS_NOT_CONTAINED").terminal().into())
    }
    let log = Arc::new(Log::default());
    let pipeline = Bench { log: Arc::clone(&log), ..Bench::default() }
        .tool("Escapes", ToolKind::Execute, Deed::Ends(uncontained))
        .tool("T", ToolKind::ReadOnly, Deed::Answers("done".into()))
        .build();
    assert_eq!(pipeline.terminal_failure(), None);
    run(&pipeline, &call("Escapes", "{}"), &context(YOLO)).await;
    log.taken();
    for _ in 0..2 {
        let report = run(&pipeline, &call("T", "{}"), &context(YOLO)).await;
        assert_eq!(error(&report).1, "PROCESS_NOT_CONTAINED");
    }
    assert_eq!(log.taken(), Vec::<String>::new());
    let failure = pipeline.terminal_failure().unwrap();
    assert_eq!(failure.code, ErrorCode::SessionQuarantined);
    assert!(failure.message.contains("still alive"));
}

/// A lease that is lost at the n-th look.
struct Lease {
    looks: AtomicUsize,
    lost_at: usize,
}

impl ExecutionLease for Lease {
    fn verify(&self) -> BoxFuture<'_, crate::error::Result<()>> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        let held = look < self.lost_at;
        Box::pin(std::future::ready(if held { Ok(()) } else { Err(Error::internal("fenced by owner 2")) }))
    }

    fn fence(&self) -> u64 {
        1
    }
}

#[tokio::test]
async fn a_lost_lease_stops_the_call_wherever_it_is_noticed_and_every_later_one() {
    let mut seen = VecDeque::new();
    for lost_at in 0..4 {
        let log = Arc::new(Log::default());
        let pipeline = Bench { log: Arc::clone(&log), ..Bench::default() }
            .tool("T", ToolKind::Execute, Deed::Answers("done".into()))
            .build()
            .with_lease(Arc::new(Lease { looks: AtomicUsize::new(0), lost_at }));
        let report = run(&pipeline, &call("T", "{}"), &context(YOLO)).await;
        let ran = log.taken().iter().any(|step| step.starts_with("run"));
        if !report.outcome.is_error() {
            seen.push_back((lost_at, "done", ran));
            continue;
        }
        assert_eq!(error(&report).1, "EXECUTION_LEASE_LOST");
        seen.push_back((lost_at, "lost", ran));
        let next = run(&pipeline, &call("T", "{}"), &context(YOLO)).await;
        assert_eq!(error(&next).1, "EXECUTION_LEASE_LOST");
        assert!(pipeline.terminal_failure().is_some());
        assert_eq!(log.taken(), Vec::<String>::new());
    }
    // Before the call, before the tool, after the tool; a result of lost work is not believed.
    assert_eq!(seen, [(0, "lost", false), (1, "lost", false), (2, "lost", true), (3, "done", true)]);
}

#[tokio::test]
async fn a_lease_that_is_lost_inside_of_middleware_is_noticed_whoever_answers() {
    let own = || ToolOutcome::Success(ToolSuccess::new("own"));
    for (name, layer, looks) in
        [("answers", Layer::Answers(own()), 2), ("through", Layer::Through, 5), ("instead", Layer::Instead(own()), 5)]
    {
        for lost_at in 0..=looks {
            let log = Arc::new(Log::default());
            let pipeline = layered(&log, layer.clone(), Deed::Answers("done".into()))
                .with_lease(Arc::new(Lease { looks: AtomicUsize::new(0), lost_at }));
            let report = run(&pipeline, &call("T", "{}"), &context(YOLO)).await;
            assert_eq!(report.outcome.is_error(), lost_at < looks, "{name} {lost_at}: {}", text(&report));
            assert_eq!(pipeline.terminal_failure().is_some(), lost_at < looks, "{name} {lost_at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_result_within_middleware_says_which_run_it_is_of() {
    let own = || ToolOutcome::Success(ToolSuccess::new("own"));
    for (name, layer, abort) in [
        ("through", Layer::Through, false),
        ("answers", Layer::Answers(own()), false),
        ("instead", Layer::Instead(own()), false),
        ("renames", Layer::Renames, false),
        ("leaves", Layer::Leaves, false),
        ("aborted", Layer::Answers(own()), true),
    ] {
        let pipeline = layered(&Arc::default(), layer, Deed::Answers("done".into()));
        let cx = context(YOLO);
        if abort {
            cx.cancel.cancel(CancelReason::Abort);
        }
        let mut report = run(&pipeline, &call("T", "{}"), &cx).await;
        let metadata = report.outcome.metadata_mut();
        for key in ["executionId", "toolName", "timestamp"] {
            assert!(metadata.contains_key(key), "{name}: {metadata:?}");
        }
    }
    let pipeline = layered(&Arc::default(), Layer::Hangs, Deed::Answers("done".into()));
    let cx = context(YOLO);
    let call = call("T", "{}");
    let abort = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cx.cancel.cancel(CancelReason::Abort);
    };
    let _ = tokio::join!(run(&pipeline, &call, &cx), abort);
    let mut refused = run(&pipeline, &call, &context(YOLO)).await;
    assert_eq!(error(&refused).1, "CLEANUP_PENDING");
    assert!(refused.outcome.metadata_mut().contains_key("executionId"));
}

#[tokio::test]
async fn a_tool_that_claims_more_than_it_declares_is_judged_as_executing() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let judged = Arc::clone(&seen);
    let pipeline = Bench::default()
        .tool("T", ToolKind::ReadOnly, Deed::Answers("done".into()))
        .judged(move |request| {
            judged.lock().unwrap().push((request.tool_kind, request.tool_meta.is_read_only));
            Ok(PermissionDecision::allow())
        })
        .build();
    for arguments in ["{}", r#"{"as":"write"}"#] {
        run(&pipeline, &call("T", arguments), &context(YOLO)).await;
    }
    assert_eq!(*seen.lock().unwrap(), [(ToolKind::ReadOnly, true), (ToolKind::Execute, false)]);
    let unknown = Behavior::of(ToolKind::Write).with_side_effect(SideEffect::Pure).unknown();
    assert_eq!((unknown.kind, unknown.side_effect), (ToolKind::Execute, SideEffect::NonIdempotent));
}
