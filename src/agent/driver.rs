//! The driver of one request: model call, tools, model call, until the model is done.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer;
use super::conversation::Conversation;
use super::decide::{Answer, Next, after_answer, after_tools};
use super::effects::{RequestEffects, SessionEffects};
use super::events::EventQueue;
use super::sink::{CallYields, TurnSink};
use crate::contract::{ContextSnapshot, PermissionMode, ToolEffect};
use crate::error::{Error, Result};
use crate::host::{CancelToken, EnvSnapshot};
use crate::model::{Message, ModelUsage, ResultSubtype, SessionEvent, SessionId, TokenUsage, ToolCall};
use crate::pipeline::{CallContext, CallReport, InvocationLifecycle, Pipeline};
use crate::providers::{Model, ModelRequest, ToolDeclarations};
use crate::registry::{ExposurePolicy, SourcePolicy};
use crate::tools::DISCOVERY_TOOL;

/// Everything one request needs.
pub struct RequestOptions {
    /// The Session.
    pub session_id: SessionId,
    /// Where answers come from.
    pub model: Arc<dyn Model>,
    /// Name the provider is given.
    pub model_name: Arc<str>,
    /// The system prompt, if any.
    pub system: Option<Arc<Message>>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Limit of answer tokens.
    pub max_output_tokens: Option<u64>,
    /// Structured output.
    pub output_format: Option<Arc<RawValue>>,
    /// Options keyed by provider.
    pub provider_options: Option<Arc<Value>>,
    /// Most model calls of the request.
    pub max_turns: u32,
    /// Reported with the usage.
    pub max_context_tokens: u64,
    /// Whether reasoning is published.
    pub include_thinking: bool,
    /// Runtime context of the request.
    pub snapshot: Arc<ContextSnapshot>,
    /// Permission mode of the request.
    pub mode: PermissionMode,
    /// Which sources are shown.
    pub sources: SourcePolicy,
    /// What effects of tools changed so far, shared with later requests.
    pub effects: Arc<SessionEffects>,
    /// Declarations of the last turn, shared with later requests.
    pub declarations: Arc<Mutex<Option<DeclarationCache>>>,
    /// Environment of the host process.
    pub host_env: EnvSnapshot,
    /// Cancels the request.
    pub cancel: CancelToken,
}

/// Declarations with the policy they were made for.
pub type DeclarationCache = (Arc<ExposurePolicy>, Arc<ToolDeclarations>);

/// One finished tool call, for callers that want them all (`ToolExecutionRecord`).
#[derive(Debug, Serialize)]
pub struct ToolRecord {
    /// Call id.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Input as it ran.
    pub input: Box<RawValue>,
    /// What the model was told.
    pub output: Box<RawValue>,
    /// Milliseconds the tool ran.
    pub duration: f64,
    /// Whether it failed.
    #[serde(rename = "isError")]
    pub is_error: bool,
}

/// How a request ended.
#[derive(Debug)]
pub enum RequestEnd {
    /// The model finished.
    Completed {
        /// The final text.
        text: String,
        /// Token counts.
        usage: TokenUsage,
    },
    /// It failed.
    Failed(Error),
    /// It was cancelled.
    Aborted,
}

impl RequestEnd {
    /// Publishes the terminal events: `usage` and `result` of a success, one `error` of a failure, nothing of an abort.
    pub fn publish(self, events: &EventQueue) {
        match self {
            Self::Completed { text, usage } => {
                events.push_event(&SessionEvent::Usage { usage });
                events.push_event(&SessionEvent::Result {
                    subtype: ResultSubtype::Success,
                    content: Some(text),
                    error: None,
                });
            }
            Self::Failed(error) => {
                events.push_event(&SessionEvent::Error { message: error.message, code: error.code.as_str() });
            }
            Self::Aborted => {}
        }
    }
}

/// What a request leaves behind besides its events.
#[derive(Debug)]
pub struct RequestReport {
    /// How it ended.
    pub end: RequestEnd,
    /// Its tool calls in the order they were made.
    pub records: Vec<ToolRecord>,
    /// Turns that were begun.
    pub turns: u32,
}

/// Runs a request to its end and publishes what happens. How it ended is published by the caller, once the Session
/// has taken note of it: whoever sees the end may send the next message at once.
pub async fn run_request(
    options: &RequestOptions,
    pipeline: &Pipeline,
    conversation: &Conversation,
    events: &Arc<EventQueue>,
) -> RequestReport {
    let effects = RequestEffects::new(options);
    let mut request = Request { options, pipeline, conversation, events, effects, records: Vec::new(), turns: 0 };
    let end = match request.turns().await {
        _ if options.cancel.is_cancelled() => RequestEnd::Aborted,
        Ok(Done { text, usage }) => RequestEnd::Completed { text, usage },
        Err(error) => RequestEnd::Failed(error),
    };
    RequestReport { end, records: request.records, turns: request.turns }
}

struct Request<'a> {
    options: &'a RequestOptions,
    pipeline: &'a Pipeline,
    conversation: &'a Conversation,
    events: &'a Arc<EventQueue>,
    effects: RequestEffects<'a>,
    records: Vec<ToolRecord>,
    turns: u32,
}

struct Done {
    text: String,
    usage: TokenUsage,
}

impl Request<'_> {
    async fn turns(&mut self) -> Result<Done> {
        let mut total = 0;
        loop {
            self.turns += 1;
            let turn = self.turns;
            self.events.push_event(&SessionEvent::TurnStart { turn });
            let (exposure, tools) = self.declarations();
            let mut sink = TurnSink::new(self.events, self.options.include_thinking);
            self.ask_model(tools, &mut sink).await?;
            let TurnSink { text, reasoning, mut calls, usage, finish, .. } = sink;
            let last = usage.unwrap_or_default();
            total += total_of(&last);
            let usage = TokenUsage {
                input_tokens: last.prompt_tokens,
                output_tokens: last.completion_tokens,
                total_tokens: total,
                max_context_tokens: self.options.max_context_tokens,
            };
            let reasoning = Some(reasoning).filter(|text| !text.is_empty());
            match after_answer(Answer { has_text: !text.is_empty(), calls: calls.len(), finish: finish.as_ref() }) {
                Next::Fail(error) => return Err(error),
                Next::Finish => {
                    // An answer that says nothing leaves no message: some servers refuse empty ones.
                    if !text.is_empty() {
                        self.conversation.push(Message::assistant(text.clone(), reasoning, Vec::new()));
                    }
                    self.events.push_event(&SessionEvent::TurnEnd { turn });
                    return Ok(Done { text, usage });
                }
                Next::Tools => {
                    self.conversation.unique_call_ids(&mut calls);
                    let assistant = Arc::new(Message::assistant(text, reasoning, calls));
                    let exit = self.run_tools(&assistant, exposure).await?;
                    if self.options.cancel.is_cancelled() {
                        return Err(Error::new(crate::error::ErrorCode::Abort, "the request was aborted"));
                    }
                    self.events.push_event(&SessionEvent::TurnEnd { turn });
                    if let Some(text) = exit {
                        return Ok(Done { text, usage });
                    }
                    after_tools(turn, self.options.max_turns)?;
                }
            }
        }
    }

    /// Policy and declarations of this turn; the same values as in the last turn unless something changed.
    fn declarations(&self) -> (Arc<ExposurePolicy>, Arc<ToolDeclarations>) {
        let policy = self.effects.exposure();
        let mut cache = self.options.declarations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, declarations)) = &*cache
            && **known == policy
        {
            return (known.clone(), declarations.clone());
        }
        let policy = Arc::new(policy);
        let registry = self.pipeline.registry();
        let declarations = Arc::new(registry.declarations(&policy));
        self.conversation.set_catalog(registry.catalog_text(&policy, DISCOVERY_TOOL));
        *cache = Some((policy.clone(), declarations.clone()));
        (policy, declarations)
    }

    async fn ask_model(&self, tools: Arc<ToolDeclarations>, sink: &mut TurnSink<'_>) -> Result<()> {
        let options = self.options;
        let mut messages = Vec::with_capacity(self.conversation.len() + 1);
        messages.extend(self.effects.system());
        messages.extend(self.conversation.snapshot());
        let request = ModelRequest {
            model: options.model_name.clone(),
            messages,
            tools,
            temperature: options.temperature,
            max_output_tokens: options.max_output_tokens,
            output_format: options.output_format.clone(),
            provider_options: options.provider_options.clone(),
        };
        let aborted = || Error::new(crate::error::ErrorCode::Abort, "the request was aborted");
        let opened = options.cancel.run_until(options.model.stream(request, &options.cancel)).await;
        let mut stream = opened.unwrap_or_else(|| Err(aborted()))?;
        let read = options.cancel.run_until(answer::read(stream.as_mut(), sink, self.events)).await;
        self.events.flush();
        stream.close().await;
        read.unwrap_or_else(|| Err(aborted()))
    }

    /// Runs the calls of a turn, publishes their results as they come, and puts them into the history in declared
    /// order. Gives the final text when a result ends the request.
    ///
    /// # Errors
    /// A durable boundary could not be stored, or no tool may run any more.
    async fn run_tools(&mut self, assistant: &Arc<Message>, exposure: Arc<ExposurePolicy>) -> Result<Option<String>> {
        let calls = &assistant.tool_calls;
        let cx = CallContext {
            session_id: self.options.session_id.clone(),
            message_id: assistant.id.clone(),
            snapshot: self.effects.snapshot(),
            mode: self.options.mode,
            exposure,
            host_env: self.options.host_env.clone(),
            cancel: self.options.cancel.clone(),
            steer: CancelToken::new(),
        };
        let mut observers = Vec::with_capacity(calls.len());
        for call in calls {
            observers.push(self.pipeline.scheduled(call, &cx).await?);
            let input = tool_use_input(&call.arguments);
            self.events.push_event(&SessionEvent::ToolUse { id: call.id.clone(), name: call.name.clone(), input });
        }
        let serial = self.options.mode == PermissionMode::Plan || calls.len() == 1;
        let mut settled: Vec<Option<Result<Settled>>> = calls.iter().map(|_| None).collect();
        let observed = calls.iter().zip(observers);
        if serial {
            for ((call, observer), slot) in observed.zip(&mut settled) {
                *slot = Some(self.run_call(call, observer, &cx).await);
            }
        } else {
            let this = &*self;
            let cx = &cx;
            let mut running: FuturesUnordered<_> = observed
                .enumerate()
                .map(|(at, (call, observer))| async move { (at, this.run_call(call, observer, cx).await) })
                .collect();
            while let Some((at, result)) = running.next().await {
                settled[at] = Some(result);
            }
        }
        // All calls have settled before one that could not be stored ends the request.
        let exit = self.record(assistant, settled.into_iter().flatten().collect::<Result<_>>()?);
        self.pipeline.terminal_failure().map_or(Ok(exit), Err)
    }

    async fn run_call(
        &self,
        call: &ToolCall,
        observer: Option<Arc<dyn InvocationLifecycle>>,
        cx: &CallContext,
    ) -> Result<Settled> {
        let yields = Arc::new(CallYields::new(self.events.clone(), cx.cancel.clone(), call));
        let report = self.pipeline.run_observed(call, cx, yields.clone(), observer).await;
        let effects = yields.close();
        self.pipeline.settled(call, &report, cx).await?;
        let output = report.outcome.model().to_raw();
        self.events.push_event(&SessionEvent::ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            output: output.clone(),
            display: report.outcome.display().and_then(|display| serde_json::to_value(display).ok()),
            is_error: report.outcome.is_error(),
        });
        Ok(Settled { report, output, effects })
    }

    fn record(&mut self, assistant: &Arc<Message>, settled: Vec<Settled>) -> Option<String> {
        let mut exit = None;
        let mut results = Vec::with_capacity(settled.len());
        let mut injected = Vec::new();
        for (call, Settled { report, output, effects }) in assistant.tool_calls.iter().zip(settled) {
            let text = report.outcome.model().as_text();
            if report.exit_loop {
                exit = Some(text.to_owned());
            }
            results.push(Message::tool(call.id.clone(), call.name.clone(), text));
            let is_error = report.outcome.is_error();
            if !is_error {
                injected.extend(self.effects.apply(self.pipeline, &call.name, effects));
            }
            self.records.push(ToolRecord {
                id: call.id.clone(),
                name: call.name.clone(),
                input: tool_use_input(&report.input),
                output,
                duration: report.duration.as_secs_f64() * 1000.0,
                is_error,
            });
        }
        self.conversation.push_exchange(assistant.clone(), results, injected);
        exit
    }
}

struct Settled {
    report: CallReport,
    output: Box<RawValue>,
    effects: Vec<ToolEffect>,
}

/// Arguments for display: the JSON as it came, `{}` for blank text, a JSON string where it is not JSON.
fn tool_use_input(arguments: &str) -> Box<RawValue> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    RawValue::from_string(text.to_owned()).or_else(|_| serde_json::value::to_raw_value(arguments)).unwrap_or_default()
}

fn total_of(usage: &ModelUsage) -> u64 {
    if usage.total_tokens > 0 { usage.total_tokens } else { usage.prompt_tokens + usage.completion_tokens }
}
