//! One answer over several attempts: waits, retries while nothing was delivered, and observes cancellation.

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::failure::Failure;
use super::model::{Advance, FinishReason, ModelRequest, ModelSink, ModelStream};
use super::retry::{Attempts, Decision, RetryPolicy, decide};
use crate::contract::BoxFuture;
use crate::error::{Cause, Error, ErrorCode, Result};
use crate::host::CancelToken;
use crate::model::{ModelUsage, ToolCall};

/// What an adapter implements: single attempts, without retries.
pub(super) trait Endpoint: Send + Sync {
    /// Sends the request once and resolves when the provider has accepted it. `max_output_tokens` replaces the one of
    /// the request. The future is dropped on cancellation and owns whatever has to be closed then.
    fn start(
        &self,
        request: &Arc<ModelRequest>,
        max_output_tokens: Option<u64>,
    ) -> BoxFuture<'static, std::result::Result<Box<dyn Attempt>, Failure>>;
}

/// One answer in flight. Contract: like [`ModelStream::advance`], with failures that are still classified.
pub(super) trait Attempt: Send {
    /// One step.
    fn advance<'a>(&'a mut self, sink: &'a mut dyn ModelSink) -> BoxFuture<'a, std::result::Result<Advance, Failure>>;
}

/// The stream the agent loop sees.
pub(super) struct RetryingStream {
    endpoint: Arc<dyn Endpoint>,
    request: Arc<ModelRequest>,
    policy: RetryPolicy,
    cancel: CancelToken,
    attempts: Attempts,
    max_output_tokens: Option<u64>,
    /// Whether the consumer has seen output; from then on nothing is tried again.
    delivered: bool,
    state: State,
}

/// Kept between calls, so that a dropped future of [`ModelStream::advance`] loses no connection and no wait.
enum State {
    Starting(BoxFuture<'static, std::result::Result<Box<dyn Attempt>, Failure>>),
    Waiting(Instant),
    Running(Box<dyn Attempt>),
    Over,
}

impl RetryingStream {
    /// Starts the answer and resolves when the provider has accepted the request.
    pub(super) async fn open(
        endpoint: Arc<dyn Endpoint>,
        request: ModelRequest,
        policy: RetryPolicy,
        cancel: &CancelToken,
    ) -> Result<Box<dyn ModelStream>> {
        let request = Arc::new(request);
        let max_output_tokens = request.max_output_tokens;
        let state = State::Starting(endpoint.start(&request, max_output_tokens));
        let attempts = Attempts::default();
        let cancel = cancel.clone();
        let mut stream =
            Self { endpoint, request, policy, cancel, attempts, max_output_tokens, delivered: false, state };
        let cancel = stream.cancel.clone();
        match cancel.run_until(stream.accepted()).await {
            None => Err(aborted(&cancel)),
            Some(Err(error)) => Err(error),
            Some(Ok(())) => Ok(Box::new(stream)),
        }
    }

    /// Moves on until an attempt is running.
    async fn accepted(&mut self) -> Result<()> {
        loop {
            match &mut self.state {
                State::Running(_) => return Ok(()),
                State::Over => {
                    return Err(Error::new(ErrorCode::ModelStreamError, "the answer of the model is over already"));
                }
                State::Waiting(until) => {
                    sleep_until(*until).await;
                    self.state = State::Starting(self.endpoint.start(&self.request, self.max_output_tokens));
                }
                State::Starting(start) => match start.await {
                    Ok(attempt) => self.state = State::Running(attempt),
                    Err(failure) => self.failed(failure)?,
                },
            }
        }
    }

    /// Decides what follows a failure; an error is final.
    fn failed(&mut self, failure: Failure) -> Result<()> {
        // The broken attempt is dropped here, which closes its connection before any wait.
        self.state = State::Over;
        if self.delivered {
            return Err(broken_after_output(failure.error));
        }
        match decide(&self.policy, &mut self.attempts, failure, fastrand::f64()) {
            Decision::Fail(error) => return Err(error),
            Decision::Wait(wait) => {
                tracing::debug!(
                    retry = self.attempts.retries,
                    wait_ms = wait.as_millis() as u64,
                    "model call is retried"
                );
                self.state = State::Waiting(Instant::now() + wait);
            }
            Decision::LowerAnswerLimit(limit) => {
                self.max_output_tokens = Some(limit);
                self.state = State::Waiting(Instant::now());
            }
        }
        Ok(())
    }

    async fn step(&mut self, sink: &mut dyn ModelSink) -> Result<Advance> {
        loop {
            self.accepted().await?;
            let State::Running(attempt) = &mut self.state else { continue };
            let mut watch = Watch { sink, delivered: &mut self.delivered };
            match attempt.advance(&mut watch).await {
                Ok(Advance::Done) => {
                    self.state = State::Over;
                    return Ok(Advance::Done);
                }
                Ok(other) => return Ok(other),
                Err(failure) => self.failed(failure)?,
            }
        }
    }
}

impl ModelStream for RetryingStream {
    fn advance<'a>(&'a mut self, sink: &'a mut dyn ModelSink) -> BoxFuture<'a, Result<Advance>> {
        Box::pin(async move {
            let cancel = self.cancel.clone();
            match cancel.run_until(self.step(sink)).await {
                Some(outcome) => outcome,
                None => {
                    self.state = State::Over;
                    Err(aborted(&cancel))
                }
            }
        })
    }
}

/// The error of a call that was cancelled.
pub(super) fn aborted(cancel: &CancelToken) -> Error {
    let reason = cancel.reason().map_or_else(|| "the request was aborted".to_owned(), |reason| reason.to_string());
    Error::new(ErrorCode::Abort, reason)
}

/// Failures after output keep what the provider said as their cause. Timeouts and malformed answers keep their code.
fn broken_after_output(error: Error) -> Error {
    match error.code {
        ErrorCode::ModelHttpError | ErrorCode::ModelConnectionError => {}
        _ => return error,
    }
    let cause = error.cause.clone().map_or_else(
        || Cause {
            name: "ModelError".to_owned(),
            message: error.message.clone(),
            code: Some(error.code.as_str().to_owned()),
            stack: None,
        },
        |cause| *cause,
    );
    let mut outer = Error::new(ErrorCode::ModelStreamError, error.message).with_cause(cause);
    outer.status = error.status;
    outer
}

/// Notes whether anything that a consumer can see went by.
struct Watch<'a> {
    sink: &'a mut dyn ModelSink,
    delivered: &'a mut bool,
}

impl ModelSink for Watch<'_> {
    fn text(&mut self, delta: &str) {
        *self.delivered = true;
        self.sink.text(delta);
    }

    fn thinking(&mut self, delta: &str) {
        *self.delivered = true;
        self.sink.thinking(delta);
    }

    fn tool_call(&mut self, call: ToolCall) {
        *self.delivered = true;
        self.sink.tool_call(call);
    }

    fn usage(&mut self, usage: ModelUsage) {
        self.sink.usage(usage);
    }

    fn finish(&mut self, reason: FinishReason) {
        self.sink.finish(reason);
    }

    fn is_full(&self) -> bool {
        self.sink.is_full()
    }
}
