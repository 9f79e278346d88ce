//! The list of tools that could be discovered, as the model reads it.

use std::fmt::Write as _;

use super::{ExposurePolicy, Registered, ToolRegistry};
use crate::contract::{ExposureMode, one_line};

/// Most tools that are listed; the others are found by searching.
const MAX_LISTED: usize = 12;

impl ToolRegistry {
    /// The list, or `None` where nothing could be discovered or `finder`, the tool that does it, is not declared. Tools
    /// that are only discoverable are not listed. The same text for the same tools and policy.
    pub fn catalog_text(&self, policy: &ExposurePolicy, finder: &str) -> Option<String> {
        self.get(finder).filter(|tool| policy.is_exposed(tool))?;
        let is_listed =
            |tool: &&Registered| tool.spec().exposure.mode == ExposureMode::Deferred && policy.is_discoverable(tool);
        let count = self.iter().filter(is_listed).count();
        if count == 0 {
            return None;
        }
        let mut text = format!(
            "These tools are available but not declared. {finder} activates the ones you need; they can be called from \
             the next turn on."
        );
        for tool in self.iter().filter(is_listed).take(MAX_LISTED) {
            let spec = tool.spec();
            let _ = write!(text, "\n- {}", spec.name);
            if let Some(name) = spec.display_name.as_deref().filter(|name| !name.trim().is_empty()) {
                let _ = write!(text, " ({})", one_line(name));
            }
            let _ = write!(text, ": {} [deferred]", one_line(&spec.description));
            let hint = one_line(&spec.exposure.discovery_hint);
            if !hint.is_empty() {
                let _ = write!(text, " {hint}");
            }
        }
        if count > MAX_LISTED {
            let _ = write!(text, "\n{} more are found by searching.", count - MAX_LISTED);
        }
        Some(text)
    }
}
