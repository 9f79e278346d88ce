//! What a Session is watched by: the span that everything of it happens in, and its log, where it has one.

use std::sync::Arc;

use tracing::Span;

use crate::error::{Error, Result};
use crate::host::log::{self, Logging, SESSION_SPAN, SessionLog, holds_secret};
use crate::model::SessionId;

/// Span and log of a Session.
pub struct Observed {
    span: Span,
    log: Option<Arc<SessionLog>>,
}

impl Observed {
    /// For a Session that is being built.
    ///
    /// # Errors
    /// `INTERNAL`: there is a logger, but another `tracing` subscriber has taken the process, so it would stay silent.
    pub(super) fn new(id: &SessionId, logging: Option<Logging>) -> Result<Self> {
        if logging.is_some() {
            log::prepare();
        }
        // Spans of this level are there for every listener, to stand around what it hears.
        let span = tracing::error_span!(SESSION_SPAN, session = id.as_str());
        let log = match logging {
            None => None,
            Some(logging) => Some(SessionLog::attach(&span, id.as_str(), logging).ok_or_else(|| {
                Error::internal("logger: this process has a tracing subscriber of its own; leave the logger out")
            })?),
        };
        Ok(Self { span, log })
    }

    /// The span.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// Hides the values of variables that hold secrets by their name.
    pub(super) fn protect<'a>(&self, variables: impl IntoIterator<Item = (&'a String, &'a String)>) {
        if let Some(log) = &self.log {
            let secret = variables.into_iter().filter(|(name, _)| holds_secret(name));
            log.protect(secret.map(|(_, value)| value.clone()));
        }
    }

    /// The last entry; nothing comes after it.
    pub(super) fn end(&self) {
        self.span.in_scope(|| tracing::debug!("session closed"));
        if let Some(log) = &self.log {
            log.close();
        }
    }
}
