//! Model providers: what a model is, and the adapters that speak a provider's protocol.
//!
//! An adapter is a pure request builder and an incremental stream parser behind [`Model`]. The agent loop knows no
//! provider by name. One layer owns retries ([`retry`]); adapters make one attempt and classify their failures.

mod model;

pub use model::{
    Advance, FinishReason, Model, ModelRequest, ModelSink, ModelStream, ToolDeclaration, ToolDeclarations,
};
