//! What an observer sees of a call: a span for the call, one below it for each stage, and how each ended. Only names,
//! ids, classes and times; never what a call is about.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::CallReport;
use super::refusal::Refusal;
use crate::contract::{ToolErrorType, ToolOutcome};

/// The span of a call or of one of its stages. What its fields cost is paid only where somebody listens. The span of the
/// call has level `ERROR`, which means that every listener has it around what it hears.
macro_rules! stage_span {
    ($level:ident, $stage:literal, $pipeline:expr, $call:expr, $kind:expr) => {
        tracing::span!(
            tracing::Level::$level,
            $stage,
            call_id = $call.id.as_str(),
            tool = $pipeline.name_of($call),
            kind = $kind.map(crate::contract::ToolKind::as_str),
            outcome = tracing::field::Empty,
            error_type = tracing::field::Empty,
            error_code = tracing::field::Empty,
            duration_ms = tracing::field::Empty,
        )
    };
}
pub(super) use stage_span;

/// How something ended, in the words of the log.
pub(super) struct Ending<'a> {
    outcome: &'static str,
    error: Option<(ToolErrorType, Option<&'a str>)>,
}

/// What a stage gives back.
pub(super) trait Ended {
    fn ending(&self) -> Ending<'_>;
}

impl Ended for () {
    fn ending(&self) -> Ending<'_> {
        Ending { outcome: "ok", error: None }
    }
}

impl Ended for CallReport {
    fn ending(&self) -> Ending<'_> {
        ending_of(&self.outcome, "ok", "error")
    }
}

impl<T> Ended for Result<T, Refusal> {
    fn ending(&self) -> Ending<'_> {
        match self {
            Ok(_) => ().ending(),
            Err(refusal) => ending_of(&refusal.outcome, "answered", "refused"),
        }
    }
}

fn ending_of<'a>(outcome: &'a ToolOutcome, ok: &'static str, failed: &'static str) -> Ending<'a> {
    match outcome.error() {
        None => Ending { outcome: ok, error: None },
        Some(error) => Ending { outcome: failed, error: Some((error.kind, error.code.as_deref())) },
    }
}

/// Runs something in its span and notes how it ended. Where nobody listens it only runs.
///
/// No `async fn`: the state of one holds what it is given and what it awaits, so that each stage would double the size of
/// a call, which is moved several times before it runs.
pub(super) fn observed<T: Ended>(span: Span, work: impl Future<Output = T>) -> impl Future<Output = T> {
    let started = (!span.is_disabled()).then(Instant::now);
    work.instrument(span.clone()).map(move |done| {
        if let Some(started) = started {
            note(&span, &done.ending(), started.elapsed());
        }
        done
    })
}

/// Milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

/// Told as fields of the span, and as an event: a span ends when the last task that holds it does, which may be long
/// after what it is about.
fn note(span: &Span, ending: &Ending<'_>, took: Duration) {
    let stage = span.metadata().map_or("", tracing::Metadata::name);
    let outcome = ending.outcome;
    let duration_ms = millis(took);
    span.record("outcome", outcome).record("duration_ms", duration_ms);
    match ending.error {
        None => tracing::debug!(parent: span, stage, outcome, duration_ms, "{stage} ended: {outcome}"),
        Some((kind, error_code)) => {
            let error_type = kind.as_str();
            span.record("error_type", error_type);
            if let Some(code) = error_code {
                span.record("error_code", code);
            }
            tracing::debug!(
                parent: span, stage, outcome, error_type, error_code, duration_ms, "{stage} ended: {outcome} ({error_type})"
            );
        }
    }
}
