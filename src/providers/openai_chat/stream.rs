//! A chat completion stream, from bytes to what a sink receives. No I/O.

use bytes::Bytes;
use serde_json::Value;

use super::frame::{Choice, Delta, Frame, Text, Usage};
use crate::model::ModelUsage;
use crate::providers::calls::Calls;
use crate::providers::failure::{Failure, excerpt};
use crate::providers::model::{Advance, FinishReason, ModelSink};
use crate::providers::sse::{SseParser, SseTooLarge};

/// The parser of one answer.
pub(super) struct ChatStream {
    sse: SseParser,
    answer: Answer,
}

impl ChatStream {
    pub(super) fn new() -> Self {
        Self { sse: SseParser::default(), answer: Answer::default() }
    }

    /// Adds a piece of the body. Contract: [`ChatStream::read`] returned [`Advance::More`] before.
    pub(super) fn push(&mut self, piece: Bytes) {
        self.sse.push(piece);
    }

    /// Whether the provider has said why it stopped; nothing but counts can follow.
    pub(super) fn has_finished(&self) -> bool {
        self.answer.reason.is_some()
    }

    /// Hands over what the pieces so far hold.
    pub(super) fn read(&mut self, sink: &mut dyn ModelSink) -> Result<Advance, Failure> {
        loop {
            if sink.is_full() {
                return Ok(Advance::Paused);
            }
            let Some(event) = self.sse.next_event().map_err(too_large)? else { return Ok(Advance::More) };
            if event.event == b"error" {
                return Err(named_error(event.data));
            }
            if self.answer.event(event.data, sink)? {
                self.answer.finish(sink);
                return Ok(Advance::Done);
            }
        }
    }

    /// The body has ended. Fine when the answer is complete, whether or not `[DONE]` came.
    pub(super) fn end(&mut self, sink: &mut dyn ModelSink) -> Result<Advance, Failure> {
        if let Some(event) = self.sse.rest().map_err(too_large)? {
            // The end may have cut this frame, so one that cannot be read only means that the answer is not complete.
            if is_whole(event.data) && self.answer.event(event.data, sink)? {
                self.answer.finish(sink);
                return Ok(Advance::Done);
            }
        }
        if self.answer.reason.is_none() {
            return Err(Failure::broken_stream(
                "the model stream ended early: neither a finish_reason nor [DONE] was sent",
            ));
        }
        self.answer.finish(sink);
        Ok(Advance::Done)
    }
}

/// Reads a completion that was sent whole, without a stream.
pub(super) fn read_completion(body: &[u8], sink: &mut dyn ModelSink) -> Result<Advance, Failure> {
    let mut answer = Answer::default();
    answer.event(body, sink)?;
    if answer.reason.is_none() && !answer.spoke && answer.calls.is_empty() {
        return Err(Failure::protocol(format!(
            "the model provider's JSON answer is not a chat completion: {}",
            excerpt(&String::from_utf8_lossy(body))
        )));
    }
    answer.finish(sink);
    Ok(Advance::Done)
}

#[derive(Default)]
struct Answer {
    calls: Calls,
    usage: Option<ModelUsage>,
    reason: Option<FinishReason>,
    refused: bool,
    spoke: bool,
}

impl Answer {
    /// Reads one event; true means that it was the end mark.
    fn event(&mut self, data: &[u8], sink: &mut dyn ModelSink) -> Result<bool, Failure> {
        if data.trim_ascii() == b"[DONE]" {
            return Ok(true);
        }
        if data.trim_ascii().is_empty() {
            return Ok(false);
        }
        // Validating the whole frame once lets the JSON parser skip it for each text, which halves its time. Broken
        // UTF-8 becomes the replacement character, as the algorithm wants it.
        let text = String::from_utf8_lossy(data);
        let frame = serde_json::from_str::<Frame<'_>>(&text).map_err(|reason| {
            Failure::protocol(format!(
                "the model stream has a frame that cannot be read ({reason}): {}",
                excerpt(&text)
            ))
        })?;
        self.frame(frame, &text, sink)?;
        Ok(false)
    }

    fn frame(&mut self, frame: Frame<'_>, text: &str, sink: &mut dyn ModelSink) -> Result<(), Failure> {
        if let Some(error) = frame.error {
            let fault = serde_json::from_str(error.get()).unwrap_or(Value::Null);
            return Err(Failure::in_stream(&fault));
        }
        if frame.object.is_some_and(|object| object.0 == "error") {
            return Err(Failure::in_stream(&serde_json::from_str(text).unwrap_or(Value::Null)));
        }
        if let Some(usage) = frame.usage {
            self.count(&usage);
        }
        for choice in frame.choices.into_iter().flatten() {
            // One answer was asked for; further ones would be mixed into it.
            if choice.index.unwrap_or(0) == 0 {
                self.choice(choice, sink);
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>, sink: &mut dyn ModelSink) {
        if let Some(usage) = &choice.usage {
            self.count(usage);
        }
        if let Some(delta) = choice.delta {
            self.delta(&delta, sink);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.0.is_empty()) {
            self.reason = Some(FinishReason::read(&reason.0));
        }
    }

    fn delta(&mut self, delta: &Delta<'_>, sink: &mut dyn ModelSink) {
        let reasoning = delta.reasoning_content.as_ref().filter(|text| !text.0.is_empty());
        if let Some(text) = reasoning.or(delta.reasoning.as_ref()).filter(|text| !text.0.is_empty()) {
            sink.thinking(&text.0);
        }
        if let Some(text) = delta.content.as_ref().filter(|text| !text.0.is_empty()) {
            self.spoke = true;
            sink.text(&text.0);
        }
        if let Some(text) = delta.refusal.as_ref().filter(|text| !text.0.is_empty()) {
            self.spoke = true;
            self.refused = true;
            sink.text(&text.0);
        }
        for call in delta.tool_calls.iter().flatten() {
            let function = call.function.as_ref();
            let name = function.and_then(|function| function.name.as_ref());
            let arguments = function.and_then(|function| function.arguments.as_ref());
            self.calls.add(call.index, text_of(call.id.as_ref()), text_of(name), text_of(arguments));
        }
    }

    fn count(&mut self, usage: &Usage) {
        let (prompt, completion) = (usage.prompt_tokens.unwrap_or(0), usage.completion_tokens.unwrap_or(0));
        let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        self.usage = Some(ModelUsage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: usage.total_tokens.unwrap_or(prompt + completion),
            reasoning_tokens: usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens),
            cache_read_input_tokens: cached.or(usage.prompt_cache_hit_tokens),
            cache_creation_input_tokens: None,
        });
    }

    /// The answer is complete: calls, counts and reason are handed over. A cut answer's calls are not: their arguments
    /// may be cut as well.
    fn finish(&mut self, sink: &mut dyn ModelSink) {
        let calls = std::mem::take(&mut self.calls);
        let mut reason = self.reason.take();
        if !matches!(reason, Some(FinishReason::Length | FinishReason::ContentFilter)) {
            let calls = calls.finish();
            if !calls.is_empty() && matches!(reason, None | Some(FinishReason::Stop)) {
                reason = Some(FinishReason::ToolCalls);
            } else if calls.is_empty() && reason == Some(FinishReason::ToolCalls) {
                // Nothing can be waited for.
                reason = Some(FinishReason::Stop);
            }
            for call in calls {
                sink.tool_call(call);
            }
        }
        if let Some(usage) = self.usage.take() {
            sink.usage(usage);
        }
        let reason = reason.unwrap_or(FinishReason::Stop);
        sink.finish(if self.refused && reason == FinishReason::Stop { FinishReason::Refusal } else { reason });
    }
}

fn text_of<'t>(part: Option<&'t Text<'_>>) -> &'t str {
    part.map_or("", |part| &part.0)
}

/// Some servers name the event instead of wrapping the error in an `error` field.
fn named_error(data: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(data);
    let fault = serde_json::from_str(&text).unwrap_or_else(|_| Value::String(excerpt(&text)));
    Failure::in_stream(fault.get("error").unwrap_or(&fault))
}

fn is_whole(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]" || serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

fn too_large(error: SseTooLarge) -> Failure {
    Failure::protocol(error.to_string())
}
