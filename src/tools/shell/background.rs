//! Background shells of all Sessions of this process.
//!
//! Invariants: a shell is only visible to the Session that started it; output that was not read is bounded; a shell
//! that ended is forgotten once enough younger ones have ended; every shell has one watcher, which alone owns its
//! process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use super::capture::{incomplete_suffix, lossy};
use super::process::{Exit, Pipes, ShellProcess, Source};
use crate::host::{CancelReason, CancelToken, Tasks, clock};

/// Unread output kept for each stream; older bytes make room for newer ones.
const UNREAD_BYTES: usize = 256 * 1024;
/// Shells of one Session that may run at once.
const MAX_RUNNING: usize = 64;
/// Shells of one Session that are remembered after they ended.
const MAX_FINISHED: usize = 32;
/// How long output is still read after everything has ended; only what is in the pipe can still come.
const DRAIN: Duration = Duration::from_millis(250);

static SHELLS: LazyLock<Shells> = LazyLock::new(Shells::default);

/// All shells of the process.
pub(super) fn shells() -> &'static Shells {
    &SHELLS
}

/// Shells by id, and the Session each belongs to.
#[derive(Debug, Default)]
pub(super) struct Shells {
    by_id: Mutex<HashMap<String, Arc<Shell>>>,
    /// Groups that foreground commands left running, by Session.
    left_running: Mutex<HashMap<String, Vec<LeftGroup>>>,
    watchers: Tasks,
}

/// A group that a foreground command left running. Its watcher reaps it when it ends by itself.
#[derive(Debug)]
struct LeftGroup {
    end: CancelToken,
    over: watch::Receiver<bool>,
}

/// One background shell.
#[derive(Debug)]
pub(super) struct Shell {
    /// `bash_<uuid>`.
    pub id: String,
    /// Its script.
    pub command: String,
    /// Process id.
    pub pid: u32,
    /// When it was started.
    pub started_at: SystemTime,
    owner: String,
    state: Mutex<State>,
    ended: watch::Sender<bool>,
    kill: CancelToken,
}

/// What a shell is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// It, or something it started in its group, is alive.
    Running,
    /// It ended by itself.
    Exited,
    /// It was told to end.
    Killed,
    /// It could not be ended.
    Error,
}

impl Status {
    /// The public text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Killed => "killed",
            Self::Error => "error",
        }
    }
}

#[derive(Debug)]
struct State {
    status: Status,
    exit: Exit,
    finished_at: Option<SystemTime>,
    stdout: Unread,
    stderr: Unread,
}

/// A shell at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glance {
    /// What it is doing.
    pub status: Status,
    /// How it ended.
    pub exit: Exit,
    /// When it ended.
    pub finished_at: Option<SystemTime>,
}

/// Why a shell was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// Too many run already.
    #[error("{MAX_RUNNING} background shells are running already; end one with KillShell first")]
    TooMany,
}

impl Shells {
    /// Takes over a process. Its watcher reads its output and reaps it.
    ///
    /// # Errors
    /// The Session has too many; the process is killed.
    pub fn adopt(
        &self,
        owner: &str,
        command: &str,
        process: ShellProcess,
        pipes: Pipes,
    ) -> Result<Arc<Shell>, Refused> {
        let shell = Arc::new(Shell {
            id: format!("bash_{}", Uuid::new_v4()),
            command: command.to_owned(),
            pid: process.pid(),
            started_at: clock::now(),
            owner: owner.to_owned(),
            state: Mutex::new(State {
                status: Status::Running,
                exit: Exit::default(),
                finished_at: None,
                stdout: Unread::default(),
                stderr: Unread::default(),
            }),
            ended: watch::Sender::new(false),
            kill: CancelToken::new(),
        });
        {
            let mut by_id = lock(&self.by_id);
            if by_id.values().filter(|other| other.owner == owner && !other.is_over()).count() >= MAX_RUNNING {
                return Err(Refused::TooMany);
            }
            by_id.insert(shell.id.clone(), shell.clone());
        }
        let watched = shell.clone();
        self.watchers.spawn(async move {
            watched.watch(process, pipes).await;
            shells().forget_old(&watched.owner);
        });
        Ok(shell)
    }

    /// A shell of a Session. Shells of other Sessions do not exist for it.
    pub fn find(&self, owner: &str, id: &str) -> Option<Arc<Shell>> {
        lock(&self.by_id).get(id).filter(|shell| shell.owner == owner).cloned()
    }

    /// Keeps a group that outlives its foreground command, so that it ends with the Session at the latest.
    pub fn keep(&self, owner: &str, process: ShellProcess) {
        let end = CancelToken::new();
        let over = watch::Sender::new(false);
        let group = LeftGroup { end: end.clone(), over: over.subscribe() };
        {
            let mut left = lock(&self.left_running);
            let groups = left.entry(owner.to_owned()).or_default();
            groups.retain(|group| !*group.over.borrow());
            groups.push(group);
        }
        self.watchers.spawn(async move {
            if end.run_until(process.deserted()).await.is_none() {
                // What cannot be ended is killed once more when it is dropped.
                let _ = process.terminate().await;
            }
            process.reap();
            over.send_replace(true);
        });
    }

    /// Whether anything of a Session is kept.
    pub fn holds(&self, owner: &str) -> bool {
        lock(&self.by_id).values().any(|shell| shell.owner == owner) || lock(&self.left_running).contains_key(owner)
    }

    /// Ends everything a Session has running and forgets it. Resolves when the groups are gone, or cannot be ended.
    pub async fn close(&self, owner: &str) {
        loop {
            let shells: Vec<Arc<Shell>> = {
                let mut by_id = lock(&self.by_id);
                by_id.extract_if(|_, shell| shell.owner == owner).map(|(_, shell)| shell).collect()
            };
            let mut groups = lock(&self.left_running).remove(owner).unwrap_or_default();
            if shells.is_empty() && groups.is_empty() {
                return;
            }
            shells.iter().for_each(|shell| shell.request_end(CancelReason::Close));
            let ending_shells = futures_util::future::join_all(shells.iter().map(|shell| shell.over()));
            groups.iter().for_each(|group| group.end.cancel(CancelReason::Close));
            let ending_groups = futures_util::future::join_all(groups.iter_mut().map(|group| async {
                // An error means that its watcher is gone, and the group with it.
                let _ = group.over.wait_for(|over| *over).await;
            }));
            tokio::join!(ending_shells, ending_groups);
        }
    }

    fn forget_old(&self, owner: &str) {
        let mut by_id = lock(&self.by_id);
        let mut over: Vec<(SystemTime, String)> = by_id
            .values()
            .filter(|shell| shell.owner == owner)
            .filter_map(|shell| Some((shell.glance().finished_at?, shell.id.clone())))
            .collect();
        over.sort();
        for (_, id) in over.iter().rev().skip(MAX_FINISHED) {
            by_id.remove(id);
        }
    }
}

impl Shell {
    /// What it is doing now.
    pub fn glance(&self) -> Glance {
        let state = self.state();
        Glance { status: state.status, exit: state.exit, finished_at: state.finished_at }
    }

    /// Output since the last read: standard output, standard error.
    pub fn take_output(&self) -> (String, String) {
        let mut state = self.state();
        let over = state.finished_at.is_some();
        (state.stdout.take(over), state.stderr.take(over))
    }

    /// Tells it to end; its watcher escalates to KILL. `false`: it was told before, or has ended.
    pub fn kill(&self) -> bool {
        {
            let mut state = self.state();
            if state.status != Status::Running {
                return false;
            }
            state.status = Status::Killed;
        }
        self.request_end(CancelReason::Abort);
        true
    }

    /// Resolves when it is over.
    pub async fn over(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    fn is_over(&self) -> bool {
        *self.ended.borrow()
    }

    fn request_end(&self, reason: CancelReason) {
        self.kill.cancel(reason);
    }

    async fn watch(&self, process: ShellProcess, mut pipes: Pipes) {
        let _guard = EndGuard(self);
        let keep = |source, bytes: &[u8]| self.push(source, bytes);
        let ended_by_itself = tokio::select! {
            biased;
            () = self.kill.cancelled() => false,
            // Parity: a shell whose children live on in its group still counts as running.
            () = async { process.exited().await; process.deserted().await } => true,
            never = pipes.read_on(keep) => match never {},
        };
        let failure = if ended_by_itself {
            None
        } else {
            tokio::select! {
                biased;
                ended = process.terminate() => ended.err(),
                never = pipes.read_on(keep) => match never {},
            }
        };
        // A process that left the group may hold the pipe; what it prints later belongs to nobody.
        let _ = timeout(DRAIN, pipes.read_to_end(keep)).await;
        let exit = if failure.is_none() { process.exited().await } else { Exit::default() };
        process.reap();
        {
            let mut state = self.state();
            state.exit = exit;
            state.finished_at = Some(clock::now());
            state.status = match (failure, ended_by_itself) {
                (Some(failure), _) => {
                    state.stderr.push(format!("\n[error] {failure}").as_bytes());
                    Status::Error
                }
                // A kill that came too late changed nothing.
                (None, true) => Status::Exited,
                (None, false) => Status::Killed,
            };
        }
    }

    fn push(&self, source: Source, bytes: &[u8]) {
        let mut state = self.state();
        match source {
            Source::Stdout => state.stdout.push(bytes),
            Source::Stderr => state.stderr.push(bytes),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Announces the end of a shell when its watcher ends, even by a panic or because the runtime shuts down.
struct EndGuard<'a>(&'a Shell);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.0.state();
            if state.finished_at.is_none() {
                state.status = Status::Error;
                state.finished_at = Some(clock::now());
            }
        }
        self.0.ended.send_replace(true);
    }
}

/// Output that nobody has read yet.
#[derive(Debug, Default)]
struct Unread {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl Unread {
    fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(UNREAD_BYTES)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(UNREAD_BYTES);
        self.bytes.drain(..excess);
        self.dropped += (bytes.len() - kept.len() + excess) as u64;
        self.bytes.extend(kept);
    }

    /// Everything unread. While more may come, the beginning of an incomplete character stays for the next read.
    fn take(&mut self, over: bool) -> String {
        let mut bytes: Vec<u8> = std::mem::take(&mut self.bytes).into();
        if !over {
            let rest = bytes.split_off(bytes.len() - incomplete_suffix(&bytes));
            self.bytes.extend(rest);
        }
        match std::mem::take(&mut self.dropped) {
            0 => lossy(bytes),
            dropped => {
                let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
                let text = String::from_utf8_lossy(&bytes[cut..]);
                format!("[{} bytes of earlier output were dropped]\n{text}", dropped + cut as u64)
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
