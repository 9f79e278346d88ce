//! Entries on their way to a logger: bounded, so that a consumer that does not come costs a known amount of memory.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{LogEntry, LogLevel};
use crate::host::clock;

/// Entries that may wait. One more makes the oldest leave.
const CAPACITY: usize = 1_000;

/// Waiting entries as JSON texts.
#[derive(Debug, Default)]
pub struct Backlog {
    entries: VecDeque<String>,
    session: Option<Arc<str>>,
    dropped: u64,
}

impl Backlog {
    /// Appends an entry of `session`, as JSON text.
    pub fn push(&mut self, session: &Arc<str>, entry: String) {
        if self.entries.len() >= CAPACITY {
            self.entries.pop_front();
            self.dropped += 1;
            self.session = Some(Arc::clone(session));
        }
        self.entries.push_back(entry);
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Everything that waits, in order. Entries that left are told of first.
    pub fn take(&mut self) -> impl Iterator<Item = String> + use<> {
        let dropped = std::mem::take(&mut self.dropped);
        let told = self.session.take().and_then(|session| serde_json::to_string(&dropped_entry(session, dropped)).ok());
        told.into_iter().chain(std::mem::take(&mut self.entries))
    }
}

fn dropped_entry(session_id: Arc<str>, dropped: u64) -> LogEntry {
    LogEntry {
        level: LogLevel::Warn,
        category: "logger".to_owned(),
        message: format!("{dropped} entries dropped: the logger did not come to take them"),
        timestamp: clock::now_ms(),
        session_id,
        args: vec![Map::from_iter([("dropped".to_owned(), Value::from(dropped))])],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_leave_and_are_counted_once() {
        let session: Arc<str> = "s".into();
        let mut backlog = Backlog::default();
        assert!(backlog.is_empty());
        for n in 0..CAPACITY + 3 {
            backlog.push(&session, n.to_string());
        }
        let taken: Vec<String> = backlog.take().collect();
        assert_eq!(taken.len(), CAPACITY + 1);
        let told: Value = serde_json::from_str(&taken[0]).unwrap();
        assert_eq!((&told["args"][0]["dropped"], &told["level"]), (&Value::from(3), &Value::from("warn")));
        assert_eq!((taken[1].as_str(), taken[CAPACITY].as_str()), ("3", "1002"));
        assert!(backlog.is_empty());
        backlog.push(&session, "later".to_owned());
        assert_eq!(backlog.take().collect::<Vec<_>>(), ["later"]);
    }
}
