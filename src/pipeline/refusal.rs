//! A call that ends before it ran.

use crate::contract::{ToolError, ToolErrorType, ToolFailure, ToolOutcome, ToolSuccess};
use crate::host::{CancelToken, CleanupGate};

/// The result of a call that a stage ended: nearly always a refusal, at times an answer in the tool's place.
#[derive(Debug)]
pub struct Refusal {
    /// The result.
    pub outcome: Box<ToolOutcome>,
    /// Whether the request ends after this turn.
    pub exit_loop: bool,
}

impl From<ToolFailure> for Refusal {
    fn from(failure: ToolFailure) -> Self {
        Self { outcome: Box::new(ToolOutcome::Error(failure)), exit_loop: false }
    }
}

impl From<ToolError> for Refusal {
    fn from(error: ToolError) -> Self {
        ToolFailure::from(error).into()
    }
}

impl Refusal {
    /// Refused by policy or by a person; the model's text says that the call was stopped.
    pub fn denied(message: impl Into<String>) -> Self {
        let message = message.into();
        ToolFailure::new(
            format!("Tool execution aborted: {message}"),
            ToolError::new(ToolErrorType::PermissionDenied, message).with_code("PERMISSION_DENIED"),
        )
        .into()
    }

    /// Answered in the tool's place.
    pub fn answered(text: String) -> Self {
        Self { outcome: Box::new(ToolOutcome::Success(ToolSuccess::new(text))), exit_loop: false }
    }

    /// Something that was cancelled still goes on, so nothing new may start.
    pub fn unless_quiet(gate: &CleanupGate) -> Result<(), Self> {
        match gate.pending().first() {
            None => Ok(()),
            Some(name) => Err(ToolError::new(
                ToolErrorType::ExecutionError,
                format!("{name} is still cleaning up; refusing to start another tool until it has settled"),
            )
            .with_code("CLEANUP_PENDING")
            .into()),
        }
    }

    /// Cancelled before it ran.
    pub fn cancelled(cancel: &CancelToken) -> Self {
        let why = cancel.reason().map_or_else(|| "the request was cancelled".to_owned(), |reason| reason.to_string());
        ToolFailure::new(
            format!("Tool execution aborted: {why}"),
            ToolError::new(ToolErrorType::Interrupted, why).with_code("ABORT"),
        )
        .into()
    }

    /// With what went wrong besides.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        if let (ToolOutcome::Error(failure), Some(other)) = (&mut *self.outcome, other.outcome.error()) {
            failure.error.message = format!("{}; {}", failure.error.message, other.message);
            failure.model = format!("Tool execution aborted: {}", failure.error.message).into();
            failure.error.details = Some(serde_json::json!({ "errors": [failure.error.message, other] }));
        }
        self
    }

    /// The request ends after this turn.
    #[must_use]
    pub fn ending_request(mut self) -> Self {
        self.exit_loop = true;
        self
    }
}
