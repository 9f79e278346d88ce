use std::time::Duration;

use super::*;
use crate::host::CancelReason;
use crate::tools::shell::process::testing::{alive, pid_in, start, until};

const LONG: Duration = Duration::from_secs(30);

async fn to_end(script: &str) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let (process, pipes) = start(script, dir.path());
    run(process, pipes, LONG, &CancelToken::new()).await
}

#[tokio::test]
async fn output_exit_code_and_signal_are_told() {
    let done = to_end("printf out; printf err >&2; exit 3").await;
    assert_eq!((done.stdout.text.as_str(), done.stderr.text.as_str()), ("out", "err"));
    assert_eq!((done.ending, done.exit), (Ending::Exited, Exit { code: Some(3), signal: None }));
    assert!(!done.held_open && done.left_running.is_none());
    assert_eq!(to_end("kill -TERM $$").await.exit, Exit { code: None, signal: Some("SIGTERM") });
}

#[tokio::test]
async fn standard_input_is_at_its_end() {
    assert_eq!(to_end("cat; read x; echo \"rc=$?\"").await.stdout.text, "rc=1\n");
}

#[tokio::test]
async fn a_background_child_that_holds_the_pipe_does_not_delay_the_result() {
    let done = to_end("sleep 60 & echo $!").await;
    assert!(done.held_open && done.elapsed < Duration::from_secs(2));
    let pid: u32 = done.stdout.text.trim().parse().unwrap();
    let group = done.left_running.unwrap();
    assert!(alive(pid));
    drop(group);
    until(|| !alive(pid)).await;
}

#[tokio::test]
async fn a_background_child_without_the_pipe_is_found_too() {
    let done = to_end("sleep 60 >/dev/null 2>&1 & echo $!").await;
    assert!(!done.held_open);
    let pid: u32 = done.stdout.text.trim().parse().unwrap();
    let group = done.left_running.unwrap();
    group.terminate().await.unwrap();
    assert!(!alive(pid));
    group.reap();
}

#[tokio::test]
async fn a_time_limit_ends_the_whole_tree_and_keeps_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let stubborn =
        "trap '' TERM; echo before; sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 0.05; done' & wait";
    let (process, pipes) = start(stubborn, dir.path());
    let shell = process.pid();
    let done = run(process, pipes, Duration::from_millis(300), &CancelToken::new()).await;
    assert_eq!((done.ending, done.exit.signal, done.still_alive), (Ending::TimedOut, Some("SIGKILL"), None));
    assert_eq!(done.stdout.text, "before\n");
    assert!(done.elapsed < Duration::from_secs(4), "{:?}", done.elapsed);
    assert!(!alive(pid_in(dir.path(), "child").unwrap()) && !std::path::Path::new(&format!("/proc/{shell}")).exists());
}

#[tokio::test]
async fn a_group_that_obeys_is_not_killed_and_its_last_words_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (process, pipes) = start("trap 'echo bye; exit 7' TERM; while :; do sleep 0.02; done", dir.path());
    let done = run(process, pipes, Duration::from_millis(300), &CancelToken::new()).await;
    assert_eq!((done.exit.code, done.stdout.text.as_str()), (Some(7), "bye\n"));
    assert!(done.elapsed < Duration::from_secs(1), "{:?}", done.elapsed);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn descendants_that_left_the_group_end_too() {
    let dir = tempfile::tempdir().unwrap();
    // One keeps the marker and loses its parent, one sheds the marker and keeps its parent.
    let script = "setsid sh -c 'echo $$ > orphan; exec sleep 60' & \
                  setsid sh -c 'env -i sleep 61 & echo $! > bare; wait' & \
                  while [ ! -s orphan ] || [ ! -s bare ]; do sleep 0.02; done; touch ready; wait";
    let (process, pipes) = start(script, dir.path());
    let cancel = CancelToken::new();
    let stop = async {
        until(|| dir.path().join("ready").exists()).await;
        cancel.cancel(CancelReason::Abort);
        std::future::pending::<()>().await;
    };
    let done = tokio::select! { done = run(process, pipes, LONG, &cancel) => done, () = stop => unreachable!() };
    assert_eq!((done.ending, done.still_alive), (Ending::Cancelled, None));
    for name in ["orphan", "bare"] {
        assert!(!alive(pid_in(dir.path(), name).unwrap()), "{name}");
    }
}

#[tokio::test]
async fn dropping_the_run_kills_everything() {
    let dir = tempfile::tempdir().unwrap();
    let (process, pipes) = start("sh -c 'echo $$ > child; sleep 60' & wait", dir.path());
    let shell = process.pid();
    let cancel = CancelToken::new();
    {
        let running = run(process, pipes, LONG, &cancel);
        let ready = until(|| pid_in(dir.path(), "child").is_some());
        tokio::select! { _ = running => panic!("it ended"), () = ready => {} }
    }
    let child = pid_in(dir.path(), "child").unwrap();
    until(|| !alive(child) && !std::path::Path::new(&format!("/proc/{shell}")).exists()).await;
}

#[tokio::test]
async fn a_flood_does_not_delay_the_limit_and_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let (process, pipes) = start("yes", dir.path());
    let done = run(process, pipes, Duration::from_millis(500), &CancelToken::new()).await;
    assert_eq!(done.ending, Ending::TimedOut);
    assert!(done.elapsed < Duration::from_secs(2), "{:?}", done.elapsed);
    assert!(done.stdout.text.len() <= 1 << 20 && done.stdout.dropped.bytes > 0);
}

#[tokio::test]
async fn characters_survive_being_printed_byte_by_byte() {
    let done =
        to_end("for i in 1 2 3; do printf '\\xe4'; sleep 0.01; printf '\\xb8'; sleep 0.01; printf '\\x96'; done").await;
    assert_eq!(done.stdout.text, "世世世");
}
