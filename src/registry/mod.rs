//! Registered tools: unique names, aliases, source information, deterministic order, and what the model is shown.
//!
//! Invariant: a registry never changes after it was built; a Session swaps in a new one.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;

use crate::contract::{AnyTool, SourceInfo, SourceKind, ToolSpec, TrustLevel};
use crate::providers::{ToolDeclaration, ToolDeclarations};

mod catalog;
mod exposure;

#[cfg(test)]
mod tests;

pub use exposure::{ExposurePolicy, Hidden};

/// Names with this prefix belong to MCP tools.
const MCP_PREFIX: &str = "mcp__";

/// Longest name of a tool; what every provider takes.
const MAX_NAME: usize = 64;
/// Longest name of an MCP tool, which holds the name of its server.
const MAX_MCP_NAME: usize = 128;

/// Why a tool cannot be registered. The texts name the tool and say what would work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Providers refuse the name.
    #[error(
        "tool name \"{name}\" is not usable: use 1 to {limit} of the characters A-Z, a-z, 0-9, \"_\" and \"-\", which \
         every provider takes"
    )]
    BadName {
        /// The name.
        name: String,
        /// How long it may be.
        limit: usize,
    },
    /// Providers refuse the alias.
    #[error(
        "alias \"{alias}\" of tool \"{tool}\" is not usable: use 1 to {limit} of the characters A-Z, a-z, 0-9, \"_\" \
         and \"-\", which every provider takes"
    )]
    BadAlias {
        /// The tool with the alias.
        tool: String,
        /// The alias.
        alias: String,
        /// How long it may be.
        limit: usize,
    },
    /// The name is taken.
    #[error("tool name \"{name}\" is registered twice, by {first} and by {second}: give each tool its own name")]
    DuplicateName {
        /// The name.
        name: String,
        /// Who registered it first.
        first: Arc<str>,
        /// Who registered it again.
        second: Arc<str>,
    },
    /// The name is an alias of another tool.
    #[error("tool name \"{name}\" is already an alias of tool \"{owner}\": rename one of them")]
    NameIsAlias {
        /// The name.
        name: String,
        /// The tool with the alias.
        owner: String,
    },
    /// The alias is the tool's own name, or listed twice.
    #[error("alias \"{alias}\" of tool \"{tool}\" is its own name or listed twice: leave it out")]
    NeedlessAlias {
        /// The tool with the alias.
        tool: String,
        /// The alias.
        alias: String,
    },
    /// The alias is taken.
    #[error("alias \"{alias}\" of tool \"{tool}\" is already a name of tool \"{owner}\": choose another alias")]
    DuplicateAlias {
        /// The tool with the alias.
        tool: String,
        /// The alias.
        alias: String,
        /// The tool that has it.
        owner: String,
    },
    /// `mcp__` names are for MCP tools.
    #[error("tool name \"{0}\" is reserved: names that begin with \"mcp__\" belong to MCP tools; choose another name")]
    ReservedName(String),
    /// MCP tools have no other names.
    #[error("tool name \"{0}\" is no name of an MCP tool: those begin with \"mcp__\"")]
    NotAnMcpName(String),
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
        let mcp = source.kind == SourceKind::Mcp;
        let limit = if mcp { MAX_MCP_NAME } else { MAX_NAME };
        // An alias is a name a model can call, so both keep the same rules.
        for key in [&name].into_iter().chain(&spec.aliases) {
            if !is_usable(key, limit) {
                let (tool, key) = (name.to_string(), key.to_string());
                return Err(if tool == key {
                    RegistryError::BadName { name: key, limit }
                } else {
                    RegistryError::BadAlias { tool, alias: key, limit }
                });
            }
            match (key.starts_with(MCP_PREFIX), mcp) {
                (true, false) => return Err(RegistryError::ReservedName(key.to_string())),
                (false, true) => return Err(RegistryError::NotAnMcpName(key.to_string())),
                _ => {}
            }
        }
        if let Some(owner) = self.owner(&name) {
            return Err(if owner.spec().name == name {
                RegistryError::DuplicateName {
                    name: name.to_string(),
                    first: Arc::clone(&owner.source.source_id),
                    second: source.source_id,
                }
            } else {
                RegistryError::NameIsAlias { name: name.to_string(), owner: owner.spec().name.to_string() }
            });
        }
        let mut seen = HashSet::from([&name]);
        for alias in &spec.aliases {
            let (tool, own) = (name.to_string(), alias.to_string());
            if !seen.insert(alias) {
                return Err(RegistryError::NeedlessAlias { tool, alias: own });
            }
            if let Some(owner) = self.owner(alias) {
                return Err(RegistryError::DuplicateAlias { tool, alias: own, owner: owner.spec().name.to_string() });
            }
        }
        let position = self.tools.len();
        for key in spec.aliases.iter().chain([&name]) {
            self.index.insert(Arc::clone(key), position);
        }
        self.tools.push(Registered { tool, source });
        Ok(())
    }

    fn owner(&self, name: &str) -> Option<&Registered> {
        self.index.get(name).and_then(|&position| self.tools.get(position))
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

fn is_usable(name: &str, limit: usize) -> bool {
    (1..=limit).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-')
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
