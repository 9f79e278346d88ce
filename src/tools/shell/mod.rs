//! Shell tools: `Bash` in the foreground and the background, `KillShell`, and `TaskOutput` for background shells.
//!
//! Each command runs in a fresh `bash -c`; no state passes from one call to the next. The working directory is
//! confined to the roots, what the command itself touches is not: that is what permissions are for.

mod background;
mod bash;
mod capture;
pub mod classify;
mod environment;
mod foreground;
mod kill_shell;
mod process;
mod task_output;
mod truncate;

use std::sync::Arc;

use crate::contract::{AnyTool, ContextSnapshot, ToolContext};

/// The tools of this family.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    vec![Arc::new(bash::BashTool), Arc::new(kill_shell::KillShellTool), Arc::new(task_output::TaskOutputTool)]
}

/// Ends everything a Session has running in the background, and waits until it is gone.
pub async fn close_session(session: &str) {
    background::shells().close(session).await;
}

/// Whether a Session has anything running in the background, or finished shells that are still remembered.
pub fn holds_for_session(session: &str) -> bool {
    background::shells().holds(session)
}

/// Kills every process that a tool of this family has running, without waiting. For the end of the host process.
pub fn kill_all() {
    process::kill_all();
}

/// Whom a background shell belongs to. Direct calls without a Session share one owner.
fn owner(cx: &ToolContext) -> String {
    let snapshot: &ContextSnapshot = &cx.snapshot;
    cx.session_id.as_ref().map_or_else(|| snapshot.session_id.clone(), |id| id.as_str().to_owned())
}

/// The first characters of a command, for summaries and confirmations.
fn excerpt(command: &str, max: usize) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
