//! Settings a Session may change between requests.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::config::positive;
use crate::contract::PermissionMode;
use crate::error::{Error, Result};
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

/// A change of settings, as it arrives.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Change {
    model: Option<String>,
    permission_mode: Option<PermissionMode>,
    max_turns: Option<f64>,
    /// New default context.
    pub default_context: Option<Value>,
}

impl Change {
    /// Parses and checks a change.
    ///
    /// # Errors
    /// `CONFIG_ERROR` naming what is wrong.
    pub fn parse(json: &str) -> Result<Self> {
        let change: Self =
            serde_json::from_str(json).map_err(|error| Error::config(format!("session settings: {error}")))?;
        positive("maxTurns", change.max_turns, f64::from(u32::MAX))?;
        Ok(change)
    }

    /// Applies it. A blank model name is ignored.
    pub fn apply(self, settings: &mut Settings) {
        if let Some(model) = self.model.as_deref().map(str::trim).filter(|model| !model.is_empty()) {
            settings.model_name = model.into();
        }
        if let Some(mode) = self.permission_mode {
            settings.mode = mode;
        }
        if let Some(turns) = self.max_turns {
            settings.max_turns = turns as u32;
        }
        if let Some(context) = self.default_context {
            settings.default_context = context;
        }
    }
}
