//! The application's hooks around a request and around the life of a Session.

use serde_json::{Map, Value, json};
use tracing::Instrument;

use super::Session;
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::{HookEvent, HookFailure, Stop, merged_input, stop_of};
use crate::host::CancelToken;
use crate::model::{Content, ContentPart};

impl Session {
    /// `SessionStart`. Called once, before the Session is handed out.
    ///
    /// # Errors
    /// A hook aborted, threw or took too long; the Session should be closed.
    pub async fn begin(&self) -> Result<()> {
        let fields = Map::from_iter([("isResume".to_owned(), Value::Bool(false))]);
        let started = self.hooks.announce(HookEvent::SessionStart, fields, &self.root);
        started.instrument(self.observed.span().clone()).await.map_err(failed)
    }

    /// Whether [`Session::begin`] has anything to do.
    pub fn has_start_hooks(&self) -> bool {
        self.hooks.has(HookEvent::SessionStart)
    }

    /// `UserPromptSubmit`: the message as the hooks want it.
    pub(super) async fn submitted(&self, content: Content, cancel: &CancelToken) -> Result<Content> {
        if !self.hooks.has(HookEvent::UserPromptSubmit) {
            return Ok(content);
        }
        let mut fields = prompt_fields(&content);
        fields.insert("userPrompt".to_owned(), Value::String(content.text()));
        let outputs = self.hooks.run(HookEvent::UserPromptSubmit, fields, cancel).await.map_err(failed)?;
        match stop_of(&outputs) {
            Some(Stop::Skip(reason) | Stop::Abort(reason)) => {
                let reason = reason.unwrap_or_else(|| "a hook refused the message".to_owned());
                Err(Error::new(ErrorCode::HookAborted, reason))
            }
            None => match merged_input(&outputs).remove("userPrompt") {
                Some(Value::String(text)) => Ok(with_text(content, text)),
                _ => Ok(content),
            },
        }
    }

    /// `TaskCompleted`, after a request succeeded and before its end is published.
    pub(super) async fn completed(&self, content: &Content, text: &str, cancel: &CancelToken) -> Result<()> {
        if !self.hooks.has(HookEvent::TaskCompleted) {
            return Ok(());
        }
        let mut fields = prompt_fields(content);
        fields.insert("taskId".to_owned(), Value::String(self.id.to_string()));
        fields.insert("taskDescription".to_owned(), Value::String(content.text()));
        fields.insert("resultSummary".to_owned(), Value::String(text.to_owned()));
        fields.insert("success".to_owned(), Value::Bool(true));
        self.hooks.announce(HookEvent::TaskCompleted, fields, cancel).await.map_err(failed)
    }
}

fn failed(failure: HookFailure) -> Error {
    match failure {
        HookFailure::Failed(error) => error,
        HookFailure::Cancelled => Error::new(ErrorCode::Abort, "the request was aborted"),
    }
}

fn prompt_fields(content: &Content) -> Map<String, Value> {
    let images = match content {
        Content::Text(_) => 0,
        Content::Parts(parts) => parts.iter().filter(|part| matches!(part, ContentPart::ImageUrl { .. })).count(),
    };
    Map::from_iter([("hasImages".to_owned(), json!(images > 0)), ("imageCount".to_owned(), json!(images))])
}

/// Replaces all text; images stay, after the text. An empty replacement leaves the images alone.
fn with_text(content: Content, text: String) -> Content {
    match content {
        Content::Text(_) => Content::Text(text),
        Content::Parts(parts) => {
            let images = parts.into_iter().filter(|part| matches!(part, ContentPart::ImageUrl { .. }));
            let words = (!text.is_empty()).then_some(ContentPart::Text { text, provider_options: None });
            Content::Parts(words.into_iter().chain(images).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ImageUrl;

    #[test]
    fn a_replaced_prompt_keeps_its_images_after_the_text() {
        let image = || ContentPart::ImageUrl { image_url: ImageUrl { url: "data:image/png;base64,AA".into() } };
        let words = |text: &str| ContentPart::Text { text: text.into(), provider_options: None };
        let parts = || Content::Parts(vec![words("a"), image(), words("b")]);
        assert_eq!(with_text(parts(), "new".into()), Content::Parts(vec![words("new"), image()]));
        assert_eq!(with_text(parts(), String::new()), Content::Parts(vec![image()]));
        assert_eq!(with_text(Content::Text("old".into()), "new".into()), Content::Text("new".into()));
        assert_eq!(prompt_fields(&parts()).get("imageCount"), Some(&json!(1)));
    }
}
