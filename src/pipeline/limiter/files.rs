//! Locks of files: readers share, a writer is alone, and nobody overtakes.
//!
//! A call holds two locks: that of the file's canonical path, and then that of the file itself, where there is one. The
//! path stays the same when a file is made or replaced while it is in use; the file is the same under all of its hard
//! links and mounts. Calls take the path first and at most one of each, so that they cannot wait for each other in a
//! circle.

use std::collections::HashMap;
use std::ffi::OsString;
use std::hash::Hash;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{MaybeDone, join, maybe_done};
use tokio::sync::{MutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::names::{Answer, Disk, FileName, Identity, Names};

/// Calls that come later wait this long for the path of an earlier one, so that they do not overtake it. A network file
/// system that hangs must not hold up the other files for longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The locks of all files in use.
pub(super) struct FileLocks {
    names: Arc<dyn Names>,
    /// Held from looking a path up to standing in its queue: paths that take longer to look up lose no place.
    order: tokio::sync::Mutex<()>,
    paths: Locks<OsString>,
    files: Locks<Identity>,
}

impl Default for FileLocks {
    fn default() -> Self {
        Self::with_names(Arc::new(Disk))
    }
}

/// The locks of one call.
pub(super) struct FileLease {
    _file: Option<(Identity, Held)>,
    _path: Held,
}

#[expect(dead_code, reason = "held for their drop")]
enum Held {
    Shared(OwnedRwLockReadGuard<()>),
    Exclusive(OwnedRwLockWriteGuard<()>),
}

impl FileLocks {
    pub(super) fn with_names(names: Arc<dyn Names>) -> Self {
        Self { names, order: tokio::sync::Mutex::default(), paths: Locks::default(), files: Locks::default() }
    }

    /// Waits for a file. Dropping the future leaves the queue.
    pub(super) async fn acquire(&self, path: &Path, shared: bool) -> FileLease {
        let (name, turn) = self.in_turn(path).await;
        let mut waiting = pin!(hold(self.paths.of(name.key()), shared));
        let first = futures_util::poll!(waiting.as_mut());
        drop(turn);
        let path = match first {
            Poll::Ready(held) => held,
            Poll::Pending => waiting.await,
        };
        FileLease { _file: self.itself(&name, shared).await, _path: path }
    }

    /// The name of a path, and the right to queue for it before everybody who came later.
    async fn in_turn(&self, path: &Path) -> (FileName, Option<MutexGuard<'_, ()>>) {
        let mut name = pin!(match self.names.name(path) {
            Answer::Now(name) => MaybeDone::Done(name),
            Answer::Later(lookup) => maybe_done(lookup),
        });
        let both = async { join(name.as_mut(), self.order.lock()).await.1 };
        let turn = match tokio::time::timeout(PATIENCE, both).await {
            Ok(turn) => Some(turn),
            Err(_) => {
                name.as_mut().await;
                None
            }
        };
        let name = name.take_output().unwrap_or_else(|| FileName::as_written(path));
        (name, turn)
    }

    /// The lock of what the path names now; the caller holds the path's.
    async fn itself(&self, name: &FileName, shared: bool) -> Option<(Identity, Held)> {
        let mut held: Option<(Identity, Held)> = None;
        loop {
            let identity = match self.names.identity(name) {
                Answer::Now(identity) => identity,
                Answer::Later(lookup) => lookup.await,
            }?;
            if held.as_ref().is_some_and(|(known, _)| *known == identity) {
                return held;
            }
            drop(held.take());
            let mut waiting = pin!(hold(self.files.of(&identity), shared));
            match futures_util::poll!(waiting.as_mut()) {
                Poll::Ready(lock) => return Some((identity, lock)),
                // Whoever had it, under another of its names, may have put another file in its place: look again.
                Poll::Pending => held = Some((identity, waiting.await)),
            }
        }
    }
}

async fn hold(lock: Arc<RwLock<()>>, shared: bool) -> Held {
    if shared { Held::Shared(lock.read_owned().await) } else { Held::Exclusive(lock.write_owned().await) }
}

/// Locks by key; those nobody holds are forgotten.
struct Locks<K>(Mutex<HashMap<K, Weak<RwLock<()>>>>);

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> Locks<K> {
    fn of(&self, key: &K) -> Arc<RwLock<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(RwLock::new(()));
        locks.insert(key.clone(), Arc::downgrade(&lock));
        lock
    }

    /// How many locks somebody holds or waits for.
    #[cfg(test)]
    fn in_use(&self) -> usize {
        let locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        locks.values().filter(|lock| lock.strong_count() > 0).count()
    }
}

#[cfg(test)]
impl FileLocks {
    pub(super) fn in_use(&self) -> usize {
        self.paths.in_use() + self.files.in_use() + usize::from(self.order.try_lock().is_err())
    }
}
