//! The list of tools that could be discovered, as the model reads it.

use std::fmt::Write as _;

use super::{ExposurePolicy, Registered, ToolRegistry};
use crate::contract::ExposureMode;

/// Most tools that are listed; the others are found by searching.
const MAX_LISTED: usize = 12;
/// Longest text of one field, in characters.
const MAX_FIELD: usize = 200;

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
                let _ = write!(text, " ({})", field(name));
            }
            let _ = write!(text, ": {} [deferred]", field(&spec.description));
            let hint = field(&spec.exposure.discovery_hint);
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

/// One line of a text, cut where it is too long.
fn field(text: &str) -> String {
    let line: Vec<&str> = text.trim().lines().next().unwrap_or_default().split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(MAX_FIELD) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
