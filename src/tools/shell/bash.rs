//! `Bash`: runs one command in a fresh shell, waits for it or leaves it in the background.
//!
//! It does not keep a working directory, variables or aliases between calls, and it does not confine what a command
//! touches. Output is bounded while it is read and cut before the model sees it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::background::shells;
use super::capture::Captured;
use super::foreground::{self, Ending, Run};
use super::process::{Launch, Pipes, ShellProcess};
use super::truncate::{self, Shown};
use super::{classify, environment, excerpt, owner};
use crate::contract::{
    Behavior, ContextSnapshot, InterruptBehavior, PrepareContext, Rewrites, SideEffect, Subject, Tool, ToolContext,
    ToolDescription, ToolError, ToolErrorType, ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield,
};
use crate::host::CancelReason;
use crate::tools::constant_schema;
use crate::tools::paths::{Missing, Roots};

const NAME: &str = "Bash";
/// Longest result as text; longer ones become artifacts.
const MAX_RESULT_CHARS: usize = 200_000;
/// Characters of a variable's value in a question.
const MAX_SHOWN_VALUE: usize = 80;
const DEFAULT_TIMEOUT_MS: u64 = 30_000;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "command": { "type": "string", "minLength": 1, "description": "The bash command to run" },
    "timeout": {
      "type": "integer", "minimum": 1000, "maximum": 300000, "default": 30000,
      "description": "Time limit in milliseconds; does not apply in the background"
    },
    "cwd": {
      "type": "string",
      "description": "Working directory, inside the authorized roots (default: the working directory of the session)"
    },
    "env": {
      "type": "object", "additionalProperties": { "type": "string" },
      "description": "Additional environment variables"
    },
    "run_in_background": {
      "type": "boolean", "default": false,
      "description": "Return at once and leave the command running; read its output with TaskOutput, end it with KillShell"
    }
  },
  "required": ["command", "timeout", "run_in_background"]
}"#;

/// Arguments.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Params {
    command: String,
    #[serde(default = "default_timeout")]
    timeout: u64,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    run_in_background: bool,
}

const fn default_timeout() -> u64 {
    DEFAULT_TIMEOUT_MS
}

/// The tool.
pub(super) struct BashTool;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = ToolDescription {
        short: "Runs a bash command and returns its output, exit code and signal.".into(),
        long: Some("Every call starts a fresh shell in the working directory: `cd`, exports and aliases do not carry over to the next call. Combine steps that depend on each other with `&&` in one command.".into()),
        usage_notes: vec![
            "Use it for git, builds, tests, package managers and other programs; prefer Read, Edit, Write, Glob and Grep for files.".into(),
            "Quote paths that contain spaces.".into(),
            "A non-zero exit code is reported, not treated as a failure of the tool.".into(),
            "Standard input is empty: use the non-interactive flags of a program.".into(),
            "`timeout` is at most 300000 ms (default 30000). On a time-out the command and everything it started is ended, and the output so far is returned.".into(),
            "Long output is cut in the middle; filter it with `head`, `tail` or `grep` to see a certain part.".into(),
            "Use `run_in_background` for servers and long work; read output with TaskOutput and end it with KillShell.".into(),
        ],
        important: vec![
            "Destructive commands (`rm`, `git reset --hard`, `git push --force`, …) need the user's explicit consent.".into(),
        ],
    };
    ToolSpec {
        display_name: Some("Bash Command".into()),
        group: Some("shell".into()),
        requires_runtime: true,
        max_result_chars: Some(MAX_RESULT_CHARS),
        ..ToolSpec::new(
            NAME,
            description.render(),
            constant_schema(SCHEMA),
            Behavior::of(ToolKind::Execute).with_interrupt(InterruptBehavior::Cancel),
        )
    }
});

impl Tool for BashTool {
    type Params = Params;

    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn behavior(&self, params: &Params) -> Behavior {
        let judged = classify::classify(&params.command);
        let executes = Behavior::of(ToolKind::Execute).with_destructive(judged.destructive);
        if params.run_in_background {
            return executes.with_interrupt(InterruptBehavior::Block);
        }
        // Variables can make any program do anything (`LD_PRELOAD`, `PATH`, `RIPGREP_CONFIG_PATH`).
        if judged.read_only && params.env.is_empty() {
            return Behavior::of(ToolKind::ReadOnly)
                .with_side_effect(SideEffect::Pure)
                .with_interrupt(InterruptBehavior::Cancel);
        }
        executes.with_interrupt(InterruptBehavior::Cancel)
    }

    fn subject(&self, params: &Params) -> Subject {
        let kind = if params.run_in_background { "background bash" } else { "bash" };
        let place = params.cwd.as_ref().map(|cwd| format!(" in {cwd}")).unwrap_or_default();
        // Who is asked must see what else decides which programs run.
        let with: Vec<String> =
            params.env.iter().map(|(name, value)| format!("{name}={}", excerpt(value, MAX_SHOWN_VALUE))).collect();
        let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) };
        let command = params.command.trim();
        let mut parts = classify::parts(command);
        let surroundings = surroundings(params);
        if !surroundings.is_empty() && parts.is_empty() {
            parts.push(command.to_owned());
        }
        parts.extend(params.env.iter().map(|(name, value)| format!("{name}={value}")));
        Subject {
            // An approval of a command is none of the same words elsewhere, or with other programs in `PATH`.
            content: Some(format!("{surroundings}{command}")),
            parts,
            description: Some(format!("Run {kind} command: {}{place}", excerpt(&params.command, 80)) + &with),
            ..Subject::default()
        }
    }

    async fn prepare(&self, params: &Params, cx: &PrepareContext) -> Result<Rewrites, ToolFailure> {
        let (given, snapshot) = (params.cwd.clone(), cx.snapshot.clone());
        let cwd = cx.blocking(move |_| authorize(given.as_deref(), &snapshot)).await??;
        Ok(match &params.cwd {
            // The question names the directory the command will really run in.
            Some(given) if Path::new(given) != cwd => vec![("cwd", Value::String(cwd.to_string_lossy().into_owned()))],
            _ => Rewrites::new(),
        })
    }

    async fn execute(&self, params: Params, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        let (given, snapshot) = (params.cwd.clone(), cx.snapshot.clone());
        let cwd = cx.blocking(move |_| authorize(given.as_deref(), &snapshot)).await??;
        cx.emit(ToolYield::message(format!("Executing Bash command: {}", params.command))).await;
        if cx.cancel.is_cancelled() {
            let error = ToolError::new(ToolErrorType::ExecutionError, "operation aborted");
            return Err(ToolFailure::new("Command execution aborted", error));
        }
        let (process, pipes) = start(&params, cwd, &cx)?;
        if params.run_in_background {
            return background(&params, process, pipes, &cx);
        }
        let limit = Duration::from_millis(params.timeout);
        let mut run = foreground::run(process, pipes, limit, &cx.cancel).await;
        let goes_on = run.left_running.take().map(|group| shells().keep(&owner(&cx), group)).is_some();
        Outcome::of(&params, run, goes_on).render(cx.cancel.reason())
    }
}

/// What a call sets up before its command, as the shell would be told.
fn surroundings(params: &Params) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let cwd = params.cwd.iter().filter(|cwd| !cwd.is_empty()).map(|cwd| format!("cd {} && ", quoted(cwd)));
    let env = params.env.iter().map(|(name, value)| format!("export {name}={}; ", quoted(value)));
    cwd.chain(env).collect()
}

/// The canonical working directory of a call.
fn authorize(given: Option<&str>, snapshot: &ContextSnapshot) -> Result<PathBuf, ToolFailure> {
    let own = snapshot.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
    let Some(wanted) = given.filter(|cwd| !cwd.is_empty()).or(own.as_deref()) else {
        return Err(ToolFailure::new(
            "No working directory provided and no filesystem working directory is available.",
            ToolError::new(ToolErrorType::ValidationError, "no working directory available"),
        ));
    };
    // A missing directory is allowed here, so that what exists outside the roots cannot be found out.
    let cwd = Roots::from_snapshot(snapshot)?.resolve_relative(wanted, Missing::Allow)?;
    match cwd.metadata() {
        Ok(meta) if meta.is_dir() => Ok(cwd),
        Ok(_) => Err(failed(&format!("working directory is not a directory: {wanted}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(failed(&format!("working directory does not exist: {wanted}")))
        }
        Err(error) => Err(failed(&format!("working directory cannot be used: {wanted}: {error}"))),
    }
}

fn start(params: &Params, cwd: PathBuf, cx: &ToolContext) -> Result<(ShellProcess, Pipes), ToolFailure> {
    if params.command.contains('\0') {
        return Err(failed("the command contains a NUL byte"));
    }
    for vars in [&cx.snapshot.environment, &params.env] {
        if let Some(name) = environment::unusable(vars) {
            return Err(failed(&format!("environment variable {name:?} has a name or value that cannot be passed on")));
        }
    }
    let launch = Launch {
        shell: environment::find_bash(&cx.host_env),
        command: &params.command,
        cwd,
        env: environment::build(&cx.host_env, &cx.snapshot.environment, &params.env),
    };
    ShellProcess::spawn(&launch).map_err(|error| failed(&format!("{}: {error}", launch.shell.display())))
}

fn background(
    params: &Params,
    process: ShellProcess,
    pipes: Pipes,
    cx: &ToolContext,
) -> Result<ToolSuccess, ToolFailure> {
    let shell =
        shells().adopt(&owner(cx), &params.command, process, pipes).map_err(|refused| failed(&refused.to_string()))?;
    let model = json!({
        "command": params.command,
        "background": true,
        "pid": shell.pid,
        "bash_id": shell.id,
        "shell_id": shell.id,
    });
    let mut metadata = model.clone();
    metadata["message"] = "command started in the background".into();
    metadata["summary"] = format!("Started in the background: {}", excerpt(&params.command, 30)).into();
    Ok(ToolSuccess::new(model).with_metadata(metadata))
}

fn failed(message: &str) -> ToolFailure {
    let text = format!("Command execution failed: {message}");
    ToolError::new(ToolErrorType::ExecutionError, text).into()
}

/// A finished run with its output cut to size.
struct Outcome<'a> {
    params: &'a Params,
    run: Run,
    stdout: Shown,
    stderr: Shown,
    /// Members of the group go on.
    goes_on: bool,
}

impl<'a> Outcome<'a> {
    fn of(params: &'a Params, run: Run, goes_on: bool) -> Self {
        let show = |captured: &Captured| truncate::show(&params.command, captured);
        Self { stdout: show(&run.stdout), stderr: show(&run.stderr), params, run, goes_on }
    }

    fn render(self, reason: Option<CancelReason>) -> Result<ToolSuccess, ToolFailure> {
        match self.run.ending {
            Ending::Exited => Ok(self.success()),
            Ending::TimedOut => {
                let limit = self.params.timeout;
                Err(self.failure(
                    &format!("Command execution timed out ({limit}ms)"),
                    ToolError::new(
                        ToolErrorType::TimeoutError,
                        format!("command timed out after {limit} ms; raise `timeout` (at most 300000) or use `run_in_background`"),
                    ),
                ))
            }
            Ending::Cancelled if reason == Some(CancelReason::Deadline) => Err(self.failure(
                "Command execution timed out",
                ToolError::new(ToolErrorType::TimeoutError, "the time limit of the tool call passed"),
            )),
            Ending::Cancelled => Err(self.failure(
                "Command execution aborted by user",
                ToolError::new(ToolErrorType::ExecutionError, "operation aborted"),
            )),
        }
    }

    fn success(self) -> ToolSuccess {
        let (exit, ms) = (self.run.exit, self.elapsed_ms());
        let mut model = json!({
            "stdout": self.stdout.text,
            "stderr": self.stderr.text,
            "execution_time": ms,
            "exit_code": exit.code,
            "signal": exit.signal,
        });
        if let Some(note) = truncate::note(&self.stdout, &self.stderr) {
            model["truncation_info"] = note.into();
        }
        if let Some(note) = self.goes_on_note() {
            model["note"] = note.into();
        }
        let excerpt = excerpt(&self.params.command, 30);
        let summary = match (exit.code, exit.signal) {
            (Some(0), _) => format!("Command succeeded ({ms}ms): {excerpt}"),
            (Some(code), _) => format!("Command finished (exit code {code}, {ms}ms): {excerpt}"),
            (None, signal) => format!("Command ended ({}, {ms}ms): {excerpt}", signal.unwrap_or("unknown status")),
        };
        ToolSuccess::new(model).with_metadata(json!({
            "command": self.params.command,
            "execution_time": ms,
            "exit_code": exit.code,
            "signal": exit.signal,
            "stdout_length": self.run.stdout.units(),
            "stderr_length": self.run.stderr.units(),
            "has_stderr": self.run.stderr.units() > 0,
            "summary": summary,
        }))
    }

    /// The output so far is worth as much as the failure: it says how far the command got.
    fn failure(self, headline: &str, mut error: ToolError) -> ToolFailure {
        let mut text = headline.to_owned();
        for (name, shown) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !shown.text.is_empty() {
                text.push_str(&format!("\n\n{name} until then:\n{}", shown.text));
            }
        }
        if let Some(still_alive) = self.run.still_alive {
            text.push_str(&format!("\n\nFailed to terminate command process tree: {still_alive}"));
            // Nobody can say what still acts on the files, so no other tool may build on them.
            error = error.with_code("PROCESS_NOT_CONTAINED").terminal();
        }
        let ms = self.elapsed_ms();
        ToolFailure::new(text, error).with_metadata(json!({
            "command": self.params.command,
            "stdout": self.stdout.text,
            "stderr": self.stderr.text,
            "code": self.run.exit.code,
            "processSignal": self.run.exit.signal,
            "duration": ms,
            "timeout": self.params.timeout,
            "timedOut": self.run.ending == Ending::TimedOut,
            "aborted": self.run.ending == Ending::Cancelled,
            "execution_time": ms,
        }))
    }

    fn goes_on_note(&self) -> Option<&'static str> {
        match (self.run.held_open, self.goes_on) {
            (true, _) => Some(
                "a background process still holds the output; what it prints from now on is not captured \
                 (start it with run_in_background to read it)",
            ),
            (false, true) => Some("a background process of this command is still running; it ends with the session"),
            (false, false) => None,
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.run.elapsed.as_millis()).unwrap_or(u64::MAX)
    }
}
