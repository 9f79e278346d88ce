//! What a call gives back.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Class of a tool error; decides how callers react.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorType {
    /// The arguments, or a precondition they name, do not hold.
    ValidationError,
    /// Not allowed.
    PermissionDenied,
    /// It ran and failed.
    ExecutionError,
    /// It was cancelled.
    Interrupted,
    /// It took too long.
    TimeoutError,
    /// The network failed.
    NetworkError,
}

impl ToolErrorType {
    /// The public text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ValidationError => "validation_error",
            Self::PermissionDenied => "permission_denied",
            Self::ExecutionError => "execution_error",
            Self::Interrupted => "interrupted",
            Self::TimeoutError => "timeout_error",
            Self::NetworkError => "network_error",
        }
    }
}

/// What went wrong in a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolError {
    /// Sentence for people and programs' logs.
    pub message: String,
    /// Class.
    #[serde(rename = "type")]
    pub kind: ToolErrorType,
    /// Stable code, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Facts as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether nothing may run after it in the same Session, because it is not known what still runs. See
    /// [`ToolError::terminal`].
    #[serde(skip)]
    pub terminal: bool,
}

impl ToolError {
    /// An error of a class.
    pub fn new(kind: ToolErrorType, message: impl Into<String>) -> Self {
        Self { message: message.into(), kind, code: None, details: None, terminal: false }
    }

    /// Marks an error after which the Session must not run another tool: the work cannot be shown to have ended, or
    /// the right to act was lost. Every later call fails with it.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// With a stable code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// With facts.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// Content written back to the model: text as it is, or JSON text.
#[derive(Debug, Clone)]
pub enum ModelContent {
    /// Plain text.
    Text(String),
    /// A JSON value as text, kept as produced.
    Json(Box<RawValue>),
}

impl ModelContent {
    /// JSON content from a value.
    pub fn json(value: &Value) -> Self {
        match serde_json::value::to_raw_value(value) {
            Ok(raw) => Self::Json(raw),
            // A `Value` always serialises; the text form is a safe stand-in should that ever change.
            Err(_) => Self::Text(value.to_string()),
        }
    }

    /// What the model reads.
    pub fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Json(raw) => raw.get(),
        }
    }

    /// As one JSON value: text becomes a JSON string.
    pub fn to_raw(&self) -> Box<RawValue> {
        match self {
            Self::Text(text) => serde_json::value::to_raw_value(text).unwrap_or_default(),
            Self::Json(raw) => raw.clone(),
        }
    }

    /// Whether it says nothing (`""` or `null`).
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Json(raw) => matches!(raw.get().trim(), "null" | "\"\""),
        }
    }
}

impl Serialize for ModelContent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Json(raw) => raw.serialize(serializer),
        }
    }
}

impl From<String> for ModelContent {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ModelContent {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Value> for ModelContent {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            other => Self::json(&other),
        }
    }
}

/// Content for a user interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Display {
    /// One line.
    pub summary: String,
    /// Anything more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

/// Facts about a result, for programs.
pub type Metadata = Map<String, Value>;

/// A call that ended well.
#[derive(Debug, Clone, Serialize)]
pub struct ToolSuccess {
    /// What the model is told.
    pub model: ModelContent,
    /// What a user interface may show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<Display>,
    /// Structured data for the caller; never sent to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    /// Facts about the result.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Metadata,
}

impl ToolSuccess {
    /// Success with content for the model alone.
    pub fn new(model: impl Into<ModelContent>) -> Self {
        Self { model: model.into(), display: None, data: None, metadata: Map::new() }
    }

    /// With metadata; `metadata` must be a JSON object, anything else is ignored.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Value) -> Self {
        if let Value::Object(map) = metadata {
            self.metadata = map;
        }
        self
    }
}

/// A call that ended badly.
#[derive(Debug, Clone, Serialize)]
pub struct ToolFailure {
    /// What the model is told.
    pub model: ModelContent,
    /// What a user interface may show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<Display>,
    /// What went wrong.
    pub error: ToolError,
    /// Facts about the result.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Metadata,
}

impl ToolFailure {
    /// Failure whose text for the model differs from the error's message.
    pub fn new(model: impl Into<ModelContent>, error: ToolError) -> Self {
        Self { model: model.into(), display: None, error, metadata: Map::new() }
    }

    /// With metadata; `metadata` must be a JSON object, anything else is ignored.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Value) -> Self {
        if let Value::Object(map) = metadata {
            self.metadata = map;
        }
        self
    }
}

impl From<ToolError> for ToolFailure {
    /// The model is told the message.
    fn from(error: ToolError) -> Self {
        Self::new(error.message.clone(), error)
    }
}

/// The end of a call.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum ToolOutcome {
    /// It worked.
    Success(ToolSuccess),
    /// It did not.
    Error(ToolFailure),
}

impl ToolOutcome {
    /// What the model is told.
    pub fn model(&self) -> &ModelContent {
        match self {
            Self::Success(success) => &success.model,
            Self::Error(failure) => &failure.model,
        }
    }

    /// What the model is told, to be changed.
    pub fn model_mut(&mut self) -> &mut ModelContent {
        match self {
            Self::Success(success) => &mut success.model,
            Self::Error(failure) => &mut failure.model,
        }
    }

    /// Whether the call failed.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// The error of a failed call.
    pub fn error(&self) -> Option<&ToolError> {
        match self {
            Self::Success(_) => None,
            Self::Error(failure) => Some(&failure.error),
        }
    }

    /// Display content.
    pub fn display(&self) -> Option<&Display> {
        match self {
            Self::Success(success) => success.display.as_ref(),
            Self::Error(failure) => failure.display.as_ref(),
        }
    }

    /// Facts about the result.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        match self {
            Self::Success(success) => &mut success.metadata,
            Self::Error(failure) => &mut failure.metadata,
        }
    }
}

impl From<Result<ToolSuccess, ToolFailure>> for ToolOutcome {
    fn from(result: Result<ToolSuccess, ToolFailure>) -> Self {
        match result {
            Ok(success) => Self::Success(success),
            Err(failure) => Self::Error(failure),
        }
    }
}
