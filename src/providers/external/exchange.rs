//! One model call between the core and code of the application: chunks of the answer come in, chunks of the model the
//! code may ask go out, both bounded.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::relay::{Pulled, Relay};
use super::request::{Told, changed};
use crate::error::{Error, ErrorCode, Result};
use crate::host::{CancelReason, CancelToken, Tasks};
use crate::providers::model::{Model, ModelRequest};

/// Code of the application waits above this many bytes of its chunks that were not read…
const MAX_BYTES: usize = 64 * 1024;
/// …or this many batches.
const MAX_BATCHES: usize = 16;

/// Completes operations that code of the application waits for.
pub trait Completions: Send + Sync {
    /// Something of the model is there: anything but [`Pulled::Wait`].
    fn pulled(&self, operation: u32, pulled: Pulled);
    /// There is room for more chunks, or nobody wants them any more.
    fn room(&self, operation: u32);
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// Taken, and there is room for more.
    Room,
    /// Taken; the operation is completed when there is room.
    Full,
    /// The answer is over: nobody wants it.
    Over,
}

/// The model calls under way of one Session, by number.
pub struct Exchanges {
    completions: Arc<dyn Completions>,
    open: Mutex<HashMap<u32, Arc<Exchange>>>,
    last: AtomicU32,
    pub(super) told: Told,
}

impl Exchanges {
    /// None yet.
    pub fn new(completions: Arc<dyn Completions>) -> Self {
        Self { completions, open: Mutex::default(), last: AtomicU32::new(0), told: Told::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<Exchange>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, number: u32) -> Option<Arc<Exchange>> {
        self.lock().get(&number).cloned()
    }

    /// Opens an exchange; `model` is what the code may ask.
    pub(super) fn open(&self, model: Option<Arc<dyn Model>>, request: ModelRequest) -> Arc<Exchange> {
        let number = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let exchange = Arc::new(Exchange {
            number,
            completions: Arc::clone(&self.completions),
            inbox: Inbox::default(),
            relay: Relay::default(),
            question: Mutex::new(model.map(|model| (model, request))),
            cancel: CancelToken::new(),
            tasks: Tasks::new(),
            task: Mutex::default(),
            active: Mutex::new(Instant::now()),
        });
        self.lock().insert(number, Arc::clone(&exchange));
        exchange
    }

    /// Forgets an exchange: whoever waits for something of it is told that it is over.
    pub(super) fn close(&self, exchange: &Exchange, why: &Error) {
        self.lock().remove(&exchange.number);
        exchange.shut(why);
    }

    /// Asks the model; `changes` is `{messages?, tools?}` as JSON text. What is wrong with them is told by `pull`.
    ///
    /// # Errors
    /// `ABORT` when the call is over, `INTERNAL` when it has no model or asked before.
    pub fn start(&self, number: u32, changes: &str, handle: &Handle) -> Result<()> {
        self.get(number).ok_or_else(over)?.start(changes, handle)
    }

    /// The next chunks of the model. `operation` is completed later when this is [`Pulled::Wait`].
    pub fn pull(&self, number: u32, operation: u32) -> Pulled {
        match self.get(number) {
            Some(exchange) => {
                exchange.touch();
                exchange.relay.pull(operation)
            }
            None => Pulled::Failed(over()),
        }
    }

    /// The code wants nothing more of the model.
    pub fn stop(&self, number: u32) {
        if let Some(exchange) = self.get(number) {
            exchange.cancel.cancel(CancelReason::Gone);
        }
    }

    /// Chunks of the answer, as the JSON text of their list.
    pub fn push(&self, number: u32, operation: u32, batch: String) -> Pushed {
        match self.get(number) {
            Some(exchange) => {
                exchange.touch();
                exchange.inbox.push(operation, batch)
            }
            None => Pushed::Over,
        }
    }
}

/// The answer is over: whoever goes on with it is late.
fn over() -> Error {
    Error::new(ErrorCode::Abort, "the model call is over")
}

/// One model call.
pub(super) struct Exchange {
    pub(super) number: u32,
    completions: Arc<dyn Completions>,
    inbox: Inbox,
    pub(super) relay: Relay,
    /// Taken when the model is asked.
    question: Mutex<Option<(Arc<dyn Model>, ModelRequest)>>,
    /// Of the model's part. Not below the request's token: the code hears its signal first, then that its model is gone.
    cancel: CancelToken,
    tasks: Tasks,
    task: Mutex<Option<JoinHandle<()>>>,
    /// When something was last heard from the code, or given to it.
    active: Mutex<Instant>,
}

impl Exchange {
    fn touch(&self) {
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Since when the code has been silent; `None` while it waits for the model, whose silence is bounded by itself.
    pub(super) fn silent_since(&self) -> Option<Instant> {
        if self.relay.is_awaited() {
            return None;
        }
        Some(*self.active.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn complete(&self, operation: u32, pulled: Pulled) {
        self.touch();
        self.completions.pulled(operation, pulled);
    }

    fn start(self: &Arc<Self>, changes: &str, handle: &Handle) -> Result<()> {
        let question = self.question.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((model, request)) = question else {
            return Err(Error::internal("a model call has one model at most, which is asked once"));
        };
        let request = match changed(request, changes) {
            Ok(request) => request,
            Err(error) => {
                self.relay.end(Err(error), &|operation, pulled| self.complete(operation, pulled));
                return Ok(());
            }
        };
        let this = Arc::clone(self);
        let work = async move {
            let complete = |operation, pulled| this.complete(operation, pulled);
            let run = this.relay.run(&*model, request, &this.cancel, &complete);
            if AssertUnwindSafe(run).catch_unwind().await.is_err() {
                tracing::error!("a model panicked; this is a bug of the package");
                this.relay.end(Err(Error::internal("the model panicked; this is a bug of the package")), &complete);
            }
        };
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.tasks.spawn_on(work, handle));
        Ok(())
    }

    /// The next batch of the answer.
    pub(super) fn take(&self) -> Option<String> {
        let (batch, writers) = self.inbox.take();
        if batch.is_some() {
            self.touch();
        }
        self.tell(writers);
        batch
    }

    fn tell(&self, writers: Vec<u32>) {
        for operation in writers {
            self.completions.room(operation);
        }
    }

    /// Resolves when a batch may be there.
    pub(super) async fn arrived(&self) {
        self.inbox.arrived.notified().await;
    }

    /// Ends both directions.
    fn shut(&self, why: &Error) {
        self.cancel.cancel(CancelReason::Gone);
        self.relay.end(Err(why.clone()), &|operation, pulled| self.complete(operation, pulled));
        let writers = self.inbox.close();
        self.tell(writers);
    }

    /// Waits until the model's part has ended.
    pub(super) async fn ended(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

/// Batches that were pushed and not read yet.
#[derive(Default)]
struct Inbox {
    state: Mutex<Batches>,
    arrived: Notify,
}

#[derive(Default)]
struct Batches {
    list: VecDeque<String>,
    bytes: usize,
    /// Operations of writers that wait for room.
    writers: Vec<u32>,
    closed: bool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Batches> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, operation: u32, batch: String) -> Pushed {
        let mut state = self.lock();
        if state.closed {
            return Pushed::Over;
        }
        state.bytes += batch.len();
        state.list.push_back(batch);
        let full = state.bytes >= MAX_BYTES || state.list.len() >= MAX_BATCHES;
        if full {
            state.writers.push(operation);
        }
        drop(state);
        self.arrived.notify_one();
        if full { Pushed::Full } else { Pushed::Room }
    }

    /// The next batch, and the writers that can go on.
    fn take(&self) -> (Option<String>, Vec<u32>) {
        let mut state = self.lock();
        let batch = state.list.pop_front();
        state.bytes -= batch.as_ref().map_or(0, String::len);
        // Not before everything was read: a writer that is woken for each batch costs a wake a batch.
        let writers = if state.list.is_empty() { std::mem::take(&mut state.writers) } else { Vec::new() };
        (batch, writers)
    }

    /// Gives up what was not read, and the writers that wait.
    fn close(&self) -> Vec<u32> {
        let mut state = self.lock();
        state.closed = true;
        state.list.clear();
        state.bytes = 0;
        std::mem::take(&mut state.writers)
    }
}
