//! The async runtime of the process and the tracker that gives every task a parent.

use std::future::Future;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// Upper limit of threads for file reads, search, diff and other blocking jobs.
const MAX_BLOCKING_THREADS: usize = 64;
/// Idle blocking threads end after this time, so that an idle process keeps none.
const BLOCKING_KEEP_ALIVE: Duration = Duration::from_secs(5);
/// More workers than this only add wake-ups: the work is I/O and parsing.
const MAX_WORKERS: usize = 8;

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Handle of the shared runtime, started on first use. It lives until the process ends: a Node environment may end
/// while another one in the same process goes on.
///
/// # Errors
/// The operating system refused a thread.
pub fn handle() -> io::Result<Handle> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime.handle().clone());
    }
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_WORKERS);
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_KEEP_ALIVE)
        .thread_name("blade-sdk")
        .enable_all()
        .build()?;
    // Two threads may race here; the loser's runtime ends in the background.
    if let Err(spare) = RUNTIME.set(runtime) {
        spare.shutdown_background();
    }
    RUNTIME.get().map(|runtime| runtime.handle().clone()).ok_or_else(|| io::Error::other("runtime was not stored"))
}

/// The tasks of one owner (a Session, a direct tool call). Closing waits for them and refuses new ones. A task belongs to
/// the span it was started in, so that what it says reaches the log of its Session.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns on the current runtime; the task counts until it ends.
    pub fn spawn<F>(&self, work: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn(work.in_current_span())
    }

    /// Spawns on the given runtime, for callers outside of it.
    pub fn spawn_on<F>(&self, work: F, handle: &Handle) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn_on(work.in_current_span(), handle)
    }

    /// How many tasks are alive.
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether no task is alive.
    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Resolves when every task has ended.
    pub async fn drained(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
