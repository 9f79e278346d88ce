//! What a Session tells its logger: events of `tracing` that happen inside of the Session's span, without secrets.
//!
//! One subscriber serves the process. It is installed with the first logger, so a process without loggers pays nothing
//! for spans and events; later, a Session without a logger pays a look at the span it is in. What happens outside of a
//! Session goes nowhere, and nothing is ever printed.

mod backlog;
mod redact;
mod route;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::Span;

pub use backlog::Backlog;
pub use redact::{Redactor, holds_secret};

use super::clock;

/// Name of the span that everything of a Session happens in.
pub const SESSION_SPAN: &str = "session";

/// How important an entry is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Steps, for finding out why something went the way it did.
    #[default]
    Debug,
    /// Ordinary news.
    Info,
    /// Something did not work and was dealt with.
    Warn,
    /// A defect.
    Error,
}

/// One entry, as the logger gets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// How important it is.
    pub level: LogLevel,
    /// The part of the package that speaks.
    pub category: String,
    /// A sentence.
    pub message: String,
    /// Milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// The Session.
    pub session_id: Arc<str>,
    /// Facts, in one object; empty where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Map<String, Value>>,
}

/// Where entries go. Called on any thread, inside of whatever speaks: it must neither wait nor speak itself.
pub trait LogSink: Send + Sync {
    /// Takes an entry.
    fn take(&self, entry: LogEntry);
}

/// What an application gives for a Session's log.
#[derive(Clone)]
pub struct Logging {
    /// Where entries go.
    pub sink: Arc<dyn LogSink>,
    /// Less important entries are not made.
    pub level: LogLevel,
    /// What no entry may show.
    pub redactor: Redactor,
}

/// The log of one Session.
pub struct SessionLog {
    session: Arc<str>,
    sink: Arc<dyn LogSink>,
    level: LogLevel,
    redactor: RwLock<Redactor>,
    closed: AtomicBool,
}

impl SessionLog {
    /// A log for everything that happens inside of `span`, which must be made after the call of [`prepare`].
    ///
    /// `None` when another subscriber took the process, so that nothing would arrive.
    pub fn attach(span: &Span, session: &str, logging: Logging) -> Option<Arc<Self>> {
        let Logging { sink, level, redactor } = logging;
        let redactor = RwLock::new(redactor);
        let log = Arc::new(Self { session: session.into(), sink, level, redactor, closed: AtomicBool::new(false) });
        route::attach(span, &log).then_some(log)
    }

    /// Adds to what no entry may show.
    pub fn protect(&self, secrets: impl IntoIterator<Item = String>) {
        self.redactor.write().unwrap_or_else(PoisonError::into_inner).add(secrets);
    }

    /// The end: nothing is said any more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    fn wants(&self, level: LogLevel) -> bool {
        level >= self.level && !self.closed.load(Ordering::Acquire)
    }

    fn say(&self, level: LogLevel, category: &str, message: &str, mut facts: Map<String, Value>) {
        if !self.wants(level) {
            return;
        }
        let redactor = self.redactor.read().unwrap_or_else(PoisonError::into_inner);
        for value in facts.values_mut() {
            if let Value::String(text) = value {
                *text = redactor.clean(text);
            }
        }
        let entry = LogEntry {
            level,
            category: category.to_owned(),
            message: redactor.clean(message),
            timestamp: clock::now_ms(),
            session_id: Arc::clone(&self.session),
            args: if facts.is_empty() { Vec::new() } else { vec![facts] },
        };
        drop(redactor);
        self.sink.take(entry);
    }
}

/// Installs the subscriber unless it is there. Called before the span of a Session with a logger is made.
pub fn prepare() {
    route::install();
}
