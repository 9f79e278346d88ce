//! The built-in tools, by family. A tool sees only its contract: never the Session, the pipeline or the registry.

use std::sync::Arc;

use crate::contract::AnyTool;

/// All built-in tools in their documented order. The values are shared: listing them costs a few reference counts.
pub fn builtin_tools() -> Vec<Arc<dyn AnyTool>> {
    Vec::new()
}

/// Whether the built-in tools hold anything for a Session that closing has to wait for.
pub fn holds_for_session(session: &str) -> bool {
    let _ = session;
    false
}

/// Releases what the built-in tools hold for a Session: background shells, file records.
pub async fn close_session(session: &str) {
    let _ = session;
}
