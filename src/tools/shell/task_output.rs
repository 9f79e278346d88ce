//! `TaskOutput`: what a background shell printed since the last read, and whether it has ended. Reading consumes.

use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::background::{Shell, shells};
use super::owner;
use crate::contract::{
    Behavior, Subject, Tool, ToolContext, ToolError, ToolErrorType, ToolFailure, ToolKind, ToolSpec, ToolSuccess,
};
use crate::host::clock;
use crate::tools::constant_schema;

const NAME: &str = "TaskOutput";
/// Ids of background shells begin like this.
const SHELL_PREFIX: &str = "bash_";
const DEFAULT_TIMEOUT_MS: u64 = 30_000;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "task_id": { "type": "string", "minLength": 1, "description": "Id of the background task" },
    "block": { "type": "boolean", "default": true, "description": "Wait until the task has ended" },
    "timeout": {
      "type": "integer", "minimum": 0, "maximum": 600000, "default": 30000,
      "description": "Longest wait in milliseconds; when it passes, the task is reported as running"
    }
  },
  "required": ["task_id", "block", "timeout"]
}"#;

/// Arguments.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Params {
    task_id: String,
    #[serde(default = "default_block")]
    block: bool,
    #[serde(default = "default_timeout")]
    timeout: u64,
}

const fn default_block() -> bool {
    true
}

const fn default_timeout() -> u64 {
    DEFAULT_TIMEOUT_MS
}

/// The tool.
pub(super) struct TaskOutputTool;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    display_name: Some("Task Output".into()),
    group: Some("task".into()),
    ..ToolSpec::new(
        NAME,
        "Retrieves the status and output of a background task.\n\nUsage Notes:\n- Takes the id that started the task returned, for instance bash_id of a background Bash command.\n- block: true (default) waits until the task has ended or the timeout passes; a timeout is not an error.\n- Returns only what was printed since the last read.",
        constant_schema(SCHEMA),
        Behavior::of(ToolKind::ReadOnly),
    )
});

impl Tool for TaskOutputTool {
    type Params = Params;

    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn subject(&self, params: &Params) -> Subject {
        Subject { content: Some(params.task_id.clone()), ..Subject::default() }
    }

    async fn execute(&self, params: Params, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        let id = &params.task_id;
        let Some(shell) = shells().find(&owner(&cx), id) else { return Err(unknown(id)) };
        if params.block {
            let wait = timeout(Duration::from_millis(params.timeout), shell.over());
            if cx.cancel.run_until(wait).await.is_none() {
                let error = ToolError::new(ToolErrorType::Interrupted, format!("waiting for {id} was aborted"));
                return Err(ToolFailure::new(format!("Waiting for {id} was aborted"), error));
            }
        }
        Ok(render(&shell))
    }
}

fn render(shell: &Shell) -> ToolSuccess {
    // The status is taken first: output of a shell that has ended is complete.
    let now = shell.glance();
    let (stdout, stderr) = shell.take_output();
    let model = json!({
        "task_id": shell.id,
        "type": "shell",
        "status": now.status.as_str(),
        "command": shell.command,
        "pid": shell.pid,
        "exit_code": now.exit.code,
        "signal": now.exit.signal,
        "started_at": clock::iso(shell.started_at),
        "finished_at": now.finished_at.map(clock::iso),
        "stdout": stdout,
        "stderr": stderr,
    });
    ToolSuccess::new(model).with_metadata(json!({
        "summary": format!("Read task output: {}", shell.id),
        "task_id": shell.id,
        "type": "shell",
        "status": now.status.as_str(),
    }))
}

fn unknown(id: &str) -> ToolFailure {
    let (kind, text, summary) = if id.starts_with(SHELL_PREFIX) {
        (ToolErrorType::ExecutionError, format!("Shell not found: {id}"), "Could not read output")
    } else {
        (ToolErrorType::ValidationError, format!("Unknown task ID: {id}"), "Task not found")
    };
    ToolFailure::from(ToolError::new(kind, text)).with_metadata(json!({ "summary": summary }))
}
