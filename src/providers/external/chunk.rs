//! Answers as chunks of JSON, the public `ModelStreamChunk`: `{content?, reasoningContent?, toolCalls?, finishReason?,
//! usage?}`. A batch is the JSON text of a list of them.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::model::{ModelUsage, ToolCall};
use crate::providers::calls::Calls;
use crate::providers::failure::excerpt;
use crate::providers::model::{FinishReason, ModelSink};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Chunk {
    content: Option<String>,
    reasoning_content: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
    finish_reason: Option<String>,
    usage: Option<ModelUsage>,
}

/// A whole call, or a piece of one: pieces of one `index` belong together.
#[derive(Deserialize)]
struct CallPiece {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionPiece>,
}

#[derive(Deserialize)]
struct FunctionPiece {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(super) struct ChunkReader {
    calls: Calls,
    usage: Option<ModelUsage>,
    reason: Option<FinishReason>,
    count: usize,
}

impl ChunkReader {
    /// Reads a batch. Text goes to the sink at once, the rest when the answer is complete.
    ///
    /// # Errors
    /// A sentence that names the chunk and what is wrong with it. What came before it was handed over.
    pub(super) fn read(&mut self, batch: &str, sink: &mut dyn ModelSink) -> Result<(), String> {
        let chunks: Vec<&RawValue> = serde_json::from_str(batch).map_err(|error| error.to_string())?;
        for raw in chunks {
            self.count += 1;
            let chunk: Chunk = serde_json::from_str(raw.get())
                .map_err(|error| format!("chunk {} is malformed: {error}: {}", self.count, excerpt(raw.get())))?;
            if let Some(text) = chunk.reasoning_content.filter(|text| !text.is_empty()) {
                sink.thinking(&text);
            }
            if let Some(text) = chunk.content.filter(|text| !text.is_empty()) {
                sink.text(&text);
            }
            for CallPiece { index, id, function } in chunk.tool_calls.into_iter().flatten() {
                let (name, arguments) = function.map_or((None, None), |function| (function.name, function.arguments));
                let text = |part: &Option<String>| part.as_deref().unwrap_or_default().to_owned();
                self.calls.add(index, &text(&id), &text(&name), &text(&arguments));
            }
            self.usage = chunk.usage.or(self.usage.take());
            self.reason = chunk.finish_reason.map(|reason| FinishReason::read(&reason)).or(self.reason.take());
        }
        Ok(())
    }

    /// The answer is complete: calls, counts and reason are handed over. Calls of a cut answer are not: their arguments
    /// may be cut as well.
    ///
    /// # Errors
    /// A sentence about a call without a name.
    pub(super) fn finish(&mut self, sink: &mut dyn ModelSink) -> Result<(), String> {
        let calls = std::mem::take(&mut self.calls).finish();
        let cut = matches!(self.reason, Some(FinishReason::Length | FinishReason::ContentFilter));
        if let Some(call) = calls.iter().find(|call| call.name.is_empty() && !cut) {
            return Err(format!("tool call {:?} of the answer has no function.name", call.id));
        }
        for call in calls.into_iter().filter(|_| !cut) {
            sink.tool_call(call);
        }
        if let Some(usage) = self.usage.take() {
            sink.usage(usage);
        }
        if let Some(reason) = self.reason.take() {
            sink.finish(reason);
        }
        Ok(())
    }
}

/// Writes chunks into a batch.
#[derive(Debug, Default)]
pub(super) struct ChunkWriter {
    batch: String,
    count: usize,
    calls: usize,
}

impl ChunkWriter {
    fn put(&mut self, chunk: &serde_json::Value) {
        self.batch.push(if self.count == 0 { '[' } else { ',' });
        self.batch.push_str(&chunk.to_string());
        self.count += 1;
    }

    pub(super) fn text(&mut self, delta: &str) {
        self.put(&json!({ "content": delta }));
    }

    pub(super) fn thinking(&mut self, delta: &str) {
        self.put(&json!({ "reasoningContent": delta }));
    }

    /// A whole call. Its `index` keeps calls apart that share an id.
    pub(super) fn call(&mut self, call: &ToolCall) {
        let function = json!({ "name": call.name, "arguments": call.arguments });
        self.put(
            &json!({ "toolCalls": [{ "index": self.calls, "id": call.id, "type": "function", "function": function }] }),
        );
        self.calls += 1;
    }

    pub(super) fn usage(&mut self, usage: &ModelUsage) {
        self.put(&json!({ "usage": usage }));
    }

    pub(super) fn reason(&mut self, reason: &FinishReason) {
        self.put(&json!({ "finishReason": reason.as_str() }));
    }

    /// Number of chunks that wait.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.batch.len()
    }

    /// The batch, if anything waits.
    pub(super) fn take(&mut self) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        self.count = 0;
        let mut batch = std::mem::take(&mut self.batch);
        batch.push(']');
        Some(batch)
    }
}

#[cfg(test)]
mod tests;
