//! The built-in tools, one directory a family. A tool sees only its contract: never the Session, the pipeline or the
//! registry. Each family has one owner of its capability.

pub mod file;
pub mod paths;
pub mod search;

use std::sync::Arc;

use crate::contract::AnyTool;

/// All built-in tools in their documented order. The values are shared: listing them costs a few reference counts.
pub fn builtin_tools() -> Vec<Arc<dyn AnyTool>> {
    let mut tools = file::tools();
    tools.extend(search::tools());
    tools
}

/// Whether the built-in tools hold anything for a Session that closing has to wait for.
pub fn holds_for_session(session: &str) -> bool {
    let _ = session;
    false
}

/// Releases what the built-in tools hold for a Session: background shells, file records.
pub async fn close_session(session: &str) {
    forget_session(session);
}

/// Forgets what costs nothing to release: which files a Session has read.
pub fn forget_session(session: &str) {
    file::forget_session(session);
}
