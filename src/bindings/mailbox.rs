//! Everything that crosses between a Session and JavaScript besides its events: calls of callbacks, their aborts,
//! completions of the caller's promises, and entries for the logger.
//!
//! Rust appends entries and wakes the environment once; the facade drains them together and answers with `settle`.
//! Invariants: an entry is appended at most once to a closed mailbox's nothing; a call is settled at most once; an
//! answer to a call nobody waits for any more is dropped; when the environment ends, every waiting call fails.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::env::EnvPort;
use crate::contract::{ContextSnapshot, ToolContext, YieldSink};
use crate::error::{Cause, Error, ErrorCode};
use crate::host::log::Backlog;
use crate::pipeline::CoreCall;

/// Kinds of entries; `js/mailbox.js` reads them.
mod entry {
    pub const CALL: u8 = 0;
    pub const ABORT: u8 = 1;
    pub const DONE: u8 = 2;
    pub const READY: u8 = 3;
    pub const LOG: u8 = 4;
    pub const FORGET: u8 = 5;
}

/// What a callback gave back.
#[derive(Debug)]
pub enum Answer {
    /// A string, as it is.
    Text(String),
    /// JSON text.
    Json(String),
    /// It threw, or gave back something that is not JSON.
    Thrown(Cause),
}

/// What a callback is about.
#[derive(Clone)]
pub enum About {
    /// A tool that runs.
    Tool(Arc<ToolContext>),
    /// A tool call that middleware is around.
    Around {
        /// The call itself.
        core: Arc<CoreCall>,
        /// Where yields of the middleware go.
        yields: Arc<dyn YieldSink>,
        /// Runtime context of the call.
        snapshot: Arc<ContextSnapshot>,
    },
}

impl About {
    /// Where yields go.
    pub fn yields(&self) -> Arc<dyn YieldSink> {
        match self {
            Self::Tool(tool) => Arc::clone(&tool.yields),
            Self::Around { yields, .. } => Arc::clone(yields),
        }
    }

    /// Runtime context of the call.
    pub fn snapshot(&self) -> Arc<ContextSnapshot> {
        match self {
            Self::Tool(tool) => Arc::clone(&tool.snapshot),
            Self::Around { snapshot, .. } => Arc::clone(snapshot),
        }
    }
}

struct Waiting {
    answer: oneshot::Sender<Answer>,
    /// What the facade may ask about while the callback runs.
    about: Option<About>,
}

#[derive(Default)]
struct State {
    entries: String,
    log: Backlog,
    listed: bool,
    closed: bool,
    next_call: u32,
    calls: HashMap<u32, Waiting>,
}

/// The mailbox of a Session.
pub struct Mailbox {
    key: u32,
    env: Arc<EnvPort>,
    state: Mutex<State>,
}

impl Mailbox {
    pub(super) fn new(key: u32, env: Arc<EnvPort>) -> Self {
        Self { key, env, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The environment it belongs to.
    pub fn env(&self) -> &EnvPort {
        &self.env
    }

    fn post(self: &Arc<Self>, write: impl FnOnce(&mut String)) -> bool {
        self.append(|state| {
            state.entries.push(',');
            write(&mut state.entries);
        })
    }

    fn append(self: &Arc<Self>, add: impl FnOnce(&mut State)) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        add(&mut state);
        if std::mem::replace(&mut state.listed, true) {
            return true;
        }
        drop(state);
        self.env.announce(Arc::clone(self));
        true
    }

    /// Appends `,[key,entry…]` and forgets the entries.
    pub(super) fn drain_into(&self, text: &mut String) {
        let mut state = self.lock();
        state.listed = false;
        let entries = std::mem::take(&mut state.entries);
        let log: Vec<String> = state.log.take().collect();
        drop(state);
        if entries.is_empty() && log.is_empty() {
            return;
        }
        if text.len() > 1 {
            text.push(',');
        }
        let _ = write!(text, "[{}", self.key);
        // First, so that what a promise waited for was told of before it is settled.
        if !log.is_empty() {
            let _ = write!(text, ",[{},{}]", entry::LOG, log.join(","));
        }
        text.push_str(&entries);
        text.push(']');
    }

    /// Calls a callback: `arguments` is JSON text of the entry's tail, for instance `3,{"a":1},"call_1"`.
    pub fn call(self: &Arc<Self>, port: &str, arguments: &str, about: Option<About>) -> JsCall {
        let (answer, receiver) = oneshot::channel();
        let id = {
            let mut state = self.lock();
            state.next_call = state.next_call.wrapping_add(1);
            let id = state.next_call;
            if !state.closed {
                state.calls.insert(id, Waiting { answer, about });
            }
            id
        };
        self.post(|text| {
            let _ = write!(text, "[{},{id},\"{port}\",{arguments}]", entry::CALL);
        });
        JsCall { mailbox: Arc::clone(self), id, receiver, open: true }
    }

    /// Settles a call. `false` when it is unknown: settled before, or of a closed mailbox.
    pub fn settle(&self, id: u32, answer: Answer) -> bool {
        let waiting = self.lock().calls.remove(&id);
        // Sending wakes the waiting task, so it happens without the lock. A receiver that is gone is a late answer.
        waiting.is_some_and(|waiting| waiting.answer.send(answer).is_ok())
    }

    /// What a callback that still runs is about.
    pub fn about(&self, id: u32) -> Option<About> {
        self.lock().calls.get(&id).and_then(|waiting| waiting.about.clone())
    }

    /// How many calls wait for JavaScript.
    pub fn waiting_calls(&self) -> usize {
        self.lock().calls.len()
    }

    /// Completes a promise of the caller with JSON text, or rejects it with an error.
    pub fn complete(self: &Arc<Self>, operation: u32, result: Result<&str, &Error>) {
        self.post(|text| {
            let _ = match result {
                Ok(json) => write!(text, "[{},{operation},1,{json}]", entry::DONE),
                Err(error) => write!(text, "[{},{operation},0,{}]", entry::DONE, super::error::to_json(error)),
            };
        });
    }

    /// Tells the facade that its waiting iterator can take events.
    pub fn events_ready(self: &Arc<Self>) {
        self.post(|text| {
            let _ = write!(text, "[{}]", entry::READY);
        });
    }

    /// Tells the facade that nobody will name this observer of a tool call again.
    pub fn forget(self: &Arc<Self>, observer: u32) {
        self.post(|text| {
            let _ = write!(text, "[{},{observer}]", entry::FORGET);
        });
    }

    /// Tells the logger. Nobody waits for it, and what does not get there in time is counted.
    pub fn log(self: &Arc<Self>, session: &Arc<str>, entry: String) {
        self.append(|state| state.log.push(session, entry));
    }

    /// The environment ended, or the Session is gone: every waiting call fails and nothing is said any more.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.entries = String::new();
        state.log = Backlog::default();
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        drop(calls);
    }

    /// Closes and leaves the environment's list.
    pub fn retire(&self) {
        self.close();
        self.env.forget(self.key);
    }
}

/// A call under way. Dropping it before it is answered aborts the callback's signal.
pub struct JsCall {
    mailbox: Arc<Mailbox>,
    id: u32,
    receiver: oneshot::Receiver<Answer>,
    open: bool,
}

impl JsCall {
    /// Waits for the answer. Cancel-safe: it can be awaited again.
    ///
    /// # Errors
    /// `HOST_GONE` when the environment ended.
    pub async fn answer(&mut self) -> Result<Answer, Error> {
        let answer = (&mut self.receiver).await;
        self.open = false;
        answer.map_err(|_| Error::new(ErrorCode::HostGone, "the JavaScript environment of this callback has ended"))
    }

    /// Aborts the signal the callback was given.
    pub fn abort(&self, reason: &str) {
        let reason = serde_json::to_string(reason).unwrap_or_else(|_| "\"\"".to_owned());
        self.mailbox.post(|text| {
            let _ = write!(text, "[{},{},{reason}]", entry::ABORT, self.id);
        });
    }
}

impl Drop for JsCall {
    fn drop(&mut self) {
        if self.open {
            // Nobody waits for the answer: a callback that never settles leaves nothing behind.
            self.mailbox.lock().calls.remove(&self.id);
            self.abort("the call is no longer waited for");
        }
    }
}
