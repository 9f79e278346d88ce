//! The scripted provider: a model that answers from a list of turns, or from a function of the request. It works
//! offline, checks every request it gets, and keeps a journal of them for assertions.
//!
//! It is an endpoint like any other, so retries, waits, timeouts and cancellation are the real ones.

mod turn;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::turn::{Fault, Turn};
use super::check::check_request;
use super::config::{RetryConfig, Timeouts};
use super::driver::{Attempt, Endpoint, RetryingStream};
use super::failure::Failure;
use super::http;
use super::model::{Advance, FinishReason, Model, ModelRequest, ModelSink, ModelStream};
use super::retry::RetryPolicy;
use crate::contract::BoxFuture;
use crate::error::{Cause, Error, ErrorCode, Result};
use crate::host::CancelToken;
use crate::model::{Message, ModelUsage, ToolCall};

/// Where turns come from when they are not a list: a function of the request.
pub trait ScriptSource: Send + Sync {
    /// The turn that answers a request, both as JSON. Called once for each attempt, retries included; the future is
    /// dropped when the request is cancelled.
    ///
    /// # Errors
    /// Whatever went wrong; the request fails with it, and is not retried.
    fn next(&self, request_json: String) -> BoxFuture<'_, Result<String>>;
}

/// A script, and the journal of the requests it answered. One script may serve several Sessions.
pub struct Script {
    source: Source,
    policy: RetryPolicy,
    timeouts: Timeouts,
    next_turn: AtomicUsize,
    next_call: AtomicU64,
    journal: Mutex<Vec<Arc<ModelRequest>>>,
}

enum Source {
    Turns(Vec<Turn>),
    Function(Arc<dyn ScriptSource>),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Options {
    turns: Option<Vec<Value>>,
    retry: RetryConfig,
    request_timeout_ms: Option<f64>,
    stream_idle_timeout_ms: Option<f64>,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").field("requests", &self.len()).finish_non_exhaustive()
    }
}

impl Script {
    /// A script from JSON: `{turns: [...], retry?: {...}, streamIdleTimeoutMs?}`.
    ///
    /// # Errors
    /// `CONFIG_ERROR` naming the turn and the field.
    pub fn parse(json: &str) -> Result<Arc<Self>> {
        let mut options = Options::parse(json)?;
        let Some(turns) = options.turns.take() else {
            return Err(Error::config("a script needs `turns`, a list of answers"));
        };
        let parse = |(at, turn): (usize, &Value)| Turn::parse(turn).map_err(|why| bad_turn(at, &why));
        let turns = turns.iter().enumerate().map(parse).collect::<Result<Vec<Turn>>>()?;
        Self::build(Source::Turns(turns), &options)
    }

    /// A script whose turns a function gives. `options` is JSON like that of [`Script::parse`], without `turns`.
    ///
    /// # Errors
    /// `CONFIG_ERROR` naming the option.
    pub fn from_source(source: Arc<dyn ScriptSource>, options: &str) -> Result<Arc<Self>> {
        let options = Options::parse(options)?;
        if options.turns.is_some() {
            return Err(Error::config("a script has either `turns` or a function, not both"));
        }
        Self::build(Source::Function(source), &options)
    }

    fn build(source: Source, options: &Options) -> Result<Arc<Self>> {
        let timeouts = super::ProviderConfig {
            request_timeout_ms: options.request_timeout_ms,
            stream_idle_timeout_ms: options.stream_idle_timeout_ms,
            ..super::ProviderConfig::default()
        };
        let timeouts = timeouts.timeouts()?;
        Ok(Arc::new(Self {
            source,
            policy: options.retry.policy()?,
            timeouts,
            next_turn: AtomicUsize::new(0),
            next_call: AtomicU64::new(1),
            journal: Mutex::default(),
        }))
    }

    /// A model that answers from this script.
    pub fn model(self: &Arc<Self>) -> Arc<dyn Model> {
        Arc::new(ScriptedModel { endpoint: Arc::new(ScriptEndpoint(Arc::clone(self))), policy: self.policy })
    }

    /// How many requests came, retries included.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether no request came.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The n-th request as JSON: `{model, messages, tools, temperature?, maxOutputTokens?, outputFormat?,
    /// providerOptions?}`.
    pub fn request(&self, n: usize) -> Option<String> {
        let request = self.entries().get(n).cloned()?;
        Some(request_json(&request))
    }

    /// How many turns of a list are left; `None` for a function.
    pub fn turns_left(&self) -> Option<usize> {
        match &self.source {
            Source::Turns(turns) => Some(turns.len().saturating_sub(self.next_turn.load(Ordering::Relaxed))),
            Source::Function(_) => None,
        }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ModelRequest>>> {
        // A list of shared requests is consistent whatever happened to another thread.
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn turn(&self, request: &ModelRequest) -> std::result::Result<Turn, Failure> {
        check_request(&request.messages).map_err(Failure::permanent)?;
        let at = self.next_turn.fetch_add(1, Ordering::Relaxed);
        match &self.source {
            Source::Turns(turns) => turns.get(at).cloned().ok_or_else(|| {
                let count = turns.len();
                let message = format!(
                    "the script has {count} turn{}, but the model was called once more; add a turn for call {}",
                    if count == 1 { "" } else { "s" },
                    at + 1
                );
                Failure::permanent(Error::new(ErrorCode::InvalidRequest, message))
            }),
            Source::Function(source) => {
                let json = source.next(request_json(request)).await.map_err(Failure::permanent)?;
                let parsed = serde_json::from_str(&json).map_err(|error| error.to_string());
                parsed.and_then(|value| Turn::parse(&value)).map_err(|why| Failure::permanent(bad_turn(at, &why)))
            }
        }
    }

    /// The steps of an answer: thinking, text, calls, counts, reason, with the fault where it belongs.
    fn steps(&self, turn: Turn, request: &ModelRequest) -> Vec<Step> {
        let usage = turn.usage.counts(|| counted(&turn, request));
        let thinking = turn.thinking.into_iter().map(Step::Thinking);
        let mut steps: Vec<Step> = thinking.chain(turn.text.into_iter().map(Step::Text)).collect();
        if let Some((after, failure)) = turn.fault.and_then(Fault::in_stream) {
            steps.truncate(after);
            steps.push(Step::Fault(failure));
            return steps;
        }
        let calls = turn.calls.len();
        for call in turn.calls {
            let id = call.id.unwrap_or_else(|| self.fresh_id(request));
            steps.push(Step::Call(ToolCall { id, name: call.name, arguments: call.arguments }));
        }
        steps.extend(usage.map(Step::Usage));
        let usual = if calls > 0 { FinishReason::ToolCalls } else { FinishReason::Stop };
        steps.push(Step::Finish(turn.finish.unwrap_or(usual)));
        steps
    }

    fn fresh_id(&self, request: &ModelRequest) -> String {
        loop {
            let id = format!("call_{}", self.next_call.fetch_add(1, Ordering::Relaxed));
            let used = |message: &Arc<Message>| message.tool_calls.iter().any(|call| call.id == id);
            if !request.messages.iter().any(used) {
                return id;
            }
        }
    }
}

impl Options {
    fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|error| Error::config(format!("script: {error}")))
    }
}

fn bad_turn(at: usize, why: &str) -> Error {
    Error::config(format!("script turn {}: {why}", at + 1))
}

/// Counts without a tokenizer: a token for four characters, the same on every machine.
fn counted(turn: &Turn, request: &ModelRequest) -> ModelUsage {
    let tokens = |characters: usize| characters.div_ceil(4) as u64;
    let of_calls = |message: &Arc<Message>| message.tool_calls.iter().map(|call| call.arguments.len()).sum::<usize>();
    let prompt = request.messages.iter().map(|message| message.content.text().len() + of_calls(message)).sum();
    let spoken = turn.text.iter().chain(&turn.thinking).map(String::len).sum::<usize>();
    let called = turn.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>();
    let (prompt_tokens, completion_tokens) = (tokens(prompt), tokens(spoken + called));
    ModelUsage {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
        ..ModelUsage::default()
    }
}

/// A request as its journal shows it. Messages are encoded once in their life.
fn request_json(request: &ModelRequest) -> String {
    let encode = |message: &Message| serde_json::to_string(message).unwrap_or_else(|_| "null".to_owned());
    let messages: Vec<&str> = request.messages.iter().map(|message| message.wire(encode)).collect();
    let tools: Vec<Value> = request
        .tools
        .list
        .iter()
        .map(|tool| {
            let parameters: Value = serde_json::from_str(&tool.schema).unwrap_or(Value::Null);
            json!({"name": &*tool.name, "description": tool.description, "parameters": parameters})
        })
        .collect();
    let mut rest = json!({"model": &*request.model, "tools": tools});
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            rest[key] = value;
        }
    };
    let parsed = |raw: &Arc<RawValue>| serde_json::from_str(raw.get()).unwrap_or(Value::Null);
    put("temperature", request.temperature.map(Value::from));
    put("maxOutputTokens", request.max_output_tokens.map(Value::from));
    put("outputFormat", request.output_format.as_ref().map(parsed));
    put("providerOptions", request.provider_options.as_ref().map(|options| (**options).clone()));
    let rest = rest.to_string();
    format!(r#"{{"messages":[{}],{}"#, messages.join(","), rest.trim_start_matches('{'))
}

struct ScriptedModel {
    endpoint: Arc<ScriptEndpoint>,
    policy: RetryPolicy,
}

impl Model for ScriptedModel {
    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Box<dyn ModelStream>>> {
        let endpoint = Arc::clone(&self.endpoint) as Arc<dyn Endpoint>;
        Box::pin(RetryingStream::open(endpoint, request, self.policy, cancel))
    }
}

struct ScriptEndpoint(Arc<Script>);

impl Endpoint for ScriptEndpoint {
    fn start(
        &self,
        request: &Arc<ModelRequest>,
        _max_output_tokens: Option<u64>,
    ) -> BoxFuture<'static, std::result::Result<Box<dyn Attempt>, Failure>> {
        let (script, request) = (Arc::clone(&self.0), Arc::clone(request));
        Box::pin(async move {
            script.entries().push(Arc::clone(&request));
            // A turn that does not come is silence before the answer, as with a real provider.
            let (limit, expired) = script.timeouts.until_answer();
            let turn = async {
                let turn = script.turn(&request).await?;
                if !turn.delay.is_zero() {
                    tokio::time::sleep(turn.delay).await;
                }
                Ok::<_, Failure>(turn)
            };
            let turn = tokio::time::timeout(limit, turn).await.unwrap_or_else(|_| Err(expired(limit)))?;
            if let Some(failure) = turn.fault.as_ref().and_then(Fault::at_once) {
                return Err(failure);
            }
            let steps = script.steps(turn, &request);
            Ok(Box::new(Play { steps: steps.into_iter(), pending: None, idle: script.timeouts.stream_idle })
                as Box<dyn Attempt>)
        })
    }
}

enum Step {
    Thinking(String),
    Text(String),
    Call(ToolCall),
    Usage(ModelUsage),
    Finish(FinishReason),
    /// `None` hangs.
    Fault(Option<Box<Failure>>),
}

struct Play {
    steps: std::vec::IntoIter<Step>,
    /// A hanging step stays, so that a dropped future does not skip it.
    pending: Option<tokio::time::Instant>,
    idle: Duration,
}

impl Play {
    async fn step(&mut self, sink: &mut dyn ModelSink) -> std::result::Result<Advance, Failure> {
        if let Some(until) = self.pending {
            tokio::time::sleep_until(until).await;
            return Err(http::idle_timeout(self.idle));
        }
        loop {
            if sink.is_full() {
                return Ok(Advance::Paused);
            }
            match self.steps.next() {
                None => return Ok(Advance::Done),
                Some(Step::Thinking(text)) => sink.thinking(&text),
                Some(Step::Text(text)) => sink.text(&text),
                Some(Step::Call(call)) => sink.tool_call(call),
                Some(Step::Usage(usage)) => sink.usage(usage),
                Some(Step::Finish(reason)) => sink.finish(reason),
                Some(Step::Fault(Some(failure))) => return Err(*failure),
                Some(Step::Fault(None)) => {
                    self.pending = Some(tokio::time::Instant::now() + self.idle);
                    // What came before the silence is seen before it.
                    return Ok(Advance::More);
                }
            }
        }
    }
}

impl Attempt for Play {
    fn advance<'a>(&'a mut self, sink: &'a mut dyn ModelSink) -> BoxFuture<'a, std::result::Result<Advance, Failure>> {
        Box::pin(self.step(sink))
    }
}

fn disconnected() -> Failure {
    let cause = Cause { name: "ConnectionError".to_owned(), message: "scripted".to_owned(), ..Cause::default() };
    let message = "the connection to the model provider broke: scripted disconnect";
    Failure::transient(Error::new(ErrorCode::ModelConnectionError, message).with_cause(cause))
}

#[cfg(test)]
mod tests;
