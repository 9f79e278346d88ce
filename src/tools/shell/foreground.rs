//! A command that is waited for: its output, its end, its time limit and its cancellation.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::capture::{Capture, Captured};
use super::process::{Exit, Pipes, ShellProcess, Source, StillAlive};
use crate::host::CancelToken;

/// How long output is still read after the shell has ended. A background child may hold the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(250);

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The shell ended by itself.
    Exited,
    /// The time limit passed; everything it started was ended.
    TimedOut,
    /// The call was cancelled; everything it started was ended.
    Cancelled,
}

/// A run that is over.
#[derive(Debug)]
pub(super) struct Run {
    /// Why it stopped.
    pub ending: Ending,
    /// How the shell ended.
    pub exit: Exit,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// How long it took.
    pub elapsed: Duration,
    /// A background process still had the output open when reading stopped.
    pub held_open: bool,
    /// The group could not be ended.
    pub still_alive: Option<StillAlive>,
    /// The group, when members of it go on after the shell has ended.
    pub left_running: Option<ShellProcess>,
}

/// Waits for a shell. Dropping the future kills the group.
pub(super) async fn run(process: ShellProcess, mut pipes: Pipes, limit: Duration, cancel: &CancelToken) -> Run {
    let started = Instant::now();
    let (mut stdout, mut stderr) = (Capture::default(), Capture::default());
    let mut keep = |source, bytes: &[u8]| match source {
        Source::Stdout => stdout.push(bytes),
        Source::Stderr => stderr.push(bytes),
    };
    // Biased: neither the end nor the limit may wait behind a flood of output.
    let ending = tokio::select! {
        biased;
        () = cancel.cancelled() => Ending::Cancelled,
        _ = process.exited() => Ending::Exited,
        () = sleep_until(started + limit) => Ending::TimedOut,
        never = pipes.read_on(&mut keep) => match never {},
    };
    let mut still_alive = None;
    if ending != Ending::Exited {
        // Reading goes on, so that what the group prints while it cleans up is not lost and does not block it.
        still_alive = tokio::select! {
            biased;
            ended = process.terminate() => ended.err(),
            never = pipes.read_on(&mut keep) => match never {},
        };
    }
    let held_open = timeout(DRAIN, pipes.read_to_end(&mut keep)).await.is_err();
    let elapsed = started.elapsed();
    let exit = if still_alive.is_none() { process.exited().await } else { Exit::default() };
    let left_running = if ending == Ending::Exited && process.lingers().await {
        Some(process)
    } else {
        process.reap();
        None
    };
    Run {
        ending,
        exit,
        stdout: stdout.finish(),
        stderr: stderr.finish(),
        elapsed,
        held_open,
        still_alive,
        left_running,
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
