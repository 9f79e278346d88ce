//! What the model is told of, what it may call, and what it may discover, and why not.

use std::collections::HashSet;

use super::{Registered, SourcePolicy};
use crate::contract::{ExposureMode, PermissionMode, ToolPolicy, ToolSelector};

/// What decides whether a tool is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExposurePolicy {
    /// Mode of the request.
    pub mode: PermissionMode,
    /// Source policy of the Session.
    pub sources: SourcePolicy,
    /// The policy that effects of tools set, if any.
    pub tools: Option<ToolPolicy>,
    /// Tools that were discovered.
    pub discovered: HashSet<String>,
}

/// Why a tool is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// Mode `plan`, and the tool does more than reading.
    PlanMode,
    /// The source policy of the Session.
    SourcePolicy,
    /// The deny list of the policy that a tool set.
    RuntimeDeny,
    /// It is not on the allow list of the policy that a tool set.
    RuntimeAllowList,
    /// It was not discovered yet.
    NotDiscovered,
}

impl Hidden {
    /// The stable word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlanMode => "plan-mode-hidden",
            Self::SourcePolicy => "source-policy",
            Self::RuntimeDeny => "runtime-deny",
            Self::RuntimeAllowList => "runtime-allow-list",
            Self::NotDiscovered => "not-discovered",
        }
    }

    /// What the model is told.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::PlanMode => "plan mode shows tools that only read",
            Self::SourcePolicy => "the source policy of this session hides it",
            Self::RuntimeDeny => "the current tool policy denies it",
            Self::RuntimeAllowList => "the current tool policy does not allow it",
            Self::NotDiscovered => "it has to be discovered first",
        }
    }
}

impl ExposurePolicy {
    /// Why a tool is hidden from the model: the first reason, in the documented order.
    pub fn hidden(&self, tool: &Registered) -> Option<Hidden> {
        let spec = tool.spec();
        if self.mode == PermissionMode::Plan && !spec.behavior.read_only {
            return Some(Hidden::PlanMode);
        }
        self.uncallable(tool)
    }

    /// Why a call of a tool is not looked at at all. Plan mode is left to the permissions, which know what the call does:
    /// what narrows to reading may run.
    pub fn uncallable(&self, tool: &Registered) -> Option<Hidden> {
        let spec = tool.spec();
        if !self.sources.admits(&tool.source) {
            return Some(Hidden::SourcePolicy);
        }
        if let Some(policy) = &self.tools {
            // Denied under any of its names, allowed under its own: as at registration.
            let selected = |list: &[ToolSelector], name: &str| list.iter().any(|selector| selector.selects(name));
            let mut names = std::iter::once(&spec.name).chain(&spec.aliases);
            if names.any(|name| selected(&policy.deny, name)) {
                return Some(Hidden::RuntimeDeny);
            }
            if policy.allow.as_ref().is_some_and(|allow| !selected(allow, &spec.name)) {
                return Some(Hidden::RuntimeAllowList);
            }
        }
        let declared = spec.exposure.mode == ExposureMode::Eager
            || spec.exposure.always_load
            || self.discovered.contains(spec.name.as_ref());
        (!declared).then_some(Hidden::NotDiscovered)
    }

    /// Whether the model is told of a tool.
    pub fn is_exposed(&self, tool: &Registered) -> bool {
        self.hidden(tool).is_none()
    }

    /// Whether a tool is hidden only because it was not discovered yet.
    pub fn is_discoverable(&self, tool: &Registered) -> bool {
        self.hidden(tool) == Some(Hidden::NotDiscovered)
    }
}
