//! Inline hooks of the application: eight events, their inputs and outputs, and how callbacks are run and merged.
//!
//! Callbacks of one event run one after another in their order, each with the same input; what they answer is looked
//! at afterwards, in order, up to the first that stops (permissions-hooks.md §7). One deadline covers all callbacks of
//! an event. A callback that goes on after its deadline or its cancellation keeps the cleanup gate shut.

mod dispatch;
mod event;
mod merge;

#[cfg(test)]
mod tests;

pub use dispatch::{HookFailure, HookLimits, Hooks};
pub use event::{HookAction, HookCounts, HookEvent, HookOutput, HookPort};
pub use merge::{Stop, merged_input, merged_output, stop_of};
