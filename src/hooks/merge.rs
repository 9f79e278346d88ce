//! What the answers of an event's callbacks amount to. Pure.

use serde_json::{Map, Value};

use super::event::{HookAction, HookOutput};

/// Why an event's subject does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Answered by the hook instead.
    Skip(Option<String>),
    /// Refused by the hook.
    Abort(Option<String>),
}

/// The outputs that count: up to the first that stops, that one included.
fn counting(outputs: &[HookOutput]) -> &[HookOutput] {
    match outputs.iter().position(|output| output.action != HookAction::Continue) {
        Some(at) => &outputs[..=at],
        None => outputs,
    }
}

/// The first stop, if any.
pub fn stop_of(outputs: &[HookOutput]) -> Option<Stop> {
    let last = counting(outputs).last()?;
    match last.action {
        HookAction::Continue => None,
        HookAction::Skip => Some(Stop::Skip(last.reason.clone())),
        HookAction::Abort => Some(Stop::Abort(last.reason.clone())),
    }
}

/// The input changes, merged in order.
pub fn merged_input(outputs: &[HookOutput]) -> Map<String, Value> {
    counting(outputs).iter().filter_map(|output| output.modified_input.clone()).flatten().collect()
}

/// The output change: the last one wins.
pub fn merged_output(outputs: &[HookOutput]) -> Option<Value> {
    counting(outputs).iter().rev().find_map(|output| output.modified_output.clone())
}
