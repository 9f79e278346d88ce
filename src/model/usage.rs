//! Token counts, as a provider reports them and as a Session publishes them.

use serde::{Deserialize, Serialize};

/// Token counts of one model call. Absent counts are zero or `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelUsage {
    /// Tokens of the request, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// Sum as the provider counts it.
    pub total_tokens: u64,
    /// Tokens spent on reasoning, where reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Prompt tokens read from the provider's cache, where reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
    /// Prompt tokens written to the provider's cache, where reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
}

/// The `usage` event of a finished request: input and output of the last model call, total over all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Prompt tokens of the last model call.
    pub input_tokens: u64,
    /// Answer tokens of the last model call.
    pub output_tokens: u64,
    /// Sum of the totals of all model calls of the request.
    pub total_tokens: u64,
    /// The Session's `maxContextTokens`.
    pub max_context_tokens: u64,
}
