//! Starting real shells in tests, and looking at real processes.

use std::path::Path;
use std::time::Duration;

use super::{Launch, Pipes, ShellProcess};

/// Starts a script with nothing but a `PATH`.
pub(in super::super) fn start(script: &str, dir: &Path) -> (ShellProcess, Pipes) {
    let env = [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into_iter().collect();
    let launch = Launch { shell: "/bin/bash".into(), command: script, cwd: dir.into(), env };
    ShellProcess::spawn(&launch).unwrap()
}

/// Whether a process exists and is not a zombie.
pub(in super::super) fn alive(pid: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default();
    rustix::process::test_kill_process(pid).is_ok() && !state.contains(") Z ")
}

/// A process id that a script wrote to a file.
pub(in super::super) fn pid_in(dir: &Path, name: &str) -> Option<u32> {
    std::fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok()
}

/// Waits for what no event announces: the state of another process.
pub(in super::super) async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("the condition holds in time");
}
