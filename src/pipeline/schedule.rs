//! Stage 4: the call holds its concurrency slot and its file lock.
//!
//! Waiting counts neither against the tool timeout nor against other calls. What is waited for, and in which order, is
//! the business of the [limiter](super::limiter).

use std::path::Path;

use super::limiter::{Denied, FileUse, Leases};
use super::permit::Permitted;
use super::refusal::Refusal;
use super::{CallContext, Pipeline};
use crate::contract::{Prepared, ToolError, ToolErrorType};
use crate::registry::Registered;

/// A call that holds everything it needs to run. Dropping it gives everything back.
pub(super) struct Scheduled {
    pub tool: Registered,
    pub call_id: String,
    pub prepared: Prepared,
    pub leases: Leases,
}

impl Pipeline {
    pub(super) async fn schedule(&self, call: Permitted, cx: &CallContext) -> Result<Scheduled, Refusal> {
        let Permitted { tool, call_id, prepared } = call;
        let behavior = prepared.behavior;
        let named = file_of(&prepared);
        let path = named.map(|path| cx.snapshot.cwd.as_deref().unwrap_or(Path::new("")).join(path));
        let shared = behavior.read_only && behavior.concurrency_safe;
        let file = path.as_deref().map(|path| FileUse { path, shared });
        let leases = match self.limiter.acquire(behavior.kind, file, &cx.cancel).await {
            Ok(leases) => leases,
            Err(Denied::Cancelled) => return Err(Refusal::cancelled(&cx.cancel)),
            Err(Denied::QueueFull(waiting)) => return Err(queue_full(waiting)),
            Err(Denied::FileBusy) => return Err(file_busy(named.unwrap_or_default())),
        };
        // A call that waited may find that an earlier one did not stop when it was told to.
        Refusal::unless_quiet(&self.cleanup)?;
        Ok(Scheduled { tool, call_id, prepared, leases })
    }
}

fn file_of(prepared: &Prepared) -> Option<&str> {
    let input = &prepared.arguments.object;
    let key = ["file_path", "notebook_path"].into_iter().find(|key| input.has_key(|one| one == *key))?;
    input.text_of(key)
}

fn queue_full(waiting: usize) -> Refusal {
    let message = format!("{waiting} calls are already waiting for a slot; call fewer tools at once");
    ToolError::new(ToolErrorType::ExecutionError, message).with_code("TOOL_QUEUE_FULL").into()
}

fn file_busy(path: &str) -> Refusal {
    let message = format!("{path} is in use by another call; try again when it is done");
    ToolError::new(ToolErrorType::ExecutionError, message).with_code("FILE_LOCK_TIMEOUT").into()
}
