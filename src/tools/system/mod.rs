//! Tools about the tools themselves.

mod discover_tools;
mod rank;

use std::sync::Arc;

use crate::contract::AnyTool;

/// The tools of this family.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    vec![Arc::new(discover_tools::DiscoverTools)]
}
