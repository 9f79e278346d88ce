//! Running the callbacks of one event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::event::{HookCounts, HookEvent, HookOutput, HookPort};
use crate::error::{Error, ErrorCode};
use crate::host::{CancelReason, CancelToken, CleanupGate, Tasks};
use crate::model::SessionId;

/// Deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookLimits {
    /// For all callbacks of an event together.
    pub event: Duration,
    /// For those of `SessionEnd`.
    pub session_end: Duration,
}

impl Default for HookLimits {
    fn default() -> Self {
        Self { event: Duration::from_millis(600_000), session_end: Duration::from_millis(3_000) }
    }
}

/// Why an event has no outputs.
#[derive(Debug, Clone, PartialEq)]
pub enum HookFailure {
    /// The request was cancelled meanwhile.
    Cancelled,
    /// A callback threw, took too long, or an earlier one is still cleaning up.
    Failed(Error),
}

/// The hooks of a Session.
pub struct Hooks {
    session: SessionId,
    port: Option<Arc<dyn HookPort>>,
    counts: HookCounts,
    limits: HookLimits,
    gate: CleanupGate,
    tasks: Tasks,
    ended: AtomicBool,
}

impl Hooks {
    /// Hooks behind a port. `gate` is shared with the pipeline: a callback that does not stop blocks both.
    pub fn new(
        session: SessionId,
        port: Option<Arc<dyn HookPort>>,
        counts: HookCounts,
        limits: HookLimits,
        gate: CleanupGate,
    ) -> Self {
        Self { session, port, counts, limits, gate, tasks: Tasks::new(), ended: AtomicBool::new(false) }
    }

    /// No hooks.
    pub fn none(session: SessionId) -> Self {
        Self::new(session, None, HookCounts::new(), HookLimits::default(), CleanupGate::default())
    }

    /// Whether an event has callbacks.
    pub fn has(&self, event: HookEvent) -> bool {
        self.port.is_some() && self.counts.get(&event).is_some_and(|count| *count > 0)
    }

    /// Runs the callbacks of an event; no callbacks, no outputs. `fields` are the event's own.
    ///
    /// # Errors
    /// See [`HookFailure`]. Callbacks after the failing one are not run.
    pub async fn run(
        &self,
        event: HookEvent,
        fields: Map<String, Value>,
        cancel: &CancelToken,
    ) -> Result<Vec<HookOutput>, HookFailure> {
        let Some(port) = self.port.as_ref().filter(|_| self.has(event)) else { return Ok(Vec::new()) };
        let (outcome, duration_ms) = (Empty, Empty);
        let span = tracing::debug_span!("hooks", event = event.as_str(), outcome, duration_ms);
        let started = Instant::now();
        let done = self.run_callbacks(port, event, fields, cancel).instrument(span.clone()).await;
        if !span.is_disabled() {
            note(&span, &done, started.elapsed());
        }
        done
    }

    async fn run_callbacks(
        &self,
        port: &Arc<dyn HookPort>,
        event: HookEvent,
        fields: Map<String, Value>,
        cancel: &CancelToken,
    ) -> Result<Vec<HookOutput>, HookFailure> {
        if let Some(name) = self.gate.pending().first() {
            return Err(HookFailure::Failed(Error::new(
                ErrorCode::SessionBusy,
                format!("{name} is still cleaning up; hooks of {} are not run", event.as_str()),
            )));
        }
        let input = self.input(event, fields);
        let limit = if event == HookEvent::SessionEnd { self.limits.session_end } else { self.limits.event };
        let deadline = Instant::now() + limit;
        let token = cancel.child();
        let mut outputs = Vec::new();
        for index in 0..self.counts.get(&event).copied().unwrap_or(0) {
            let (port, input, signal) = (Arc::clone(port), Arc::clone(&input), token.clone());
            let callback = Box::pin(async move { port.run(event, index, &input, &signal).await });
            let race = self.gate.race("an inline hook callback", &self.tasks, &token, callback);
            tokio::pin!(race);
            let answer = tokio::select! {
                biased;
                answer = &mut race => answer,
                () = tokio::time::sleep_until(deadline) => {
                    token.cancel(CancelReason::Deadline);
                    race.await
                }
            };
            match answer {
                Some(Ok(output)) => outputs.push(output),
                Some(Err(error)) => return Err(HookFailure::Failed(error)),
                None if cancel.is_cancelled() => return Err(HookFailure::Cancelled),
                None => {
                    let message = format!(
                        "hooks of {} did not finish within {} ms; make them faster or raise the limit",
                        event.as_str(),
                        limit.as_millis()
                    );
                    return Err(HookFailure::Failed(Error::new(ErrorCode::HookTimeout, message)));
                }
            }
        }
        Ok(outputs)
    }

    /// Runs an event whose callbacks can only object: an `abort` is an error.
    ///
    /// # Errors
    /// A callback aborted, threw or took too long.
    pub async fn announce(
        &self,
        event: HookEvent,
        fields: Map<String, Value>,
        cancel: &CancelToken,
    ) -> Result<(), HookFailure> {
        let outputs = self.run(event, fields, cancel).await?;
        match super::merge::stop_of(&outputs) {
            Some(super::merge::Stop::Abort(reason)) => {
                let reason = reason.unwrap_or_else(|| format!("a {} hook aborted", event.as_str()));
                Err(HookFailure::Failed(Error::new(ErrorCode::HookAborted, reason)))
            }
            _ => Ok(()),
        }
    }

    /// Whether [`Hooks::end`] has anything left to do.
    pub fn has_end(&self) -> bool {
        self.has(HookEvent::SessionEnd) && !self.ended.load(Ordering::Acquire)
    }

    /// Runs the callbacks of `SessionEnd`, once in the life of a Session however often it is closed.
    ///
    /// # Errors
    /// A callback aborted, threw or took too long.
    pub async fn end(&self, reason: &str) -> Result<(), Error> {
        if !self.has(HookEvent::SessionEnd) || self.ended.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let fields = Map::from_iter([("reason".to_owned(), Value::String(reason.to_owned()))]);
        match self.announce(HookEvent::SessionEnd, fields, &CancelToken::new()).await {
            Ok(()) | Err(HookFailure::Cancelled) => Ok(()),
            Err(HookFailure::Failed(error)) => Err(error),
        }
    }

    fn input(&self, event: HookEvent, fields: Map<String, Value>) -> Arc<str> {
        let mut input = Map::new();
        input.insert("event".to_owned(), Value::String(event.as_str().to_owned()));
        input.insert("sessionId".to_owned(), Value::String(self.session.to_string()));
        input.extend(fields);
        Value::Object(input).to_string().into()
    }
}

/// How the callbacks of an event ended, for the log: not what they answered.
fn note(span: &Span, done: &Result<Vec<HookOutput>, HookFailure>, took: Duration) {
    let (outcome, error_code) = match done {
        Ok(_) => ("ok", None),
        Err(HookFailure::Cancelled) => ("cancelled", None),
        Err(HookFailure::Failed(error)) => ("error", Some(error.code.as_str())),
    };
    let duration_ms = took.as_micros() as f64 / 1000.0;
    span.record("outcome", outcome).record("duration_ms", duration_ms);
    let stage = "hooks";
    tracing::debug!(parent: span, stage, outcome, error_code, duration_ms, "{stage} ended: {outcome}");
}
