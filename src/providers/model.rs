//! What a model is to the agent loop.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use futures_util::poll;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::excerpt;
use crate::contract::BoxFuture;
use crate::error::Result;
use crate::host::CancelToken;
use crate::model::{Message, ModelUsage, ToolCall};

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDeclaration {
    /// Tool name.
    pub name: Arc<str>,
    /// Model-facing text.
    pub description: String,
    /// JSON Schema text, sent unchanged.
    pub schema: Box<str>,
    /// The provider's strict flag, where set.
    pub strict: Option<bool>,
}

/// The tools of a request in stable order, with a slot for their encoded form.
#[derive(Debug, Default)]
pub struct ToolDeclarations {
    /// The declarations.
    pub list: Vec<ToolDeclaration>,
    wire: OnceLock<Box<str>>,
}

impl ToolDeclarations {
    /// Declarations in the order given.
    pub fn new(list: Vec<ToolDeclaration>) -> Self {
        Self { list, wire: OnceLock::new() }
    }

    /// The wire form, encoding it on first use; a Session has one wire format.
    pub fn wire(&self, encode: impl FnOnce(&[ToolDeclaration]) -> String) -> &str {
        self.wire.get_or_init(|| encode(&self.list).into_boxed_str())
    }
}

/// One model call. Everything is shared, so that building a request copies no history.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Model name.
    pub model: Arc<str>,
    /// The conversation, a leading system message included.
    pub messages: Vec<Arc<Message>>,
    /// Declared tools.
    pub tools: Arc<ToolDeclarations>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Limit of answer tokens; absent means the provider's own.
    pub max_output_tokens: Option<u64>,
    /// `OutputFormat` as given by the caller (`{type:'json_schema', json_schema:{…}}`).
    pub output_format: Option<Arc<RawValue>>,
    /// Options keyed by provider type, as given by the caller.
    pub provider_options: Option<Arc<Value>>,
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It waits for tool results.
    ToolCalls,
    /// The token limit cut it.
    Length,
    /// A filter cut it.
    ContentFilter,
    /// It declined.
    Refusal,
    /// Something else, as the provider wrote it.
    Other(String),
}

impl FinishReason {
    /// Reads a reason as providers and wire libraries spell it.
    pub fn read(text: &str) -> Self {
        match text {
            "stop" | "end_turn" | "eos" | "stop_sequence" => Self::Stop,
            "tool_calls" | "tool-calls" | "tool_use" | "function_call" => Self::ToolCalls,
            "length" | "max_tokens" | "max_output_tokens" => Self::Length,
            "content_filter" | "content-filter" | "safety" => Self::ContentFilter,
            "refusal" => Self::Refusal,
            other => Self::Other(excerpt(other)),
        }
    }

    /// The public spelling.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::Other(text) => text,
        }
    }
}

/// Receives what a stream delivers, synchronously, in order.
pub trait ModelSink: Send {
    /// A piece of answer text.
    fn text(&mut self, delta: &str);
    /// A piece of reasoning.
    fn thinking(&mut self, delta: &str);
    /// A complete tool call. Calls come in the order the model declared them, after all text.
    fn tool_call(&mut self, call: ToolCall);
    /// Token counts; the last ones count.
    fn usage(&mut self, usage: ModelUsage);
    /// Why the model stopped.
    fn finish(&mut self, reason: FinishReason);
    /// Whether the consumer is behind. A stream that sees `true` keeps what it has not parsed yet and returns
    /// [`Advance::Paused`]; it is called again when there is room.
    fn is_full(&self) -> bool;
}

/// What one step of a stream did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// More may come.
    More,
    /// The sink was full; call again when there is room, without waiting for the network.
    Paused,
    /// The answer is complete: the provider's own end mark was seen.
    Done,
}

/// An answer in flight. Dropping it closes the connection.
pub trait ModelStream: Send {
    /// Waits for the next piece from the provider and hands what it holds to the sink. Cancel-safe: a dropped future
    /// loses nothing that was not yet handed over.
    ///
    /// # Errors
    /// The stream broke, carried an error, ended without its end mark, or was silent for too long. What was delivered
    /// before stays delivered; tool calls are delivered only by streams that ended properly.
    fn advance<'a>(&'a mut self, sink: &'a mut dyn ModelSink) -> BoxFuture<'a, Result<Advance>>;

    /// Waits, for a bounded time, until code of the application that makes the answer has stopped. Called once, when
    /// nothing more is read, whatever the reason; a stream that is dropped without it leaves that code to the cleanup
    /// gate at once.
    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// One step. `before_wait` runs before this waits for the network, not for each piece that is there already: what it
/// does, waking another thread, costs more than reading dozens of pieces, and a model sends a piece for each delta.
///
/// # Errors
/// Those of [`ModelStream::advance`].
pub async fn advance_eagerly(
    stream: &mut dyn ModelStream,
    sink: &mut dyn ModelSink,
    before_wait: impl FnOnce(),
) -> Result<Advance> {
    let mut step = pin!(stream.advance(sink));
    if let Poll::Ready(outcome) = poll!(step.as_mut()) {
        return outcome;
    }
    // The connection is read by a task of its own and hands over piece by piece; it gets its turn before this gives up.
    tokio::task::yield_now().await;
    if let Poll::Ready(outcome) = poll!(step.as_mut()) {
        return outcome;
    }
    before_wait();
    step.await
}

/// A configured model endpoint.
pub trait Model: Send + Sync {
    /// Starts one answer. Resolves once the provider accepted the request; retries happen before that, and as long as
    /// no output was delivered.
    ///
    /// Cancelling the token ends waiting and reading with an error of code `ABORT`.
    ///
    /// # Errors
    /// Typed: `MODEL_HTTP_ERROR`, `MODEL_CONNECTION_ERROR`, `MODEL_PROTOCOL_ERROR`, `MODEL_REQUEST_TIMEOUT`,
    /// `MODEL_STREAM_IDLE_TIMEOUT`, `CANNOT_RETRY`, `INVALID_MODEL_REQUEST`, `ABORT`.
    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Box<dyn ModelStream>>>;
}
