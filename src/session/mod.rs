//! A Session: its lifecycle, the request in flight, and the wiring of everything a request needs. It decides nothing
//! itself: states are the table in [`machine`], turns belong to the agent, calls to the pipeline.

mod config;
pub mod machine;
mod observed;
mod request_hooks;
mod settings;

#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use serde_json::Value;
use tokio::runtime::Handle;
use tracing::Instrument;

use crate::agent::{
    Conversation, DeclarationCache, EventQueue, RequestEnd, RequestOptions, RequestReport, SessionEffects, ToolRecord,
    run_request,
};
use crate::contract::{ContextSnapshot, PermissionMode};
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::Hooks;
use crate::host::{CancelReason, CancelToken, EnvSnapshot, InlineTask, Tasks, clock, runtime};
use crate::model::{Content, InputId, Message, RequestId, SessionId};
use crate::pipeline::{CLEANUP_GRACE, Pipeline};
use crate::providers::Model;
use crate::{context, tools};

pub use config::{Ports, Profile, SessionConfig, SessionParts, positive, shared_limiter};
pub use settings::Settings;

use machine::{Effect, Input, Refused, State, step};
use observed::Observed;

/// What `send` gives back: the request that `stream` will run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The input.
    pub input_id: InputId,
    /// Its request.
    pub request_id: RequestId,
}

/// Options of one `send`.
#[derive(Debug, Clone, Default)]
pub struct SendOptions {
    /// Turn limit of this request.
    pub max_turns: Option<u32>,
    /// Runtime context merged over the Session's default.
    pub context: Option<Value>,
    /// The request the caller believes to be active.
    pub expected: Option<RequestId>,
    /// Whether the caller gave a signal (only a new request can take one).
    pub has_signal: bool,
}

/// A request that was started: its events, and the task that makes them.
#[derive(Clone)]
pub struct RequestStream {
    /// The request.
    pub request_id: RequestId,
    /// Its events.
    pub events: Arc<EventQueue>,
    /// Its driver, for polling in place.
    pub task: InlineTask,
}

/// An input that waits for `stream`.
#[derive(Debug, Clone)]
pub struct AcceptedInput {
    /// Its ids.
    pub submission: Submission,
    /// What was said.
    pub content: Content,
    /// When it was accepted, in milliseconds since the Unix epoch.
    pub accepted_at: u64,
}

struct PendingInput {
    submission: Submission,
    content: Content,
    accepted_at: u64,
    max_turns: u32,
    snapshot: Arc<ContextSnapshot>,
    host_env: EnvSnapshot,
}

struct Active {
    cancel: CancelToken,
    ended: CancelToken,
    snapshot: Arc<ContextSnapshot>,
}

struct Core {
    state: State,
    settings: Settings,
    pending: Option<PendingInput>,
    active: Option<Active>,
    records: Vec<ToolRecord>,
    turns: u32,
    failure: Option<Error>,
}

/// One conversation with one model endpoint.
pub struct Session {
    id: SessionId,
    core: Mutex<Core>,
    conversation: Arc<Conversation>,
    pipeline: Arc<Pipeline>,
    hooks: Arc<Hooks>,
    model: Arc<dyn Model>,
    effects: Arc<SessionEffects>,
    declarations: Arc<Mutex<Option<DeclarationCache>>>,
    root: CancelToken,
    tasks: Tasks,
    observed: Observed,
}

impl Session {
    /// A Session over its parts. Cheap: nothing is started.
    pub fn new(parts: SessionParts) -> Self {
        let SessionParts { id, settings, pipeline, hooks, model, conversation, observed } = parts;
        observed.span().in_scope(|| tracing::debug!("session opened"));
        Self {
            id,
            core: Mutex::new(Core {
                state: State::Idle,
                settings,
                pending: None,
                active: None,
                records: Vec::new(),
                turns: 0,
                failure: None,
            }),
            conversation: Arc::new(conversation),
            pipeline: Arc::new(pipeline),
            hooks,
            model,
            effects: Arc::default(),
            declarations: Arc::default(),
            root: CancelToken::new(),
            tasks: Tasks::new(),
            observed,
        }
    }

    /// Identifier of the Session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The conversation so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Whether a built-in tool may start programs, which inherit part of the host's environment.
    pub fn runs_programs(&self) -> bool {
        self.pipeline.registry().get(tools::SHELL_TOOL).is_some()
    }

    /// Its pipeline.
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `close` has completed.
    pub fn is_closed(&self) -> bool {
        matches!(self.lock().state, State::Closed)
    }

    /// Tool calls and turns of the last finished request.
    pub fn last_request(&self) -> (String, u32) {
        let core = self.lock();
        (serde_json::to_string(&core.records).unwrap_or_else(|_| "[]".to_owned()), core.turns)
    }

    /// Why the last finished request failed, if it did.
    pub fn last_failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// The input that waits for `stream`.
    pub fn pending_input(&self) -> Option<AcceptedInput> {
        self.lock().pending.as_ref().map(|pending| AcceptedInput {
            submission: pending.submission.clone(),
            content: pending.content.clone(),
            accepted_at: pending.accepted_at,
        })
    }

    /// Accepts an input as a new request.
    ///
    /// # Errors
    /// `SESSION_CLOSED`, `SESSION_REQUEST_MISMATCH`, `SESSION_INPUT_OPTIONS_UNSUPPORTED`,
    /// `SESSION_STEERING_UNAVAILABLE` while a request is under way, `CONFIG_ERROR` for a malformed context.
    pub fn send(&self, content: Content, options: SendOptions, host_env: EnvSnapshot) -> Result<Submission> {
        let mut core = self.lock();
        let request_id = RequestId::generate();
        let has_request_options = options.has_signal || options.max_turns.is_some() || options.context.is_some();
        let input = Input::Send { request: request_id.clone(), expected: options.expected, has_request_options };
        let (state, _) = step(&core.state, &input).map_err(refused)?;
        let merged = match &options.context {
            Some(over) => context::merge(&core.settings.default_context, over),
            None => core.settings.default_context.clone(),
        };
        let snapshot = Arc::new(context::snapshot(self.id.as_str(), request_id.as_str(), merged)?);
        let submission = Submission { input_id: InputId::generate(), request_id };
        let max_turns = options.max_turns.unwrap_or(core.settings.max_turns);
        core.state = state;
        core.pending = Some(PendingInput {
            submission: submission.clone(),
            content,
            accepted_at: clock::now_ms(),
            max_turns,
            snapshot,
            host_env,
        });
        Ok(submission)
    }

    /// The runtime context of the request under way, or the default one.
    ///
    /// # Errors
    /// `CONFIG_ERROR` for a malformed default context.
    pub fn snapshot(&self) -> Result<Arc<ContextSnapshot>> {
        let core = self.lock();
        let current = core.active.as_ref().map(|active| &active.snapshot);
        if let Some(snapshot) = current.or(core.pending.as_ref().map(|pending| &pending.snapshot)) {
            return Ok(snapshot.clone());
        }
        context::snapshot(self.id.as_str(), "", core.settings.default_context.clone()).map(Arc::new)
    }

    /// Starts the accepted request. `events` receives everything; its consumer must take until the end or close it.
    ///
    /// # Errors
    /// `SESSION_NO_PENDING_MESSAGE`, `SESSION_CLOSED`; `INTERNAL` when the runtime cannot start.
    pub fn start(self: &Arc<Self>, include_thinking: bool, events: Arc<EventQueue>) -> Result<RequestStream> {
        let handle = runtime()?;
        let mut core = self.lock();
        let (state, effect) = step(&core.state, &Input::Stream).map_err(refused)?;
        let (Effect::Start, Some(pending)) = (effect, core.pending.take()) else {
            return Err(Error::internal("a pending request has an input"));
        };
        core.state = state;
        let cancel = self.root.child();
        let ended = CancelToken::new();
        core.active = Some(Active { cancel: cancel.clone(), ended: ended.clone(), snapshot: pending.snapshot.clone() });
        core.records = Vec::new();
        let options = self.request_options(&core.settings, &pending, include_thinking, cancel);
        drop(core);
        let request_id = pending.submission.request_id.clone();
        self.observed.protect(&pending.snapshot.environment);
        let _session = self.observed.span().enter();
        let _request = tracing::error_span!("request", request_id = request_id.as_str()).entered();
        let task = InlineTask::spawn(
            &self.tasks,
            &handle,
            Arc::clone(self).drive(options, pending.content, request_id.clone(), Arc::clone(&events), ended),
        );
        Ok(RequestStream { request_id, events, task })
    }

    fn request_options(
        &self,
        settings: &Settings,
        pending: &PendingInput,
        include_thinking: bool,
        cancel: CancelToken,
    ) -> RequestOptions {
        RequestOptions {
            session_id: self.id.clone(),
            model: Arc::clone(&self.model),
            model_name: settings.model_name.clone(),
            system: settings.system.clone(),
            temperature: settings.temperature,
            max_output_tokens: settings.max_output_tokens,
            output_format: settings.output_format.clone(),
            provider_options: settings.provider_options.clone(),
            max_turns: pending.max_turns,
            max_context_tokens: settings.max_context_tokens,
            include_thinking,
            snapshot: pending.snapshot.clone(),
            mode: settings.mode,
            sources: settings.sources.clone(),
            effects: self.effects.clone(),
            declarations: self.declarations.clone(),
            host_env: pending.host_env.clone(),
            cancel,
        }
    }

    async fn drive(
        self: Arc<Self>,
        options: RequestOptions,
        content: Content,
        request: RequestId,
        events: Arc<EventQueue>,
        ended: CancelToken,
    ) {
        tracing::debug!(model = &*options.model_name, "request started");
        let run = self.run(&options, content, &events);
        let report = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(report) => report,
            Err(_) => {
                tracing::error!("the request driver panicked");
                let error = Error::internal("the request driver panicked; this is a bug of the package");
                RequestReport { end: RequestEnd::Failed(error), records: Vec::new(), turns: 0 }
            }
        };
        note_end(&report);
        {
            let mut core = self.lock();
            core.records = report.records;
            core.turns = report.turns;
            core.failure = match &report.end {
                RequestEnd::Failed(error) => Some(error.clone()),
                RequestEnd::Completed { .. } | RequestEnd::Aborted => None,
            };
            core.active = None;
            if let Ok((state, _)) = step(&core.state, &Input::Ended(request)) {
                core.state = state;
            }
        }
        // The Session is idle before its consumer learns of the end, so that the next `send` is accepted. Whoever waits
        // for the cleanup learns of it last: a closed Session has nothing left to say.
        report.end.publish(&events);
        events.end();
        ended.cancel(CancelReason::Gone);
    }

    /// The request between its hooks.
    async fn run(&self, options: &RequestOptions, content: Content, events: &Arc<EventQueue>) -> RequestReport {
        let content = match self.submitted(content, &options.cancel).await {
            Ok(content) => content,
            Err(error) => {
                let aborted = options.cancel.is_cancelled();
                let end = if aborted { RequestEnd::Aborted } else { RequestEnd::Failed(error) };
                return RequestReport { end, records: Vec::new(), turns: 0 };
            }
        };
        let content = self.effects.with_prompts(content);
        self.conversation.push(Message::user(content.clone()));
        let mut report = run_request(options, &self.pipeline, &self.conversation, events).await;
        if let RequestEnd::Completed { text, .. } = &report.end
            && let Err(error) = self.completed(&content, text, &options.cancel).await
        {
            let aborted = options.cancel.is_cancelled();
            report.end = if aborted { RequestEnd::Aborted } else { RequestEnd::Failed(error) };
        }
        report
    }

    /// Cancels what is under way. The token resolves when the request has ended; `None` when there was none. Callbacks
    /// may go on behind it: see [`Session::settled`].
    pub fn abort(&self) -> Option<CancelToken> {
        self.cancel_with(&Input::Abort, CancelReason::Abort)
    }

    /// Cancels one request, if it is still under way; see [`Session::abort`].
    pub fn abort_request(&self, request: &RequestId) -> Option<CancelToken> {
        self.cancel_with(&Input::AbortRequest(request.clone()), CancelReason::Abort)
    }

    fn cancel_with(&self, input: &Input, reason: CancelReason) -> Option<CancelToken> {
        let mut core = self.lock();
        let Ok((state, effect)) = step(&core.state, input) else { return None };
        core.state = state;
        match effect {
            Effect::DropPending => {
                core.pending = None;
                None
            }
            Effect::Cancel => {
                let active = core.active.as_ref()?;
                let (cancel, ended) = (active.cancel.clone(), active.ended.clone());
                // Cancelling wakes tasks; nothing of ours is locked meanwhile.
                drop(core);
                cancel.cancel(reason);
                Some(ended)
            }
            // A request that is stopping already is waited for as well.
            _ => match (&core.state, input) {
                (State::Stopping(_) | State::Closing(Some(_)), Input::Abort | Input::Close) => {
                    core.active.as_ref().map(|active| active.ended.clone())
                }
                (State::Stopping(active) | State::Closing(Some(active)), Input::AbortRequest(one)) if active == one => {
                    core.active.as_ref().map(|active| active.ended.clone())
                }
                _ => None,
            },
        }
    }

    /// Waits for a cancelled request and then for what goes on behind it, callbacks of the application for instance, as
    /// long as one may clean up. What still goes on then is waited for by nobody but [`Session::close`]. `None` when
    /// there is nothing to wait for.
    pub fn settled(&self, ended: Option<CancelToken>) -> Option<impl Future<Output = ()> + Send + use<>> {
        let cleanup = self.pipeline.cleanup().clone();
        if ended.is_none() && cleanup.pending().is_empty() {
            return None;
        }
        Some(async move {
            // One grace for everything: what a cancelled call has used of it is not granted again.
            let deadline = tokio::time::Instant::now() + CLEANUP_GRACE;
            if let Some(ended) = ended {
                ended.cancelled().await;
            }
            let _ = tokio::time::timeout_at(deadline, cleanup.drained()).await;
        })
    }

    /// Closes at once when nothing has to be waited for. `false` means that [`Session::close`] has to be awaited.
    pub fn close_now(&self) -> bool {
        let quiet = self.pipeline.cleanup().pending().is_empty() && self.pipeline.artifacts().is_empty();
        if tools::holds_for_session(self.id.as_str()) || !quiet || self.hooks.has_end() {
            return false;
        }
        let mut core = self.lock();
        if !matches!(core.state, State::Idle | State::Pending(_) | State::Closed) {
            return false;
        }
        core.state = State::Closed;
        core.pending = None;
        drop(core);
        self.release();
        true
    }

    fn release(&self) {
        tools::forget_session(self.id.as_str());
        self.root.cancel(CancelReason::Close);
        self.observed.end();
    }

    /// Cancels what is under way, waits for it, and releases everything the Session holds. Can be called again after a
    /// failure.
    ///
    /// # Errors
    /// `SESSION_BUSY` when a callback or tool ignored its cancellation for too long.
    pub async fn close(&self) -> Result<()> {
        self.close_observed().instrument(self.observed.span().clone()).await
    }

    async fn close_observed(&self) -> Result<()> {
        // One grace for everything: what a cancelled call has used of it is not granted again.
        let deadline = tokio::time::Instant::now() + CLEANUP_GRACE;
        if let Some(ended) = self.cancel_with(&Input::Close, CancelReason::Close) {
            ended.cancelled().await;
        }
        let cleanup = self.pipeline.cleanup();
        if tokio::time::timeout_at(deadline, cleanup.drained()).await.is_err() {
            let names = cleanup.pending().join(", ");
            let mut core = self.lock();
            if let Ok((state, _)) = step(&core.state, &Input::CloseFailed) {
                core.state = state;
            }
            return Err(Error::new(
                ErrorCode::SessionBusy,
                format!("{names} is still cleaning up; call close again when it has settled"),
            ));
        }
        tools::close_session(self.id.as_str()).await;
        let ended = self.hooks.end("other").await;
        let input = if ended.is_ok() { Input::CloseDone } else { Input::CloseFailed };
        {
            let mut core = self.lock();
            if let Ok((state, _)) = step(&core.state, &input) {
                core.state = state;
            }
        }
        ended?;
        self.pipeline.artifacts().clear().await;
        self.release();
        Ok(())
    }

    /// Runs work that belongs to the Session in the background.
    pub fn background(&self, handle: Handle, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(work.instrument(self.observed.span().clone()), &handle);
    }

    /// Changes settings of later requests from JSON text.
    ///
    /// # Errors
    /// `CONFIG_ERROR` naming what is wrong; nothing was changed.
    pub fn change(&self, json: &str) -> Result<()> {
        let change = settings::Change::parse(json)?;
        if let Some(context) = &change.default_context {
            context::snapshot(self.id.as_str(), "", context.clone())?;
            // What the application says now is stronger than what tools said before.
            self.effects.forget_context();
        }
        change.apply(&mut self.lock().settings);
        Ok(())
    }

    /// Goes on with what effects of tools changed in another Session. Called before anything runs.
    pub fn inherit_effects(&mut self, from: &Self) {
        self.effects = Arc::new(from.effects.fork());
    }

    /// A copy of the conversation for a Session of its own.
    pub fn fork_conversation(&self) -> Conversation {
        Conversation::from_messages(self.conversation.snapshot())
    }

    /// The permission mode of later requests.
    pub fn mode(&self) -> PermissionMode {
        self.lock().settings.mode
    }
}

impl Drop for Session {
    /// A Session nobody holds any more cancels what it started, and ends its background shells.
    fn drop(&mut self) {
        self.root.cancel(CancelReason::Gone);
        let id = self.id.clone();
        tools::forget_session(id.as_str());
        if tools::holds_for_session(id.as_str())
            && let Ok(handle) = runtime()
        {
            self.tasks.spawn_on(async move { tools::close_session(id.as_str()).await }, &handle);
        }
    }
}

/// How a request ended, for the log. What was said in it stays out.
fn note_end(report: &RequestReport) {
    let turns = report.turns;
    match &report.end {
        RequestEnd::Completed { .. } => tracing::debug!(outcome = "completed", turns, "request ended"),
        RequestEnd::Aborted => tracing::debug!(outcome = "aborted", turns, "request ended"),
        RequestEnd::Failed(error) => {
            let (code, status, reason) = (error.code.as_str(), error.status, error.message.as_str());
            tracing::warn!(outcome = "failed", turns, code, status, reason, "request failed");
        }
    }
}

/// The runtime every Session shares.
///
/// # Errors
/// `INTERNAL` when the operating system refuses threads.
pub fn runtime() -> Result<Handle> {
    runtime::handle().map_err(|error| Error::internal(format!("the async runtime cannot start: {error}")))
}

fn refused(reason: Refused) -> Error {
    let (code, message) = match reason {
        Refused::Closed => (ErrorCode::SessionClosed, "Session is closed"),
        Refused::NothingPending => {
            (ErrorCode::SessionNoPendingMessage, "No pending message. Call send() before stream().")
        }
        Refused::AlreadyStreaming => (
            ErrorCode::SessionNoPendingMessage,
            "the request is already being streamed; read that stream to its end, then call send() before stream()",
        ),
        Refused::Mismatch => {
            (ErrorCode::SessionRequestMismatch, "expectedRequestId does not name the active request of this session")
        }
        Refused::OptionsUnsupported => (
            ErrorCode::SessionInputOptionsUnsupported,
            "signal, maxTurns and context belong to a new request; a request is under way",
        ),
        Refused::Busy => (
            ErrorCode::SessionSteeringUnavailable,
            "a request is under way; read its stream to the end or abort it before sending the next message",
        ),
    };
    Error::new(code, message)
}
