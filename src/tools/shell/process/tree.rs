//! Descendants of a shell on Linux, found in `/proc`: members of its group, children of known members, and whoever
//! carries the marker of the call although it left the group.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::MARKER_VARIABLE;

/// How often an empty environment is looked at: loading a program takes well below a millisecond.
const ENVIRONMENT_LOOKS: u32 = 10;
/// The time between two looks.
const ENVIRONMENT_PAUSE: Duration = Duration::from_millis(1);
/// Parent of the kernel's own threads, which never have an environment.
const KERNEL_THREADS: i32 = 2;

/// A process, told apart from a later one with the same number by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    pid: i32,
    start: u64,
}

/// The facts of one process that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    id: Identity,
    parent: i32,
    group: i32,
    alive: bool,
}

/// Everything a shell is known to have started.
#[derive(Debug)]
pub(super) struct Tree {
    leader: i32,
    marker: Vec<u8>,
    known: HashSet<Identity>,
    /// Members outside the leader's group, as of the last look.
    escaped: Vec<Identity>,
}

impl Tree {
    /// A tree of the leader alone.
    pub fn new(leader: i32, marker: &str) -> Self {
        let marker = format!("{MARKER_VARIABLE}={marker}\0").into_bytes();
        Self { leader, marker, known: HashSet::new(), escaped: Vec::new() }
    }

    /// Looks again. Says whether anything is alive; `None` when `/proc` cannot be read.
    ///
    /// Contract: the leader is not reaped, so its number still names its group.
    pub fn refresh(&mut self) -> Option<bool> {
        let all = read_all()?;
        let host = std::process::id().cast_signed();
        let since = all.iter().find(|stat| stat.id.pid == self.leader).map_or(0, |stat| stat.id.start);
        let mut ours: HashSet<i32> = HashSet::new();
        for stat in &all {
            let member = stat.group == self.leader || self.known.contains(&stat.id);
            // Only what is younger than the leader can descend from it.
            let candidate = stat.alive && stat.parent != KERNEL_THREADS && stat.id.start >= since;
            if stat.id.pid != host && (member || (candidate && has_marker(stat.id.pid, &self.marker))) {
                ours.insert(stat.id.pid);
            }
        }
        // Children of members that shed the marker and the group; repeated, because any order is possible.
        loop {
            let before = ours.len();
            for stat in &all {
                if ours.contains(&stat.parent) && stat.id.pid != host {
                    ours.insert(stat.id.pid);
                }
            }
            if ours.len() == before {
                break;
            }
        }
        let members: Vec<&Stat> = all.iter().filter(|stat| ours.contains(&stat.id.pid)).collect();
        self.known = members.iter().map(|stat| stat.id).collect();
        self.escaped =
            members.iter().filter(|stat| stat.alive && stat.group != self.leader).map(|stat| stat.id).collect();
        Some(members.iter().any(|stat| stat.alive))
    }

    /// Signals the members outside the group that were seen at the last look.
    pub fn signal_escaped(&self, signal: Signal) {
        for id in &self.escaped {
            let Some(pid) = Pid::from_raw(id.pid) else { continue };
            // The descriptor pins the process; only then is it certain that the number still means the same one.
            let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if read_stat(id.pid).is_some_and(|stat| stat.id == *id) {
                let _ = pidfd_send_signal(fd, signal);
            }
        }
    }
}

fn read_all() -> Option<Vec<Stat>> {
    Some(pids()?.filter_map(read_stat).collect())
}

fn pids() -> Option<impl Iterator<Item = i32>> {
    let entries = fs::read_dir("/proc").ok()?;
    Some(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

fn read_stat(pid: i32) -> Option<Stat> {
    // One read gives the whole line; a second one, to find the end, would cost as much again for every process.
    let mut line = [0; 1024];
    let length = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    parse_stat(pid, &line[..length])
}

/// `pid (name) state ppid pgrp … starttime …`; the name may hold anything, so fields are counted from its last `)`.
fn parse_stat(pid: i32, line: &[u8]) -> Option<Stat> {
    let rest = std::str::from_utf8(&line[memchr::memrchr(b')', line)? + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let start = fields.nth(16)?.parse().ok()?;
    Some(Stat { id: Identity { pid, start }, parent, group, alive: !matches!(state, "Z" | "X" | "x") })
}

/// Whether a process was started with the marker in its environment.
///
/// A process that is just replacing its program has no environment for a moment; it is looked at again.
fn has_marker(pid: i32, marker: &[u8]) -> bool {
    for _ in 0..ENVIRONMENT_LOOKS {
        match fs::read(format!("/proc/{pid}/environ")) {
            Ok(env) if env.is_empty() => std::thread::sleep(ENVIRONMENT_PAUSE),
            Ok(env) => return memchr::memmem::find(&env, marker).is_some(),
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let line = b"42 (a) b (c) S 7 9 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        let expected = Stat { id: Identity { pid: 42, start: 4711 }, parent: 7, group: 9, alive: true };
        assert_eq!(parse_stat(42, line), Some(expected));
        assert_eq!(parse_stat(42, b"42 (a) Z"), None);
    }

    #[test]
    fn this_process_is_read() {
        let stat = read_stat(std::process::id().cast_signed()).unwrap();
        assert!(stat.alive && stat.id.start > 0);
    }
}
