//! Tool calls put together from their deltas.
//!
//! Servers disagree about everything here: some leave out `index`, some send every call under index 0, some repeat id
//! and name in each delta, some send no ids at all. A new call begins where the index is new, where another id comes
//! with a name, or where a name comes although the open call is complete.

use std::collections::HashSet;

use serde::de::IgnoredAny;

use crate::model::ToolCall;

#[derive(Debug, Default)]
pub(super) struct Calls {
    list: Vec<Partial>,
}

#[derive(Debug, Default)]
struct Partial {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a delta; what it does not say is empty.
    pub(super) fn add(&mut self, index: Option<u64>, id: &str, name: &str, arguments: &str) {
        let at = self.find(index, id, name).unwrap_or_else(|| {
            self.list.push(Partial { index, ..Partial::default() });
            self.list.len() - 1
        });
        let call = &mut self.list[at];
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        // A server that repeats the whole name in each delta is told from one that sends it in pieces.
        if call.name != name {
            call.name.push_str(name);
        }
        call.arguments.push_str(arguments);
    }

    /// The open call a delta continues.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.list.iter().rposition(|call| call.index == index)?,
            None if id.is_empty() => self.list.len().checked_sub(1)?,
            None => self.list.iter().rposition(|call| call.id == id || call.id.is_empty())?,
        };
        let call = &self.list[at];
        let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
        let cannot_tell = id.is_empty() || call.id.is_empty();
        let restarts = !name.is_empty() && (other_id || (cannot_tell && is_complete(&call.arguments)));
        (!restarts).then_some(at)
    }

    /// The calls in the order the model declared them, with ids that are unique in the answer. The history of a Session
    /// makes them unique in the conversation.
    pub(super) fn finish(mut self) -> Vec<ToolCall> {
        self.list.retain(|call| !(call.id.is_empty() && call.name.is_empty() && call.arguments.trim().is_empty()));
        if self.list.iter().all(|call| call.index.is_some()) {
            self.list.sort_by_key(|call| call.index);
        }
        let given: HashSet<String> = self.list.iter().map(|call| call.id.clone()).collect();
        let mut taken: HashSet<String> = HashSet::new();
        let mut calls = Vec::with_capacity(self.list.len());
        for (at, Partial { mut id, name, arguments, .. }) in self.list.into_iter().enumerate() {
            let mut number = at;
            while id.is_empty() || taken.contains(&id) {
                let fresh = format!("call_{number}");
                id = if given.contains(&fresh) { String::new() } else { fresh };
                number += 1;
            }
            taken.insert(id.clone());
            let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
            calls.push(ToolCall { id, name, arguments });
        }
        calls
    }
}

fn is_complete(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}
