//! Callbacks of the application behind the core's ports.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::mailbox::{Answer, JsCall, Mailbox};
use crate::contract::BoxFuture;
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::{HookEvent, HookOutput, HookPort};
use crate::host::CancelToken;
use crate::host::log::{LogEntry, LogSink};
use crate::permissions::{
    Confirmation, ConfirmationPort, ConfirmationRequest, PermissionDecision, PermissionPort, PermissionRequest,
};

/// The callbacks of one Session.
pub struct JsPorts {
    mailbox: Arc<Mailbox>,
}

impl JsPorts {
    /// Callbacks reached through a mailbox.
    pub fn new(mailbox: Arc<Mailbox>) -> Self {
        Self { mailbox }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        port: &'static str,
        request: &impl serde::Serialize,
        cancel: &CancelToken,
    ) -> Result<T> {
        let json = serde_json::to_string(request).map_err(|error| Error::internal(format!("{port}: {error}")))?;
        ask(&self.mailbox, port, &json, cancel).await
    }
}

/// Calls a callback whose answer is JSON. `arguments` is the JSON text of the entry's tail.
pub(super) async fn ask<T: DeserializeOwned>(
    mailbox: &Arc<Mailbox>,
    port: &'static str,
    arguments: &str,
    cancel: &CancelToken,
) -> Result<T> {
    let call = mailbox.call(port, arguments, None);
    let answer = match until_settled(call, cancel).await? {
        Answer::Json(json) => json,
        Answer::Text(text) => return Err(wrong_form(port, &format!("a string \"{text}\""))),
        Answer::Thrown(cause) => {
            return Err(Error::new(ErrorCode::ToolExecutionError, cause.message.clone()).with_cause(cause));
        }
    };
    serde_json::from_str(&answer).map_err(|error| wrong_form(port, &error.to_string()))
}

/// Waits for the answer; a cancellation aborts the callback's signal and goes on waiting, the caller decides how long.
pub(super) async fn until_settled(mut call: JsCall, cancel: &CancelToken) -> Result<Answer> {
    tokio::select! {
        biased;
        answer = call.answer() => answer,
        () = cancel.cancelled() => {
            call.abort(&cancel.reason().map_or_else(String::new, |reason| reason.to_string()));
            call.answer().await
        }
    }
}

pub(super) fn wrong_form(port: &str, what: &str) -> Error {
    Error::new(ErrorCode::ToolExecutionError, format!("the {port} handler answered in the wrong form: {what}"))
}

impl LogSink for JsPorts {
    fn take(&self, entry: LogEntry) {
        if let Ok(json) = serde_json::to_string(&entry) {
            self.mailbox.log(&entry.session_id, json);
        }
    }
}

impl PermissionPort for JsPorts {
    fn decide<'a>(
        &'a self,
        request: &'a PermissionRequest,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<PermissionDecision>> {
        Box::pin(self.ask("permission", request, cancel))
    }
}

impl ConfirmationPort for JsPorts {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Confirmation>> {
        Box::pin(self.ask("confirmation", request, cancel))
    }
}

impl HookPort for JsPorts {
    fn run<'a>(
        &'a self,
        event: HookEvent,
        index: usize,
        input: &'a str,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<HookOutput>> {
        Box::pin(async move {
            let arguments = format!("\"{}\",{index},{input}", event.as_str());
            ask(&self.mailbox, "hook", &arguments, cancel).await
        })
    }
}
