//! HTTP for all adapters: one client a process, error answers read within bounds, failures classified.

use std::error::Error as StdError;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, Url};

use super::config::Timeouts;
use super::failure::{Failure, excerpt, message_in};
use crate::error::{Cause, Error, ErrorCode};
use crate::host::clock;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// An idle connection is kept this long; providers close theirs after a minute or more.
const POOL_IDLE: Duration = Duration::from_secs(50);
/// How much of an error answer is read.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// How long an error answer may take; the status alone is worth more than waiting for its text.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// Clients share connections, so there is one for the process. The one for plain `http:` loads no certificates, which
/// takes the time of many loopback requests.
static TLS: OnceLock<Client> = OnceLock::new();
static PLAIN: OnceLock<Client> = OnceLock::new();

/// The client for a URL, made on first use: never while a Session opens.
async fn client(url: &Url) -> Result<Client, Failure> {
    let secure = url.scheme() == "https";
    let slot = if secure { &TLS } else { &PLAIN };
    if let Some(client) = slot.get() {
        return Ok(client.clone());
    }
    // Reading the certificates of the system is blocking work.
    let built = if secure {
        tokio::task::spawn_blocking(move || build(true)).await.map_err(|error| error.to_string())
    } else {
        Ok(build(false))
    };
    let client = built.and_then(|client| client.map_err(|error| deepest(&error))).map_err(|reason| {
        let message = format!("the HTTP client cannot be set up: {reason}");
        Failure::permanent(Error::new(ErrorCode::ModelConnectionError, message))
    })?;
    Ok(slot.get_or_init(|| client).clone())
}

fn build(secure: bool) -> reqwest::Result<Client> {
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        // A redirect would carry the caller's own headers, keys among them, to another host.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("blade-agent-sdk/", env!("CARGO_PKG_VERSION")));
    if secure {
        // A second installation is refused, and means that the first one is in place.
        let _ = rustls::crypto::ring::default_provider().install_default();
    } else {
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        if let Ok(tls) = tls {
            let tls = tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
            builder = builder.tls_backend_preconfigured(tls);
        }
    }
    builder.build()
}

/// Sends one request and waits for its head. Error statuses are failures, with the provider's own words.
pub(super) async fn post(url: Url, headers: HeaderMap, body: Bytes, timeouts: Timeouts) -> Result<Response, Failure> {
    let client = client(&url).await?;
    let origin = url.origin().ascii_serialization();
    let request = client.post(url).headers(headers.clone()).body(body).send();
    let (limit, expired) = timeouts.until_answer();
    let response = match tokio::time::timeout(limit, request).await {
        Err(_) => return Err(expired(limit)),
        Ok(Err(error)) => return Err(unreachable_failure(error, &origin)),
        Ok(Ok(response)) => response,
    };
    if response.status().is_success() { Ok(response) } else { Err(error_answer(response, &headers).await) }
}

impl Timeouts {
    /// How long an answer may take to begin, and the failure after that. A request that answers nothing is silent too,
    /// so both limits hold.
    pub(super) fn until_answer(&self) -> (Duration, fn(Duration) -> Failure) {
        if self.request < self.stream_idle { (self.request, request_timeout) } else { (self.stream_idle, idle_timeout) }
    }
}

/// The stream was silent for too long. A timeout is not retried: it has cost the caller its whole limit already.
pub(super) fn idle_timeout(limit: Duration) -> Failure {
    let message = format!("the model provider sent nothing for {} ms (streamIdleTimeoutMs)", limit.as_millis());
    Failure::permanent(Error::new(ErrorCode::ModelStreamIdleTimeout, message))
}

fn request_timeout(limit: Duration) -> Failure {
    let message = format!("the model provider did not answer within {} ms (requestTimeoutMs)", limit.as_millis());
    Failure::permanent(Error::new(ErrorCode::ModelRequestTimeout, message))
}

/// The media type of an answer, in lower case and without parameters.
pub(super) fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The beginning of a body.
async fn read_bounded(response: &mut Response, limit: usize) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        let room = limit - body.len();
        if piece.len() > room {
            body.extend_from_slice(&piece[..room]);
            return Ok(body);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// A break of the transfer once it was under way.
pub(super) fn broken_transfer(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let reason = deepest(&error);
    let cause = Cause { name: "ConnectionError".to_owned(), message: chain(&error), ..Cause::default() };
    let message = format!("the connection to the model provider broke: {reason}");
    Failure::transient(Error::new(ErrorCode::ModelConnectionError, message).with_cause(cause))
}

async fn error_answer(mut response: Response, sent: &HeaderMap) -> Failure {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let should_retry = match response.headers().get("x-should-retry").map(reqwest::header::HeaderValue::as_bytes) {
        Some(b"true") => Some(true),
        Some(b"false") => Some(false),
        _ => None,
    };
    let message = if status.is_redirection() {
        let to = response.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or("an unnamed place");
        format!("redirects are not followed; set baseUrl to where it leads: {}", excerpt(to))
    } else {
        match tokio::time::timeout(ERROR_BODY_TIME, read_bounded(&mut response, MAX_ERROR_BODY)).await {
            Ok(Ok(body)) => message_in(&body),
            _ => "no message".to_owned(),
        }
    };
    let message = without_secrets(message, sent);
    Failure { retry_after, should_retry, ..Failure::http(status.as_u16(), &message) }
}

/// A failure whose texts repeat nothing secret of the request: some servers quote the key they refuse.
pub(super) fn without_secrets_in(mut failure: Failure, sent: &HeaderMap) -> Failure {
    failure.error.message = without_secrets(failure.error.message, sent);
    if let Some(cause) = failure.error.cause.as_mut() {
        cause.message = without_secrets(std::mem::take(&mut cause.message), sent);
        cause.name = without_secrets(std::mem::take(&mut cause.name), sent);
    }
    failure
}

fn without_secrets(mut message: String, sent: &HeaderMap) -> String {
    for value in sent.values().filter(|value| value.is_sensitive()) {
        let secret = value.to_str().unwrap_or_default();
        let secret = secret.strip_prefix("Bearer ").unwrap_or(secret);
        // Shorter values are words, not keys.
        if secret.len() >= 8 && message.contains(secret) {
            message = message.replace(secret, "***");
        }
    }
    message
}

/// `retry-after-ms`, else `Retry-After` as seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    // Beyond a year the value is capped, so that no arithmetic on it can overflow.
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.min(31_536_000.0));
    if let Some(ms) = text("retry-after-ms").and_then(number) {
        return Some(seconds(ms / 1000.0));
    }
    let asked = text("retry-after")?;
    match number(asked) {
        Some(value) => Some(seconds(value)),
        None => httpdate::parse_http_date(asked)
            .ok()
            .map(|date| date.duration_since(clock::now()).unwrap_or_default())
            .map(|wait| seconds(wait.as_secs_f64())),
    }
}

/// The provider was not reached. Refusals, resets and timeouts are transient; an unknown host name and a certificate
/// that is not trusted stay what they are.
fn unreachable_failure(error: reqwest::Error, origin: &str) -> Failure {
    let error = error.without_url();
    let text = chain(&error);
    let lower = text.to_lowercase();
    let unknown_host = error.is_dns() && !lower.contains("temporary failure") && !lower.contains("try again");
    let untrusted = lower.contains("certificate");
    let (message, permanent) = if unknown_host {
        (format!("the host of {origin} is not known ({}); check baseUrl", deepest(&error)), true)
    } else if untrusted {
        (format!("the certificate of {origin} is not trusted: {}", deepest(&error)), true)
    } else {
        (format!("the model provider at {origin} cannot be reached: {}", deepest(&error)), error.is_builder())
    };
    let cause = Cause { name: "ConnectionError".to_owned(), message: text, ..Cause::default() };
    let error = Error::new(ErrorCode::ModelConnectionError, message).with_cause(cause);
    if permanent { Failure::permanent(error) } else { Failure::transient(error) }
}

fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(inner) = at {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        at = inner.source();
    }
    text
}

fn deepest(error: &dyn StdError) -> String {
    let mut at = error;
    while let Some(inner) = at.source() {
        at = inner;
    }
    at.to_string()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_retry_after_is_seconds_milliseconds_or_a_date() {
        let in_a_minute = httpdate::fmt_http_date(clock::now() + Duration::from_secs(60));
        let rows = [
            (vec![("retry-after", "2")], 2000..2001),
            (vec![("retry-after", " 1.5 ")], 1500..1501),
            (vec![("retry-after-ms", "250"), ("retry-after", "2")], 250..251),
            (vec![("retry-after", &in_a_minute)], 58_000..60_001),
            (vec![("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")], 0..1),
            (vec![("retry-after", "1e300")], 31_536_000_000..31_536_000_001),
        ];
        for (given, expected) in rows {
            let header = |(name, value): &(&str, &str)| {
                (
                    HeaderName::from_bytes(name.as_bytes()).expect("a name"),
                    HeaderValue::from_str(value).expect("a value"),
                )
            };
            let headers: HeaderMap = given.iter().map(header).collect();
            let wait = retry_after(&headers).expect("a wait").as_millis();
            assert!(expected.contains(&wait), "{given:?}: {wait}");
        }
        for bad in ["-1", "soon", "NaN", ""] {
            let headers = HeaderMap::from_iter([(reqwest::header::RETRY_AFTER, HeaderValue::from_static(bad))]);
            assert_eq!(retry_after(&headers), None, "{bad}");
        }
    }
}
