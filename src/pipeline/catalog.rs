//! What `DiscoverTools` may find: tools of the registry that the turn's policy would show once they were discovered.

use std::sync::Arc;

use super::{CallContext, Pipeline};
use crate::contract::{CatalogEntry, ToolCatalog};
use crate::registry::{ExposurePolicy, ToolRegistry};

struct Discoverable {
    registry: Arc<ToolRegistry>,
    exposure: Arc<ExposurePolicy>,
}

impl Pipeline {
    pub(super) fn catalog(&self, cx: &CallContext) -> Arc<dyn ToolCatalog> {
        Arc::new(Discoverable { registry: Arc::clone(&self.registry), exposure: Arc::clone(&cx.exposure) })
    }
}

impl ToolCatalog for Discoverable {
    fn discoverable(&self) -> Vec<CatalogEntry> {
        self.registry
            .iter()
            .filter(|tool| self.exposure.is_discoverable(tool))
            .map(|tool| {
                let spec = tool.spec();
                CatalogEntry {
                    name: Arc::clone(&spec.name),
                    aliases: spec.aliases.clone(),
                    display_name: spec.display_name.clone(),
                    description: spec.description.clone(),
                    hint: spec.exposure.discovery_hint.clone(),
                }
            })
            .collect()
    }
}
