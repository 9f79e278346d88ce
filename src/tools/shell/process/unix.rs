//! Process groups on Unix.
//!
//! A group id stays taken for as long as its leader is not reaped, even as a zombie. So leaders are observed without
//! reaping them, and every signal is sent under the lock that guards reaping: it cannot reach a stranger that was
//! given the same number later.

use std::collections::HashMap;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

#[cfg(target_os = "linux")]
use super::tree::Tree;
use super::{Exit, GRACE, KILL_ATTEMPTS, Launch, POLL, Pipes, StillAlive, slower};
use crate::host::{Tasks, runtime};

/// Leaders that were started here and not reaped yet.
static LEADERS: LazyLock<Mutex<HashMap<Pid, Child>>> = LazyLock::new(Mutex::default);
/// Reapers of leaders whose owner is gone.
static REAPERS: LazyLock<Tasks> = LazyLock::new(Tasks::new);

/// A shell and its process group. Dropping it kills the whole group.
#[derive(Debug)]
pub(in super::super) struct ShellProcess {
    pid: Pid,
    /// Becomes readable when the leader ends; absent where the system has no such thing.
    #[cfg(target_os = "linux")]
    ended: Option<AsyncFd<OwnedFd>>,
    #[cfg(target_os = "linux")]
    tree: std::sync::Arc<Mutex<Tree>>,
    reaped: bool,
}

impl ShellProcess {
    /// Starts a shell.
    ///
    /// # Errors
    /// The system could not start it, or could not watch its pipes; nothing is left running then.
    pub fn spawn(launch: &Launch<'_>) -> io::Result<(Self, Pipes)> {
        let marker = Uuid::new_v4().to_string();
        let mut child = launch.command(&marker).process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        let pipes = Pipes::new(&mut child);
        leaders().insert(pid, child);
        let process = Self {
            pid,
            #[cfg(target_os = "linux")]
            ended: watch(pid),
            #[cfg(target_os = "linux")]
            tree: std::sync::Arc::new(Mutex::new(Tree::new(pid.as_raw_pid(), &marker))),
            reaped: false,
        };
        // From here on dropping `process` cleans up.
        Ok((process, pipes?))
    }

    /// Process id of the shell.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Resolves when the shell itself has ended. It stays unreaped, so the group can still be signalled.
    pub async fn exited(&self) -> Exit {
        #[cfg(target_os = "linux")]
        if let Some(ended) = &self.ended {
            // An error means that the runtime is shutting down; the loop below still ends with the process.
            let _ = ended.readable().await;
        }
        let mut pause = POLL.0;
        loop {
            if let Some(exit) = self.peek() {
                return exit;
            }
            sleep(pause).await;
            pause = slower(pause);
        }
    }

    /// Whether members of the group, or descendants that left it, are alive although the shell has ended.
    pub async fn lingers(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            // Without /proc there is no telling; then what goes on is not tracked.
            self.look().await.unwrap_or(false)
        }
        // A zombie alone cannot be signalled on the BSDs.
        #[cfg(not(target_os = "linux"))]
        rustix::process::test_kill_process_group(self.pid).is_ok()
    }

    /// Resolves when none of them is alive any more, after the shell has ended.
    pub async fn deserted(&self) {
        let mut pause = Duration::from_millis(50);
        while self.lingers().await {
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Ends the group and descendants that left it: TERM, time to clean up, then KILL.
    ///
    /// # Errors
    /// Something is still alive after the last KILL.
    pub async fn terminate(&self) -> Result<(), StillAlive> {
        let kills = std::iter::repeat_n(Signal::KILL, KILL_ATTEMPTS);
        for signal in std::iter::once(Signal::TERM).chain(kills) {
            let deadline = Instant::now() + GRACE;
            // The tree is read before the signal: when parents die, the links to their children are lost.
            let mut alive = self.alive().await;
            self.signal(signal);
            let mut pause = POLL.0;
            while alive {
                if timeout_at(deadline, sleep(pause)).await.is_err() {
                    break;
                }
                pause = slower(pause);
                alive = self.alive().await;
            }
            if !alive {
                return Ok(());
            }
        }
        Err(StillAlive { pid: self.pid() })
    }

    /// Gives the shell's process id back to the system. The group can no longer be signalled afterwards.
    pub fn reap(mut self) {
        self.reaped = reap(self.pid);
        // When the leader is not dead, dropping `self` kills the group.
    }

    fn peek(&self) -> Option<Exit> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.pid), options) {
            Ok(None) => None,
            Ok(Some(status)) => {
                Some(Exit { code: status.exit_status(), signal: status.terminating_signal().map(signal_name) })
            }
            // Somebody else in this process reaps every child; how this one ended is lost.
            Err(_) => Some(Exit::default()),
        }
    }

    async fn alive(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(alive) = self.look().await {
            return alive;
        }
        self.peek().is_none() || self.lingers().await
    }

    /// Whether anything of the tree is alive; `None` when that cannot be found out.
    #[cfg(target_os = "linux")]
    async fn look(&self) -> Option<bool> {
        let tree = self.tree.clone();
        let look = move || tree.lock().unwrap_or_else(PoisonError::into_inner).refresh();
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }

    fn signal(&self, signal: Signal) {
        signal_group(self.pid, signal);
        #[cfg(target_os = "linux")]
        self.tree.lock().unwrap_or_else(PoisonError::into_inner).signal_escaped(signal);
    }
}

impl Drop for ShellProcess {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        #[cfg(target_os = "linux")]
        self.tree.lock().unwrap_or_else(PoisonError::into_inner).refresh();
        self.signal(Signal::KILL);
        let pid = self.pid;
        if reap(pid) {
            return;
        }
        let reaper = async move {
            let mut pause = POLL.0;
            while !reap(pid) {
                sleep(pause).await;
                pause = slower(pause);
            }
        };
        match tokio::runtime::Handle::try_current().or_else(|_| runtime::handle()) {
            Ok(handle) => drop(REAPERS.spawn_on(reaper, &handle)),
            Err(error) => tracing::warn!(%error, "a killed shell could not be reaped"),
        }
    }
}

/// Kills every group that is alive, at once. For the end of the host process, when nothing can be awaited.
pub(in super::super) fn kill_all() {
    for pid in leaders().keys() {
        let _ = kill_process_group(*pid, Signal::KILL);
    }
}

fn leaders() -> MutexGuard<'static, HashMap<Pid, Child>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn signal_group(pid: Pid, signal: Signal) {
    let leaders = leaders();
    if leaders.contains_key(&pid) {
        // It fails only when nothing is left to be signalled.
        let _ = kill_process_group(pid, signal);
    }
}

/// Reaps a leader that has ended. `true`: it is reaped.
fn reap(pid: Pid) -> bool {
    let mut leaders = leaders();
    let Some(child) = leaders.get_mut(&pid) else { return true };
    // An error means that somebody else reaped it.
    if matches!(child.try_wait(), Ok(None)) {
        return false;
    }
    leaders.remove(&pid);
    true
}

#[cfg(target_os = "linux")]
#[expect(
    deprecated,
    reason = "its replacement is unsafe for types with dishonest `AsRawFd`; `OwnedFd` owns what it names"
)]
fn watch(pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    use rustix::process::{PidfdFlags, pidfd_open};
    let fd = pidfd_open(pid, PidfdFlags::NONBLOCK).or_else(|_| pidfd_open(pid, PidfdFlags::empty())).ok()?;
    AsyncFd::with_interest(fd, tokio::io::Interest::READABLE).ok()
}

fn signal_name(raw: i32) -> &'static str {
    const NAMES: [(Signal, &str); 29] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::CHILD, "SIGCHLD"),
        (Signal::CONT, "SIGCONT"),
        (Signal::STOP, "SIGSTOP"),
        (Signal::TSTP, "SIGTSTP"),
        (Signal::TTIN, "SIGTTIN"),
        (Signal::TTOU, "SIGTTOU"),
        (Signal::URG, "SIGURG"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::WINCH, "SIGWINCH"),
        (Signal::IO, "SIGIO"),
        (Signal::SYS, "SIGSYS"),
    ];
    NAMES.iter().find(|(signal, _)| signal.as_raw() == raw).map_or("SIGRT", |(_, name)| name)
}
