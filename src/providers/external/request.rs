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
mod tests;
