//! Process trees where there are no process groups: `taskkill /t` ends a shell and its children.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{Exit, GRACE, KILL_ATTEMPTS, Launch, POLL, Pipes, StillAlive, slower};

/// A shell and its children. Dropping it kills them.
#[derive(Debug)]
pub(in super::super) struct ShellProcess {
    pid: u32,
    /// The open handle keeps the number from being given away.
    child: Mutex<Child>,
    reaped: bool,
}

impl ShellProcess {
    /// Starts a shell.
    ///
    /// # Errors
    /// The system could not start it, or could not watch its pipes.
    pub fn spawn(launch: &Launch<'_>) -> io::Result<(Self, Pipes)> {
        let mut command = launch.command(&Uuid::new_v4().to_string());
        #[cfg(windows)]
        std::os::windows::process::CommandExt::creation_flags(&mut command, CREATE_NO_WINDOW);
        let mut child = command.spawn()?;
        let pipes = Pipes::new(&mut child);
        let process = Self { pid: child.id(), child: Mutex::new(child), reaped: false };
        Ok((process, pipes?))
    }

    /// Process id of the shell.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Resolves when the shell itself has ended.
    pub async fn exited(&self) -> Exit {
        let mut pause = POLL.0;
        loop {
            if let Some(exit) = self.peek() {
                return exit;
            }
            sleep(pause).await;
            pause = slower(pause);
        }
    }

    /// What outlives a shell cannot be told from strangers here.
    pub async fn lingers(&self) -> bool {
        false
    }

    /// Resolves at once; see [`ShellProcess::lingers`].
    pub async fn deserted(&self) {}

    /// Ends the shell and its children.
    ///
    /// # Errors
    /// The shell is still alive after the last attempt.
    pub async fn terminate(&self) -> Result<(), StillAlive> {
        for _ in 0..KILL_ATTEMPTS {
            let pid = self.pid;
            let _ = timeout(GRACE, tokio::task::spawn_blocking(move || kill_tree(pid))).await;
            if timeout(GRACE, self.exited()).await.is_ok() {
                return Ok(());
            }
        }
        Err(StillAlive { pid: self.pid })
    }

    /// Gives the process id back to the system.
    pub fn reap(mut self) {
        self.reaped = self.peek().is_some();
    }

    fn peek(&self) -> Option<Exit> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        match child.try_wait() {
            Ok(status) => status.map(|status| Exit { code: status.code(), signal: None }),
            Err(_) => Some(Exit::default()),
        }
    }
}

impl Drop for ShellProcess {
    fn drop(&mut self) {
        if !self.reaped {
            kill_tree(self.pid);
            let _ = self.child.get_mut().unwrap_or_else(PoisonError::into_inner).kill();
        }
    }
}

/// Windows ends the children of a console with it; nothing is tracked here.
pub(in super::super) fn kill_all() {}

#[cfg(windows)]
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

fn kill_tree(pid: u32) {
    let mut command = Command::new("taskkill");
    command.args(["/pid", &pid.to_string(), "/t", "/f"]);
    #[cfg(windows)]
    std::os::windows::process::CommandExt::creation_flags(&mut command, CREATE_NO_WINDOW);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
