//! `KillShell`: tells a background shell of the same Session to end. It returns at once; the shell's watcher escalates
//! from TERM to KILL.

use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::background::{Status, shells};
use super::owner;
use crate::contract::{
    Behavior, SideEffect, Subject, Tool, ToolContext, ToolError, ToolErrorType, ToolFailure, ToolKind, ToolSpec,
    ToolSuccess,
};
use crate::tools::constant_schema;

const NAME: &str = "KillShell";
/// How long a second call waits for a shell that is already on its way out, so that it can say that it has ended.
const SETTLE: Duration = Duration::from_millis(1500);

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "shell_id": { "type": "string", "minLength": 1, "description": "Id of the background shell to end (bash_…)" }
  },
  "required": ["shell_id"]
}"#;

/// Arguments.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Params {
    shell_id: String,
}

/// The tool.
pub(super) struct KillShellTool;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    display_name: Some("Kill Background Shell".into()),
    group: Some("shell".into()),
    ..ToolSpec::new(
        NAME,
        "Ends a background shell that was started with Bash and run_in_background, together with everything it started.\n\nUsage Notes:\n- Takes the shell_id that Bash returned.\n- A shell that has ended already is reported as such.",
        constant_schema(SCHEMA),
        Behavior::of(ToolKind::Execute).with_side_effect(SideEffect::Idempotent),
    )
});

impl Tool for KillShellTool {
    type Params = Params;

    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn subject(&self, params: &Params) -> Subject {
        Subject { content: Some(params.shell_id.clone()), ..Subject::default() }
    }

    async fn execute(&self, params: Params, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        let id = &params.shell_id;
        let Some(shell) = shells().find(&owner(&cx), id) else {
            let text = format!("Shell not found: {id}");
            return Err(ToolError::new(ToolErrorType::ExecutionError, text).into());
        };
        let told = shell.kill();
        if !told {
            let _ = cx.cancel.run_until(timeout(SETTLE, shell.over())).await;
        }
        let now = shell.glance();
        if now.status == Status::Error {
            let text = format!("Failed to terminate Shell: {id}");
            return Err(ToolError::new(ToolErrorType::ExecutionError, text).into());
        }
        let model = json!({
            "shell_id": id,
            "status": now.status.as_str(),
            "already_exited": !told && now.finished_at.is_some(),
            "pid": shell.pid,
            "exit_code": now.exit.code,
            "signal": now.exit.signal,
        });
        let mut metadata = model.clone();
        metadata["summary"] = format!("Ended shell {id}").into();
        Ok(ToolSuccess::new(model).with_metadata(metadata))
    }
}
