use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::process::testing::{alive, pid_in, until};
use super::*;
use crate::contract::{
    Arguments, Behavior, InterruptBehavior, PermissionMode, PrepareContext, Prepared, SideEffect, ToolErrorType,
    ToolFailure, ToolKind, ToolOutcome, ToolYield, YieldSink,
};
use crate::host::{CancelReason, CancelToken, EnvSnapshot};
use crate::model::{SessionId, ToolUseId};

#[derive(Default)]
struct Yields(Mutex<Vec<ToolYield>>);

impl YieldSink for Yields {
    fn emit(&self, item: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.lock().unwrap().push(item);
        Box::pin(std::future::ready(()))
    }
}

/// A Session over a temporary folder that calls tools of this family.
struct Caller {
    dir: tempfile::TempDir,
    session: String,
    cancel: CancelToken,
    yields: Arc<Yields>,
    snapshot: ContextSnapshot,
}

fn caller(session: &str) -> Caller {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let snapshot = ContextSnapshot {
        session_id: session.to_owned(),
        filesystem_roots: vec![root.clone()],
        cwd: Some(root),
        ..ContextSnapshot::default()
    };
    Caller { dir, session: session.to_owned(), cancel: CancelToken::new(), yields: Arc::default(), snapshot }
}

impl Caller {
    fn path(&self) -> &Path {
        self.snapshot.cwd.as_deref().unwrap_or(self.dir.path())
    }

    async fn call(&self, name: &str, arguments: Value) -> ToolOutcome {
        let cx = ToolContext {
            services: Default::default(),
            call_id: ToolUseId::new("call_1"),
            session_id: Some(SessionId::new(self.session.clone())),
            message_id: None,
            snapshot: Arc::new(self.snapshot.clone()),
            permission_mode: PermissionMode::Yolo,
            cancel: self.cancel.clone(),
            host_env: EnvSnapshot::of([
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                ("SECRET".into(), "s".into()),
            ]),
            yields: self.yields.clone(),
        };
        tool(name).execute(Arguments::from_object(object(arguments)), cx).await
    }

    /// Calls a tool that must succeed: what the model is told.
    async fn ok(&self, name: &str, arguments: Value) -> Value {
        match self.call(name, arguments).await {
            ToolOutcome::Success(success) => serde_json::from_str(success.model.as_text()).unwrap(),
            ToolOutcome::Error(failure) => panic!("{failure:?}"),
        }
    }

    async fn bad(&self, name: &str, arguments: Value) -> ToolFailure {
        match self.call(name, arguments).await {
            ToolOutcome::Success(success) => panic!("{success:?}"),
            ToolOutcome::Error(failure) => failure,
        }
    }

    async fn prepare(&self, arguments: Value) -> Result<Prepared, ToolFailure> {
        let cx = PrepareContext {
            session_id: None,
            snapshot: Arc::new(self.snapshot.clone()),
            permission_mode: PermissionMode::default(),
            cancel: self.cancel.clone(),
        };
        tool("Bash").prepare(Arguments::from_object(object(arguments)), &cx).await
    }
}

fn object(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn tool(name: &str) -> Arc<dyn AnyTool> {
    tools().into_iter().find(|tool| &*tool.spec().name == name).unwrap()
}

#[test]
fn the_family_declares_itself_as_documented() {
    let seen: Vec<_> = tools().iter().map(|tool| (tool.spec().name.to_string(), tool.spec().behavior)).collect();
    let execute = Behavior::of(ToolKind::Execute);
    assert_eq!(
        seen,
        [
            ("Bash".to_owned(), execute.with_interrupt(InterruptBehavior::Cancel)),
            ("KillShell".to_owned(), execute.with_side_effect(SideEffect::Idempotent)),
            ("TaskOutput".to_owned(), Behavior::of(ToolKind::ReadOnly)),
        ]
    );
    assert!(tools().iter().all(|tool| tool.spec().schema.value()["type"] == "object"));
}

#[tokio::test]
async fn bash_tells_output_exit_code_and_facts() {
    let session = caller("facts");
    let ToolOutcome::Success(done) = session.call("Bash", json!({ "command": "echo ' x'; echo y >&2; exit 4" })).await
    else {
        panic!("it succeeds")
    };
    let mut model: Value = serde_json::from_str(done.model.as_text()).unwrap();
    let ms = model["execution_time"].take();
    assert!(ms.is_u64());
    assert_eq!(model, json!({ "stdout": "x", "stderr": "y", "execution_time": null, "exit_code": 4, "signal": null }));
    let expected = json!({
        "command": "echo ' x'; echo y >&2; exit 4", "execution_time": ms, "exit_code": 4, "signal": null,
        "stdout_length": 3, "stderr_length": 2, "has_stderr": true,
        "summary": format!("Command finished (exit code 4, {ms}ms): echo ' x'; echo y >&2; exit 4"),
    });
    assert_eq!(Value::Object(done.metadata), expected);
    let yields = session.yields.0.lock().unwrap().clone();
    assert_eq!(yields, [ToolYield::message("Executing Bash command: echo ' x'; echo y >&2; exit 4")]);
}

#[tokio::test]
async fn bash_runs_in_the_directory_and_environment_it_is_given() {
    let mut session = caller("place");
    session.snapshot.environment = [("ONE", "runtime"), ("TWO", "runtime")].map(|(k, v)| (k.into(), v.into())).into();
    std::fs::create_dir(session.path().join("sub")).unwrap();
    let script = "pwd; echo \"$ONE $TWO $BLADE_CLI [$SECRET]\"";
    let done = session
        .ok("Bash", json!({ "command": script, "cwd": "sub", "env": { "TWO": "call", "BLADE_CLI": "0" } }))
        .await;
    let expected = format!("{}\nruntime call 1 []", session.path().join("sub").display());
    assert_eq!(done["stdout"], expected);
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_refused_by_its_reason() {
    let mut session = caller("cwd");
    std::fs::write(session.path().join("file"), "").unwrap();
    let kind = |failure: ToolFailure| failure.error.kind;
    for (cwd, expected) in [
        (json!(session.path().join("none")), ToolErrorType::ExecutionError),
        (json!("file"), ToolErrorType::ExecutionError),
        (json!("/"), ToolErrorType::PermissionDenied),
        (json!("/no-such-folder"), ToolErrorType::PermissionDenied),
        (json!(".."), ToolErrorType::PermissionDenied),
    ] {
        let arguments = json!({ "command": "touch ran", "cwd": cwd });
        assert_eq!(kind(session.bad("Bash", arguments.clone()).await), expected, "{cwd}");
        assert_eq!(kind(session.prepare(arguments).await.unwrap_err()), expected, "{cwd}");
    }
    session.snapshot.cwd = None;
    let failure = session.bad("Bash", json!({ "command": "true" })).await;
    assert_eq!(failure.error.kind, ToolErrorType::ValidationError);
    assert!(failure.model.as_text().starts_with("No working directory provided"));
}

#[tokio::test]
async fn a_time_out_is_an_error_that_keeps_the_output() {
    let session = caller("limit");
    let failure = session.bad("Bash", json!({ "command": "echo before; sleep 60", "timeout": 200 })).await;
    assert_eq!(failure.error.kind, ToolErrorType::TimeoutError);
    assert_eq!(failure.model.as_text(), "Command execution timed out (200ms)\n\nstdout until then:\nbefore");
    assert_eq!((&failure.metadata["timedOut"], &failure.metadata["processSignal"]), (&json!(true), &json!("SIGTERM")));
}

#[tokio::test]
async fn a_cancelled_call_stops_and_a_call_after_that_does_not_start() {
    let session = caller("cancel");
    let running = session.call("Bash", json!({ "command": "echo $$ > up; sleep 60; true" }));
    let stop = async {
        until(|| pid_in(session.path(), "up").is_some()).await;
        session.cancel.cancel(CancelReason::Abort);
    };
    let (outcome, ()) = tokio::join!(running, stop);
    assert_eq!(outcome.error().unwrap().kind, ToolErrorType::ExecutionError);
    assert_eq!(outcome.model().as_text(), "Command execution aborted by user");
    assert!(!alive(pid_in(session.path(), "up").unwrap()));
    let failure = session.bad("Bash", json!({ "command": "touch ran" })).await;
    assert_eq!(failure.model.as_text(), "Command execution aborted");
    assert!(!session.path().join("ran").exists());
}

#[tokio::test]
async fn what_goes_on_in_the_background_is_told_and_ends_with_the_session() {
    let session = caller("goes-on");
    let done = session.ok("Bash", json!({ "command": "sleep 60 & echo $! > child; echo hi" })).await;
    assert_eq!(done["stdout"], "hi");
    assert!(done["note"].as_str().unwrap().starts_with("a background process still holds the output"));
    let child = pid_in(session.path(), "child").unwrap();
    assert!(alive(child));
    close_session("goes-on").await;
    assert!(!alive(child));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_descendant_that_left_the_group_of_a_finished_command_ends_with_the_session_too() {
    for (name, command) in [
        ("setsid", "setsid sleep 60 >/dev/null 2>&1 & echo $! > child"),
        ("holding", "setsid sleep 60 & echo $! > child"),
        ("deaf", "setsid sh -c 'trap \"\" TERM HUP; sleep 60; :' >/dev/null 2>&1 & echo $! > child"),
    ] {
        let session = caller(name);
        let done = session.ok("Bash", json!({ "command": command })).await;
        assert!(done["note"].as_str().is_some_and(|note| note.starts_with("a background process")), "{name}: {done}");
        let child = pid_in(session.path(), "child").unwrap();
        assert!(alive(child), "{name}");
        close_session(name).await;
        assert!(!alive(child), "{name}");
    }
}

#[tokio::test]
async fn a_background_shell_is_read_and_ended_through_its_tools() {
    let session = caller("shells");
    let started = session.ok("Bash", json!({ "command": "echo first; sleep 60", "run_in_background": true })).await;
    let id = started["bash_id"].as_str().unwrap();
    assert_eq!((&started["background"], &started["shell_id"]), (&json!(true), &started["bash_id"]));
    let read = json!({ "task_id": id, "timeout": 100 });
    let mut seen = String::new();
    while !seen.contains("first") {
        let now = session.ok("TaskOutput", read.clone()).await;
        assert_eq!(
            (&now["status"], &now["type"], &now["finished_at"]),
            (&json!("running"), &json!("shell"), &Value::Null)
        );
        seen.push_str(now["stdout"].as_str().unwrap());
    }
    assert_eq!(session.ok("TaskOutput", json!({ "task_id": id, "block": false })).await["stdout"], "");
    let stranger = caller("stranger");
    assert_eq!(stranger.bad("TaskOutput", read).await.model.as_text(), format!("Shell not found: {id}"));
    let failure = stranger.bad("KillShell", json!({ "shell_id": id })).await;
    assert_eq!(
        (failure.error.kind, failure.model.as_text()),
        (ToolErrorType::ExecutionError, &*format!("Shell not found: {id}"))
    );
    let killed = session.ok("KillShell", json!({ "shell_id": id })).await;
    assert_eq!((&killed["status"], &killed["already_exited"]), (&json!("killed"), &json!(false)));
    let again = session.ok("KillShell", json!({ "shell_id": id })).await;
    assert_eq!((&again["already_exited"], &again["signal"]), (&json!(true), &json!("SIGTERM")));
    close_session("shells").await;
}

#[tokio::test]
async fn waiting_for_a_shell_observes_cancellation() {
    let session = caller("wait-cancel");
    let started = session.ok("Bash", json!({ "command": "sleep 60", "run_in_background": true })).await;
    let waiting = session.call("TaskOutput", json!({ "task_id": started["bash_id"] }));
    let stop = async { session.cancel.cancel(CancelReason::Abort) };
    let (outcome, ()) =
        tokio::time::timeout(Duration::from_secs(5), async { tokio::join!(waiting, stop) }).await.unwrap();
    assert_eq!(outcome.error().unwrap().kind, ToolErrorType::Interrupted);
    close_session("wait-cancel").await;
}

#[tokio::test]
async fn an_unknown_task_is_a_validation_error() {
    let failure = caller("unknown").bad("TaskOutput", json!({ "task_id": "nobody" })).await;
    assert_eq!(
        (failure.error.kind, failure.model.as_text()),
        (ToolErrorType::ValidationError, "Unknown task ID: nobody")
    );
}

#[tokio::test]
async fn permissions_see_the_trimmed_command_and_the_behaviour_of_the_call() {
    let session = caller("judge");
    std::fs::create_dir(session.path().join("sub")).unwrap();
    let reads = session.prepare(json!({ "command": "  ls  -la " })).await.unwrap();
    assert_eq!(reads.subject.content.as_deref(), Some("ls  -la"));
    assert_eq!(reads.subject.description.as_deref(), Some("Run bash command: ls -la"));
    assert_eq!((reads.behavior.kind, reads.behavior.side_effect), (ToolKind::ReadOnly, SideEffect::Pure));
    assert!(reads.behavior.read_only && reads.behavior.concurrency_safe);

    let background =
        session.prepare(json!({ "command": "ls", "run_in_background": true, "cwd": "sub" })).await.unwrap();
    let cwd = session.path().join("sub");
    assert_eq!(background.behavior, Behavior::of(ToolKind::Execute));
    assert_eq!(background.arguments.object["cwd"], json!(cwd));
    assert_eq!(background.subject.description, Some(format!("Run background bash command: ls in {}", cwd.display())));

    let shown = format!("cd '{}' && ls", cwd.display());
    assert_eq!((background.subject.content, background.subject.parts), (Some(shown), vec!["ls".to_owned()]));
    assert_eq!(reads.subject.parts, Vec::<String>::new());

    // An approval or a rule for a command is none for the same command with other programs behind it.
    let evil = session.prepare(json!({ "command": "make x", "env": { "PATH": "/evil's" } })).await.unwrap();
    assert_eq!(evil.subject.content.as_deref(), Some(r"export PATH='/evil'\''s'; make x"));
    assert_eq!(evil.subject.parts, ["make x", "PATH=/evil's"]);
    assert_eq!(evil.subject.description.as_deref(), Some("Run bash command: make x with PATH=/evil's"));
    let chained = session.prepare(json!({ "command": "git log; rm x" })).await.unwrap();
    assert_eq!(chained.subject.parts, ["git log", "rm x"]);

    let preloaded = session.prepare(json!({ "command": "ls", "env": { "LD_PRELOAD": "./x.so" } })).await.unwrap();
    assert_eq!(preloaded.behavior.kind, ToolKind::Execute);
    assert!(session.prepare(json!({ "command": "rm x" })).await.unwrap().behavior.destructive);
}

#[test]
fn an_excerpt_collapses_blanks_and_marks_what_it_leaves_out() {
    assert_eq!(excerpt("  a \n\t b  ", 10), "a b");
    assert_eq!(excerpt("abcdef", 3), "abc…");
    assert_eq!(excerpt("世界 x", 2), "世界…");
}
