//! Why one attempt failed, classified for the retry policy.

use std::time::Duration;

use serde_json::Value;

use crate::error::{Cause, Error, ErrorCode};

/// A failed attempt: what the caller is told, and what the retry policy looks at.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The error if this failure is final.
    pub error: Error,
    /// What kind of failure it is.
    pub class: Class,
    /// Wait the provider asks for.
    pub retry_after: Option<Duration>,
    /// The provider's own word on retrying (`x-should-retry`).
    pub should_retry: Option<bool>,
}

/// What kind of failure an attempt ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// An HTTP status, or a failure in the stream that stands for one.
    Status(u16),
    /// The provider is overloaded (529 or `overloaded_error`).
    Overloaded,
    /// The request does not fit beside the answer limit: used, answer limit, context limit.
    ContextOverflow(u64, u64, u64),
    /// A fault of the way there that may be gone next time.
    Transient,
    /// Trying again cannot help.
    Permanent,
}

impl Failure {
    /// Trying again cannot help.
    pub fn permanent(error: Error) -> Self {
        Self::of(error, Class::Permanent)
    }

    /// It may work next time.
    pub fn transient(error: Error) -> Self {
        Self::of(error, Class::Transient)
    }

    /// A failure of a kind.
    pub fn of(error: Error, class: Class) -> Self {
        Self { error, class, retry_after: None, should_retry: None }
    }

    /// An HTTP error answer.
    pub fn http(status: u16, message: &str) -> Self {
        let class = class_of(Some(status), message);
        let error =
            Error::new(ErrorCode::ModelHttpError, format!("the model provider answered HTTP {status}: {message}"));
        Self::of(error.with_status(status), class)
    }

    /// An error object inside a stream that began well. `fault` is the object, or its text.
    pub fn in_stream(fault: &Value) -> Self {
        let Fault { message, kind, status } = Fault::read(fault);
        let class = class_of(status, &format!("{kind}: {message}"));
        let mut error = Error::new(
            ErrorCode::ModelStreamError,
            format!("the model provider reported an error in its stream: {message}"),
        );
        error.status = status;
        Self::of(error.with_cause(Cause { name: kind, message, ..Cause::default() }), class)
    }

    /// The transfer broke or ended before the answer was complete.
    pub fn broken_stream(message: impl Into<String>) -> Self {
        Self::transient(Error::new(ErrorCode::ModelStreamError, message))
    }

    /// The answer is not of the documented form.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::permanent(Error::new(ErrorCode::ModelProtocolError, message))
    }
}

/// The parts of a provider's error object.
struct Fault {
    message: String,
    kind: String,
    status: Option<u16>,
}

impl Fault {
    fn read(fault: &Value) -> Self {
        let text = |key: &str| fault.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let message = match fault {
            Value::String(text) => text.clone(),
            _ => text("message").or_else(|| text("error")).map_or_else(|| excerpt(&fault.to_string()), str::to_owned),
        };
        let kind = text("type").or_else(|| text("code")).or_else(|| text("status")).unwrap_or("error").to_owned();
        let number = |key: &str| match fault.get(key) {
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => text.parse().ok(),
            _ => None,
        };
        let status = number("code")
            .or_else(|| number("status"))
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code));
        Self { message: bounded(&message), kind, status: status.or_else(|| status_of(&text_of(fault, "code"))) }
    }
}

fn text_of(fault: &Value, key: &str) -> String {
    let of = |key: &str| fault.get(key).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}", of(key), of("type"))
}

/// The status that the well-known error types stand for.
fn status_of(kind: &str) -> Option<u16> {
    kind.split_whitespace().find_map(|word| match word {
        "rate_limit_error" | "rate_limit_exceeded" => Some(429),
        "server_error" | "api_error" | "internal_error" | "internal_server_error" => Some(500),
        "service_unavailable" | "service_unavailable_error" => Some(503),
        "timeout_error" | "timeout" => Some(504),
        "overloaded_error" => Some(529),
        "invalid_request_error" | "context_length_exceeded" => Some(400),
        "authentication_error" | "invalid_api_key" => Some(401),
        "permission_error" | "insufficient_quota" => Some(403),
        "not_found_error" | "model_not_found" => Some(404),
        _ => None,
    })
}

/// Words that decide about failures without a status.
const TRANSIENT_WORDS: [&str; 11] = [
    "econnreset",
    "etimedout",
    "socket hang up",
    "fetch failed",
    "network",
    "timeout",
    "rate limit",
    "too many requests",
    "service unavailable",
    "epipe",
    "econnrefused",
];

fn class_of(status: Option<u16>, text: &str) -> Class {
    if status == Some(529) || text.contains("overloaded_error") {
        return Class::Overloaded;
    }
    if let Some((used, answer, limit)) = context_overflow(text)
        && status.is_none_or(|status| status == 400)
    {
        return Class::ContextOverflow(used, answer, limit);
    }
    if let Some(status) = status {
        return Class::Status(status);
    }
    let text = text.to_lowercase();
    if TRANSIENT_WORDS.iter().any(|word| text.contains(word)) { Class::Transient } else { Class::Permanent }
}

/// Reads `input length and max_tokens exceed context limit: A + B > C`.
fn context_overflow(text: &str) -> Option<(u64, u64, u64)> {
    let (head, tail) = text.split_once("exceed context limit:")?;
    if !head.contains("max_tokens") {
        return None;
    }
    let mut numbers = tail.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let mut number = || numbers.next()?.parse::<u64>().ok();
    Some((number()?, number()?, number()?))
}

/// The provider's own words in an error body, or the beginning of the body.
pub fn message_in(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        let text = excerpt(text.trim());
        return if text.is_empty() { "no message".to_owned() } else { text };
    };
    // Some gateways answer with a list of one.
    let value = value.get(0).unwrap_or(&value);
    let inner = value.get("error").unwrap_or(value);
    let found = [inner.get("message"), Some(inner), value.get("message"), value.get("detail")]
        .into_iter()
        .flatten()
        .find_map(|candidate| candidate.as_str().map(str::trim).filter(|text| !text.is_empty()));
    let message = found.map_or_else(|| excerpt(&value.to_string()), bounded);
    // The type decides about overload, so it stays visible.
    match inner.get("type").and_then(Value::as_str) {
        Some("overloaded_error") if !message.contains("overloaded_error") => format!("overloaded_error: {message}"),
        _ => message,
    }
}

/// A provider's sentence, whole unless it is a novel.
fn bounded(text: &str) -> String {
    cut(text, 2000)
}

/// The beginning of something that may be large and is not a sentence.
pub fn excerpt(text: &str) -> String {
    cut(text, 200)
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
