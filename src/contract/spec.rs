//! The static declaration of a tool: what the model is told and what the registry needs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::behavior::Behavior;
use crate::schema::Schema;

/// When a tool is declared to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExposureMode {
    /// In every request.
    #[default]
    Eager,
    /// Once it was discovered.
    Deferred,
    /// Once it was discovered; never listed before.
    DiscoverableOnly,
}

/// Exposure settings of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Exposure {
    /// When it is declared.
    pub mode: ExposureMode,
    /// Declared in every request whatever the mode says.
    pub always_load: bool,
    /// Words that help to find it.
    pub discovery_hint: String,
}

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Part of this package.
    Builtin,
    /// `SessionOptions.tools` or a plugin.
    Custom,
    /// A remote MCP server.
    Mcp,
    /// Made by the Session itself.
    Session,
}

/// How far a source is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevel {
    /// Built-in.
    Trusted,
    /// The application's own.
    Workspace,
    /// Somebody else's.
    Remote,
}

/// Source of a registered tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// Kind of source.
    pub kind: SourceKind,
    /// Trust in it.
    pub trust_level: TrustLevel,
    /// Name of the source, for instance `session` or `plugin:<name>`.
    pub source_id: Arc<str>,
}

impl SourceInfo {
    /// The package's own tools.
    pub fn builtin() -> Self {
        Self { kind: SourceKind::Builtin, trust_level: TrustLevel::Trusted, source_id: "builtin".into() }
    }

    /// Tools handed to a Session by its options.
    pub fn custom() -> Self {
        Self { kind: SourceKind::Custom, trust_level: TrustLevel::Workspace, source_id: "session".into() }
    }

    /// Tools handed to a Session by a plugin.
    pub fn plugin(name: &str) -> Self {
        Self { source_id: format!("plugin:{name}").into(), ..Self::custom() }
    }
}

/// A structured description, rendered for the model by [`ToolDescription::render`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolDescription {
    /// One sentence.
    pub short: String,
    /// More about it.
    pub long: Option<String>,
    /// How to use it well.
    pub usage_notes: Vec<String>,
    /// What must not be overlooked.
    pub important: Vec<String>,
}

impl ToolDescription {
    /// The text the model sees: short, blank line and long, then the two lists.
    pub fn render(&self) -> String {
        let mut text = self.short.clone();
        if let Some(long) = self.long.as_deref().filter(|long| !long.is_empty()) {
            text.push_str("\n\n");
            text.push_str(long);
        }
        for (title, items) in [("Usage Notes:", &self.usage_notes), ("Important:", &self.important)] {
            if items.is_empty() {
                continue;
            }
            text.push_str("\n\n");
            text.push_str(title);
            for item in items {
                text.push_str("\n- ");
                text.push_str(item);
            }
        }
        text
    }
}

/// The static declaration of a tool.
#[derive(Debug)]
pub struct ToolSpec {
    /// Unique name.
    pub name: Arc<str>,
    /// Other names that resolve to it.
    pub aliases: Vec<Arc<str>>,
    /// Name for people.
    pub display_name: Option<String>,
    /// Text for the model.
    pub description: String,
    /// The JSON Schema of its parameters: what the model is sent is what validates.
    pub schema: Arc<Schema>,
    /// Static behaviour: the most conservative one a call may have.
    pub behavior: Behavior,
    /// Built-in group, or a group of the author's.
    pub group: Option<String>,
    /// When it is declared to the model.
    pub exposure: Exposure,
    /// Session services it needs; without one of them it is not registered.
    pub services: Vec<String>,
    /// Whether its context carries the runtime capability.
    pub requires_runtime: bool,
    /// Longest string result in characters; longer ones become artifacts. `None` is unlimited.
    pub max_result_chars: Option<usize>,
    /// The `strict` flag sent to providers that know it.
    pub strict: Option<bool>,
}

impl ToolSpec {
    /// A specification with only the required parts; everything else at its default.
    pub fn new(
        name: impl Into<Arc<str>>,
        description: impl Into<String>,
        schema: Arc<Schema>,
        behavior: Behavior,
    ) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            display_name: None,
            description: description.into(),
            schema,
            behavior,
            group: None,
            exposure: Exposure::default(),
            services: Vec::new(),
            requires_runtime: false,
            max_result_chars: None,
            strict: None,
        }
    }
}
