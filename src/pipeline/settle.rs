//! Stage 6: the result takes its final form for the model.

use serde_json::json;

use super::{CallContext, CallReport, Pipeline};
use crate::contract::{ModelContent, SourceKind, ToolError, ToolErrorType, ToolFailure, ToolOutcome};
use crate::host::clock;
use crate::model::{ExecutionId, ToolCall};

/// What a tool that says nothing is reported to have said.
const BLANK_RESULT: &str = "Execution completed";
/// No built-in tool comes near it; a longer result is a defect that must not reach a provider.
const MAX_BUILTIN_BYTES: usize = 10 << 20;
/// Share of a long result that is shown in place, in characters.
const PREVIEW_CHARS: usize = 2_000;

/// Metadata of every result: which run it is of, of which tool (its main name), and when it settled, in milliseconds
/// since the Unix epoch. What a tool says under these names is replaced; its other facts stay.
const EXECUTION_ID: &str = "executionId";
const TOOL_NAME: &str = "toolName";
const TIMESTAMP: &str = "timestamp";

/// Puts a failure in the place of a settled result. Which run it is of stays; what was known of the result goes with it.
pub(super) fn supersede(report: &mut CallReport, mut failure: ToolFailure) {
    let known = report.outcome.metadata_mut();
    for name in [EXECUTION_ID, TOOL_NAME, TIMESTAMP] {
        if let Some(value) = known.remove(name) {
            failure.metadata.insert(name.to_owned(), value);
        }
    }
    report.outcome = ToolOutcome::Error(failure);
}

impl Pipeline {
    /// Another outcome in the place of a settled one, of the same run.
    pub(super) async fn settle_again(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        report: &mut CallReport,
        outcome: ToolOutcome,
    ) {
        let run = report.outcome.metadata_mut().remove(EXECUTION_ID);
        report.outcome = outcome;
        self.settle(call, cx, report).await;
        if let Some(run) = run {
            report.outcome.metadata_mut().insert(EXECUTION_ID.into(), run);
        }
    }

    pub(super) async fn settle(&self, call: &ToolCall, cx: &CallContext, report: &mut CallReport) {
        self.refuse_oversized(call, report);
        let limit = self.registry.get(&call.name).and_then(|tool| tool.spec().max_result_chars);
        if let ToolOutcome::Success(success) = &mut report.outcome {
            if success.model.is_blank() {
                success.model = BLANK_RESULT.into();
            }
            if let (Some(limit), ModelContent::Text(text)) = (limit, &success.model) {
                // Bytes bound characters from above, so short results are never counted.
                if text.len() > limit {
                    let chars = text.chars().count();
                    if chars > limit {
                        Box::pin(self.externalize(call, cx, limit, chars, success)).await;
                    }
                }
            }
        }
        if let ToolOutcome::Error(failure) = &mut report.outcome
            && failure.model.is_blank()
        {
            failure.model = failure.error.message.as_str().into();
        }
        let metadata = report.outcome.metadata_mut();
        metadata.insert(EXECUTION_ID.into(), json!(ExecutionId::generate()));
        metadata.insert(TOOL_NAME.into(), json!(self.name_of(call)));
        metadata.insert(TIMESTAMP.into(), json!(clock::now_ms()));
        if report.exit_loop {
            metadata.insert("shouldExitLoop".into(), json!(true));
        } else {
            report.exit_loop = metadata.get("shouldExitLoop") == Some(&json!(true));
        }
    }

    /// A result no provider could take is an error that says so, not a request that fails later. The setting is about
    /// the application's own tools: built-in ones bound their results themselves.
    fn refuse_oversized(&self, call: &ToolCall, report: &mut CallReport) {
        let builtin = self.registry.get(&call.name).is_some_and(|tool| tool.source.kind == SourceKind::Builtin);
        let limit = if builtin { MAX_BUILTIN_BYTES } else { self.config.max_result_bytes };
        let bytes = report.outcome.model().as_text().len();
        if bytes > limit {
            let message = format!(
                "{} returned {bytes} bytes, more than the limit of {limit} (maxToolResultBytes); return less, for \
                 instance a summary or a file path",
                call.name
            );
            let error = ToolError::new(ToolErrorType::ExecutionError, message).with_code("TOOL_RESULT_TOO_LARGE");
            report.outcome = ToolOutcome::Error(error.into());
        }
    }

    async fn externalize(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        limit: usize,
        chars: usize,
        success: &mut crate::contract::ToolSuccess,
    ) {
        let ModelContent::Text(text) = std::mem::replace(&mut success.model, ModelContent::Text(String::new())) else {
            return;
        };
        let metadata = &mut success.metadata;
        metadata.insert("resultSizeLimit".into(), json!(limit));
        metadata.insert("modelContentOriginalLength".into(), json!(chars));
        let preview: String = text.chars().take(PREVIEW_CHARS.min(limit)).collect();
        success.model = match self.artifacts.store(cx.session_id.as_str(), self.name_of(call), &text).await {
            Ok(path) => {
                metadata.insert("resultExternalized".into(), json!(true));
                metadata.insert("resultArtifactPath".into(), json!(path));
                ModelContent::Text(format!(
                    "[externalized result to {}]\nThe result has {chars} characters, more than the limit of {limit}. It \
                     begins:\n{preview}",
                    path.display()
                ))
            }
            Err(error) => {
                tracing::warn!(%error, "a long result could not be stored and is cut");
                metadata.insert("resultTruncated".into(), json!(true));
                ModelContent::Text(cut(&text, chars, limit))
            }
        };
    }
}

/// A text of `chars` characters cut to `limit`, with a note of how many are gone; the note counts too.
fn cut(text: &str, chars: usize, limit: usize) -> String {
    let note = |removed: usize| format!("\n[{removed} characters removed]");
    let room = |removed: usize| limit.saturating_sub(note(removed).len());
    // The note takes its own room from the text, which may make its number one digit longer.
    let removed = chars - room(chars - room(chars - limit));
    text.chars().take(chars - removed).chain(note(removed).chars()).take(limit).collect()
}
