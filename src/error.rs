//! The public error: a stable code, a message that says what to do, and the cause it came from.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Stable, machine-readable reason of an [`Error`]. The text form is what JavaScript sees as `error.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The request was cancelled by the caller.
    Abort,
    /// An option has a value that cannot be honoured.
    ConfigError,
    /// A broken invariant of this package (never the caller's fault).
    Internal,
    /// Whole model request took longer than `requestTimeoutMs`.
    ModelRequestTimeout,
    /// The model stream was silent for longer than `streamIdleTimeoutMs`.
    ModelStreamIdleTimeout,
    /// The provider answered with an HTTP error status that was not, or no longer, retried.
    ModelHttpError,
    /// The provider could not be reached (name resolution, connection, TLS, broken transfer).
    ModelConnectionError,
    /// The provider's stream broke after output had been delivered, or carried an error.
    ModelStreamError,
    /// The provider's answer was not of the documented form.
    ModelProtocolError,
    /// Retrying cannot help or the limit of retries was reached for overload answers.
    CannotRetry,
    /// The model request itself breaks a rule of the protocol (found before it was sent).
    InvalidRequest,
    /// Model middleware of the application failed, or answered in the wrong form.
    ModelMiddlewareFailed,
    /// No adapter is registered for a provider type.
    ProviderAdapterNotFound,
    /// The turn limit of the request was reached.
    MaxTurnsExceeded,
    /// A model answer ended early because of the token limit, a filter or a refusal.
    ModelAnswerIncomplete,
    /// `send` named another request than the active one.
    SessionRequestMismatch,
    /// An input option is not allowed in the current state.
    SessionInputOptionsUnsupported,
    /// The Session has a request in flight and cannot take this input.
    SessionSteeringUnavailable,
    /// The Session is closed.
    SessionClosed,
    /// `stream` was called without a pending request.
    SessionNoPendingMessage,
    /// Callbacks or tools are still cleaning up; closing can be tried again.
    SessionBusy,
    /// Callbacks of an event took longer than their deadline.
    HookTimeout,
    /// A hook aborted what it was asked about.
    HookAborted,
    /// A JavaScript callback cannot be reached any more (its environment ended).
    HostGone,
    /// A tool call failed outside of a Session (direct execution).
    ToolExecutionError,
    /// Tool arguments do not match the tool's schema.
    ToolValidationError,
    /// A running tool yielded something that is no progress, message or effect, or a malformed effect.
    InvalidToolYield,
    /// A tool definition cannot be registered.
    ToolDefinitionError,
    /// An observer of tool calls could not store a boundary, so what comes after it did not happen.
    ToolLifecycleFailed,
    /// Middleware around a tool call threw or broke one of its rules.
    ToolMiddlewareFailed,
    /// A terminal failure happened in this Session: no tool runs in it any more.
    SessionQuarantined,
}

impl ErrorCode {
    /// The public text of the code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "ABORT",
            Self::ConfigError => "CONFIG_ERROR",
            Self::Internal => "INTERNAL",
            Self::ModelRequestTimeout => "MODEL_REQUEST_TIMEOUT",
            Self::ModelStreamIdleTimeout => "MODEL_STREAM_IDLE_TIMEOUT",
            Self::ModelHttpError => "MODEL_HTTP_ERROR",
            Self::ModelConnectionError => "MODEL_CONNECTION_ERROR",
            Self::ModelStreamError => "MODEL_STREAM_ERROR",
            Self::ModelProtocolError => "MODEL_PROTOCOL_ERROR",
            Self::CannotRetry => "CANNOT_RETRY",
            Self::InvalidRequest => "INVALID_MODEL_REQUEST",
            Self::ModelMiddlewareFailed => "MODEL_MIDDLEWARE_FAILED",
            Self::ProviderAdapterNotFound => "PROVIDER_ADAPTER_NOT_FOUND",
            Self::MaxTurnsExceeded => "MAX_TURNS_EXCEEDED",
            Self::ModelAnswerIncomplete => "MODEL_ANSWER_INCOMPLETE",
            Self::SessionRequestMismatch => "SESSION_REQUEST_MISMATCH",
            Self::SessionInputOptionsUnsupported => "SESSION_INPUT_OPTIONS_UNSUPPORTED",
            Self::SessionSteeringUnavailable => "SESSION_STEERING_UNAVAILABLE",
            Self::SessionClosed => "SESSION_CLOSED",
            Self::SessionNoPendingMessage => "SESSION_NO_PENDING_MESSAGE",
            Self::SessionBusy => "SESSION_BUSY",
            Self::HookTimeout => "HOOK_TIMEOUT",
            Self::HookAborted => "HOOK_ABORTED",
            Self::HostGone => "HOST_GONE",
            Self::ToolExecutionError => "TOOL_EXECUTION_ERROR",
            Self::ToolValidationError => "TOOL_VALIDATION_ERROR",
            Self::InvalidToolYield => "INVALID_TOOL_YIELD",
            Self::ToolDefinitionError => "TOOL_DEFINITION_ERROR",
            Self::ToolLifecycleFailed => "TOOL_LIFECYCLE_FAILED",
            Self::ToolMiddlewareFailed => "TOOL_MIDDLEWARE_FAILED",
            Self::SessionQuarantined => "SESSION_QUARANTINED",
        }
    }
}

/// What was thrown on the other side of a boundary, kept as data: a JavaScript error, or a system error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cause {
    /// Class name of the thrown error, for instance `TypeError`.
    pub name: String,
    /// Its message.
    pub message: String,
    /// Its stack trace, where it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Its `code`, where it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

/// The error every public operation rejects with.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// Stable code.
    pub code: ErrorCode,
    /// Lower-case sentence that names the value and what would work.
    pub message: String,
    /// HTTP status of the provider, for provider errors.
    pub status: Option<u16>,
    /// What led here, as data.
    pub cause: Option<Box<Cause>>,
    /// Further facts for programs (for instance `providerType`), as a JSON object.
    pub details: Option<Box<Value>>,
}

impl Error {
    /// An error with a code and a message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), status: None, cause: None, details: None }
    }

    /// An option that cannot be honoured.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ConfigError, message)
    }

    /// A broken invariant; `what` names it.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, what)
    }

    /// Adds the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds what led here.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// Adds facts for programs.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Result of a public operation.
pub type Result<T> = std::result::Result<T, Error>;
