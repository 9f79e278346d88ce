use std::time::Duration;

use super::*;
use crate::tools::shell::process::testing::{alive, pid_in, start, until};

fn adopt(owner: &str, script: &str) -> (Arc<Shell>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (process, pipes) = start(script, dir.path());
    (shells().adopt(owner, script, process, pipes).unwrap(), dir)
}

#[tokio::test]
async fn a_shell_tells_how_it_ended_and_its_output_is_consumed() {
    let (shell, _dir) = adopt("consume", "echo one; echo bad >&2; exit 5");
    assert!(shell.id.starts_with("bash_"));
    shell.over().await;
    let now = shell.glance();
    assert_eq!((now.status, now.exit), (Status::Exited, Exit { code: Some(5), signal: None }));
    assert!(now.finished_at.unwrap() >= shell.started_at);
    assert_eq!(shell.take_output(), ("one\n".into(), "bad\n".into()));
    assert_eq!(shell.take_output(), (String::new(), String::new()));
    shells().close("consume").await;
    assert!(shells().find("consume", &shell.id).is_none());
}

#[tokio::test]
async fn other_sessions_do_not_see_a_shell_and_closing_one_spares_the_other() {
    let (mine, _a) = adopt("mine", "sleep 60");
    let (theirs, _b) = adopt("theirs", "sleep 60");
    assert!(shells().find("theirs", &mine.id).is_none());
    assert!(shells().find("mine", &mine.id).is_some());
    shells().close("mine").await;
    assert!(!alive(mine.pid) && alive(theirs.pid));
    shells().close("theirs").await;
    assert!(!alive(theirs.pid));
}

#[tokio::test]
async fn killing_escalates_and_is_told_once() {
    let (shell, dir) = adopt("kill", "trap '' TERM; echo $$ > up; while :; do sleep 0.05; done");
    until(|| pid_in(dir.path(), "up").is_some()).await;
    assert!(shell.kill());
    assert!(!shell.kill());
    assert_eq!(shell.glance().status, Status::Killed);
    shell.over().await;
    assert_eq!(shell.glance().exit.signal, Some("SIGKILL"));
    assert!(!alive(shell.pid));
    shells().close("kill").await;
}

#[tokio::test]
async fn a_shell_counts_as_running_while_its_group_lives() {
    let (shell, dir) = adopt("group", "sh -c 'echo $$ > child; sleep 60' &");
    until(|| pid_in(dir.path(), "child").is_some()).await;
    until(|| !alive(shell.pid)).await;
    assert_eq!(shell.glance().status, Status::Running);
    shells().close("group").await;
    assert!(!alive(pid_in(dir.path(), "child").unwrap()));
}

#[tokio::test]
async fn groups_left_by_foreground_commands_end_with_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let (process, _pipes) = start("sleep 60 & echo $! > child", dir.path());
    process.exited().await;
    until(|| pid_in(dir.path(), "child").is_some()).await;
    shells().keep("left", process);
    let child = pid_in(dir.path(), "child").unwrap();
    assert!(alive(child));
    shells().close("left").await;
    assert!(!alive(child));
}

#[tokio::test]
async fn old_shells_are_forgotten_once_enough_younger_ones_have_ended() {
    let (first, _dir) = adopt("old", "true");
    first.over().await;
    for _ in 0..MAX_FINISHED {
        let (shell, _dir) = adopt("old", "true");
        shell.over().await;
    }
    until(|| shells().find("old", &first.id).is_none()).await;
    assert_eq!(lock(&shells().by_id).values().filter(|shell| shell.owner == "old").count(), MAX_FINISHED);
    shells().close("old").await;
}

#[test]
fn unread_output_is_bounded_and_says_what_was_dropped() {
    let mut unread = Unread::default();
    unread.push(&vec![b'a'; UNREAD_BYTES]);
    unread.push(b"tail");
    unread.push(&[b'b'; 6]);
    let text = unread.take(true);
    assert!(text.starts_with("[10 bytes of earlier output were dropped]\naaa") && text.ends_with("atailbbbbbb"));
    assert_eq!(unread.take(true), "");
    unread.push(&vec![b'c'; 3 * UNREAD_BYTES]);
    assert!(unread.take(true).starts_with(&format!("[{} bytes", 2 * UNREAD_BYTES)));
}

#[test]
fn a_character_that_is_not_complete_waits_for_the_next_read() {
    let mut unread = Unread::default();
    unread.push(b"x\xe4\xb8");
    assert_eq!(unread.take(false), "x");
    unread.push(b"\x96y");
    assert_eq!(unread.take(false), "世y");
    unread.push(b"\xe4");
    assert_eq!(unread.take(true), "\u{fffd}");
}

#[tokio::test]
async fn waiting_ends_when_the_shell_does() {
    let (shell, dir) = adopt("wait", "while [ ! -e go ]; do sleep 0.02; done");
    assert!(tokio::time::timeout(Duration::from_millis(50), shell.over()).await.is_err());
    std::fs::write(dir.path().join("go"), "").unwrap();
    shell.over().await;
    assert_eq!(shell.glance().exit.code, Some(0));
    shells().close("wait").await;
}
