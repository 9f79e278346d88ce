//! One scripted answer and its strict JSON form.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::disconnected;
use crate::model::ModelUsage;
use crate::providers::failure::Failure;
use crate::providers::model::FinishReason;

/// Longest scripted delay, the limit of a JavaScript timer.
const MAX_DELAY_MS: u64 = 2_147_483_647;

/// An answer, checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turn {
    pub(super) text: Vec<String>,
    pub(super) thinking: Vec<String>,
    pub(super) calls: Vec<Call>,
    pub(super) usage: UsageChoice,
    pub(super) finish: Option<FinishReason>,
    pub(super) delay: Duration,
    pub(super) fault: Option<Fault>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum UsageChoice {
    /// Counted from the texts.
    #[default]
    Counted,
    None,
    Given(u64, u64),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum Fault {
    /// An HTTP error answer.
    Http { status: u16, message: Option<String>, retry_after_ms: Option<u64> },
    /// The connection breaks after so many deltas.
    Disconnect { after: Option<usize> },
    /// A frame that cannot be read.
    Malformed { after: Option<usize> },
    /// Silence.
    Hang { after: Option<usize> },
    /// An error object in the stream.
    Error { message: String, after: Option<usize> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TurnJson {
    text: Option<Value>,
    thinking: Option<Value>,
    tool_calls: Option<Vec<CallJson>>,
    usage: Option<Value>,
    finish_reason: Option<String>,
    delay_ms: Option<u64>,
    fault: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallJson {
    id: Option<String>,
    name: String,
    input: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UsageJson {
    input_tokens: u64,
    output_tokens: u64,
}

impl Turn {
    /// Reads a turn: a text, or an object.
    pub(super) fn parse(json: &Value) -> Result<Self, String> {
        match json {
            Value::String(text) => Ok(Self { text: vec![text.clone()], ..Self::default() }),
            Value::Object(_) => Self::read(TurnJson::deserialize(json).map_err(|error| error.to_string())?),
            other => Err(format!("must be a text or an object, got {other}")),
        }
    }

    fn read(json: TurnJson) -> Result<Self, String> {
        let fault = match json.fault {
            None | Some(Value::Null) => None,
            Some(fault) => Some(Fault::deserialize(fault).map_err(|error| format!("fault: {error}"))?),
        };
        if let Some(Fault::Http { status, .. }) = &fault
            && !(400..600).contains(status)
        {
            return Err(format!("fault: status must be from 400 to 599, got {status}"));
        }
        let delay = json.delay_ms.unwrap_or(0);
        if delay > MAX_DELAY_MS {
            return Err(format!("delayMs must be at most {MAX_DELAY_MS}, got {delay}"));
        }
        Ok(Self {
            text: deltas("text", json.text)?,
            thinking: deltas("thinking", json.thinking)?,
            calls: json.tool_calls.into_iter().flatten().map(Call::read).collect::<Result<_, _>>()?,
            usage: match json.usage {
                None | Some(Value::Null) => UsageChoice::Counted,
                Some(Value::Bool(false)) => UsageChoice::None,
                Some(given) => {
                    let usage = UsageJson::deserialize(given).map_err(|error| format!("usage: {error}"))?;
                    UsageChoice::Given(usage.input_tokens, usage.output_tokens)
                }
            },
            finish: json.finish_reason.map(|reason| match reason.as_str() {
                "stop" => FinishReason::Stop,
                "tool_calls" => FinishReason::ToolCalls,
                "length" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                "refusal" => FinishReason::Refusal,
                _ => FinishReason::Other(reason),
            }),
            delay: Duration::from_millis(delay),
            fault,
        })
    }
}

impl Call {
    fn read(json: CallJson) -> Result<Self, String> {
        if json.name.is_empty() || json.id.as_deref() == Some("") {
            return Err("toolCalls: name and id must not be empty".to_owned());
        }
        let arguments = match json.input {
            None => "{}".to_owned(),
            // A text goes out as it is, so that malformed arguments can be scripted.
            Some(Value::String(text)) => text,
            Some(input @ Value::Object(_)) => input.to_string(),
            Some(other) => return Err(format!("toolCalls: input must be an object or a text, got {other}")),
        };
        Ok(Self { id: json.id, name: json.name, arguments })
    }
}

impl UsageChoice {
    pub(super) fn counts(&self, counted: impl FnOnce() -> ModelUsage) -> Option<ModelUsage> {
        match *self {
            Self::Counted => Some(counted()),
            Self::None => None,
            Self::Given(prompt_tokens, completion_tokens) => Some(ModelUsage {
                prompt_tokens,
                completion_tokens,
                total_tokens: prompt_tokens.saturating_add(completion_tokens),
                ..ModelUsage::default()
            }),
        }
    }
}

impl Fault {
    /// The failure before any answer.
    pub(super) fn at_once(&self) -> Option<Failure> {
        let Self::Http { status, message, retry_after_ms } = self else { return None };
        let message = message.clone().unwrap_or_else(|| format!("scripted {status}"));
        let retry_after = retry_after_ms.map(Duration::from_millis);
        Some(Failure { retry_after, ..Failure::http(*status, &message) })
    }

    /// After how many deltas the stream breaks, and how; `None` as failure is silence.
    pub(super) fn in_stream(self) -> Option<(usize, Option<Box<Failure>>)> {
        let (after, failure) = match self {
            Self::Http { .. } => return None,
            Self::Disconnect { after } => (after, Some(disconnected())),
            Self::Malformed { after } => {
                (after, Some(Failure::protocol("the model stream has a frame that cannot be read: scripted")))
            }
            Self::Hang { after } => (after, None),
            Self::Error { message, after } => (after, Some(Failure::in_stream(&json!({"message": message})))),
        };
        Some((after.unwrap_or(0), failure.map(Box::new)))
    }
}

fn deltas(name: &str, json: Option<Value>) -> Result<Vec<String>, String> {
    let wrong = |other: &Value| format!("{name} must be a text or a list of texts, got {other}");
    match json {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(items)) => items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                other => Err(wrong(&other)),
            })
            .collect(),
        Some(other) => Err(wrong(&other)),
    }
}
