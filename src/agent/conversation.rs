//! The history of a Session.
//!
//! Invariant: every assistant message with tool calls is followed by exactly one result for each of them, because both
//! are appended together. Whatever ends a request, the next one starts from a history a provider accepts.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{Message, Provenance, ToolCall};

/// Messages of a Session, the system prompt left out.
#[derive(Debug, Default)]
pub struct Conversation {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<Arc<Message>>,
    /// Ids of all calls so far, kept so that no turn has to walk the history.
    call_ids: HashSet<String>,
}

impl Conversation {
    /// A conversation that starts with these messages.
    pub fn from_messages(messages: Vec<Arc<Message>>) -> Self {
        let call_ids = messages.iter().flat_map(|m| m.tool_calls.iter().map(|call| call.id.clone())).collect();
        Self { state: Mutex::new(State { messages, call_ids }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one message that stands alone.
    pub fn push(&self, message: Message) {
        self.lock().messages.push(Arc::new(message));
    }

    /// Adds an assistant message together with the results of its calls and what the tools injected.
    pub fn push_exchange(&self, assistant: Arc<Message>, results: Vec<Message>, injected: Vec<Message>) {
        debug_assert_eq!(assistant.tool_calls.len(), results.len(), "each call has one result");
        let mut state = self.lock();
        state.call_ids.extend(assistant.tool_calls.iter().map(|call| call.id.clone()));
        state.messages.push(assistant);
        state.messages.extend(results.into_iter().chain(injected).map(Arc::new));
    }

    /// Puts the list of discoverable tools in front of the conversation, in place of the one before, or takes it away.
    /// A list that says the same stays the same message.
    pub fn set_catalog(&self, text: Option<String>) {
        let messages = &mut self.lock().messages;
        let known = messages.first().filter(|message| message.provenance == Some(Provenance::Catalog));
        match (known.map(|message| message.content.text()), text) {
            (Some(known), Some(text)) if known == text => {}
            (Some(_), Some(text)) => messages[0] = Arc::new(catalog(text)),
            (None, Some(text)) => messages.insert(0, Arc::new(catalog(text))),
            (Some(_), None) => drop(messages.remove(0)),
            (None, None) => {}
        }
    }

    /// The messages now.
    pub fn snapshot(&self) -> Vec<Arc<Message>> {
        self.lock().messages.clone()
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.lock().messages.len()
    }

    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.lock().messages.is_empty()
    }

    /// Makes the ids of new calls unique within the conversation: results are matched by id, and some providers count
    /// from zero in every answer.
    pub fn unique_call_ids(&self, calls: &mut [ToolCall]) {
        let state = self.lock();
        let mut fresh: HashSet<String> = HashSet::new();
        for call in calls {
            let base = call.id.clone();
            let mut n = 2_u32;
            while state.call_ids.contains(&call.id) || fresh.contains(&call.id) {
                call.id = format!("{base}_{n}");
                n += 1;
            }
            fresh.insert(call.id.clone());
        }
    }
}

fn catalog(text: String) -> Message {
    let mut message = Message::system(text);
    message.provenance = Some(Provenance::Catalog);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalog_leads_the_conversation_and_is_changed_in_place() {
        let conversation = Conversation::default();
        conversation.set_catalog(None);
        conversation.push(Message::system("injected"));
        let ids = || -> Vec<String> { conversation.snapshot().iter().map(|m| m.id.as_str().to_owned()).collect() };
        let texts = || -> Vec<String> { conversation.snapshot().iter().map(|m| m.content.text()).collect() };
        conversation.set_catalog(Some("one".into()));
        let before = ids();
        conversation.set_catalog(Some("one".into()));
        assert_eq!(ids(), before, "a list that says the same is not replaced");
        assert_eq!(texts(), ["one", "injected"]);
        conversation.set_catalog(Some("two".into()));
        assert_eq!(texts(), ["two", "injected"]);
        conversation.set_catalog(None);
        conversation.set_catalog(None);
        assert_eq!(texts(), ["injected"], "only a catalog is taken away");
    }

    fn call(id: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "T".into(), arguments: "{}".into() }
    }

    #[test]
    fn ids_that_were_used_before_or_twice_in_one_answer_are_made_unique() {
        let conversation = Conversation::default();
        conversation.push_exchange(
            Arc::new(Message::assistant("", None, vec![call("call_0")])),
            vec![Message::tool("call_0", "T", "r")],
            Vec::new(),
        );
        let mut calls = vec![call("call_0"), call("call_0"), call("fresh")];
        conversation.unique_call_ids(&mut calls);
        let ids: Vec<&str> = calls.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["call_0_2", "call_0_3", "fresh"]);
    }
}
