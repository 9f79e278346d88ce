//! The request of a chat completion as JSON bytes. Pure, and linear only in copying: each message and the tools are
//! encoded once in their life and spliced from then on.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::model::{Content, ContentPart, Message, Role, ToolCall};
use crate::providers::model::{ModelRequest, ToolDeclaration};

/// What differs between the servers that speak this protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Provider type; a key of `providerOptions`.
    pub(super) kind: String,
    /// Provider id; the other key of `providerOptions`.
    pub(super) id: String,
    /// Name of the answer limit.
    pub(super) limit: &'static str,
}

/// Fields of the body that options cannot replace: the conversation would be another one than the Session's.
const OURS: [&str; 3] = ["messages", "stream", "stream_options"];

/// Options of the reference's users that are spelled differently on the wire.
const SPELLINGS: [(&str, &str); 10] = [
    ("reasoningEffort", "reasoning_effort"),
    ("parallelToolCalls", "parallel_tool_calls"),
    ("serviceTier", "service_tier"),
    ("maxCompletionTokens", "max_completion_tokens"),
    ("logitBias", "logit_bias"),
    ("topLogprobs", "top_logprobs"),
    ("promptCacheKey", "prompt_cache_key"),
    ("safetyIdentifier", "safety_identifier"),
    ("textVerbosity", "verbosity"),
    ("toolChoice", "tool_choice"),
];

/// The body of a request.
///
/// # Errors
/// `CONFIG_ERROR` for an option that cannot be honoured.
pub(super) fn body(request: &ModelRequest, dialect: &Dialect, max_output_tokens: Option<u64>) -> Result<Vec<u8>> {
    let options = merged_options(request.provider_options.as_deref(), dialect)?;
    let messages: Vec<&str> =
        answering(&request.messages).map(|message| message.wire(|message| encode_message(message, dialect))).collect();
    let tools = if request.tools.list.is_empty() { "" } else { request.tools.wire(encode_tools) };
    let size = messages.iter().map(|text| text.len() + 1).sum::<usize>() + tools.len() + 512;
    let mut out = Vec::with_capacity(size);
    out.push(b'{');
    let ours = |key: &str| !options.contains_key(key);
    if ours("model") {
        field(&mut out, "model", &*request.model);
    }
    raw_field(&mut out, "messages", "[");
    for (at, text) in messages.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b']');
    if !tools.is_empty() && ours("tools") {
        raw_field(&mut out, "tools", tools);
    }
    if let Some(temperature) = request.temperature
        && ours("temperature")
    {
        field(&mut out, "temperature", &temperature);
    }
    if let Some(limit) = max_output_tokens
        && ours("max_tokens")
        && ours("max_completion_tokens")
    {
        field(&mut out, dialect.limit, &limit);
    }
    if let Some(format) = &request.output_format
        && ours("response_format")
    {
        raw_field(&mut out, "response_format", format.get());
    }
    for (key, value) in &options {
        field(&mut out, key, value);
    }
    raw_field(&mut out, "stream", "true");
    raw_field(&mut out, "stream_options", r#"{"include_usage":true}"#);
    out.push(b'}');
    Ok(out)
}

/// The conversation without tool results whose call is not in the assistant message before them: a server refuses the
/// whole request for one of those. Parity: the reference drops them too.
fn answering(messages: &[Arc<Message>]) -> impl Iterator<Item = &Message> {
    let mut calls: &[ToolCall] = &[];
    let mut answered = 0;
    messages.iter().map(|message| &**message).filter(move |message| {
        if message.role != Role::Tool {
            calls = &message.tool_calls;
            answered = 0;
            return true;
        }
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        // Results come in the order of their calls, so the first look finds nearly all of them.
        let known = calls.get(answered).is_some_and(|call| call.id == id) || calls.iter().any(|call| call.id == id);
        answered += 1;
        if !known {
            tracing::warn!(id, "a tool result without its call is not sent");
        }
        known
    })
}

/// The options for this provider: those of its type, then those of its id.
fn merged_options(options: Option<&Value>, dialect: &Dialect) -> Result<Map<String, Value>> {
    let mut merged = Map::new();
    let Some(options) = options else { return Ok(merged) };
    let keys = [&dialect.kind, &dialect.id];
    for key in keys.iter().take(if dialect.kind == dialect.id { 1 } else { 2 }) {
        match options.get(key.as_str()) {
            None | Some(Value::Null) => {}
            Some(Value::Object(chosen)) => {
                for (name, value) in chosen {
                    let wire =
                        SPELLINGS.iter().find(|(given, _)| given == name).map_or(name.as_str(), |(_, wire)| wire);
                    if OURS.contains(&wire) {
                        return Err(Error::config(format!(
                            "providerOptions.{key}.{name} cannot be set: the Session owns it"
                        )));
                    }
                    merged.insert(wire.to_owned(), value.clone());
                }
            }
            Some(_) => return Err(Error::config(format!("providerOptions.{key} must be an object"))),
        }
    }
    Ok(merged)
}

fn encode_tools(tools: &[ToolDeclaration]) -> String {
    let mut out = vec![b'['];
    for (at, tool) in tools.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(br#"{"type":"function","function":{"#);
        field(&mut out, "name", &*tool.name);
        field(&mut out, "description", &tool.description);
        raw_field(&mut out, "parameters", &tool.schema);
        if let Some(strict) = tool.strict {
            field(&mut out, "strict", &strict);
        }
        out.extend_from_slice(b"}}");
    }
    out.push(b']');
    text(out)
}

fn encode_message(message: &Message, dialect: &Dialect) -> String {
    let mut out = vec![b'{'];
    match message.role {
        Role::System => {
            raw_field(&mut out, "role", "\"system\"");
            field(&mut out, "content", &message.content.text());
        }
        Role::User => {
            raw_field(&mut out, "role", "\"user\"");
            match &message.content {
                Content::Text(text) => field(&mut out, "content", text),
                Content::Parts(parts) => {
                    let parts: Vec<Value> = parts.iter().map(|part| encode_part(part, dialect)).collect();
                    field(&mut out, "content", &parts);
                }
            }
        }
        Role::Assistant => {
            raw_field(&mut out, "role", "\"assistant\"");
            let text = message.content.text();
            // OpenAI itself writes null beside calls; several servers refuse an empty text there.
            if text.is_empty() && !message.tool_calls.is_empty() {
                raw_field(&mut out, "content", "null");
            } else {
                field(&mut out, "content", &text);
            }
            if !message.tool_calls.is_empty() {
                encode_calls(&mut out, &message.tool_calls, dialect);
            }
        }
        Role::Tool => {
            raw_field(&mut out, "role", "\"tool\"");
            field(&mut out, "tool_call_id", message.tool_call_id.as_deref().unwrap_or_default());
            field(&mut out, "content", &message.content.text());
        }
    }
    out.push(b'}');
    text(out)
}

fn encode_part(part: &ContentPart, dialect: &Dialect) -> Value {
    let mut value = Map::new();
    match part {
        ContentPart::Text { text, provider_options } => {
            value.insert("type".to_owned(), "text".into());
            value.insert("text".to_owned(), text.as_str().into());
            for key in [&dialect.kind, &dialect.id] {
                let chosen = provider_options.as_ref().and_then(|options| options.get(key.as_str()));
                for (name, option) in chosen.and_then(Value::as_object).into_iter().flatten() {
                    if !matches!(name.as_str(), "type" | "text") {
                        value.insert(name.clone(), option.clone());
                    }
                }
            }
        }
        ContentPart::ImageUrl { image_url } => {
            value.insert("type".to_owned(), "image_url".into());
            value.insert("image_url".to_owned(), serde_json::json!({"url": image_url.url}));
        }
    }
    Value::Object(value)
}

/// A name servers take back. Models call tools that do not exist under names that could not be declared either, and the
/// whole conversation would be refused for such a name from then on. OpenAI's own rule is narrower than what compatible
/// servers let an application declare.
fn accepted_name<'n>(name: &'n str, dialect: &Dialect) -> Cow<'n, str> {
    let own = dialect.kind == "openai";
    let longest = if own { 64 } else { 128 };
    let fits = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || (!own && !c.is_whitespace() && !c.is_control())
    };
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.chars().all(fits) && name.chars().count() <= longest {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().take(longest).map(|c| if fits(c) { c } else { '_' }).collect())
}

fn encode_calls(out: &mut Vec<u8>, calls: &[ToolCall], dialect: &Dialect) {
    raw_field(out, "tool_calls", "[");
    for (at, call) in calls.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.push(b'{');
        field(out, "id", &call.id);
        raw_field(out, "type", "\"function\"");
        raw_field(out, "function", "{");
        field(out, "name", &*accepted_name(&call.name, dialect));
        // Servers parse stored arguments again, and refuse the whole conversation when they cannot.
        field(out, "arguments", if is_object(&call.arguments) { call.arguments.as_str() } else { "{}" });
        out.extend_from_slice(b"}}");
    }
    out.push(b']');
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Adds a field to the object under construction.
fn field<T: Serialize + ?Sized>(out: &mut Vec<u8>, name: &str, value: &T) {
    raw_field(out, name, "");
    // Writing to memory cannot fail, and neither can texts, numbers and JSON values.
    let _ = serde_json::to_writer(out, value);
}

fn raw_field(out: &mut Vec<u8>, name: &str, json: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    let _ = serde_json::to_writer(&mut *out, name);
    out.push(b':');
    out.extend_from_slice(json.as_bytes());
}

fn text(bytes: Vec<u8>) -> String {
    // The bytes were written by serde_json and from strings, so this never replaces anything.
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
