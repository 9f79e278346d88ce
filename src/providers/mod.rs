//! Model providers: what a model is, and the adapters that speak a provider's protocol.
//!
//! An adapter is a pure request builder and an incremental stream parser behind [`Model`]. The agent loop knows no
//! provider by name. One layer owns retries ([`retry`]); adapters make one attempt and classify their failures.

mod calls;
mod check;
mod config;
mod driver;
pub mod external;
mod failure;
mod http;
mod model;
mod openai_chat;
pub mod retry;
pub mod scripted;
pub mod sse;

use std::sync::Arc;

use serde_json::json;

pub use check::check_request;
pub use config::{ProviderConfig, RetryConfig, Timeouts};
pub use failure::{Class, Failure};
pub use model::{
    Advance, FinishReason, Model, ModelRequest, ModelSink, ModelStream, ToolDeclaration, ToolDeclarations,
    advance_eagerly,
};
pub use scripted::{Script, ScriptSource};

use crate::error::{Error, ErrorCode, Result};

type Open = fn(&ProviderConfig) -> Result<Arc<dyn Model>>;

/// The adapters by provider type. A new provider is a line here.
const ADAPTERS: [(&str, Open); 2] = [("openai-compatible", openai_chat::open), ("openai", openai_chat::open)];

/// Documented types that this version has no adapter for.
const KNOWN_ELSEWHERE: [&str; 4] = ["anthropic", "azure-openai", "gemini", "deepseek"];

/// Opens the endpoint a configuration describes. Nothing is sent, and no client is set up yet.
///
/// # Errors
/// `CONFIG_ERROR` for a setting that cannot be honoured, `PROVIDER_ADAPTER_NOT_FOUND` for an unknown type.
pub fn open(config: &ProviderConfig) -> Result<Arc<dyn Model>> {
    config.check_type()?;
    if let Some((_, open)) = ADAPTERS.iter().find(|(kind, _)| *kind == config.kind) {
        return open(config);
    }
    let available: Vec<&str> = ADAPTERS.iter().map(|(kind, _)| *kind).collect();
    let available = available.join(", ");
    let message = if KNOWN_ELSEWHERE.contains(&config.kind.as_str()) {
        format!("provider type {:?} is not available in this version; available are {available}", config.kind)
    } else {
        format!("no adapter for provider type {:?}; available are {available}", config.kind)
    };
    Err(Error::new(ErrorCode::ProviderAdapterNotFound, message).with_details(json!({"providerType": config.kind})))
}

#[cfg(test)]
mod tests;
