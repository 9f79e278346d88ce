//! Settings a Session may change between requests.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::contract::PermissionMode;
use crate::model::Message;
use crate::registry::SourcePolicy;

/// What later requests are run with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Model name.
    pub model_name: Arc<str>,
    /// System prompt.
    pub system: Option<Arc<Message>>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Limit of answer tokens.
    pub max_output_tokens: Option<u64>,
    /// Context window, as configured.
    pub max_context_tokens: u64,
    /// Structured output.
    pub output_format: Option<Arc<RawValue>>,
    /// Options keyed by provider.
    pub provider_options: Option<Arc<Value>>,
    /// Most model calls of a request.
    pub max_turns: u32,
    /// Permission mode.
    pub mode: PermissionMode,
    /// Source policy.
    pub sources: SourcePolicy,
    /// Default runtime context.
    pub default_context: Value,
}
