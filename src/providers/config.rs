//! Connection settings of a provider, validated before anything uses them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::retry::RetryPolicy;
use crate::error::{Error, Result};

/// Largest delay a JavaScript timer takes; larger values are a mistake on the caller's side.
const MAX_MILLIS: f64 = 2_147_483_647.0;
/// Upper limit of attempts; a loop of more would run for days.
const MAX_RETRIES: f64 = 100.0;

/// `ProviderConnectionConfig` as the caller gives it. Debug output shows no secrets.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderConfig {
    /// Logical identity; the type where absent.
    pub id: Option<String>,
    /// Adapter type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Secret of the account; empty means that no authorization is sent.
    pub api_key: Option<String>,
    /// Where the provider is.
    pub base_url: Option<String>,
    /// Headers sent on every call; they win over ours.
    pub headers: Option<BTreeMap<String, String>>,
    /// OpenAI organization.
    pub organization: Option<String>,
    /// Version of the provider's interface.
    pub api_version: Option<String>,
    /// OpenAI project.
    pub project_id: Option<String>,
    /// Limit of the wait for a response, in milliseconds.
    pub request_timeout_ms: Option<f64>,
    /// Limit of the silence of a stream, in milliseconds.
    pub stream_idle_timeout_ms: Option<f64>,
    /// Retry policy.
    pub retry: RetryConfig,
}

/// Retry settings as the caller gives them; absent ones have the defaults of [`RetryPolicy`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryConfig {
    /// Further attempts after the first.
    pub max_retries: Option<f64>,
    /// Wait before the first retry.
    pub initial_delay_ms: Option<f64>,
    /// Longest wait that backing off leads to.
    pub max_delay_ms: Option<f64>,
    /// Factor from one wait to the next.
    pub backoff_multiplier: Option<f64>,
    /// Longest wait a provider may ask for.
    pub max_retry_after_ms: Option<f64>,
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header_names: Option<Vec<&String>> = self.headers.as_ref().map(|headers| headers.keys().collect());
        f.debug_struct("ProviderConfig")
            .field("id", &self.id)
            .field("type", &self.kind)
            .field("api_key", &self.api_key.as_ref().map(|_| "***"))
            .field("base_url", &self.base_url.as_deref().map(origin_for_people))
            .field("headers", &header_names)
            .field("api_version", &self.api_version)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// Limits of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the response head.
    pub request: Duration,
    /// For each next piece of the stream, the first included.
    pub stream_idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { request: Duration::from_millis(600_000), stream_idle: Duration::from_millis(300_000) }
    }
}

impl ProviderConfig {
    /// Reads a configuration from JSON. Unknown fields are ignored: the caller's object may serve other purposes too.
    ///
    /// # Errors
    /// `CONFIG_ERROR` where a field has the wrong type.
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|error| Error::config(format!("provider: {error}")))
    }

    /// Checks every setting. Opening a provider checks what its adapter uses; this checks all of it.
    ///
    /// # Errors
    /// `CONFIG_ERROR` naming the setting.
    pub fn validate(&self) -> Result<()> {
        self.check_type()?;
        self.timeouts()?;
        self.retry.policy()?;
        self.base_url()?;
        self.header_map()?;
        Ok(())
    }

    /// Every string of the configuration that nobody else may see.
    pub fn secrets(&self) -> impl Iterator<Item = String> {
        let headers = self.headers.iter().flatten().flat_map(|(_, value)| {
            // `Bearer token`: the token is secret without its scheme too.
            [value.clone(), value.rsplit(' ').next().unwrap_or_default().to_owned()]
        });
        let ids = [&self.api_key, &self.organization, &self.project_id].into_iter().flatten().cloned();
        let url = self.base_url().ok().flatten();
        let password = url.and_then(|url| url.password().map(str::to_owned));
        ids.chain(headers).chain(password)
    }

    /// Checks that a type is named.
    pub(super) fn check_type(&self) -> Result<()> {
        if self.kind.trim().is_empty() || self.kind.trim() != self.kind {
            return Err(Error::config(format!(
                "provider.type must be a non-empty name without spaces around it, got {:?}",
                self.kind
            )));
        }
        Ok(())
    }

    /// Logical identity.
    pub fn identity(&self) -> &str {
        match self.id.as_deref().map(str::trim) {
            Some(id) if !id.is_empty() => id,
            _ => &self.kind,
        }
    }

    /// The limits of waiting.
    ///
    /// # Errors
    /// A limit is not an integer from 1 to 2147483647.
    pub fn timeouts(&self) -> Result<Timeouts> {
        let default = Timeouts::default();
        Ok(Timeouts {
            request: millis("requestTimeoutMs", self.request_timeout_ms, 1.0)?.unwrap_or(default.request),
            stream_idle: millis("streamIdleTimeoutMs", self.stream_idle_timeout_ms, 1.0)?
                .unwrap_or(default.stream_idle),
        })
    }

    /// The base URL, where one is given.
    ///
    /// # Errors
    /// It is not an `http:` or `https:` URL.
    pub fn base_url(&self) -> Result<Option<reqwest::Url>> {
        let Some(text) = self.base_url.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        // The text may carry a password, so it is not repeated.
        let url = reqwest::Url::parse(text).map_err(|reason| {
            Error::config(format!("baseUrl must be an http: or https: URL such as https://host/v1: {reason}"))
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::config(format!("baseUrl must be an http: or https: URL, got {}:", url.scheme())));
        }
        Ok(Some(url))
    }

    /// The caller's headers and the authorization.
    ///
    /// # Errors
    /// A name or value cannot be sent in a header.
    pub fn header_map(&self) -> Result<HeaderMap> {
        let mut map = HeaderMap::with_capacity(8);
        if let Some(key) = self.api_key.as_deref().filter(|key| !key.is_empty()) {
            map.insert(reqwest::header::AUTHORIZATION, secret("apiKey", &format!("Bearer {key}"))?);
        }
        if self.kind == "openai" {
            if let Some(organization) = self.organization.as_deref().filter(|text| !text.is_empty()) {
                map.insert(HeaderName::from_static("openai-organization"), secret("organization", organization)?);
            }
            if let Some(project) = self.project_id.as_deref().filter(|text| !text.is_empty()) {
                map.insert(HeaderName::from_static("openai-project"), secret("projectId", project)?);
            }
        }
        for (name, value) in self.headers.iter().flatten() {
            let parsed = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| Error::config(format!("headers: {name:?} is not a header name")))?;
            map.insert(parsed, secret(&format!("headers.{name}"), value)?);
        }
        Ok(map)
    }
}

impl RetryConfig {
    /// The policy these settings describe.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn policy(&self) -> Result<RetryPolicy> {
        let default = RetryPolicy::default();
        let max_retries = match self.max_retries {
            None => default.max_retries,
            Some(count) => integer("retry.maxRetries", count, 0.0, MAX_RETRIES)? as u32,
        };
        let multiplier = self.backoff_multiplier.unwrap_or(default.backoff_multiplier);
        if !(1.0..=100.0).contains(&multiplier) {
            return Err(Error::config(format!("retry.backoffMultiplier must be from 1 to 100, got {multiplier}")));
        }
        Ok(RetryPolicy {
            max_retries,
            initial_delay: millis("retry.initialDelayMs", self.initial_delay_ms, 0.0)?.unwrap_or(default.initial_delay),
            max_delay: millis("retry.maxDelayMs", self.max_delay_ms, 0.0)?.unwrap_or(default.max_delay),
            backoff_multiplier: multiplier,
            max_retry_after: millis("retry.maxRetryAfterMs", self.max_retry_after_ms, 0.0)?
                .unwrap_or(default.max_retry_after),
        })
    }
}

/// Scheme, host and port of a URL: what an error may show of it.
pub(super) fn origin_for_people(url: &str) -> String {
    reqwest::Url::parse(url).map_or_else(|_| "an invalid URL".to_owned(), |url| url.origin().ascii_serialization())
}

fn millis(name: &str, value: Option<f64>, least: f64) -> Result<Option<Duration>> {
    value
        .map(|value| integer(name, value, least, MAX_MILLIS).map(|whole| Duration::from_millis(whole as u64)))
        .transpose()
}

fn integer(name: &str, value: f64, least: f64, most: f64) -> Result<f64> {
    if value.fract() == 0.0 && (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::config(format!("{name} must be an integer from {least} to {most}, got {value}")))
}

/// A header value that no log shows; the error does not repeat it either.
fn secret(name: &str, value: &str) -> Result<HeaderValue> {
    let mut header = HeaderValue::from_str(value).map_err(|_| {
        Error::config(format!("{name} has a character that cannot be sent in a header (a line break, or not ASCII)"))
    })?;
    header.set_sensitive(true);
    Ok(header)
}
