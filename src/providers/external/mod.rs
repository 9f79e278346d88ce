//! Model answers made by code of the application: middleware around a model, later adapters in place of one.
//!
//! The core calls the code once for each model call through [`ModelPort`] and reads the chunks it pushes. The code may
//! ask the model it stands in front of, with a changed request, and pulls its chunks. Both directions are bounded
//! ([`Exchanges`]). Retries stay below, with the model; what the application sees is one answer.
//!
//! Invariants: whoever waits for something of an exchange is told when it is over; code that goes on after its call
//! keeps the cleanup gate shut; nothing of a call reaches the model once the call is over.

mod chunk;
mod exchange;
mod relay;
mod request;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::poll;
use tokio::time::{Instant, sleep_until, timeout};

use self::chunk::ChunkReader;
use self::exchange::Exchange;
use super::driver::aborted;
use super::model::{Advance, Model, ModelRequest, ModelSink, ModelStream};
use crate::contract::BoxFuture;
use crate::error::{Error, ErrorCode, Result};
use crate::host::{CancelReason, CancelToken, CleanupGate, Tasks};

pub use exchange::{Completions, Exchanges, Pushed};
pub use relay::Pulled;

/// How the code's part of a model call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is complete: every chunk was pushed before.
    Complete,
    /// It failed with the failure of the model it asked.
    ModelFailed,
}

/// Code of the application that answers model calls.
pub trait ModelPort: Send + Sync {
    /// Runs the code for one exchange; `request` is the JSON text of an outline. Contract: the code is told before this
    /// returns; the future resolves when it has settled, not before. Cancelling the token asks it to stop.
    ///
    /// # Errors
    /// The code threw, or its environment is gone.
    fn answer(&self, exchange: u32, request: String, cancel: CancelToken) -> BoxFuture<'static, Result<Outcome>>;
}

/// What holds for the code of one Session.
#[derive(Clone)]
pub struct ExternalOptions {
    /// What it is called when it does not stop: `model middleware`.
    pub name: &'static str,
    /// Code of its errors, where they are its own.
    pub code: ErrorCode,
    /// Longest silence: of the code, not of a model it waits for.
    pub silence: Duration,
}

/// The code of one Session.
#[derive(Clone)]
pub struct External {
    /// How it is reached.
    pub port: Arc<dyn ModelPort>,
    /// Its calls under way.
    pub exchanges: Arc<Exchanges>,
    /// What holds for it.
    pub options: ExternalOptions,
}

impl External {
    /// A model whose answers the code makes. `model` is what it may ask; `gate` stays shut while the code goes on
    /// after its call and after `grace`.
    pub fn model(self, model: Option<Arc<dyn Model>>, gate: CleanupGate, grace: Duration) -> Arc<dyn Model> {
        let shared = Arc::new(Shared { external: self, gate, grace, tasks: Tasks::new() });
        Arc::new(ExternalModel { shared, model })
    }
}

struct Shared {
    external: External,
    gate: CleanupGate,
    grace: Duration,
    tasks: Tasks,
}

struct ExternalModel {
    shared: Arc<Shared>,
    model: Option<Arc<dyn Model>>,
}

impl Model for ExternalModel {
    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Box<dyn ModelStream>>> {
        let started = ExternalStream::start(&self.shared, self.model.clone(), request, cancel);
        Box::pin(std::future::ready(started.map(|stream| Box::new(stream) as Box<dyn ModelStream>)))
    }
}

/// An answer in flight.
struct ExternalStream {
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    /// The code; `None` once it has settled.
    work: Option<BoxFuture<'static, Result<Outcome>>>,
    /// How it ended, once it has.
    outcome: Option<Result<Outcome>>,
    reader: ChunkReader,
    cancel: CancelToken,
}

impl ExternalStream {
    fn start(
        shared: &Arc<Shared>,
        model: Option<Arc<dyn Model>>,
        request: ModelRequest,
        cancel: &CancelToken,
    ) -> Result<Self> {
        let External { port, exchanges, .. } = &shared.external;
        let cancel = cancel.child();
        let exchange = exchanges.open(model, request.clone());
        let answer = exchanges.told.tell(&request, |text| port.answer(exchange.number, text, cancel.clone()));
        let (work, outcome) = match answer {
            Ok(work) => (Some(work), None),
            Err(error) => (None, Some(Err(error))),
        };
        Ok(Self { shared: Arc::clone(shared), exchange, work, outcome, reader: ChunkReader::default(), cancel })
    }

    async fn step(&mut self, sink: &mut dyn ModelSink) -> Result<Advance> {
        loop {
            if sink.is_full() {
                return Ok(Advance::Paused);
            }
            if let Some(batch) = self.exchange.take() {
                self.reader.read(&batch, sink).map_err(|why| self.malformed(&why))?;
                return Ok(Advance::More);
            }
            // What was pushed before the code settled was read above.
            match self.outcome.take() {
                None => {}
                Some(Ok(Outcome::Complete)) => {
                    self.reader.finish(sink).map_err(|why| self.malformed(&why))?;
                    return Ok(Advance::Done);
                }
                Some(Ok(Outcome::ModelFailed)) => {
                    return Err(self
                        .exchange
                        .relay
                        .failure()
                        .unwrap_or_else(|| self.malformed("the model did not fail")));
                }
                Some(Err(error)) => return Err(error),
            }
            let Some(work) = &mut self.work else {
                return Err(Error::new(ErrorCode::ModelStreamError, "the answer of the model is over already"));
            };
            let silence = self.shared.external.options.silence;
            tokio::select! {
                biased;
                outcome = work => {
                    self.work = None;
                    self.outcome = Some(outcome);
                }
                () = self.exchange.arrived() => {}
                () = self.cancel.cancelled() => return Err(aborted(&self.cancel)),
                () = silent(&self.exchange, silence) => {
                    self.cancel.cancel(CancelReason::Deadline);
                    return Err(self.shared.external.options.silent());
                }
            }
        }
    }

    /// Asks the code to stop, if it was not asked yet.
    fn give_up(&self) {
        if self.work.is_some() && !self.cancel.is_cancelled() {
            self.cancel.cancel(CancelReason::Gone);
        }
    }

    fn malformed(&self, why: &str) -> Error {
        let ExternalOptions { name, code, .. } = &self.shared.external.options;
        Error::new(*code, format!("{name} answered in the wrong form: {why}"))
    }
}

impl ExternalOptions {
    fn silent(&self) -> Error {
        let (name, ms) = (self.name, self.silence.as_millis());
        Error::new(ErrorCode::ModelStreamIdleTimeout, format!("{name} sent nothing for {ms} ms (streamIdleTimeoutMs)"))
    }
}

impl ModelStream for ExternalStream {
    fn advance<'a>(&'a mut self, sink: &'a mut dyn ModelSink) -> BoxFuture<'a, Result<Advance>> {
        Box::pin(self.step(sink))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.give_up();
            // The code hears its signal before it hears that its exchange is over.
            let settled = match &mut self.work {
                Some(work) => poll!(work).is_ready(),
                None => true,
            };
            self.shared.external.exchanges.close(&self.exchange, &aborted(&self.cancel));
            self.exchange.ended().await;
            if settled {
                self.work = None;
            } else if let Some(work) = &mut self.work
                && timeout(self.shared.grace, work).await.is_ok()
            {
                self.work = None;
            }
        })
    }
}

impl Drop for ExternalStream {
    fn drop(&mut self) {
        self.give_up();
        let Shared { external, gate, tasks, .. } = &*self.shared;
        external.exchanges.close(&self.exchange, &aborted(&self.cancel));
        let Some(work) = self.work.take() else { return };
        // Outside of the runtime nothing can be waited for; dropping the call aborts its signal all the same.
        if tokio::runtime::Handle::try_current().is_ok() {
            gate.finish_in_background(external.options.name, tasks, async move { drop(work.await) });
        }
    }
}

/// Resolves when the code has been silent for too long.
async fn silent(exchange: &Exchange, limit: Duration) {
    loop {
        let since = exchange.silent_since().unwrap_or_else(Instant::now);
        let until = since + limit;
        if until <= Instant::now() {
            return;
        }
        sleep_until(until).await;
    }
}
