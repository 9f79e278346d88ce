//! The Session may not act any more: its lease is lost, or something it started cannot be shown to have ended.

use std::sync::{Arc, OnceLock};

use super::refusal::Refusal;
use super::{CallContext, Pipeline};
use crate::contract::{ExecutionLease, ToolError, ToolErrorType, ToolOutcome};
use crate::error::{Error, ErrorCode};

/// The first terminal failure of a pipeline. It is remembered for the pipeline's life: only a new Session starts clean.
#[derive(Debug, Default)]
pub(super) struct Quarantine {
    failure: OnceLock<ToolError>,
}

impl Quarantine {
    /// Remembers a failure; the first one stays.
    fn enter(&self, failure: &ToolError) {
        if self.failure.set(failure.clone()).is_ok() {
            tracing::error!(code = failure.code.as_deref().unwrap_or_default(), error = %failure.message,
                "no further tool runs in this session");
        }
    }

    fn refuse(&self) -> Result<(), Refusal> {
        match self.failure.get() {
            None => Ok(()),
            Some(failure) => Err(failure.clone().into()),
        }
    }
}

impl Pipeline {
    /// With the lease every call needs.
    #[must_use]
    pub fn with_lease(mut self, lease: Arc<dyn ExecutionLease>) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Why no call runs any more, once a terminal failure happened. Requests end with it.
    pub fn terminal_failure(&self) -> Option<Error> {
        self.quarantine.failure.get().map(|failure| {
            let details = serde_json::json!({ "toolError": failure });
            Error::new(ErrorCode::SessionQuarantined, failure.message.clone()).with_details(details)
        })
    }

    /// Nothing terminal has happened, and the lease is still held.
    pub(super) async fn may_act(&self, cx: &CallContext) -> Result<(), Refusal> {
        self.quarantine.refuse()?;
        let Some(lease) = &self.lease else { return Ok(()) };
        match cx.cancel.run_until(lease.verify()).await {
            Some(Ok(())) => Ok(()),
            None => Err(Refusal::cancelled(&cx.cancel)),
            Some(Err(error)) => {
                let message = format!("the execution lease of this session is lost: {}", error.message);
                let lost = ToolError::new(ToolErrorType::ExecutionError, message).with_code("EXECUTION_LEASE_LOST");
                self.quarantine.enter(&lost.terminal());
                self.quarantine.refuse()
            }
        }
    }

    /// Looks at how a call ended: a terminal failure is remembered.
    pub(super) fn note_end(&self, outcome: &ToolOutcome) {
        if let Some(error) = outcome.error().filter(|error| error.terminal) {
            self.quarantine.enter(error);
        }
    }
}
