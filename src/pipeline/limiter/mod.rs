//! Slots and file locks: how many calls run at once, and which of them may not run together.
//!
//! A Session has a limiter of its own, or shares one with others ([`ToolLimiter`] behind an `Arc`). Everything here is
//! released by dropping it, whatever the reason: a waiter that is cancelled leaves its queue without having consumed
//! anything, and a grant that comes together with a cancellation is given back. `interleaving` proves it.

mod files;
mod names;

#[cfg(test)]
mod interleaving;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::contract::ToolKind;
use crate::host::CancelToken;
use files::{FileLease, FileLocks};

/// Longest wait for a file another call is using.
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

/// Slots and file locks of one Session, or of all that share it. Its last user frees it.
pub struct ToolLimiter {
    limits: Limits,
    readonly: Bucket,
    write: Bucket,
    execute: Bucket,
    files: FileLocks,
}

impl std::fmt::Debug for ToolLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolLimiter").field("limits", &self.limits).finish_non_exhaustive()
    }
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

/// The file a call names, as an absolute path where that is known, and whether it may share it with other readers.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileUse<'a> {
    pub path: &'a Path,
    pub shared: bool,
}

/// Slot and file lock of a running call; dropping it gives both back.
pub(super) struct Leases {
    _file: Option<FileLease>,
    _slot: OwnedSemaphorePermit,
}

/// Why a call got nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// It was cancelled.
    Cancelled,
    /// This many calls of its kind wait already.
    QueueFull(usize),
    /// Another call kept the file for too long.
    FileBusy,
}

impl ToolLimiter {
    /// A limiter with everything free.
    pub fn new(limits: Limits) -> Self {
        Self::with_files(limits, FileLocks::default())
    }

    fn with_files(limits: Limits, files: FileLocks) -> Self {
        Self {
            limits,
            readonly: Bucket::new(limits.readonly),
            write: Bucket::new(limits.write),
            execute: Bucket::new(limits.execute),
            files,
        }
    }

    /// Waits for a slot of a kind and then for a file. Calls of a kind get their slots in the order in which they asked,
    /// calls of a file get it in the order in which they got their slots; waiting ends with `cancel`.
    pub(super) async fn acquire(
        &self,
        kind: ToolKind,
        file: Option<FileUse<'_>>,
        cancel: &CancelToken,
    ) -> Result<Leases, Denied> {
        let everything = async {
            let slot = self.slot(kind).await?;
            let file = match file {
                None => None,
                Some(FileUse { path, shared }) => Some(
                    tokio::time::timeout(FILE_LOCK_WAIT, self.files.acquire(path, shared))
                        .await
                        .map_err(|_| Denied::FileBusy)?,
                ),
            };
            Ok(Leases { _file: file, _slot: slot })
        };
        match cancel.run_until(everything).await {
            // Granted and cancelled at once: the grant is dropped, and with that given back, before anybody learns of it.
            Some(Ok(_)) if cancel.is_cancelled() => Err(Denied::Cancelled),
            Some(outcome) => outcome,
            None => Err(Denied::Cancelled),
        }
    }

    fn bucket(&self, kind: ToolKind) -> &Bucket {
        match kind {
            ToolKind::ReadOnly => &self.readonly,
            ToolKind::Write => &self.write,
            ToolKind::Execute => &self.execute,
        }
    }

    async fn slot(&self, kind: ToolKind) -> Result<OwnedSemaphorePermit, Denied> {
        let bucket = self.bucket(kind);
        // A released slot goes to the first in the queue, never back to the free ones, so this overtakes nobody.
        if let Ok(slot) = Arc::clone(&bucket.slots).try_acquire_owned() {
            return Ok(slot);
        }
        let place = Waiting(&bucket.waiting);
        if bucket.waiting.fetch_add(1, Ordering::Relaxed) >= self.limits.queue {
            return Err(Denied::QueueFull(self.limits.queue));
        }
        let slot = Arc::clone(&bucket.slots).acquire_owned().await;
        drop(place);
        // The semaphore is never closed.
        slot.map_err(|_| Denied::Cancelled)
    }
}
