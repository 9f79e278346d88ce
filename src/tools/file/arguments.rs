//! What the arguments of the three tools have in common.

use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::contract::{PrepareContext, Rewrites, Subject, ToolError, ToolErrorType, ToolFailure};
use crate::tools::paths::{Missing, Roots, denied};

/// How text and bytes cross the border.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Text.
    #[default]
    Utf8,
    /// Bytes as base64.
    Base64,
    /// Bytes as the characters U+0000 to U+00FF.
    Binary,
}

impl Encoding {
    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Base64 => "base64",
            Self::Binary => "binary",
        }
    }
}

/// An integer as JSON Schema means it: `5.0` is one too.
pub fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    // The schema has checked that the number is whole and not negative; what is too large means "beyond any file".
    let number = Option::<serde_json::Number>::deserialize(deserializer)?;
    Ok(number.map(|number| number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as u64)))
}

/// Replaces `file_path` by its canonical form inside the roots.
///
/// # Errors
/// `validation_error`: the path is relative. `permission_denied`: it is outside, or cannot be resolved.
pub async fn authorize(path: &str, missing: Missing, cx: &PrepareContext) -> Result<Rewrites, ToolFailure> {
    if !Path::new(path).is_absolute() {
        return Err(invalid("file_path", "Path must be absolute", path));
    }
    let (given, snapshot) = (path.to_owned(), cx.snapshot.clone());
    let canonical = cx.blocking(move |_| Roots::from_snapshot(&snapshot)?.resolve(&given, missing)).await??;
    match canonical.to_str() {
        Some(text) if text == path => Ok(Rewrites::new()),
        Some(text) => Ok(vec![("file_path", text.into())]),
        // Its name could not be told to anybody without becoming another one.
        None => Err(denied(format!(
            "Unable to resolve filesystem path \"{path}\": its real name is not valid UTF-8; rename it"
        ))),
    }
}

/// A validation failure with one issue, in the form of a schema failure.
pub fn invalid(field: &str, message: &str, value: &str) -> ToolFailure {
    ToolError::new(ToolErrorType::ValidationError, format!("invalid arguments [{field}]: {message}"))
        .with_code("TOOL_VALIDATION_ERROR")
        .with_details(json!({ "issues": [{ "field": field, "message": message, "value": value }] }))
        .into()
}

/// What permissions judge a call on one file by.
pub fn subject(path: &str) -> Subject {
    let (content, affected_paths) = (Some(path.to_owned()), vec![path.to_owned()]);
    Subject { content, affected_paths, canonical: true, ..Subject::default() }
}
