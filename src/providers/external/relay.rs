//! The answer of a model, read by code of the application: chunks wait here until it asks for them, and the model waits
//! while too many do.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::chunk::ChunkWriter;
use crate::error::{Error, Result};
use crate::host::CancelToken;
use crate::model::{ModelUsage, ToolCall};
use crate::providers::driver::aborted;
use crate::providers::model::{Advance, FinishReason, Model, ModelRequest, ModelSink, advance_eagerly};

/// The model waits above this many bytes of chunks…
const MAX_BYTES: usize = 64 * 1024;
/// …or this many chunks.
const MAX_CHUNKS: usize = 512;
/// A reader that waits is told once this many chunks are there, even while more are at hand.
const EAGER_CHUNKS: usize = 64;

/// What a reader gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Pulled {
    /// Chunks, as the JSON text of their list.
    Chunks(String),
    /// The answer is complete.
    End,
    /// It failed.
    Failed(Error),
    /// Nothing yet; the operation is completed when there is.
    Wait,
}

#[derive(Default)]
struct State {
    chunks: ChunkWriter,
    end: Option<Result<()>>,
    /// Operations of readers that wait.
    readers: Vec<u32>,
}

/// Completes an operation of a reader. Called without a lock.
type Complete<'a> = &'a (dyn Fn(u32, Pulled) + Send + Sync);

/// Chunks between a model and a reader.
#[derive(Default)]
pub(super) struct Relay {
    state: Mutex<State>,
    room: Notify,
}

impl Relay {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is there; registers the operation where nothing is.
    pub(super) fn pull(&self, operation: u32) -> Pulled {
        let mut state = self.lock();
        let pulled = next(&mut state);
        match pulled {
            Pulled::Wait => state.readers.push(operation),
            Pulled::Chunks(_) => self.room.notify_one(),
            Pulled::End | Pulled::Failed(_) => {}
        }
        pulled
    }

    /// Whether a reader waits for the model.
    pub(super) fn is_awaited(&self) -> bool {
        !self.lock().readers.is_empty()
    }

    /// Why the answer failed, if it did.
    pub(super) fn failure(&self) -> Option<Error> {
        self.lock().end.as_ref().and_then(|end| end.as_ref().err().cloned())
    }

    /// The end, once: nothing of the model follows.
    pub(super) fn end(&self, outcome: Result<()>, complete: Complete<'_>) {
        self.lock().end.get_or_insert(outcome);
        self.room.notify_one();
        self.flush(complete);
    }

    /// Tells the readers that wait what is there.
    fn flush(&self, complete: Complete<'_>) {
        loop {
            let mut state = self.lock();
            if state.readers.is_empty() {
                return;
            }
            let pulled = next(&mut state);
            if pulled == Pulled::Wait {
                return;
            }
            let reader = state.readers.remove(0);
            drop(state);
            complete(reader, pulled);
        }
    }

    fn len(&self) -> usize {
        self.lock().chunks.len()
    }

    fn is_full(&self) -> bool {
        let state = self.lock();
        state.chunks.len() >= MAX_CHUNKS || state.chunks.bytes() >= MAX_BYTES
    }

    async fn room(&self) {
        while self.is_full() {
            self.room.notified().await;
        }
    }

    /// Reads a model's answer to its end.
    pub(super) async fn run(
        &self,
        model: &dyn Model,
        request: ModelRequest,
        cancel: &CancelToken,
        complete: Complete<'_>,
    ) {
        let read = async {
            let mut stream = model.stream(request, cancel).await?;
            let outcome = loop {
                match advance_eagerly(stream.as_mut(), &mut Sink(self), || self.flush(complete)).await {
                    Ok(Advance::More) if self.len() < EAGER_CHUNKS => {}
                    Ok(Advance::More) => self.flush(complete),
                    Ok(Advance::Paused) => {
                        self.flush(complete);
                        self.room().await;
                    }
                    Ok(Advance::Done) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            stream.close().await;
            outcome
        };
        let outcome = cancel.run_until(read).await.unwrap_or_else(|| Err(aborted(cancel)));
        self.end(outcome, complete);
    }
}

/// What comes next. Chunks are seen before the end that follows them.
fn next(state: &mut State) -> Pulled {
    match (state.chunks.take(), &state.end) {
        (Some(batch), _) => Pulled::Chunks(batch),
        (None, None) => Pulled::Wait,
        (None, Some(Ok(()))) => Pulled::End,
        (None, Some(Err(error))) => Pulled::Failed(error.clone()),
    }
}

struct Sink<'a>(&'a Relay);

impl ModelSink for Sink<'_> {
    fn text(&mut self, delta: &str) {
        self.0.lock().chunks.text(delta);
    }

    fn thinking(&mut self, delta: &str) {
        self.0.lock().chunks.thinking(delta);
    }

    fn tool_call(&mut self, call: ToolCall) {
        self.0.lock().chunks.call(&call);
    }

    fn usage(&mut self, usage: ModelUsage) {
        self.0.lock().chunks.usage(&usage);
    }

    fn finish(&mut self, reason: FinishReason) {
        self.0.lock().chunks.reason(&reason);
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }
}
