use std::sync::Mutex;

use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::Instrument;

use super::*;
use crate::host::{InlineTask, Tasks};

/// Keeps what it is given.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<LogEntry>>);

impl LogSink for Kept {
    fn take(&self, entry: LogEntry) {
        self.0.lock().unwrap().push(entry);
    }
}

impl Kept {
    pub(crate) fn entries(&self) -> Vec<LogEntry> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn messages(&self) -> Vec<String> {
        self.entries().into_iter().map(|entry| entry.message).collect()
    }
}

/// A Session's span with a log that hides `secrets`.
pub(crate) fn session(level: LogLevel, secrets: &[&str]) -> (Span, Arc<Kept>, Arc<SessionLog>) {
    prepare();
    let span = tracing::error_span!(SESSION_SPAN, session = "s1");
    let kept = Arc::new(Kept::default());
    let redactor = Redactor::new(secrets.iter().map(|text| (*text).to_owned()));
    let log = SessionLog::attach(&span, "s1", Logging { sink: kept.clone(), level, redactor }).expect("our subscriber");
    (span, kept, log)
}

#[test]
fn an_event_reaches_the_log_of_the_session_it_happens_in_with_the_facts_around_it() {
    let (span, kept, _log) = session(LogLevel::Debug, &[]);
    let (other, theirs, _log) = session(LogLevel::Debug, &[]);
    tracing::warn!("outside of every session");
    span.in_scope(|| {
        let call = tracing::error_span!("call", call_id = "c1", outcome = tracing::field::Empty);
        call.record("outcome", "ok");
        call.in_scope(|| tracing::warn!(duration_ms = 1.5, retry = 2u32, worked = true, "it {}", "happened"));
        other.in_scope(|| tracing::debug!(parent: None, "nobody's"));
        tracing::error!(target: "some_library::module", "not ours");
    });
    let entries = kept.entries();
    assert_eq!(entries.len(), 1, "{entries:#?}");
    let LogEntry { level, category, message, session_id, args, .. } = &entries[0];
    assert_eq!(
        (*level, category.as_str(), message.as_str(), &**session_id),
        (LogLevel::Warn, "host", "it happened", "s1")
    );
    assert_eq!(
        json!(args),
        json!([{ "callId": "c1", "outcome": "ok", "durationMs": 1.5, "retry": 2, "worked": true }])
    );
    assert_eq!(theirs.entries(), []);
}

#[test]
fn a_session_without_a_logger_makes_no_entry_and_looks_at_no_field() {
    prepare();
    let span = tracing::error_span!(SESSION_SPAN, session = "silent");
    let looked = std::cell::Cell::new(false);
    let field = || {
        looked.set(true);
        "value"
    };
    span.in_scope(|| {
        tracing::error!(field = field(), "unheard");
        assert!(tracing::error_span!("call", field = field()).is_disabled());
    });
    assert!(!looked.get());
}

#[test]
fn less_important_entries_are_not_made_but_spans_around_warnings_stay() {
    let (span, kept, _log) = session(LogLevel::Warn, &[]);
    span.in_scope(|| {
        let call = tracing::error_span!("call", call_id = "c1");
        call.in_scope(|| {
            assert!(tracing::debug_span!("invoke").is_disabled());
            tracing::info!("unimportant");
            tracing::warn!("important");
        });
    });
    let entries = kept.entries();
    assert_eq!(entries.len(), 1);
    assert_eq!(json!(entries[0].args), json!([{ "callId": "c1" }]));
}

#[test]
fn nothing_secret_is_in_an_entry_and_nothing_follows_the_end() {
    let (span, kept, log) = session(LogLevel::Debug, &["sk-hidden"]);
    log.protect(["later-secret".to_owned()]);
    span.in_scope(|| {
        tracing::warn!(quoted = ?"sk-hidden", reason = "later-secret", "refused sk-hidden");
        log.close();
        tracing::error!("after the end");
    });
    let entries = kept.entries();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].message, "refused ***");
    assert_eq!(json!(entries[0].args), json!([{ "quoted": "\"***\"", "reason": "***" }]));
}

#[tokio::test]
async fn tasks_speak_from_where_they_were_started() {
    let (span, kept, _log) = session(LogLevel::Debug, &[]);
    let tasks = Tasks::new();
    let (tell, told) = oneshot::channel();
    span.in_scope(|| {
        drop(tasks.spawn(async { tracing::debug!("spawned") }));
        drop(tasks.spawn_on(async { tracing::debug!("spawned on") }, &Handle::current()));
        InlineTask::spawn(&tasks, &Handle::current(), async move {
            let _ = told.await;
            tracing::debug!("polled in place");
            panic!("contained");
        })
        .poll_after(1, || {
            let _ = tell.send(());
        });
    });
    tasks.drained().await;
    let mut messages = kept.messages();
    messages.sort();
    let panicked = "a request task panicked; this is a bug of the package";
    assert_eq!(messages, [panicked, "polled in place", "spawned", "spawned on"]);
    async { tracing::debug!("no longer") }.instrument(Span::none()).await;
    assert_eq!(kept.messages(), Vec::<String>::new());
}
