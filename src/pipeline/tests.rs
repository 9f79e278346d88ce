mod observed;
mod results;
mod time;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::*;
use crate::contract::{
    AnyTool, Arguments, Behavior, BoxFuture, Exposure, ExposureMode, PrepareContext, Prepared, SourceInfo, Subject,
    ToolContext, ToolError, ToolErrorType, ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield,
};
use crate::error::{Error, Result};
use crate::host::CancelReason;
use crate::permissions::{Confirmation, ConfirmationRequest, ConfirmationScope, PermissionDecision, PermissionRequest};
use crate::registry::RegistryBuilder;
use crate::schema::Schema;

/// What happened, in order.
#[derive(Default)]
pub(super) struct Log(pub(super) Mutex<Vec<String>>);

impl Log {
    pub(super) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }
    pub(super) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// How many calls run, and how many ran at once.
#[derive(Default)]
pub(super) struct Gauge {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Gauge {
    fn enter(self: &Arc<Self>) -> Inside {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
        Inside(Arc::clone(self))
    }
    fn peak(&self) -> usize {
        self.peak.swap(0, Ordering::SeqCst)
    }
}

struct Inside(Arc<Gauge>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a fake tool does when it runs.
pub(super) enum Deed {
    Answers(String),
    Ends(fn() -> ToolOutcome),
    Panics,
    /// Works this long, unless its input has `ms`; stops when it is told to.
    Works(Duration),
    /// Ends in success although it was told to stop.
    FinishesAnyway,
    /// Does not hear that it shall stop.
    Deaf(Arc<Notify>),
}

struct Fake {
    spec: ToolSpec,
    deed: Deed,
    log: Arc<Log>,
    gauge: Arc<Gauge>,
}

impl AnyTool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a PrepareContext,
    ) -> BoxFuture<'a, std::result::Result<Prepared, ToolFailure>> {
        Box::pin(async move {
            self.log.note("prepare");
            let text = |key: &str| arguments.object.get(key).and_then(Value::as_str).map(str::to_owned);
            if let Some(why) = text("refuse") {
                return Err(ToolError::new(ToolErrorType::ValidationError, why).with_code("OWN_CHECK").into());
            }
            let behavior = match text("as").as_deref() {
                Some("write") => Behavior::of(ToolKind::Write),
                Some("read") => Behavior::of(ToolKind::ReadOnly),
                _ => self.spec.behavior,
            };
            let affected_paths = text("file_path").into_iter().collect();
            let subject = Subject { content: text("content"), affected_paths, ..Subject::default() };
            Ok(Prepared { arguments, behavior, subject })
        })
    }

    fn execute(&self, arguments: Arguments, cx: ToolContext) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            self.log.note(format!("run {}", cx.call_id.as_str()));
            let _inside = self.gauge.enter();
            match &self.deed {
                Deed::Answers(text) => ToolOutcome::Success(ToolSuccess::new(text.as_str())),
                Deed::Ends(outcome) => outcome(),
                Deed::Panics => panic!("the fake tool panics"),
                Deed::Works(time) => {
                    let time = arguments.object.get("ms").and_then(Value::as_u64).map_or(*time, Duration::from_millis);
                    match cx.cancel.run_until(tokio::time::sleep(time)).await {
                        Some(()) => ToolOutcome::Success(ToolSuccess::new("worked")),
                        None => {
                            let error = ToolError::new(ToolErrorType::ExecutionError, "stopped in good order");
                            ToolOutcome::Error(ToolFailure::from(error).with_metadata(json!({"kept": true})))
                        }
                    }
                }
                Deed::FinishesAnyway => {
                    cx.cancel.cancelled().await;
                    ToolOutcome::Success(ToolSuccess::new("finished anyway"))
                }
                Deed::Deaf(release) => {
                    release.notified().await;
                    ToolOutcome::Success(ToolSuccess::new("too late"))
                }
            }
        })
    }
}

pub(super) struct Silent;

impl YieldSink for Silent {
    fn emit(&self, _: ToolYield) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

type Decide = dyn Fn(&PermissionRequest) -> Result<PermissionDecision> + Send + Sync;
type Confirm = dyn Fn(&ConfirmationRequest) -> Result<Confirmation> + Send + Sync;

struct Judge(Box<Decide>, Arc<Log>);

impl PermissionPort for Judge {
    fn decide<'a>(
        &'a self,
        request: &'a PermissionRequest,
        _: &'a CancelToken,
    ) -> BoxFuture<'a, Result<PermissionDecision>> {
        self.1.note("decide");
        Box::pin(std::future::ready((self.0)(request)))
    }
}

struct Person(Box<Confirm>, Arc<Log>);

impl ConfirmationPort for Person {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
        _: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Confirmation>> {
        self.1.note("confirm");
        Box::pin(std::future::ready((self.0)(request)))
    }
}

/// A pipeline under construction.
#[derive(Default)]
pub(super) struct Bench {
    pub(super) builder: RegistryBuilder,
    pub(super) config: PipelineConfig,
    pub(super) permission: Option<Arc<dyn PermissionPort>>,
    pub(super) confirmation: Option<Arc<dyn ConfirmationPort>>,
    pub(super) log: Arc<Log>,
    pub(super) gauge: Arc<Gauge>,
}

impl Bench {
    pub(super) fn tool(self, name: &str, kind: ToolKind, deed: Deed) -> Self {
        self.tool_with(name, kind, deed, |_| {})
    }

    pub(super) fn tool_with(
        mut self,
        name: &str,
        kind: ToolKind,
        deed: Deed,
        edit: impl FnOnce(&mut ToolSpec),
    ) -> Self {
        let schema = Schema::compile(
            r#"{"type":"object","properties":{"n":{"type":"integer"},"d":{"type":"string","default":"filled"}}}"#,
        )
        .unwrap();
        let mut spec = ToolSpec::new(name, "a fake", schema, Behavior::of(kind));
        edit(&mut spec);
        let fake = Fake { spec, deed, log: Arc::clone(&self.log), gauge: Arc::clone(&self.gauge) };
        self.builder.register(Arc::new(fake), SourceInfo::custom()).unwrap();
        self
    }

    pub(super) fn judged(
        mut self,
        decide: impl Fn(&PermissionRequest) -> Result<PermissionDecision> + Send + Sync + 'static,
    ) -> Self {
        self.permission = Some(Arc::new(Judge(Box::new(decide), Arc::clone(&self.log))));
        self
    }

    pub(super) fn confirmed(
        mut self,
        confirm: impl Fn(&ConfirmationRequest) -> Result<Confirmation> + Send + Sync + 'static,
    ) -> Self {
        self.confirmation = Some(Arc::new(Person(Box::new(confirm), Arc::clone(&self.log))));
        self
    }

    fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    pub(super) fn build(self) -> Pipeline {
        Pipeline::new(Arc::new(self.builder.build()), self.config, self.permission, self.confirmation)
    }
}

pub(super) fn context(mode: PermissionMode) -> CallContext {
    CallContext {
        session_id: SessionId::new("session"),
        message_id: MessageId::generate(),
        snapshot: Arc::default(),
        mode,
        exposure: Arc::new(ExposurePolicy { mode, ..ExposurePolicy::default() }),
        host_env: EnvSnapshot::default(),
        cancel: CancelToken::new(),
        steer: CancelToken::new(),
    }
}

pub(super) fn call(name: &str, arguments: impl ToString) -> ToolCall {
    ToolCall { id: format!("call of {name}"), name: name.into(), arguments: arguments.to_string() }
}

pub(super) async fn run(pipeline: &Pipeline, call: &ToolCall, cx: &CallContext) -> CallReport {
    pipeline.run(call, cx, Arc::new(Silent)).await
}

pub(super) fn error(report: &CallReport) -> (ToolErrorType, String, String) {
    let error = report.outcome.error().expect("an error result");
    (error.kind, error.code.clone().unwrap_or_default(), error.message.clone())
}

pub(super) fn text(report: &CallReport) -> &str {
    report.outcome.model().as_text()
}

pub(super) const YOLO: PermissionMode = PermissionMode::Yolo;

#[tokio::test]
async fn stages_come_in_their_order_and_a_rewrite_is_prepared_again() {
    let bench = Bench::default()
        .tool("T", ToolKind::Execute, Deed::Answers("done".into()))
        .judged(|request| {
            assert_eq!(request.input.get("d"), Some(&json!("filled")), "defaults are filled before anybody judges");
            Ok(match request.input.get("n").and_then(Value::as_u64) {
                Some(1) => PermissionDecision::ask("sure?"),
                _ => PermissionDecision::Allow {
                    updated_input: Some(Map::from_iter([("n".to_owned(), json!(7))])),
                    updated_permissions: None,
                    effects: None,
                },
            })
        })
        .confirmed(|_| Ok(Confirmation { approved: true, ..Confirmation::default() }));
    let log = Arc::clone(&bench.log);
    let pipeline = bench.build();
    let report = run(&pipeline, &call("T", json!({"n": 1})), &context(YOLO)).await;
    assert_eq!(text(&report), "done");
    assert_eq!(log.taken(), ["prepare", "decide", "confirm", "run call of T"]);
    let report = run(&pipeline, &call("T", json!({"n": 2})), &context(YOLO)).await;
    assert_eq!(log.taken(), ["prepare", "decide", "prepare", "run call of T"]);
    assert_eq!(serde_json::from_str::<Value>(&report.input).unwrap(), json!({"n": 7, "d": "filled"}));
}

#[tokio::test]
async fn every_refusal_has_its_type_and_code_and_the_tool_never_runs() {
    use ToolErrorType::{ExecutionError, Interrupted, PermissionDenied, ValidationError};
    let deny = |_: &PermissionRequest| Ok(PermissionDecision::deny("no"));
    let broken = |_: &PermissionRequest| Err(Error::internal("broken handler"));
    let ask = |_: &PermissionRequest| Ok(PermissionDecision::ask("?"));
    let rewrite = |key: &'static str, value: Value| {
        move |_: &PermissionRequest| {
            let updated_input = Some(Map::from_iter([(key.to_owned(), value.clone())]));
            Ok(PermissionDecision::Allow { updated_input, updated_permissions: None, effects: None })
        }
    };
    let plain = || Bench::default();
    let refused = |_: &ConfirmationRequest| Ok(Confirmation { reason: Some("mine".into()), ..Confirmation::default() });
    let lost = |_: &ConfirmationRequest| Err(Error::internal("broken person"));
    let (yolo, plan, default) = (YOLO, PermissionMode::Plan, PermissionMode::Default);
    let rows: Vec<(&str, Bench, ToolCall, PermissionMode, ToolErrorType, &str, &str)> = vec![
        ("unknown tool", plain(), call("Nope", "{}"), yolo, ExecutionError, "TOOL_NOT_FOUND", "Nope"),
        ("deferred tool", plain(), call("Later", "{}"), yolo, ExecutionError, "TOOL_NOT_AVAILABLE", "not available"),
        ("no JSON", plain(), call("T", "{"), yolo, ValidationError, "INVALID_TOOL_ARGUMENTS", "complete JSON object"),
        ("an array", plain(), call("T", "[]"), yolo, ValidationError, "INVALID_TOOL_ARGUMENTS", "an array"),
        ("wrong type", plain(), call("T", r#"{"n":"1"}"#), yolo, ValidationError, "TOOL_VALIDATION_ERROR", "integer"),
        ("own check", plain(), call("T", r#"{"refuse":"why"}"#), yolo, ValidationError, "OWN_CHECK", "why"),
        ("plan mode", plain(), call("T", "{}"), plan, PermissionDenied, "PERMISSION_DENIED", "plan mode"),
        (
            "system path",
            plain(),
            call("T", r#"{"file_path":"/etc/x"}"#),
            yolo,
            PermissionDenied,
            "PERMISSION_DENIED",
            "/etc/x",
        ),
        (
            "key file",
            plain(),
            call("T", r#"{"file_path":"/w/id_rsa"}"#),
            yolo,
            PermissionDenied,
            "PERMISSION_DENIED",
            "id_rsa",
        ),
        ("handler denies", plain().judged(deny), call("T", "{}"), yolo, PermissionDenied, "PERMISSION_DENIED", "no"),
        (
            "handler breaks",
            plain().judged(broken),
            call("T", "{}"),
            yolo,
            PermissionDenied,
            "PERMISSION_DENIED",
            "broken handler",
        ),
        (
            "nobody to ask",
            plain().judged(ask),
            call("T", "{}"),
            yolo,
            PermissionDenied,
            "PERMISSION_DENIED",
            "confirmationHandler",
        ),
        (
            "default mode asks",
            plain(),
            call("T", "{}"),
            default,
            PermissionDenied,
            "PERMISSION_DENIED",
            "confirmationHandler",
        ),
        (
            "a person refuses",
            plain().confirmed(refused),
            call("T", "{}"),
            default,
            PermissionDenied,
            "PERMISSION_DENIED",
            "mine",
        ),
        (
            "a person is lost",
            plain().confirmed(lost),
            call("T", "{}"),
            default,
            PermissionDenied,
            "PERMISSION_DENIED",
            "broken person",
        ),
        (
            "rewrite that does not match",
            plain().judged(rewrite("n", json!("x"))),
            call("T", "{}"),
            yolo,
            ValidationError,
            "TOOL_VALIDATION_ERROR",
            "integer",
        ),
        (
            "rewrite of a path",
            plain().judged(rewrite("file_path", json!("/b"))),
            call("T", r#"{"file_path":"/a"}"#),
            yolo,
            PermissionDenied,
            "PERMISSION_DENIED",
            "paths",
        ),
        (
            "rewrite out of plan mode",
            plain().judged(rewrite("as", json!("write"))),
            call("T", r#"{"as":"read"}"#),
            plan,
            PermissionDenied,
            "PERMISSION_DENIED",
            "plan mode",
        ),
    ];
    for (name, bench, call, mode, kind, code, says) in rows {
        let bench = bench.tool("T", ToolKind::Execute, Deed::Answers("ran".into())).tool_with(
            "Later",
            ToolKind::Execute,
            Deed::Answers("ran".into()),
            |spec| spec.exposure = Exposure { mode: ExposureMode::Deferred, ..Exposure::default() },
        );
        let log = Arc::clone(&bench.log);
        let report = run(&bench.build(), &call, &context(mode)).await;
        let (got_kind, got_code, message) = error(&report);
        assert_eq!((got_kind, got_code.as_str()), (kind, code), "{name}: {message}");
        assert!(message.contains(says), "{name}: {message}");
        assert_eq!(report.input, call.arguments, "{name}: what never ran is shown as it came");
        assert!(log.taken().iter().all(|entry| !entry.starts_with("run")), "{name} ran");
    }
    let cancelled = context(YOLO);
    cancelled.cancel.cancel(CancelReason::Abort);
    let bench = Bench::default().tool("T", ToolKind::Execute, Deed::Answers("ran".into()));
    assert_eq!(error(&run(&bench.build(), &call("T", "{}"), &cancelled).await).0, Interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_deadline_is_a_timeout_and_its_cleanup_is_waited_for() {
    let mut bench = Bench::default().tool("Long", ToolKind::ReadOnly, Deed::Works(Duration::from_secs(3600))).tool(
        "Anyway",
        ToolKind::ReadOnly,
        Deed::FinishesAnyway,
    );
    bench.config.tool_timeout = Duration::from_secs(10);
    let pipeline = bench.build();
    for name in ["Long", "Anyway"] {
        let before = Instant::now();
        let report = run(&pipeline, &call(name, "{}"), &context(YOLO)).await;
        let (kind, code, message) = error(&report);
        assert_eq!((kind, code.as_str()), (ToolErrorType::TimeoutError, "TOOL_TIMEOUT"));
        assert_eq!(message, "Tool execution timeout after 10000ms");
        assert!(before.elapsed() < Duration::from_secs(11), "what stops when told holds nobody up");
        assert!(pipeline.cleanup().pending().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_deaf_tool_keeps_its_slot_and_shuts_the_pipeline_until_it_ends() {
    let release = Arc::new(Notify::new());
    let mut bench = Bench::default().tool("Deaf", ToolKind::Execute, Deed::Deaf(Arc::clone(&release))).tool(
        "T",
        ToolKind::ReadOnly,
        Deed::Answers("ok".into()),
    );
    bench.config.tool_timeout = Duration::from_secs(10);
    let pipeline = bench.limits(Limits { execute: 1, ..Limits::default() }).build();
    let before = Instant::now();
    let report = run(&pipeline, &call("Deaf", "{}"), &context(YOLO)).await;
    assert_eq!(error(&report).0, ToolErrorType::TimeoutError);
    assert_eq!(before.elapsed().as_secs(), 15, "the deadline and the grace after it");
    assert_eq!(pipeline.cleanup().pending().len(), 1);
    let (_, code, message) = error(&run(&pipeline, &call("T", "{}"), &context(YOLO)).await);
    assert_eq!(code, "CLEANUP_PENDING");
    assert!(message.contains("Deaf"), "{message}");
    release.notify_one();
    pipeline.cleanup().drained().await;
    assert_eq!(text(&run(&pipeline, &call("T", "{}"), &context(YOLO)).await), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_for_a_slot_does_not_start_beside_a_deaf_one() {
    let release = Arc::new(Notify::new());
    let mut bench = Bench::default().tool("Deaf", ToolKind::Execute, Deed::Deaf(Arc::clone(&release)));
    bench.config.tool_timeout = Duration::from_secs(1);
    let log = Arc::clone(&bench.log);
    let pipeline = bench.limits(Limits { execute: 1, ..Limits::default() }).build();
    let (one, two) = (call("Deaf", "{}"), call("Deaf", "{}"));
    let cx = context(YOLO);
    let watch = async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let runs = log.taken().iter().filter(|entry| entry.starts_with("run")).count();
        cx.cancel.cancel(CancelReason::Abort);
        release.notify_one();
        runs
    };
    let (first, second, runs) = tokio::join!(run(&pipeline, &one, &cx), run(&pipeline, &two, &cx), watch);
    assert_eq!(error(&first).0, ToolErrorType::TimeoutError);
    assert_eq!(error(&second).0, ToolErrorType::Interrupted);
    assert_eq!(runs, 1);
    pipeline.cleanup().drained().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_keeps_what_its_tool_said_at_the_end() {
    let bench = Bench::default().tool("Long", ToolKind::Execute, Deed::Works(Duration::from_secs(3600))).tool(
        "Anyway",
        ToolKind::Execute,
        Deed::FinishesAnyway,
    );
    let pipeline = bench.build();
    for (name, expected) in [("Long", "stopped in good order"), ("Anyway", "finished anyway")] {
        let cx = context(YOLO);
        let stop = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cx.cancel.cancel(CancelReason::Abort);
        };
        let calling = call(name, "{}");
        let (report, ()) = tokio::join!(run(&pipeline, &calling, &cx), stop);
        assert_eq!(text(&report), expected);
        if report.outcome.is_error() {
            assert_eq!(error(&report).0, ToolErrorType::Interrupted);
        }
    }
}

#[tokio::test]
async fn a_panic_of_a_tool_is_an_internal_error_result_and_gives_its_slot_back() {
    let bench = Bench::default()
        .tool("Panics", ToolKind::Execute, Deed::Panics)
        .limits(Limits { execute: 1, ..Limits::default() });
    let pipeline = bench.build();
    for _ in 0..3 {
        let (_, code, message) = error(&run(&pipeline, &call("Panics", "{}"), &context(YOLO)).await);
        assert_eq!(code, "INTERNAL");
        assert!(message.contains("the fake tool panics"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn slots_are_handed_out_in_order_and_cancelled_waiters_leave_no_trace() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let limit = random.usize(1..4);
        let bench = Bench::default()
            .tool("Work", ToolKind::Execute, Deed::Works(Duration::from_millis(10)))
            .limits(Limits { execute: limit, ..Limits::default() });
        let (log, gauge) = (Arc::clone(&bench.log), Arc::clone(&bench.gauge));
        let pipeline = bench.build();
        let count = random.usize(2..14);
        let calls: Vec<(ToolCall, CallContext, Option<u64>)> = (0..count)
            .map(|at| {
                let ms = random.u64(0..30);
                let call = ToolCall { id: at.to_string(), ..call("Work", json!({"ms": ms})) };
                (call, context(YOLO), random.bool().then(|| random.u64(0..60)))
            })
            .collect();
        let running = calls.iter().map(|(call, cx, stop)| async {
            let stop = async {
                match stop {
                    Some(ms) => {
                        tokio::time::sleep(Duration::from_millis(*ms)).await;
                        cx.cancel.cancel(CancelReason::Abort);
                    }
                    None => std::future::pending().await,
                }
            };
            let work = run(&pipeline, call, cx);
            tokio::pin!(work);
            tokio::select! {
                report = &mut work => report,
                () = stop => work.await,
            }
        });
        let reports = join_all(running).await;
        assert!(gauge.peak() <= limit, "seed {seed}: more than {limit} at once");
        let order: Vec<usize> =
            log.taken().iter().filter_map(|entry| entry.strip_prefix("run ")?.parse().ok()).collect();
        assert!(order.is_sorted(), "seed {seed}: {order:?} overtook");
        for (at, report) in reports.iter().enumerate() {
            let never_cancelled = calls[at].2.is_none();
            assert!(!never_cancelled || text(report) == "worked", "seed {seed}: call {at} was lost: {report:?}");
        }
        let again: Vec<ToolCall> = (0..limit).map(|_| call("Work", json!({"ms": 5}))).collect();
        let cx = context(YOLO);
        join_all(again.iter().map(|call| run(&pipeline, call, &cx))).await;
        assert_eq!(gauge.peak(), limit, "seed {seed}: a slot was lost");
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_at_once_and_kinds_do_not_share_slots() {
    let bench = Bench::default()
        .tool("Run", ToolKind::Execute, Deed::Works(Duration::from_secs(1)))
        .tool("Look", ToolKind::ReadOnly, Deed::Works(Duration::from_secs(1)))
        .limits(Limits { execute: 1, queue: 1, ..Limits::default() });
    let pipeline = bench.build();
    let cx = context(YOLO);
    let calls = [call("Run", "{}"), call("Run", "{}"), call("Run", "{}"), call("Look", "{}")];
    let reports = join_all(calls.iter().map(|call| run(&pipeline, call, &cx))).await;
    assert_eq!(error(&reports[2]).1, "TOOL_QUEUE_FULL");
    for at in [0, 1, 3] {
        assert_eq!(text(&reports[at]), "worked");
    }
}

#[tokio::test(start_paused = true)]
async fn writers_of_one_file_exclude_each_other_however_its_path_is_spelled_and_readers_share() {
    let bench = Bench::default().tool("Write", ToolKind::Write, Deed::Works(Duration::from_secs(1))).tool(
        "Read",
        ToolKind::ReadOnly,
        Deed::Works(Duration::from_secs(1)),
    );
    let (gauge, log) = (Arc::clone(&bench.gauge), Arc::clone(&bench.log));
    let pipeline = bench.build();
    let mut cx = context(YOLO);
    cx.snapshot = Arc::new(ContextSnapshot { cwd: Some("/w".into()), ..ContextSnapshot::default() });
    let same = ["/w/a", "a", "./a", "/w/./a", "//w//a"];
    for (name, most) in [("Write", 1), ("Read", 5)] {
        let calls: Vec<ToolCall> = same.iter().map(|path| call(name, json!({"file_path": path}))).collect();
        join_all(calls.iter().map(|call| run(&pipeline, call, &cx))).await;
        assert_eq!(gauge.peak(), most, "{name}");
    }
    let other = [call("Write", json!({"file_path": "/w/a"})), call("Write", json!({"file_path": "/w/b"}))];
    join_all(other.iter().map(|call| run(&pipeline, call, &cx))).await;
    assert_eq!(gauge.peak(), 2, "other files do not wait");
    log.taken();
    let at = |id: &str, name: &str| ToolCall { id: id.into(), ..call(name, json!({"file_path": "a"})) };
    let calls = [at("1", "Read"), at("2", "Write"), at("3", "Read")];
    join_all(calls.iter().map(|call| run(&pipeline, call, &cx))).await;
    let runs: Vec<String> = log.taken().into_iter().filter(|entry| entry.starts_with("run")).collect();
    assert_eq!(runs, ["run 1", "run 2", "run 3"], "a reader does not overtake a waiting writer");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_stays_in_use_is_named_after_thirty_seconds() {
    let bench = Bench::default().tool("Write", ToolKind::Write, Deed::Works(Duration::from_secs(300)));
    let pipeline = bench.build();
    let cx = context(YOLO);
    let calls = [call("Write", r#"{"file_path":"/w/a"}"#), call("Write", r#"{"file_path":"/w/a"}"#)];
    let before = Instant::now();
    let second = async {
        let report = run(&pipeline, &calls[1], &cx).await;
        (report, before.elapsed())
    };
    let (first, (second, waited)) = tokio::join!(run(&pipeline, &calls[0], &cx), second);
    assert_eq!(text(&first), "worked");
    let (_, code, message) = error(&second);
    assert_eq!(code, "FILE_LOCK_TIMEOUT");
    assert!(message.contains("/w/a"), "{message}");
    assert_eq!(waited.as_secs(), 30);
}

#[tokio::test]
async fn the_request_ends_after_an_interrupting_denial_a_persons_no_or_a_result_that_says_so() {
    fn last() -> ToolOutcome {
        ToolOutcome::Success(ToolSuccess::new("x").with_metadata(json!({"shouldExitLoop": true})))
    }
    fn failed_last() -> ToolOutcome {
        let error = ToolError::new(ToolErrorType::ExecutionError, "x");
        ToolOutcome::Error(ToolFailure::from(error).with_metadata(json!({"shouldExitLoop": true})))
    }
    fn not_last() -> ToolOutcome {
        ToolOutcome::Success(ToolSuccess::new("x").with_metadata(json!({"shouldExitLoop": "yes"})))
    }
    let interrupt = |_: &PermissionRequest| Ok(PermissionDecision::Deny { message: "x".into(), interrupt: true });
    let deny = |_: &PermissionRequest| Ok(PermissionDecision::deny("x"));
    let no = |_: &ConfirmationRequest| Ok(Confirmation::default());
    for (name, bench, deed, mode, exits) in [
        ("plain success", Bench::default(), Deed::Answers("x".into()), YOLO, false),
        ("plain denial", Bench::default().judged(deny), Deed::Answers("x".into()), YOLO, false),
        ("interrupting denial", Bench::default().judged(interrupt), Deed::Answers("x".into()), YOLO, true),
        ("a person's no", Bench::default().confirmed(no), Deed::Answers("x".into()), PermissionMode::Default, true),
        ("success that ends", Bench::default(), Deed::Ends(last), YOLO, true),
        ("failure that ends", Bench::default(), Deed::Ends(failed_last), YOLO, true),
        ("only true counts", Bench::default(), Deed::Ends(not_last), YOLO, false),
    ] {
        let pipeline = bench.tool("T", ToolKind::Execute, deed).build();
        let mut report = run(&pipeline, &call("T", "{}"), &context(mode)).await;
        assert_eq!(report.exit_loop, exits, "{name}");
        let shown = report.outcome.metadata_mut().get("shouldExitLoop") == Some(&json!(true));
        assert_eq!(shown, exits, "{name}");
    }
}

#[tokio::test]
async fn a_session_approval_covers_its_exact_signature() {
    let approve = |_: &ConfirmationRequest| {
        Ok(Confirmation { approved: true, scope: ConfirmationScope::Session, ..Confirmation::default() })
    };
    let bench = Bench::default().tool("T", ToolKind::Execute, Deed::Answers("x".into())).confirmed(approve);
    let log = Arc::clone(&bench.log);
    let pipeline = bench.build();
    let mut asked = Vec::new();
    for content in ["ls", "ls", "ls -a", "ls"] {
        run(&pipeline, &call("T", json!({"content": content})), &context(PermissionMode::Default)).await;
        asked.push(log.taken().contains(&"confirm".to_owned()));
    }
    assert_eq!(asked, [true, false, true, false]);
}

#[tokio::test]
async fn a_handler_can_remember_and_forget_rules_for_the_session() {
    let decide = |request: &PermissionRequest| {
        let rule = json!([{"toolName": "T", "ruleContent": "ls"}]);
        let updates = match request.input.get("n").and_then(Value::as_u64) {
            Some(1) => json!([{"type": "addRules", "rules": rule, "behavior": "allow"}]),
            Some(2) => json!([{"type": "removeRules", "rules": rule}]),
            Some(3) => json!([{"type": "addRules", "rules": [{"toolName": "T"}], "behavior": "allow"}]),
            Some(4) => json!([{"type": "addRules", "rules": [{"toolName": "T"}], "behavior": "deny"}]),
            Some(5) => json!([{"type": "addRules", "rules": "all"}]),
            _ => return Ok(PermissionDecision::ask("?")),
        };
        Ok(PermissionDecision::Allow { updated_input: None, updated_permissions: Some(updates), effects: None })
    };
    let pipeline = Bench::default().tool("T", ToolKind::Execute, Deed::Answers("ran".into())).judged(decide).build();
    let cx = context(PermissionMode::Default);
    let mut ran = Vec::new();
    for (n, content) in [(0, "ls"), (1, "x"), (0, "ls"), (0, "ls -a"), (2, "x"), (0, "ls")] {
        let report = run(&pipeline, &call("T", json!({"n": n, "content": content})), &cx).await;
        ran.push(!report.outcome.is_error());
    }
    assert_eq!(ran, [false, true, true, false, true, false]);
    ran.clear();
    for (n, content) in [(3, "x"), (0, "anything"), (4, "x"), (0, "anything"), (5, "x")] {
        let report = run(&pipeline, &call("T", json!({"n": n, "content": content})), &cx).await;
        ran.push(!report.outcome.is_error());
    }
    assert_eq!(ran, [true, true, true, false, false]);
}

#[tokio::test]
async fn blank_results_oversized_results_and_long_results_take_their_final_form() {
    let limited = |spec: &mut ToolSpec| spec.max_result_chars = Some(100);
    let long = "é".repeat(150);
    let mut bench = Bench::default()
        .tool("Blank", ToolKind::ReadOnly, Deed::Answers(String::new()))
        .tool("Big", ToolKind::ReadOnly, Deed::Answers("x".repeat(2000)))
        .tool_with("Long", ToolKind::ReadOnly, Deed::Answers(long.clone()), limited)
        .tool_with("Fits", ToolKind::ReadOnly, Deed::Answers("é".repeat(100)), limited);
    bench.config.max_result_bytes = 1000;
    let pipeline = bench.build();
    let cx = context(YOLO);
    assert_eq!(text(&run(&pipeline, &call("Blank", "{}"), &cx).await), "Execution completed");
    let (_, code, message) = error(&run(&pipeline, &call("Big", "{}"), &cx).await);
    assert_eq!(code, "TOOL_RESULT_TOO_LARGE");
    assert!(message.contains("2000 bytes") && message.contains("1000"), "{message}");
    assert_eq!(text(&run(&pipeline, &call("Fits", "{}"), &cx).await), "é".repeat(100), "characters count, not bytes");

    let mut report = run(&pipeline, &call("Long", "{}"), &cx).await;
    let metadata = report.outcome.metadata_mut().clone();
    assert_eq!(metadata["resultExternalized"], true);
    assert_eq!(metadata["resultSizeLimit"], 100);
    assert_eq!(metadata["modelContentOriginalLength"], 150);
    let path = std::path::PathBuf::from(metadata["resultArtifactPath"].as_str().unwrap());
    assert!(text(&report).starts_with(&format!("[externalized result to {}]", path.display())));
    let record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((&record["toolName"], &record["modelContent"]), (&json!("Long"), &json!(long)));

    // Where nothing can be stored the result is cut, the note about it included in the limit.
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let mut report = run(&pipeline, &call("Long", "{}"), &cx).await;
    assert_eq!(report.outcome.metadata_mut()["resultTruncated"], true);
    assert_eq!(text(&report).chars().count(), 100);
    assert!(text(&report).ends_with("[74 characters removed]"));
}
