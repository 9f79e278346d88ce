//! A call that ends before it ran.

use crate::contract::{ToolError, ToolErrorType, ToolFailure};
use crate::host::CancelToken;

/// The result of a call that a stage refused.
#[derive(Debug)]
pub struct Refusal {
    /// What the model is told.
    pub failure: Box<ToolFailure>,
    /// Whether the request ends after this turn.
    pub exit_loop: bool,
}

impl From<ToolFailure> for Refusal {
    fn from(failure: ToolFailure) -> Self {
        Self { failure: Box::new(failure), exit_loop: false }
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

    /// Cancelled before it ran.
    pub fn cancelled(cancel: &CancelToken) -> Self {
        let why = cancel.reason().map_or_else(|| "the request was cancelled".to_owned(), |reason| reason.to_string());
        ToolFailure::new(
            format!("Tool execution aborted: {why}"),
            ToolError::new(ToolErrorType::Interrupted, why).with_code("ABORT"),
        )
        .into()
    }

    /// The request ends after this turn.
    #[must_use]
    pub fn ending_request(mut self) -> Self {
        self.exit_loop = true;
        self
    }
}
