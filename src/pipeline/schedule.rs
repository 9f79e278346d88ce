//! Stage 4: the call holds its concurrency slot and its file lock.
//!
//! Waiting counts neither against the tool timeout nor against other calls: a cancelled waiter leaves its queue
//! without having consumed anything, and a grant that comes together with a cancellation is given back.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock, Semaphore};

use super::permit::Permitted;
use super::refusal::Refusal;
use super::{CallContext, Pipeline};
use crate::contract::{Prepared, ToolError, ToolErrorType, ToolKind};
use crate::registry::Registered;

/// Longest wait for a file another call of the Session is using.
const FILE_LOCK_WAIT: Duration = Duration::from_secs(30);

/// How many calls of a kind run at once, and how many may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Running calls of kind readonly.
    pub readonly: usize,
    /// Running calls of kind write.
    pub write: usize,
    /// Running calls of kind execute.
    pub execute: usize,
    /// Waiting calls of each kind; one more is refused.
    pub queue: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { readonly: 10, write: 10, execute: 3, queue: 1000 }
    }
}

/// Slots and file locks of one Session.
pub(super) struct Scheduler {
    limits: Limits,
    readonly: Bucket,
    write: Bucket,
    execute: Bucket,
    files: Mutex<HashMap<PathBuf, Weak<RwLock<()>>>>,
}

struct Bucket {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Bucket {
    fn new(slots: usize) -> Self {
        Self { slots: Arc::new(Semaphore::new(slots.clamp(1, Semaphore::MAX_PERMITS))), waiting: AtomicUsize::new(0) }
    }
}

/// A place in a queue, left again when dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[expect(dead_code, reason = "held for their drop")]
enum FileLease {
    Shared(OwnedRwLockReadGuard<()>),
    Exclusive(OwnedRwLockWriteGuard<()>),
}

/// A call that holds everything it needs to run. Dropping it gives everything back.
pub(super) struct Scheduled {
    pub tool: Registered,
    pub call_id: String,
    pub prepared: Prepared,
    pub leases: Leases,
}

/// Slot and file lock of a running call.
pub(super) struct Leases {
    _file: Option<FileLease>,
    _slot: OwnedSemaphorePermit,
}

impl Scheduler {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            readonly: Bucket::new(limits.readonly),
            write: Bucket::new(limits.write),
            execute: Bucket::new(limits.execute),
            files: Mutex::default(),
        }
    }

    async fn slot(&self, kind: ToolKind) -> Result<OwnedSemaphorePermit, Refusal> {
        let bucket = match kind {
            ToolKind::ReadOnly => &self.readonly,
            ToolKind::Write => &self.write,
            ToolKind::Execute => &self.execute,
        };
        if let Ok(slot) = Arc::clone(&bucket.slots).try_acquire_owned() {
            return Ok(slot);
        }
        let place = Waiting(&bucket.waiting);
        if bucket.waiting.fetch_add(1, Ordering::Relaxed) >= self.limits.queue {
            return Err(ToolError::new(
                ToolErrorType::ExecutionError,
                format!("{} calls are already waiting for a slot; call fewer tools at once", self.limits.queue),
            )
            .with_code("TOOL_QUEUE_FULL")
            .into());
        }
        let slot = Arc::clone(&bucket.slots).acquire_owned().await;
        drop(place);
        slot.map_err(|_| {
            ToolError::new(ToolErrorType::Interrupted, "the scheduler was shut down").with_code("ABORT").into()
        })
    }

    /// The lock of a file; locks nobody holds are forgotten.
    fn file(&self, path: PathBuf) -> Arc<RwLock<()>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = files.get(&path).and_then(Weak::upgrade) {
            return lock;
        }
        files.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(RwLock::new(()));
        files.insert(path, Arc::downgrade(&lock));
        lock
    }
}

impl Pipeline {
    pub(super) async fn schedule(&self, call: Permitted, cx: &CallContext) -> Result<Scheduled, Refusal> {
        let Permitted { tool, call_id, prepared } = call;
        let acquire = async {
            let slot = self.scheduler.slot(prepared.behavior.kind).await?;
            let file = self.file_lease(&prepared, cx).await?;
            Ok::<_, Refusal>(Leases { _file: file, _slot: slot })
        };
        let leases = match cx.cancel.run_until(acquire).await {
            None => return Err(Refusal::cancelled(&cx.cancel)),
            Some(leases) => leases?,
        };
        if cx.cancel.is_cancelled() {
            return Err(Refusal::cancelled(&cx.cancel));
        }
        // A call that waited may find that an earlier one did not stop when it was told to.
        Refusal::unless_quiet(&self.cleanup)?;
        Ok(Scheduled { tool, call_id, prepared, leases })
    }

    async fn file_lease(&self, prepared: &Prepared, cx: &CallContext) -> Result<Option<FileLease>, Refusal> {
        let object = &prepared.arguments.object;
        let path = ["file_path", "notebook_path"].iter().find_map(|key| object.get(*key)).and_then(|v| v.as_str());
        let Some(path) = path else { return Ok(None) };
        let lock = self.scheduler.file(lock_key(path, cx.snapshot.cwd.as_deref()));
        let shared = prepared.behavior.read_only && prepared.behavior.concurrency_safe;
        let lease = async {
            if shared {
                FileLease::Shared(lock.read_owned().await)
            } else {
                FileLease::Exclusive(lock.write_owned().await)
            }
        };
        match tokio::time::timeout(FILE_LOCK_WAIT, lease).await {
            Ok(lease) => Ok(Some(lease)),
            Err(_) => Err(ToolError::new(
                ToolErrorType::ExecutionError,
                format!("{path} is in use by another call of this Session; try again when it is done"),
            )
            .with_code("FILE_LOCK_TIMEOUT")
            .into()),
        }
    }
}

/// One key for the spellings of a path. Nothing is looked up: a lock must be there before its file is.
pub(super) fn lock_key(path: &str, cwd: Option<&Path>) -> PathBuf {
    let whole = cwd.map_or_else(|| PathBuf::from(path), |cwd| cwd.join(path));
    let mut key = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if key.file_name().is_some() => {
                key.pop();
            }
            Component::ParentDir if key.has_root() => {}
            part => key.push(part),
        }
    }
    key
}
