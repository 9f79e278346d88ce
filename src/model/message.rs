//! Conversation messages in the shape the public surface shows them (`ModelMessage`).

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::MessageId;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The human, or the program on their behalf.
    User,
    /// The model.
    Assistant,
    /// The result of one tool call.
    Tool,
}

/// Message content: plain text, or parts when there are images or per-part options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Text and images in order.
    Parts(Vec<ContentPart>),
}

impl Content {
    /// All text of the content; parts are joined with newlines, images left out.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| match part {
                        ContentPart::Text { text, .. } => Some(text.as_str()),
                        ContentPart::ImageUrl { .. } => None,
                    })
                    .collect();
                texts.join("\n")
            }
        }
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// Text, with options that go to the provider for this part alone.
    Text {
        /// The text.
        text: String,
        /// Options keyed by provider.
        #[serde(rename = "providerOptions", default, skip_serializing_if = "Option::is_none")]
        provider_options: Option<Value>,
    },
    /// An image by URL or base64 data URL.
    ImageUrl {
        /// Where the image is.
        image_url: ImageUrl,
    },
}

/// Address of an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageUrl {
    /// `http(s):` or `data:` URL.
    pub url: String,
}

/// A tool call as the model made it. `arguments` is the text the model sent, not yet parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Unique within the conversation.
    pub id: String,
    /// Tool name or alias.
    pub name: String,
    /// JSON text as received; may be malformed.
    pub arguments: String,
}

/// Where a message comes from that neither the user nor the model wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Provenance {
    /// The list of tools that can be discovered.
    Catalog,
    /// An effect of a tool.
    ToolInjection,
}

/// One message of a conversation.
#[derive(Debug)]
pub struct Message {
    /// Identifier of the message.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content,
    /// Reasoning of an assistant message.
    pub reasoning: Option<String>,
    /// Calls of an assistant message.
    pub tool_calls: Vec<ToolCall>,
    /// For role tool: the call it answers.
    pub tool_call_id: Option<String>,
    /// For role tool: name of the tool.
    pub name: Option<String>,
    /// Set for what neither the user nor the model wrote; models are not told.
    pub provenance: Option<Provenance>,
    /// Encoding cache: the message as wire JSON, made once by the provider's request builder.
    /// A Session has one wire format for its whole life, so one slot is enough.
    wire: OnceLock<Box<str>>,
}

impl Message {
    fn bare(role: Role, content: Content) -> Self {
        Self {
            id: MessageId::generate(),
            role,
            content,
            reasoning: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            provenance: None,
            wire: OnceLock::new(),
        }
    }

    /// A system message.
    pub fn system(text: impl Into<String>) -> Self {
        Self::bare(Role::System, Content::Text(text.into()))
    }

    /// A user message.
    pub fn user(content: Content) -> Self {
        Self::bare(Role::User, content)
    }

    /// An assistant message.
    pub fn assistant(text: impl Into<String>, reasoning: Option<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self { reasoning, tool_calls, ..Self::bare(Role::Assistant, Content::Text(text.into())) }
    }

    /// The result of one tool call.
    pub fn tool(call_id: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            tool_call_id: Some(call_id.into()),
            name: Some(name.into()),
            ..Self::bare(Role::Tool, Content::Text(text.into()))
        }
    }

    /// The wire form, encoding it on first use.
    pub fn wire(&self, encode: impl FnOnce(&Self) -> String) -> &str {
        self.wire.get_or_init(|| encode(self).into_boxed_str())
    }
}

impl Serialize for Message {
    /// The public `ModelMessage` shape.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("role", &self.role)?;
        map.serialize_entry("content", &self.content)?;
        if let Some(reasoning) = &self.reasoning {
            map.serialize_entry("reasoningContent", reasoning)?;
        }
        if let Some(id) = &self.tool_call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        if let Some(name) = &self.name {
            map.serialize_entry("name", name)?;
        }
        if !self.tool_calls.is_empty() {
            map.serialize_entry("tool_calls", &self.tool_calls)?;
        }
        if let Some(provenance) = &self.provenance {
            map.serialize_entry("provenance", provenance)?;
        }
        map.end()
    }
}

impl Serialize for ToolCall {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: &'a str,
        }
        #[derive(Serialize)]
        struct Wire<'a> {
            id: &'a str,
            r#type: &'static str,
            function: Function<'a>,
        }
        Wire { id: &self.id, r#type: "function", function: Function { name: &self.name, arguments: &self.arguments } }
            .serialize(serializer)
    }
}

/// The public `ModelMessage` shape, as callers and scripted tools hand it in.
#[derive(Debug, Clone, Deserialize)]
struct MessageInput {
    #[serde(default)]
    id: Option<MessageId>,
    role: Role,
    content: Content,
    #[serde(rename = "reasoningContent", default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCallInput>,
}

#[derive(Debug, Clone, Deserialize)]
struct ToolCallInput {
    id: String,
    function: FunctionInput,
}

#[derive(Debug, Clone, Deserialize)]
struct FunctionInput {
    name: String,
    #[serde(default)]
    arguments: String,
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let input = MessageInput::deserialize(deserializer)?;
        let mut message = Self::bare(input.role, input.content);
        if let Some(id) = input.id {
            message.id = id;
        }
        message.reasoning = input.reasoning;
        message.tool_call_id = input.tool_call_id;
        message.name = input.name;
        message.tool_calls = input
            .tool_calls
            .into_iter()
            .map(|call| ToolCall { id: call.id, name: call.function.name, arguments: call.function.arguments })
            .collect();
        Ok(message)
    }
}
