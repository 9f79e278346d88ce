//! One shell process and everything it starts: launched in a group of its own, observed, and ended as a whole.
//!
//! Invariant: a process that was started here is ended and reaped, whatever happens to the future that owns it.

#[cfg(target_os = "linux")]
mod tree;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdout};

#[cfg(unix)]
pub(super) use unix::{ShellProcess, kill_all};
#[cfg(not(unix))]
pub(super) use windows::{ShellProcess, kill_all};

/// How long a group may take to end after each signal.
const GRACE: Duration = Duration::from_millis(1000);
/// KILL is repeated this often, for members that were started while the group was being ended.
const KILL_ATTEMPTS: usize = 3;
/// Shortest and longest pause between looks at processes no event announces.
const POLL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));
/// Bytes read at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// Variable that carries the marker of a call: only descendants of its shell have it.
const MARKER_VARIABLE: &str = "BLADE_CALL_ID";

/// What to run.
pub(super) struct Launch<'a> {
    /// The shell.
    pub shell: PathBuf,
    /// Its script.
    pub command: &'a str,
    /// Working directory.
    pub cwd: PathBuf,
    /// The whole environment; the marker comes on top.
    pub env: BTreeMap<OsString, OsString>,
}

/// How a shell ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Exit {
    /// Exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Name of the signal that ended it.
    pub signal: Option<&'static str>,
}

/// A group that outlived every attempt to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failed to terminate process tree {pid} after {KILL_ATTEMPTS} force-kill attempts")]
pub(super) struct StillAlive {
    /// The shell.
    pub pid: u32,
}

/// Which pipe bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The output pipes of a shell, until they are at their end.
pub(super) struct Pipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    buffers: (Vec<u8>, Vec<u8>),
}

impl Pipes {
    fn new(child: &mut Child) -> io::Result<Self> {
        Ok(Self {
            stdout: child.stdout.take().map(ChildStdout::from_std).transpose()?,
            stderr: child.stderr.take().map(ChildStderr::from_std).transpose()?,
            buffers: (vec![0; READ_BYTES], vec![0; READ_BYTES]),
        })
    }

    /// Hands on what is printed until both pipes are at their end. Dropping the future loses nothing.
    pub async fn read_to_end(&mut self, mut take: impl FnMut(Source, &[u8])) {
        while self.stdout.is_some() || self.stderr.is_some() {
            let (source, read) = tokio::select! {
                read = read(&mut self.stdout, &mut self.buffers.0) => (Source::Stdout, read),
                read = read(&mut self.stderr, &mut self.buffers.1) => (Source::Stderr, read),
            };
            let buffer = if source == Source::Stdout { &self.buffers.0 } else { &self.buffers.1 };
            match read {
                Ok(length @ 1..) => take(source, &buffer[..length]),
                // A pipe that cannot be read has nothing more to say.
                Ok(0) | Err(_) if source == Source::Stdout => self.stdout = None,
                Ok(0) | Err(_) => self.stderr = None,
            }
        }
    }

    /// Like [`Pipes::read_to_end`], but never resolves: something else decides when to stop.
    pub async fn read_on(&mut self, take: impl FnMut(Source, &[u8])) -> std::convert::Infallible {
        self.read_to_end(take).await;
        std::future::pending().await
    }
}

async fn read<R: tokio::io::AsyncRead + Unpin>(pipe: &mut Option<R>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => std::future::pending().await,
    }
}

impl Launch<'_> {
    fn command(&self, marker: &str) -> Command {
        let mut command = Command::new(&self.shell);
        command
            .arg("-c")
            .arg(self.command)
            .current_dir(&self.cwd)
            .env_clear()
            .envs(&self.env)
            .env(MARKER_VARIABLE, marker)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// The next pause of a poll that slows down.
fn slower(pause: Duration) -> Duration {
    (pause * 2).min(POLL.1)
}

#[cfg(unix)]
#[cfg(test)]
pub(super) mod testing;
