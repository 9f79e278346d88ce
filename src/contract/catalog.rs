//! The service behind `discoverableCatalog`: tools that are registered but not declared to the model.

use std::sync::Arc;

/// A tool that can be discovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Tool name.
    pub name: Arc<str>,
    /// Its other names.
    pub aliases: Vec<Arc<str>>,
    /// Name for people.
    pub display_name: Option<String>,
    /// Text for the model.
    pub description: String,
    /// Words that help to find it.
    pub hint: String,
}

/// What can be discovered in a turn.
///
/// Contract: only tools the current policy would show are listed, and none that is declared already.
pub trait ToolCatalog: Send + Sync {
    /// The tools, in listing order.
    fn discoverable(&self) -> Vec<CatalogEntry>;
}

/// Session services a call may use. A tool sees what its specification asks for; direct calls have none.
#[derive(Clone, Default)]
pub struct ToolServices {
    /// `discoverableCatalog`.
    pub catalog: Option<Arc<dyn ToolCatalog>>,
}
