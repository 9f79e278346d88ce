//! Registered tools: unique names, aliases, source information, deterministic order, and what the model is shown.
//!
//! Invariant: a registry never changes after it was built; a Session swaps in a new one.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;

use crate::contract::{AnyTool, ExposureMode, PermissionMode, SourceInfo, SourceKind, ToolSpec, TrustLevel};
use crate::providers::{ToolDeclaration, ToolDeclarations};

#[cfg(test)]
mod tests;

/// Names with this prefix belong to MCP tools.
const MCP_PREFIX: &str = "mcp__";

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The name is empty or longer than providers accept.
    #[error("tool name \"{0}\" is not usable: use 1 to 128 characters without spaces or control characters")]
    BadName(String),
    /// The name is taken.
    #[error("tool name \"{0}\" is registered twice: give each tool its own name")]
    DuplicateName(String),
    /// The alias is taken, or equals the tool's own name.
    #[error("alias \"{alias}\" of tool \"{tool}\" is already a tool name or alias")]
    DuplicateAlias {
        /// The tool with the alias.
        tool: String,
        /// The alias.
        alias: String,
    },
    /// `mcp__` names are for MCP tools, and MCP tools have no other names.
    #[error("tool name \"{0}\" is reserved: names that begin with \"mcp__\" belong to MCP tools")]
    ReservedName(String),
}

/// A tool with its source.
#[derive(Clone)]
pub struct Registered {
    /// The tool.
    pub tool: Arc<dyn AnyTool>,
    /// Where it comes from.
    pub source: SourceInfo,
}

impl Registered {
    /// The declaration of the tool.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }
}

/// `allowedTools` and `disallowedTools`: exact names, in the latter also aliases; no allow list means everything, an empty one nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these, where given.
    pub allowed: Option<HashSet<String>>,
    /// Never these.
    pub disallowed: HashSet<String>,
}

impl ToolFilter {
    /// Whether a tool may be registered. It is disallowed under any of its names, and allowed under its own.
    pub fn admits(&self, spec: &ToolSpec) -> bool {
        let disallowed = |name: &str| self.disallowed.contains(name);
        !disallowed(&spec.name)
            && !spec.aliases.iter().any(|alias| disallowed(alias))
            && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&*spec.name))
    }
}

/// `toolSourcePolicy`: missing or empty lists do not limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourcePolicy {
    /// Sources whose tools are shown.
    pub allowed_sources: Vec<SourceKind>,
    /// Trust levels whose tools are shown.
    pub allowed_trust_levels: Vec<TrustLevel>,
}

impl SourcePolicy {
    fn admits(&self, source: &SourceInfo) -> bool {
        (self.allowed_sources.is_empty() || self.allowed_sources.contains(&source.kind))
            && (self.allowed_trust_levels.is_empty() || self.allowed_trust_levels.contains(&source.trust_level))
    }
}

/// Collects tools for a [`ToolRegistry`].
#[derive(Default)]
pub struct RegistryBuilder {
    tools: Vec<Registered>,
    index: HashMap<Arc<str>, usize>,
}

impl RegistryBuilder {
    /// Adds one tool.
    ///
    /// # Errors
    /// Its name or an alias is not usable; nothing was added.
    pub fn register(&mut self, tool: Arc<dyn AnyTool>, source: SourceInfo) -> Result<(), RegistryError> {
        let spec = tool.spec();
        let name = Arc::clone(&spec.name);
        // An alias is a name a model can call, so both keep the same rules.
        for key in [&name].into_iter().chain(&spec.aliases) {
            if key.is_empty() || key.chars().count() > 128 || key.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(RegistryError::BadName(key.to_string()));
            }
            if key.starts_with(MCP_PREFIX) != (source.kind == SourceKind::Mcp) {
                return Err(RegistryError::ReservedName(key.to_string()));
            }
        }
        if self.index.contains_key(&name) {
            return Err(RegistryError::DuplicateName(name.to_string()));
        }
        let mut seen = HashSet::from([&name]);
        for alias in &spec.aliases {
            if self.index.contains_key(alias) || !seen.insert(alias) {
                return Err(RegistryError::DuplicateAlias { tool: name.to_string(), alias: alias.to_string() });
            }
        }
        let position = self.tools.len();
        for key in spec.aliases.iter().chain([&name]) {
            self.index.insert(Arc::clone(key), position);
        }
        self.tools.push(Registered { tool, source });
        Ok(())
    }

    /// Puts the tools in their final order.
    pub fn build(self) -> ToolRegistry {
        let Self { tools, mut index } = self;
        let mut order: Vec<usize> = (0..tools.len()).collect();
        order.sort_by(|&a, &b| listing_order(&tools[a], &tools[b]));
        let mut place = vec![0; tools.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        for position in index.values_mut() {
            *position = place[*position];
        }
        let mut slots: Vec<Option<Registered>> = tools.into_iter().map(Some).collect();
        let tools = order.into_iter().filter_map(|old| slots[old].take()).collect();
        ToolRegistry { tools, index }
    }
}

/// Tools that are not MCP first; by name inside each group.
fn listing_order(a: &Registered, b: &Registered) -> Ordering {
    let mcp = |tool: &Registered| tool.source.kind == SourceKind::Mcp;
    mcp(a).cmp(&mcp(b)).then_with(|| a.spec().name.cmp(&b.spec().name))
}

/// The tools of a Session.
#[derive(Default)]
pub struct ToolRegistry {
    tools: Vec<Registered>,
    index: HashMap<Arc<str>, usize>,
}

impl ToolRegistry {
    /// The tool of a name or alias.
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.index.get(name).and_then(|&position| self.tools.get(position))
    }

    /// All tools in listing order.
    pub fn iter(&self) -> impl Iterator<Item = &Registered> {
        self.tools.iter()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// What the model is told, in listing order: see [`ExposurePolicy::is_exposed`] for the rules. The result is the same value for
    /// the same inputs, so that consecutive requests share their prefix.
    pub fn declarations(&self, exposure: &ExposurePolicy) -> ToolDeclarations {
        ToolDeclarations::new(
            self.tools
                .iter()
                .filter(|tool| exposure.is_exposed(tool))
                .map(|tool| {
                    let spec = tool.spec();
                    ToolDeclaration {
                        name: Arc::clone(&spec.name),
                        description: spec.description.clone(),
                        schema: spec.schema.text().into(),
                        strict: spec.strict,
                    }
                })
                .collect(),
        )
    }
}

/// What decides whether a tool is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExposurePolicy {
    /// Mode of the request.
    pub mode: PermissionMode,
    /// Source policy of the Session.
    pub sources: SourcePolicy,
    /// Tools that were discovered.
    pub discovered: HashSet<String>,
}

impl ExposurePolicy {
    /// Whether the model is told of a tool: what is callable, and in plan mode only what reads.
    pub fn is_exposed(&self, tool: &Registered) -> bool {
        self.is_callable(tool) && (self.mode != PermissionMode::Plan || tool.spec().behavior.read_only)
    }

    /// Whether a tool is hidden only because it was not discovered yet.
    pub fn is_discoverable(&self, tool: &Registered) -> bool {
        self.sources.admits(&tool.source) && !self.is_callable(tool)
    }

    /// Whether a call may be looked at at all: not against the source policy, and deferred tools only once they were
    /// discovered. Plan mode is left to the permissions, which say what to do about it.
    pub fn is_callable(&self, tool: &Registered) -> bool {
        let spec = tool.spec();
        self.sources.admits(&tool.source)
            && (spec.exposure.mode == ExposureMode::Eager
                || spec.exposure.always_load
                || self.discovered.contains(spec.name.as_ref()))
    }
}
