//! The subscriber of the process: it finds the Session an event belongs to by the spans around it.

use std::fmt;
use std::sync::{Arc, Once};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::metadata::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Span, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

use super::{LogLevel, SESSION_SPAN, SessionLog};

/// Only code of this package speaks; libraries may say more than their callers want to be known.
const OURS: &str = concat!(env!("CARGO_CRATE_NAME"), "::");

/// What is known of a span inside of a Session that has a logger. Other spans have nothing.
struct Known {
    log: Arc<SessionLog>,
    facts: Facts,
}

pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A process with a subscriber of its own keeps it: `attach` notices.
        let _ = tracing::subscriber::set_global_default(Registry::default().with(Route));
    });
}

/// Gives a span its log; `false` when the span is not one of our subscriber.
pub(super) fn attach(span: &Span, log: &Arc<SessionLog>) -> bool {
    span.with_subscriber(|(id, dispatch)| {
        let found = dispatch.downcast_ref::<Registry>().and_then(|registry| registry.span(id));
        let attached = found.is_some();
        if let Some(span) = found {
            let _ = span.extensions_mut().replace(Known { log: Arc::clone(log), facts: Facts::default() });
        }
        attached
    })
    .unwrap_or(false)
}

struct Route;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Route {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target().starts_with(OURS) { Interest::sometimes() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, cx: Context<'_, S>) -> bool {
        if !metadata.target().starts_with(OURS) {
            return false;
        }
        // Whether a Session has a logger is known once its span has been made.
        if metadata.is_span() && metadata.name() == SESSION_SPAN {
            return true;
        }
        cx.lookup_current().is_some_and(|span| {
            span.extensions().get::<Known>().is_some_and(|known| known.log.wants(level_of(metadata.level())))
        })
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let Some(span) = cx.span(id) else { return };
        let log = span.parent().and_then(|parent| parent.extensions().get::<Known>().map(|known| known.log.clone()));
        if let Some(log) = log {
            let mut facts = Facts::default();
            attributes.record(&mut facts);
            span.extensions_mut().insert(Known { log, facts });
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        if let Some(span) = cx.span(id)
            && let Some(known) = span.extensions_mut().get_mut::<Known>()
        {
            values.record(&mut known.facts);
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let Some(spans) = cx.event_scope(event) else { return };
        let mut log = None;
        let mut facts = Map::new();
        for span in spans.from_root() {
            if let Some(known) = span.extensions().get::<Known>() {
                log = Some(Arc::clone(&known.log));
                facts.extend(known.facts.values.clone());
            }
        }
        let Some(log) = log else { return };
        let mut own = Facts::default();
        event.record(&mut own);
        facts.extend(own.values);
        let metadata = event.metadata();
        let message = own.message.as_deref().unwrap_or(metadata.name());
        log.say(level_of(metadata.level()), category(metadata.target()), message, facts);
    }
}

fn level_of(level: &Level) -> LogLevel {
    match *level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

/// The module that speaks: `crate::pipeline::invoke` is `pipeline`.
fn category(target: &'static str) -> &'static str {
    match target.strip_prefix(OURS).and_then(|path| path.split("::").next()) {
        Some("providers") => "provider",
        Some(module) => module,
        None => target,
    }
}

/// Fields are named as JavaScript names things.
fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut raise = false;
    for c in name.chars() {
        if c == '_' {
            raise = true;
        } else {
            out.push(if std::mem::take(&mut raise) { c.to_ascii_uppercase() } else { c });
        }
    }
    out
}

/// The fields of a span or event, and its sentence.
#[derive(Default)]
struct Facts {
    message: Option<String>,
    values: Map<String, Value>,
}

impl Facts {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.values.insert(camel_case(field.name()), value.into());
    }
}

impl Visit for Facts {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = Some(text);
        } else {
            self.set(field, text);
        }
    }
}
