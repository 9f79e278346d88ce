//! Independent dimensions of what a call does. None is inferred from another (blade-tools seed, "Side-effect contract").

use serde::{Deserialize, Serialize};

/// What class of action a tool performs; decides mode rules and the concurrency bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// Looks, does not touch.
    ReadOnly,
    /// Changes files or stored state.
    Write,
    /// Runs something. The default.
    Execute,
}

impl ToolKind {
    /// The public text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "readonly",
            Self::Write => "write",
            Self::Execute => "execute",
        }
    }
}

/// Whether repeating a call is safe; decides what recovery may replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Changes nothing outside.
    Pure,
    /// Repeating reaches the same state.
    Idempotent,
    /// Repeating may add effects. The default.
    NonIdempotent,
}

/// What a `now` input does to a running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InterruptBehavior {
    /// The call completes first. The default.
    Block,
    /// The call observes its signal and may be cancelled.
    Cancel,
}

/// The resolved behaviour of a tool or of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behavior {
    /// Class of action.
    pub kind: ToolKind,
    /// Whether repeating is safe.
    pub side_effect: SideEffect,
    /// Counts as reading in the modes table.
    pub read_only: bool,
    /// May share a file lock with other readers.
    pub concurrency_safe: bool,
    /// Needs an explicit confirmation, whatever the mode.
    pub destructive: bool,
    /// Reaction to steering.
    pub interrupt: InterruptBehavior,
}

impl Behavior {
    /// Behaviour of a kind with everything else at its most conservative value: `read_only` and `concurrency_safe`
    /// follow the kind, the side effect is non-idempotent, steering waits.
    pub const fn of(kind: ToolKind) -> Self {
        let reading = matches!(kind, ToolKind::ReadOnly);
        Self {
            kind,
            side_effect: SideEffect::NonIdempotent,
            read_only: reading,
            concurrency_safe: reading,
            destructive: false,
            interrupt: InterruptBehavior::Block,
        }
    }

    /// With another side effect.
    #[must_use]
    pub const fn with_side_effect(mut self, side_effect: SideEffect) -> Self {
        self.side_effect = side_effect;
        self
    }

    /// With another reaction to steering.
    #[must_use]
    pub const fn with_interrupt(mut self, interrupt: InterruptBehavior) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Marked destructive, or not.
    #[must_use]
    pub const fn with_destructive(mut self, destructive: bool) -> Self {
        self.destructive = destructive;
        self
    }
}
