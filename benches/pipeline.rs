//! What the pipeline adds to a tool that does nothing: resolve, validate, permit, schedule, invoke, settle.
//!
//! `cargo bench --no-default-features --bench pipeline [-- --reps 9]` prints microseconds a call: the median of the
//! repetitions, and their range. The cases take turns, so that all of them meet the same disturbances.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use blade_agent_sdk::contract::{
    Behavior, ContextSnapshot, PermissionMode, SourceInfo, Subject, Tool, ToolContext, ToolFailure, ToolKind, ToolSpec,
    ToolSuccess, ToolYield, YieldSink,
};
use blade_agent_sdk::host::{CancelToken, EnvSnapshot};
use blade_agent_sdk::model::{MessageId, SessionId, ToolCall};
use blade_agent_sdk::pipeline::{CallContext, Pipeline, PipelineConfig};
use blade_agent_sdk::registry::{ExposurePolicy, RegistryBuilder};
use blade_agent_sdk::schema::Schema;
use serde::Deserialize;
use tokio::time::Instant;

/// The one the addon has, where the addon is not in the build and has brought it.
#[cfg(not(feature = "node-api"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CALLS: u32 = 2_000;
const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string"},"limit":{"type":"integer",
    "minimum":1},"all":{"type":"boolean","default":false}},"required":["limit"],"additionalProperties":false}"#;

#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed as a real tool would")]
struct Params {
    file_path: Option<String>,
    limit: u32,
    all: bool,
}

struct Noop(ToolSpec);

impl Tool for Noop {
    type Params = Params;

    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn subject(&self, params: &Params) -> Subject {
        Subject { affected_paths: params.file_path.iter().cloned().collect(), ..Subject::default() }
    }

    async fn execute(&self, _: Params, _: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        Ok(ToolSuccess::new("ok"))
    }
}

struct Silent;

impl YieldSink for Silent {
    fn emit(&self, _: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// One way to call the tool.
struct Case {
    name: &'static str,
    tool: &'static str,
    arguments: String,
}

fn pipeline() -> Result<Pipeline, Box<dyn std::error::Error>> {
    let mut builder = RegistryBuilder::default();
    for (name, kind) in [("Look", ToolKind::ReadOnly), ("Change", ToolKind::Write)] {
        let spec = ToolSpec::new(name, "does nothing", Schema::compile(SCHEMA)?, Behavior::of(kind));
        builder.register(Arc::new(Noop(spec)), SourceInfo::builtin())?;
    }
    Ok(Pipeline::new(Arc::new(builder.build()), PipelineConfig::default(), None, None))
}

async fn measure(pipeline: &Pipeline, cx: &CallContext, case: &Case) -> Result<f64, Box<dyn std::error::Error>> {
    let call = ToolCall { id: "call_1".into(), name: case.tool.into(), arguments: case.arguments.clone() };
    let yields: Arc<dyn YieldSink> = Arc::new(Silent);
    let started = Instant::now();
    for _ in 0..CALLS {
        let report = pipeline.run(&call, cx, Arc::clone(&yields)).await;
        if report.outcome.is_error() {
            return Err(format!("{}: {:?}", case.name, report.outcome).into());
        }
    }
    Ok(micros(started.elapsed()) / f64::from(CALLS))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let reps = match arguments.iter().position(|argument| argument == "--reps") {
        Some(at) => arguments.get(at + 1).ok_or("--reps needs a number")?.parse()?,
        None => 9,
    };
    let directory = tempfile::tempdir()?;
    let existing = directory.path().join("existing.txt");
    std::fs::write(&existing, "text")?;
    let path = |path: &std::path::Path| serde_json::json!({ "file_path": path, "limit": 5, "all": true }).to_string();
    let cases = [
        Case { name: "reading, no file", tool: "Look", arguments: r#"{"limit":5,"all":true}"#.to_owned() },
        Case { name: "reading a file", tool: "Look", arguments: path(&existing) },
        Case { name: "writing a file", tool: "Change", arguments: path(&existing) },
        Case { name: "writing a new file", tool: "Change", arguments: path(&directory.path().join("new/file.txt")) },
    ];
    let pipeline = pipeline()?;
    let mode = PermissionMode::AutoEdit;
    let snapshot = ContextSnapshot {
        filesystem_roots: vec![directory.path().to_owned()],
        cwd: Some(directory.path().to_owned()),
        ..ContextSnapshot::default()
    };
    let cx = CallContext {
        session_id: SessionId::new("session"),
        message_id: MessageId::generate(),
        snapshot: Arc::new(snapshot),
        mode,
        exposure: Arc::new(ExposurePolicy { mode, ..ExposurePolicy::default() }),
        host_env: EnvSnapshot::default(),
        cancel: CancelToken::new(),
        steer: CancelToken::new(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut figures = vec![Vec::new(); cases.len()];
    for rep in 0..=reps {
        for (case, figures) in cases.iter().zip(&mut figures) {
            let figure = runtime.block_on(measure(&pipeline, &cx, case))?;
            // The first round warms up.
            if rep > 0 {
                figures.push(figure);
            }
        }
    }
    println!("{:<20}  {:>9}  {:>9}  {:>9}", "µs a call", "median", "least", "most");
    for (case, mut figures) in cases.iter().zip(figures) {
        figures.sort_by(f64::total_cmp);
        let (least, most) = (figures[0], figures[figures.len() - 1]);
        println!("{:<20}  {:>9.2}  {:>9.2}  {:>9.2}", case.name, figures[figures.len() / 2], least, most);
    }
    Ok(())
}
