//! OpenAI's chat completions, which most servers speak: request building and stream parsing are pure, this wires them.

mod frame;
mod request;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use tokio::time::timeout;

use self::request::Dialect;
use self::stream::{ChatStream, read_completion};
use super::config::{ProviderConfig, Timeouts};
use super::driver::{Attempt, Endpoint, RetryingStream};
use super::failure::{Failure, excerpt};
use super::http;
use super::model::{Advance, Model, ModelRequest, ModelSink, ModelStream};
use super::retry::RetryPolicy;
use crate::contract::BoxFuture;
use crate::error::{Error, Result};
use crate::host::CancelToken;

const DEFAULT_BASE: &str = "https://api.openai.com/v1";
/// Bound of a completion that is sent whole.
const MAX_COMPLETION: usize = 64 * 1024 * 1024;
/// How long the end of the body may take after the end mark. Reading it lets the connection be used again.
const DRAIN_TIME: Duration = Duration::from_millis(5);
/// How long counts may follow after the reason to stop, before the answer is taken as it is.
const TAIL_TIME: Duration = Duration::from_secs(5);

/// A chat completions endpoint.
pub(super) struct ChatModel {
    endpoint: Arc<ChatEndpoint>,
    policy: RetryPolicy,
}

struct ChatEndpoint {
    url: Url,
    headers: HeaderMap,
    timeouts: Timeouts,
    dialect: Dialect,
}

/// Opens a chat completions endpoint.
pub(super) fn open(config: &ProviderConfig) -> Result<Arc<dyn Model>> {
    let mut url = match config.base_url()? {
        Some(url) => url,
        None => Url::parse(DEFAULT_BASE).map_err(|error| Error::internal(format!("default base URL: {error}")))?,
    };
    let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
    url.set_path(&path);
    let mut headers = config.header_map()?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("text/event-stream, application/json"));
    let limit = if config.kind == "openai" { "max_completion_tokens" } else { "max_tokens" };
    let dialect = Dialect { kind: config.kind.clone(), id: config.identity().to_owned(), limit };
    let endpoint = ChatEndpoint { url, headers, timeouts: config.timeouts()?, dialect };
    Ok(Arc::new(ChatModel { endpoint: Arc::new(endpoint), policy: config.retry.policy()? }))
}

impl Model for ChatModel {
    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Box<dyn ModelStream>>> {
        let endpoint: Arc<dyn Endpoint> = Arc::clone(&self.endpoint) as Arc<dyn Endpoint>;
        Box::pin(RetryingStream::open(endpoint, request, self.policy, cancel))
    }
}

impl Endpoint for ChatEndpoint {
    fn start(
        &self,
        request: &Arc<ModelRequest>,
        max_output_tokens: Option<u64>,
    ) -> BoxFuture<'static, std::result::Result<Box<dyn Attempt>, Failure>> {
        let body = request::body(request, &self.dialect, max_output_tokens);
        let (url, headers, timeouts) = (self.url.clone(), self.headers.clone(), self.timeouts);
        Box::pin(async move {
            let body = Bytes::from(body.map_err(Failure::permanent)?);
            let response = http::post(url, headers.clone(), body, timeouts).await?;
            Ok(Box::new(ChatAttempt::new(response, timeouts, headers)?) as Box<dyn Attempt>)
        })
    }
}

struct ChatAttempt {
    response: Response,
    /// What was sent, to keep secrets out of failures.
    sent: HeaderMap,
    idle: Duration,
    body: Body,
    /// The end mark was handed over; only the rest of the body is left to read.
    over: bool,
}

enum Body {
    Stream {
        chat: Box<ChatStream>,
        /// Something of the last piece was not handed over yet.
        paused: bool,
    },
    Whole(Vec<u8>),
}

impl ChatAttempt {
    fn new(response: Response, timeouts: Timeouts, sent: HeaderMap) -> std::result::Result<Self, Failure> {
        let body = match http::media_type(&response).as_str() {
            // A server that names no type is taken by its word to stream.
            "text/event-stream" | "" | "application/octet-stream" | "text/plain" => {
                Body::Stream { chat: Box::new(ChatStream::new()), paused: false }
            }
            "application/json" => Body::Whole(Vec::new()),
            other => {
                return Err(Failure::protocol(format!(
                    "the model provider answered with content type {}, not with a chat completion; check baseUrl",
                    excerpt(other)
                )));
            }
        };
        Ok(Self { response, sent, idle: timeouts.stream_idle, body, over: false })
    }

    async fn step(&mut self, sink: &mut dyn ModelSink) -> std::result::Result<Advance, Failure> {
        if self.over {
            return Ok(Advance::Done);
        }
        let (chat, paused) = match &mut self.body {
            Body::Stream { chat, paused } => (chat, paused),
            Body::Whole(read) => loop {
                match timeout(self.idle, self.response.chunk()).await {
                    Err(_) => return Err(http::idle_timeout(self.idle)),
                    Ok(Err(error)) => return Err(http::broken_transfer(error)),
                    Ok(Ok(Some(piece))) if piece.len() > MAX_COMPLETION.saturating_sub(read.len()) => {
                        return Err(Failure::protocol(format!("a completion is larger than {MAX_COMPLETION} bytes")));
                    }
                    Ok(Ok(Some(piece))) => read.extend_from_slice(&piece),
                    Ok(Ok(None)) => {
                        self.over = true;
                        return read_completion(read, sink);
                    }
                }
            },
        };
        if !*paused {
            let finished = chat.has_finished();
            let limit = if finished { self.idle.min(TAIL_TIME) } else { self.idle };
            match timeout(limit, self.response.chunk()).await {
                Ok(Ok(Some(piece))) => chat.push(piece),
                Ok(Ok(None)) => return chat.end(sink),
                // With the reason to stop the answer is complete; only counts can be missing.
                Err(_) | Ok(Err(_)) if finished => return chat.end(sink),
                Err(_) => return Err(http::idle_timeout(self.idle)),
                Ok(Err(error)) => return Err(http::broken_transfer(error)),
            }
        }
        let advance = chat.read(sink)?;
        *paused = advance == Advance::Paused;
        if advance == Advance::Done {
            self.over = true;
            let _ = timeout(DRAIN_TIME, self.response.chunk()).await;
        }
        Ok(advance)
    }
}

impl Attempt for ChatAttempt {
    fn advance<'a>(&'a mut self, sink: &'a mut dyn ModelSink) -> BoxFuture<'a, std::result::Result<Advance, Failure>> {
        Box::pin(async move {
            match self.step(sink).await {
                Err(failure) => Err(http::without_secrets_in(failure, &self.sent)),
                advance => advance,
            }
        })
    }
}

#[cfg(test)]
mod tests;
