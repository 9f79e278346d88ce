//! The rules every conversation sent to a model obeys; a broken one is our mistake, found before the provider finds it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result};
use crate::model::{Message, Role};

/// Checks that every call is answered by exactly one result before the conversation goes on, that no result stands
/// without its call, and that call ids are unique.
///
/// # Errors
/// `INVALID_MODEL_REQUEST` naming the call.
pub fn check_request(messages: &[Arc<Message>]) -> Result<()> {
    let mut known: HashSet<&str> = HashSet::new();
    // Calls of the last assistant message that wait for their result.
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            let Some(id) = message.tool_call_id.as_deref() else {
                return Err(invalid(format!("message {at} is a tool result without a tool_call_id")));
            };
            let Some(position) = open.iter().position(|call| *call == id) else {
                let why = if known.contains(id) { "was answered already" } else { "was never called" };
                return Err(invalid(format!("message {at} is the result of tool call {id:?}, which {why}")));
            };
            open.remove(position);
            continue;
        }
        if let Some(id) = open.first() {
            return Err(invalid(format!("tool call {id:?} has no result before message {at}")));
        }
        if message.role == Role::Assistant {
            for call in &message.tool_calls {
                if call.id.is_empty() {
                    return Err(invalid(format!("message {at} has a call of {:?} without an id", call.name)));
                }
                if !known.insert(&call.id) {
                    return Err(invalid(format!("tool call id {:?} in message {at} is used twice", call.id)));
                }
                open.push(&call.id);
            }
        } else if !message.tool_calls.is_empty() {
            return Err(invalid(format!("message {at} has tool calls but is not from the assistant")));
        }
    }
    match open.first() {
        Some(id) => Err(invalid(format!("tool call {id:?} has no result at the end of the conversation"))),
        None => Ok(()),
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Content, ToolCall};

    fn user() -> Message {
        Message::user(Content::Text("x".into()))
    }

    fn calls(ids: &[&str]) -> Message {
        let call = |id: &&str| ToolCall { id: (*id).into(), name: "T".into(), arguments: "{}".into() };
        Message::assistant("", None, ids.iter().map(call).collect())
    }

    fn result(id: &str) -> Message {
        Message::tool(id, "T", "out")
    }

    #[test]
    fn every_broken_rule_is_named_with_its_call() {
        let rows: Vec<(Vec<Message>, Option<&str>)> = vec![
            (vec![Message::system("s"), user(), calls(&["a", "b"]), result("b"), result("a"), user()], None),
            (vec![user(), result("a")], Some("\"a\", which was never called")),
            (vec![user(), calls(&["a"]), user()], Some("\"a\" has no result before message 2")),
            (vec![user(), calls(&["a", "b"]), result("a")], Some("\"b\" has no result at the end")),
            (vec![user(), calls(&["a"]), result("a"), result("a")], Some("\"a\", which was answered already")),
            (vec![user(), calls(&["a", "a"])], Some("\"a\" in message 1 is used twice")),
            (vec![user(), calls(&["a"]), result("a"), calls(&["a"])], Some("\"a\" in message 3 is used twice")),
            (vec![user(), calls(&[""])], Some("without an id")),
        ];
        for (messages, expected) in rows {
            let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
            match (check_request(&messages), expected) {
                (Ok(()), None) => {}
                (Err(error), Some(part)) => {
                    assert_eq!(error.code, ErrorCode::InvalidRequest);
                    assert!(error.message.contains(part), "{error}");
                }
                (outcome, expected) => panic!("{outcome:?}, expected {expected:?}"),
            }
        }
    }
}
