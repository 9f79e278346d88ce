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

    /// How much a call of this kind may do.
    const fn rank(self) -> u8 {
        match self {
            Self::ReadOnly => 0,
            Self::Write => 1,
            Self::Execute => 2,
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

impl SideEffect {
    /// How much repeating a call may do.
    const fn rank(self) -> u8 {
        match self {
            Self::Pure => 0,
            Self::Idempotent => 1,
            Self::NonIdempotent => 2,
        }
    }
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

    /// What is assumed of a call nothing is known about: it executes, cannot be repeated, and runs alone.
    #[must_use]
    pub const fn unknown(self) -> Self {
        Self { destructive: self.destructive, ..Self::of(ToolKind::Execute) }
    }

    /// The behaviour of one call of a tool with this declaration, from what its resolver said. `None` stands for a
    /// resolver that failed.
    ///
    /// A resolver may say that a call does less than declared. One that claims more contradicts the declaration that
    /// planning relied on, so nothing it says is believed: the call counts as [`Behavior::unknown`]. Being destructive
    /// and waiting for steering only make a call more careful, and are believed in both directions.
    #[must_use]
    pub fn narrowed(self, resolved: Option<Self>) -> Self {
        match resolved {
            Some(call)
                if call.kind.rank() <= self.kind.rank()
                    && call.side_effect.rank() <= self.side_effect.rank()
                    && call.read_only >= self.read_only
                    && call.concurrency_safe >= self.concurrency_safe =>
            {
                Self { destructive: call.destructive || self.destructive, ..call }
            }
            _ => self.unknown(),
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

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ToolKind; 3] = [ToolKind::ReadOnly, ToolKind::Write, ToolKind::Execute];
    const EFFECTS: [SideEffect; 3] = [SideEffect::Pure, SideEffect::Idempotent, SideEffect::NonIdempotent];
    const FLAGS: [bool; 2] = [false, true];

    fn all() -> Vec<Behavior> {
        let mut list = Vec::new();
        for kind in KINDS {
            for side_effect in EFFECTS {
                for read_only in FLAGS {
                    for concurrency_safe in FLAGS {
                        for destructive in FLAGS {
                            for interrupt in [InterruptBehavior::Block, InterruptBehavior::Cancel] {
                                list.push(Behavior {
                                    kind,
                                    side_effect,
                                    read_only,
                                    concurrency_safe,
                                    destructive,
                                    interrupt,
                                });
                            }
                        }
                    }
                }
            }
        }
        list
    }

    /// Every declaration against everything a resolver can say.
    #[test]
    fn a_resolver_never_gets_a_call_more_than_its_tool_declares() {
        for declared in all() {
            assert_eq!(declared.narrowed(None), declared.unknown());
            assert_eq!(declared.narrowed(Some(declared)), declared);
            for said in all() {
                let call = declared.narrowed(Some(said));
                let unknown = declared.unknown();
                let less = said.kind.rank() <= declared.kind.rank()
                    && said.side_effect.rank() <= declared.side_effect.rank()
                    && (said.read_only || !declared.read_only)
                    && (said.concurrency_safe || !declared.concurrency_safe);
                if less {
                    assert_eq!(call, Behavior { destructive: said.destructive || declared.destructive, ..said });
                } else {
                    assert_eq!(call, unknown);
                }
                assert!(call.destructive >= declared.destructive);
            }
        }
    }

    #[test]
    fn dimensions_are_independent() {
        let task = Behavior::of(ToolKind::ReadOnly);
        assert_eq!((task.read_only, task.side_effect), (true, SideEffect::NonIdempotent));
        let list = Behavior { read_only: false, ..Behavior::of(ToolKind::Write).with_side_effect(SideEffect::Pure) };
        assert_eq!((list.kind, list.side_effect, list.read_only), (ToolKind::Write, SideEffect::Pure, false));
    }
}
