//! Sessions as plain functions over an opaque handle.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use napi::bindgen_prelude::{External, Uint32Array};
use napi::{Env, JsString};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::{Value, json};

use super::env::NativeEnv;
use super::error::thrown;
use super::js_around::{JsLifecycle, JsMiddleware};
use super::js_model;
use super::js_ports::JsPorts;
use super::js_tool::parse_tools;
use super::limiter::NativeLimiter;
use super::mailbox::{Answer, Mailbox};
use super::script::NativeScript;
use crate::agent::{Conversation, EventQueue, FrameText, Take};
use crate::contract::ToolYield;
use crate::error::{Error, ErrorCode, Result};
use crate::host::log::{LogLevel, Logging, Redactor, holds_secret};
use crate::host::{EnvSnapshot, InlineTask};
use crate::model::{Content, RequestId, SessionId};
use crate::providers::external::Exchanges;
use crate::providers::{self, ProviderConfig};
use crate::session::{self, AcceptedInput, Ports, RequestStream, SendOptions, Session, SessionConfig};

/// Polls a request may get on the JavaScript thread before it has to go through a wake, so that timers and other
/// Sessions get their turn.
const INLINE_BUDGET: u32 = 32;
/// Polls one answer may use.
const INLINE_POLLS: u32 = 4;
/// Answers of more than this are processed by the runtime: they are work that the JavaScript thread should not do.
const INLINE_BYTES: usize = 256 * 1024;
/// First element of the scratch array when the stream is over.
const ENDED: u32 = u32::MAX;

/// What the facade holds for a Session.
pub struct NativeSession {
    pub(super) session: Arc<Session>,
    pub(super) mailbox: Arc<Mailbox>,
    /// The last request that was started, for polling it in place.
    task: Mutex<Option<InlineTask>>,
    inline_left: AtomicU32,
    /// Model calls that middleware answers, where there is any.
    pub(super) exchanges: Option<Arc<Exchanges>>,
    logs: bool,
}

/// What the facade holds for the stream of one request. A Session may have several: one that is read late stays whole.
pub struct NativeStream {
    request: RequestId,
    events: Arc<EventQueue>,
}

impl Drop for NativeStream {
    /// Nobody reads the events any more, so nothing may wait for room among them.
    fn drop(&mut self) {
        self.events.close();
    }
}

impl Drop for NativeSession {
    /// The facade was collected, or its environment ended.
    fn drop(&mut self) {
        self.mailbox.retire();
        self.session.abort();
    }
}

pub(super) fn js<T>(result: Result<T>) -> napi::Result<T> {
    result.map_err(|error| thrown(&error))
}

/// Which callbacks the application gave, and where the Session continues from.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wiring {
    key: u32,
    #[serde(default)]
    permission: bool,
    #[serde(default)]
    confirmation: bool,
    #[serde(default)]
    tool_middleware: bool,
    #[serde(default)]
    tool_lifecycle: bool,
    #[serde(default)]
    model: bool,
    /// The least important entries the logger wants; absent where there is no logger.
    log: Option<LogLevel>,
}

/// Opens a Session. `wiring`, `options`, `provider` and `tools` are JSON text; a `script` answers in place of the
/// provider; `parent` is the Session to continue from; a `limiter` is shared with other Sessions.
#[napi(catch_unwind)]
#[allow(
    clippy::too_many_arguments,
    reason = "handles cannot travel in JSON; the macro copies `expect` to what it makes"
)]
pub fn open_session(
    env: &External<NativeEnv>,
    wiring: String,
    options: String,
    provider: String,
    tools: String,
    script: Option<&External<NativeScript>>,
    parent: Option<&External<NativeSession>>,
    limiter: Option<&External<NativeLimiter>>,
) -> napi::Result<External<NativeSession>> {
    let wiring: Wiring = serde_json::from_str(&wiring).map_err(|e| thrown(&Error::internal(e.to_string())))?;
    let provider: ProviderConfig = serde_json::from_str(&provider)
        .map_err(|error| thrown(&Error::config(format!("provider is no connection configuration: {error}"))))?;
    let model = match script {
        Some(handle) => handle.script.model(),
        None => js(providers::open(&provider))?,
    };
    let silence = js(provider.timeouts())?.stream_idle;
    let config = js(SessionConfig::parse(&options))?;
    let mailbox = env.port.open(wiring.key);
    let ports = Arc::new(JsPorts::new(Arc::clone(&mailbox)));
    let middleware = wiring.model.then(|| js_model::middleware(&mailbox, silence));
    let exchanges = middleware.as_ref().map(|middleware| Arc::clone(&middleware.exchanges));
    let parts = parse_tools(&tools, &mailbox).and_then(|tools| {
        config.into_parts(
            SessionId::generate(),
            model,
            tools,
            Ports {
                permission: wiring.permission.then(|| ports.clone() as _),
                confirmation: wiring.confirmation.then(|| ports.clone() as _),
                hooks: Some(ports.clone()),
                log: wiring.log.map(|level| logging(level, ports, &provider)),
                middleware: wiring.tool_middleware.then(|| Arc::new(JsMiddleware::new(Arc::clone(&mailbox))) as _),
                lifecycle: wiring.tool_lifecycle.then(|| Arc::new(JsLifecycle::new(Arc::clone(&mailbox))) as _),
                model: middleware,
            },
            parent.map_or_else(Conversation::default, |parent| parent.session.fork_conversation()),
        )
    });
    let mut parts = match parts {
        Ok(parts) => {
            if let Some(parent) = parent {
                parts.pipeline.inherit_denials(parent.session.pipeline());
            }
            parts
        }
        Err(error) => {
            mailbox.retire();
            return Err(thrown(&error));
        }
    };
    if let Some(shared) = limiter {
        parts.pipeline = parts.pipeline.with_limiter(Arc::clone(&shared.limiter));
    }
    let mut session = Session::new(parts);
    if let Some(parent) = parent {
        session.inherit_effects(&parent.session);
    }
    Ok(External::new(NativeSession {
        session: Arc::new(session),
        mailbox,
        task: Mutex::default(),
        inline_left: AtomicU32::new(INLINE_BUDGET),
        exchanges,
        logs: wiring.log.is_some(),
    }))
}

/// The log of a Session. What no entry may show is read here, on the thread on which `process.env` is written.
fn logging(level: LogLevel, sink: Arc<JsPorts>, provider: &ProviderConfig) -> Logging {
    let environment = EnvSnapshot::capture();
    let variables = environment.iter().filter(|(name, _)| holds_secret(&name.to_string_lossy()));
    let values = variables.map(|(_, value)| value.to_string_lossy().into_owned());
    Logging { sink, level, redactor: Redactor::new(provider.secrets().chain(values)) }
}

/// Runs the hooks of a Session's start; completes `operation` unless `true` says that there are none.
#[napi(catch_unwind)]
pub fn begin(handle: &External<NativeSession>, operation: u32) -> napi::Result<bool> {
    if !handle.session.has_start_hooks() {
        return Ok(true);
    }
    let (session, mailbox) = (Arc::clone(&handle.session), Arc::clone(&handle.mailbox));
    let work = async move {
        match session.begin().await {
            Ok(()) => mailbox.complete(operation, Ok("null")),
            Err(error) => mailbox.complete(operation, Err(&error)),
        }
    };
    handle.session.background(js(session::runtime())?, work);
    Ok(false)
}

/// Identifier of a Session.
#[napi(catch_unwind)]
pub fn session_id(handle: &External<NativeSession>) -> String {
    handle.session.id().to_string()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendInput {
    content: Content,
    #[serde(default)]
    max_turns: Option<f64>,
    #[serde(default)]
    context: Option<Value>,
    #[serde(default)]
    expected_request_id: Option<String>,
    #[serde(default)]
    has_signal: bool,
}

/// Accepts an input; JSON text of the submission.
#[napi(catch_unwind)]
pub fn send(handle: &External<NativeSession>, input: String) -> napi::Result<String> {
    let input: SendInput =
        serde_json::from_str(&input).map_err(|e| thrown(&Error::config(format!("message or send options: {e}"))))?;
    let max_turns = js(session::positive("maxTurns", input.max_turns, f64::from(u32::MAX)))?;
    let options = SendOptions {
        max_turns: max_turns.map(|n| n as u32),
        context: input.context,
        expected: input.expected_request_id.map(RequestId::new),
        has_signal: input.has_signal,
    };
    // Captured here because this is the thread on which `process.env` is written.
    let host_env = if handle.session.runs_programs() { EnvSnapshot::capture() } else { EnvSnapshot::default() };
    let accepted = js(handle.session.send(input.content, options, host_env))?;
    Ok(json!({ "status": "started", "inputId": accepted.input_id, "requestId": accepted.request_id }).to_string())
}

/// Starts the accepted request.
#[napi(catch_unwind)]
pub fn start(handle: &External<NativeSession>, include_thinking: bool) -> napi::Result<External<NativeStream>> {
    let mailbox = Arc::clone(&handle.mailbox);
    let events = Arc::new(EventQueue::new(move || mailbox.events_ready()));
    let RequestStream { request_id, events, task } = js(handle.session.start(include_thinking, events))?;
    *handle.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    Ok(External::new(NativeStream { request: request_id, events }))
}

/// The next events: their text, with `scratch[0]` their number and one mark an event after it. `null` when there are
/// none, with `scratch[0]` zero when more will come and all ones when the stream is over.
#[napi(catch_unwind)]
pub fn take<'env>(
    env: &'env Env,
    stream: &External<NativeStream>,
    mut scratch: Uint32Array,
) -> napi::Result<Option<JsString<'env>>> {
    // SAFETY: the array belongs to the facade, which uses it only around this synchronous call on this thread.
    #[expect(unsafe_code, reason = "the scratch array is filled in place")]
    let scratch = unsafe { scratch.as_mut() };
    let Some((count, marks)) = scratch.split_first_mut() else { return Ok(None) };
    let frame = match stream.events.take() {
        Take::Frame(frame) => frame,
        Take::Empty => {
            *count = 0;
            return Ok(None);
        }
        Take::Ended => {
            *count = ENDED;
            return Ok(None);
        }
    };
    *count = frame.marks.len() as u32;
    for (slot, mark) in marks.iter_mut().zip(&frame.marks) {
        *slot = *mark;
    }
    match frame.text {
        FrameText::Narrow(bytes) => env.create_string_latin1(bytes).map(Some),
        FrameText::Wide(units) => env.create_string_utf16(units).map(Some),
    }
}

/// Whether nothing more comes unless something is taken: the request has ended, or waits for its consumer.
#[napi(catch_unwind)]
pub fn is_stalled(stream: &External<NativeStream>) -> bool {
    stream.events.is_stalled()
}

/// The consumer leaves: cancels the request and completes `operation` when everything has settled. `true` when there
/// is nothing to wait for.
#[napi(catch_unwind)]
pub fn leave(handle: &External<NativeSession>, stream: &External<NativeStream>, operation: u32) -> napi::Result<bool> {
    stream.events.close();
    let ended = handle.session.abort_request(&stream.request);
    when_settled(handle, ended, operation)
}

/// Cancels what is under way; completes `operation` when everything has settled. `true` when there is nothing to wait
/// for.
#[napi(catch_unwind)]
pub fn abort(handle: &External<NativeSession>, operation: u32) -> napi::Result<bool> {
    when_settled(handle, handle.session.abort(), operation)
}

/// Cancels one request because its signal fired.
#[napi(catch_unwind)]
pub fn abort_request(handle: &External<NativeSession>, request: String) {
    handle.session.abort_request(&RequestId::new(request));
}

fn when_settled(handle: &NativeSession, ended: Option<crate::host::CancelToken>, operation: u32) -> napi::Result<bool> {
    let Some(settled) = handle.session.settled(ended) else { return Ok(true) };
    let mailbox = Arc::clone(&handle.mailbox);
    let work = async move {
        settled.await;
        mailbox.complete(operation, Ok("null"));
    };
    handle.session.background(js(session::runtime())?, work);
    Ok(false)
}

/// Closes the Session; completes `operation` unless `true` says that it is closed already.
#[napi(catch_unwind)]
pub fn close(handle: &External<NativeSession>, operation: u32) -> napi::Result<bool> {
    if handle.session.close_now() {
        if handle.logs {
            // Behind the last entries, so that they are told first.
            handle.mailbox.complete(operation, Ok("null"));
        }
        return Ok(!handle.logs);
    }
    let (session, mailbox) = (Arc::clone(&handle.session), Arc::clone(&handle.mailbox));
    let work = async move {
        match session.close().await {
            Ok(()) => mailbox.complete(operation, Ok("null")),
            Err(error) => mailbox.complete(operation, Err(&error)),
        }
    };
    handle.session.background(js(session::runtime())?, work);
    Ok(false)
}

/// Settles a call of a callback. `kind` 0 is JSON text, 1 a string result, 2 JSON text of a thrown error. `true` when
/// the facade has to drain now.
#[napi(catch_unwind)]
pub fn settle(handle: &External<NativeSession>, call: u32, kind: u32, text: String) -> bool {
    settle_together(handle, text.len(), 1, || {
        handle.mailbox.settle(call, answer(kind, text));
    })
}

/// Settles several calls at once: `heads` holds the number and the kind of each, `texts` their texts. The request goes on
/// once for all of them. `true` when the facade has to drain now.
#[napi(catch_unwind)]
pub fn settle_all(handle: &External<NativeSession>, heads: Vec<u32>, texts: Vec<String>) -> bool {
    let (bytes, count) = (texts.iter().map(String::len).sum(), texts.len());
    settle_together(handle, bytes, count, || {
        for (head, text) in heads.chunks_exact(2).zip(texts) {
            handle.mailbox.settle(head[0], answer(head[1], text));
        }
    })
}

fn answer(kind: u32, text: String) -> Answer {
    match kind {
        0 => Answer::Json(text),
        1 => Answer::Text(text),
        _ => Answer::Thrown(serde_json::from_str(&text).unwrap_or_default()),
    }
}

/// Answers calls and lets the request go on: right here when nothing else is waited for, else on the runtime.
fn settle_together(handle: &NativeSession, bytes: usize, count: usize, settle: impl FnOnce()) -> bool {
    let mailbox = &handle.mailbox;
    let Some(task) = handle.task.lock().unwrap_or_else(PoisonError::into_inner).clone() else {
        settle();
        return false;
    };
    let whole = mailbox.waiting_calls() == count && bytes <= INLINE_BYTES;
    let budget = if whole { handle.inline_left.load(Ordering::Relaxed).min(INLINE_POLLS) } else { 0 };
    if budget == 0 {
        // Without a poll in place, but with one wake for all of them.
        task.poll_after(0, settle);
        return false;
    }
    let held = mailbox.env().hold_wake();
    let used = task.poll_after(budget, settle);
    handle.inline_left.fetch_sub(used.min(budget), Ordering::Relaxed);
    held && mailbox.env().release_wake()
}

/// The environment was woken: the Session may be polled in place again.
#[napi(catch_unwind)]
pub fn refill(handle: &External<NativeSession>) {
    handle.inline_left.store(INLINE_BUDGET, Ordering::Relaxed);
}

/// A yield as the facade sends it, read as a value first: its errors then name a field, not a place in the text.
fn parse_yield(item: &str) -> Result<ToolYield> {
    serde_json::from_str::<Value>(item)
        .and_then(serde_json::from_value)
        .map_err(|error| Error::new(ErrorCode::InvalidToolYield, format!("the tool yielded what it may not: {error}")))
}

/// Hands over one yield of a running generator tool; completes `operation` when it was published and there is room.
#[napi(catch_unwind)]
pub fn emit(handle: &External<NativeSession>, call: u32, operation: u32, item: String) -> napi::Result<()> {
    let item = js(parse_yield(&item))?;
    let mailbox = Arc::clone(&handle.mailbox);
    let yields = mailbox.about(call).map(|about| about.yields());
    if let Some(yields) = &yields {
        js(yields.admit(&item))?;
    }
    let work = async move {
        if let Some(yields) = yields {
            yields.emit(item).await;
        }
        mailbox.complete(operation, Ok("null"));
    };
    handle.session.background(js(session::runtime())?, work);
    Ok(())
}

/// The conversation as JSON text.
#[napi(catch_unwind)]
pub fn messages(handle: &External<NativeSession>) -> napi::Result<String> {
    let messages = handle.session.conversation().snapshot();
    let list: Vec<&crate::model::Message> = messages.iter().map(AsRef::as_ref).collect();
    serde_json::to_string(&list).map_err(|error| thrown(&Error::internal(error.to_string())))
}

/// Tool calls and number of turns of the last request as JSON text.
#[napi(catch_unwind)]
pub fn last_request(handle: &External<NativeSession>) -> String {
    let (records, turns) = handle.session.last_request();
    format!("{{\"toolCalls\":{records},\"turnsCount\":{turns}}}")
}

/// Why the last request failed as JSON text, or `null`.
#[napi(catch_unwind)]
pub fn last_failure(handle: &External<NativeSession>) -> Option<String> {
    handle.session.last_failure().map(|error| super::error::to_json(&error))
}

/// The input that waits for `stream` as JSON text, or `null`.
#[napi(catch_unwind)]
pub fn pending_input(handle: &External<NativeSession>) -> Option<String> {
    let AcceptedInput { submission, content, accepted_at } = handle.session.pending_input()?;
    let pending = json!({
        "inputId": submission.input_id,
        "requestId": submission.request_id,
        "content": content,
        "acceptedAt": accepted_at,
    });
    Some(pending.to_string())
}

/// Changes settings of later requests; `change` is JSON text with any of `model`, `permissionMode`, `maxTurns`,
/// `defaultContext`.
#[napi(catch_unwind)]
pub fn configure(handle: &External<NativeSession>, change: String) -> napi::Result<()> {
    js(handle.session.change(&change))
}

/// Mode of later requests.
#[napi(catch_unwind)]
pub fn permission_mode(handle: &External<NativeSession>) -> napi::Result<String> {
    match serde_json::to_value(handle.session.mode()) {
        Ok(Value::String(mode)) => Ok(mode),
        _ => Err(thrown(&Error::internal("a permission mode is a string"))),
    }
}
