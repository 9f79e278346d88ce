//! Model requests on their way to code of the application and back. What both sides know already does not cross again:
//! on the way out only what is new since the last call, on the way back only what was changed.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorCode, Result};
use crate::model::Message;
use crate::providers::model::{ModelRequest, ToolDeclaration, ToolDeclarations};

/// What the other side was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    messages: Vec<Arc<Message>>,
    tools: Option<Arc<ToolDeclarations>>,
}

/// `{model, kept, messages, tools?}`: the first `kept` messages are those of the last request, `messages` follow them;
/// without `tools` those of the last request hold.
#[derive(Serialize)]
struct Outline<'a> {
    model: &'a str,
    kept: usize,
    messages: Vec<&'a Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Definition<'a>>>,
}

/// The public `ModelToolDefinition`.
#[derive(Serialize)]
struct Definition<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl<'a> Definition<'a> {
    fn of(tool: &'a ToolDeclaration) -> serde_json::Result<Self> {
        let parameters = serde_json::from_str(&tool.schema)?;
        Ok(Self { name: &tool.name, description: &tool.description, parameters, strict: tool.strict })
    }
}

impl Told {
    /// Tells the other side of a request. Contract: `send` delivers the text before this is called again, because the
    /// next text builds upon it.
    ///
    /// # Errors
    /// `INTERNAL`: the request cannot be encoded.
    pub(super) fn tell<T>(&self, request: &ModelRequest, send: impl FnOnce(String) -> T) -> Result<T> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = last.messages.iter().zip(&request.messages).take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let known = last.tools.as_ref().is_some_and(|tools| Arc::ptr_eq(tools, &request.tools));
        let text = (|| {
            let tools = (!known).then(|| request.tools.list.iter().map(Definition::of).collect()).transpose()?;
            let messages = request.messages[kept..].iter().map(AsRef::as_ref).collect();
            serde_json::to_string(&Outline { model: &request.model, kept, messages, tools })
        })();
        let text = text.map_err(|error| Error::internal(format!("a model request is no JSON: {error}")))?;
        last.messages.clone_from(&request.messages);
        last.tools = Some(Arc::clone(&request.tools));
        Ok(send(text))
    }
}

/// `{messages?, tools?}`; what is absent stays as it is.
#[derive(Deserialize)]
struct Changes<'a> {
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    tools: Option<Vec<Changed>>,
}

#[derive(Deserialize)]
struct Changed {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Box<RawValue>,
    #[serde(default)]
    strict: Option<bool>,
}

/// The request with what the other side changed. A number among the messages stands for the message at that place of
/// the request, which keeps its encoded form.
///
/// # Errors
/// `INVALID_MODEL_REQUEST` naming what is wrong.
pub(super) fn changed(mut request: ModelRequest, changes: &str) -> Result<ModelRequest> {
    let changes: Changes<'_> = serde_json::from_str(changes).map_err(|error| invalid(error.to_string()))?;
    if let Some(list) = changes.messages {
        let mut messages = Vec::with_capacity(list.len());
        for (at, raw) in list.into_iter().enumerate() {
            let known = serde_json::from_str::<usize>(raw.get()).ok().and_then(|place| request.messages.get(place));
            messages.push(match known {
                Some(message) => Arc::clone(message),
                None => Arc::new(
                    serde_json::from_str(raw.get()).map_err(|error| invalid(format!("messages[{at}]: {error}")))?,
                ),
            });
        }
        request.messages = messages;
    }
    if let Some(list) = changes.tools {
        let mut tools = Vec::with_capacity(list.len());
        for (at, tool) in list.into_iter().enumerate() {
            let Changed { name, description, parameters, strict } = tool;
            if name.is_empty() || !parameters.get().starts_with('{') {
                return Err(invalid(format!("tools[{at}] needs a name, and parameters that are a JSON Schema object")));
            }
            tools.push(ToolDeclaration { name: name.into(), description, schema: parameters.get().into(), strict });
        }
        request.tools = Arc::new(ToolDeclarations::new(tools));
    }
    Ok(request)
}

fn invalid(why: String) -> Error {
    Error::new(ErrorCode::InvalidRequest, format!("the changed model request cannot be sent: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Content, Role, ToolCall};

    fn request(messages: &[&Arc<Message>], tools: &Arc<ToolDeclarations>) -> ModelRequest {
        ModelRequest {
            model: "m".into(),
            messages: messages.iter().map(|message| Arc::clone(message)).collect(),
            tools: Arc::clone(tools),
            temperature: Some(0.5),
            max_output_tokens: None,
            output_format: None,
            provider_options: None,
        }
    }

    fn user(text: &str) -> Arc<Message> {
        Arc::new(Message::user(Content::Text(text.into())))
    }

    fn tools(name: &str) -> Arc<ToolDeclarations> {
        let schema = r#"{"type":"object"}"#.into();
        Arc::new(ToolDeclarations::new(vec![ToolDeclaration {
            name: name.into(),
            description: "d".into(),
            schema,
            strict: None,
        }]))
    }

    #[test]
    fn only_what_is_new_is_told() {
        let (told, system, a, b, c) =
            (Told::default(), Arc::new(Message::system("s")), user("a"), user("b"), user("c"));
        let (one, two) = (tools("One"), tools("Two"));
        let tell = |request: &ModelRequest| -> Value {
            told.tell(request, |text| serde_json::from_str(&text).unwrap()).unwrap()
        };
        let shape = |outline: &Value| {
            let contents = outline["messages"].as_array().unwrap().iter().map(|message| message["content"].clone());
            json!([
                outline["kept"],
                contents.collect::<Vec<_>>(),
                outline.get("tools").map(|tools| tools[0]["name"].clone())
            ])
        };
        for (messages, tools, expected) in [
            (vec![&system, &a], &one, json!([0, ["s", "a"], "One"])),
            (vec![&system, &a, &b], &one, json!([2, ["b"], null])),
            (vec![&system, &a, &b], &two, json!([3, [], "Two"])),
            (vec![&system, &c], &two, json!([1, ["c"], null])),
            (vec![&system, &a, &b], &two, json!([1, ["a", "b"], null])),
        ] {
            assert_eq!(shape(&tell(&request(&messages, tools))), expected);
        }
        let first = Told::default().tell(&request(&[], &one), |text| text).unwrap();
        assert_eq!(
            first,
            r#"{"model":"m","kept":0,"messages":[],"tools":[{"name":"One","description":"d","parameters":{"type":"object"}}]}"#
        );
    }

    #[test]
    fn what_was_not_changed_is_the_same_value() {
        let (a, b, one) = (user("a"), user("b"), tools("One"));
        let same = changed(request(&[&a, &b], &one), "{}").unwrap();
        assert!(Arc::ptr_eq(&same.messages[1], &b) && Arc::ptr_eq(&same.tools, &one));
        let message = json!({"role": "assistant", "content": "said", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "T", "arguments": "{}"}}]});
        let tool = json!({"name": "Two", "description": "x", "parameters": {"type": "object"}, "strict": true});
        let changes = json!({"messages": [1, message, 0], "tools": [tool]}).to_string();
        let other = changed(request(&[&a, &b], &one), &changes).unwrap();
        assert!(Arc::ptr_eq(&other.messages[0], &b) && Arc::ptr_eq(&other.messages[2], &a));
        assert_eq!(other.messages[1].role, Role::Assistant);
        assert_eq!(
            other.messages[1].tool_calls,
            [ToolCall { id: "c".into(), name: "T".into(), arguments: "{}".into() }]
        );
        assert_eq!((&*other.tools.list[0].name, other.tools.list[0].strict), ("Two", Some(true)));
        assert_eq!(other.temperature, Some(0.5));
    }

    #[test]
    fn changes_that_make_no_request_are_refused_by_name() {
        let (a, one) = (user("a"), tools("One"));
        for (changes, expected) in [
            (json!({"messages": "x"}), "invalid type"),
            (json!({"messages": [7]}), "messages[0]"),
            (json!({"messages": [0, {"content": "x"}]}), "messages[1]: missing field `role`"),
            (json!({"messages": [{"role": "robot", "content": "x"}]}), "unknown variant `robot`"),
            (json!({"tools": [{"name": "", "parameters": {}}]}), "tools[0] needs a name"),
            (json!({"tools": [{"name": "T", "parameters": true}]}), "tools[0] needs a name"),
            (json!({"tools": [{"name": "T"}]}), "missing field `parameters`"),
        ] {
            let error = changed(request(&[&a], &one), &changes.to_string()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidRequest);
            assert!(error.message.contains(expected), "{error}");
        }
    }
}
