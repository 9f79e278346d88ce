//! Model calls that JavaScript answers: the functions by which its part of a call pushes chunks of the answer and
//! pulls those of the model behind it.

use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::External as Handle;
use napi_derive::napi;

use super::error::thrown;
use super::js_ports::until_settled;
use super::mailbox::{Answer, Mailbox};
use super::session::NativeSession;
use crate::contract::BoxFuture;
use crate::error::{Error, ErrorCode, Result};
use crate::host::CancelToken;
use crate::providers::external::{
    Completions, Exchanges, External, ExternalOptions, ModelPort, Outcome, Pulled, Pushed,
};
use crate::session;

/// Results of [`model_push`]; `js/model-calls.js` reads them.
mod pushed {
    pub const ROOM: u32 = 0;
    pub const FULL: u32 = 1;
    pub const OVER: u32 = 2;
}

/// What stands for the end of an answer where chunks are expected.
const END: &str = "null";

/// The middleware of a Session. `silence` is its longest.
pub fn middleware(mailbox: &Arc<Mailbox>, silence: Duration) -> External {
    let options = ExternalOptions { name: "model middleware", code: ErrorCode::ModelMiddlewareFailed, silence };
    External {
        exchanges: Arc::new(Exchanges::new(Arc::new(Operations { mailbox: Arc::clone(mailbox) }))),
        port: Arc::new(JsModelPort { mailbox: Arc::clone(mailbox), name: options.name, code: options.code }),
        options,
    }
}

struct JsModelPort {
    mailbox: Arc<Mailbox>,
    name: &'static str,
    code: ErrorCode,
}

impl ModelPort for JsModelPort {
    fn answer(&self, exchange: u32, request: String, cancel: CancelToken) -> BoxFuture<'static, Result<Outcome>> {
        let call = self.mailbox.call("model", &format!("{exchange},{request}"), None);
        let (name, code) = (self.name, self.code);
        Box::pin(async move {
            match until_settled(call, &cancel).await? {
                Answer::Json(json) if json == "true" => Ok(Outcome::Complete),
                Answer::Json(_) => Ok(Outcome::ModelFailed),
                Answer::Text(_) => Err(Error::internal("a model call is settled with a boolean")),
                Answer::Thrown(cause) => {
                    Err(Error::new(code, format!("{name} failed: {}", cause.message)).with_cause(cause))
                }
            }
        })
    }
}

struct Operations {
    mailbox: Arc<Mailbox>,
}

impl Completions for Operations {
    fn pulled(&self, operation: u32, pulled: Pulled) {
        match pulled {
            Pulled::Chunks(batch) => self.mailbox.complete(operation, Ok(&batch)),
            Pulled::End | Pulled::Wait => self.mailbox.complete(operation, Ok(END)),
            Pulled::Failed(error) => self.mailbox.complete(operation, Err(&error)),
        }
    }

    fn room(&self, operation: u32) {
        self.mailbox.complete(operation, Ok(END));
    }
}

fn exchanges(handle: &NativeSession) -> Result<&Exchanges> {
    handle.exchanges.as_deref().ok_or_else(|| Error::internal("the session has no model middleware"))
}

/// Asks the model behind the middleware. `changes` is JSON text, `{messages?, tools?}`; a number among the messages is
/// the place of one that was not changed.
#[napi(catch_unwind)]
pub fn model_start(handle: &Handle<NativeSession>, exchange: u32, changes: String) -> napi::Result<()> {
    let started = session::runtime().and_then(|runtime| exchanges(handle)?.start(exchange, &changes, &runtime));
    started.map_err(|error| thrown(&error))
}

/// The next chunks of that model as the JSON text of their list, `null` as text at the end. `null` when there is nothing
/// yet: `operation` is completed with the same later.
#[napi(catch_unwind)]
pub fn model_pull(handle: &Handle<NativeSession>, exchange: u32, operation: u32) -> napi::Result<Option<String>> {
    match exchanges(handle).map_err(|error| thrown(&error))?.pull(exchange, operation) {
        Pulled::Chunks(batch) => Ok(Some(batch)),
        Pulled::End => Ok(Some(END.to_owned())),
        Pulled::Failed(error) => Err(thrown(&error)),
        Pulled::Wait => Ok(None),
    }
}

/// Nothing more is wanted of that model: its connection is closed.
#[napi(catch_unwind)]
pub fn model_stop(handle: &Handle<NativeSession>, exchange: u32) {
    if let Ok(exchanges) = exchanges(handle) {
        exchanges.stop(exchange);
    }
}

/// Chunks of the answer as the JSON text of their list. 0: there is room for more. 1: `operation` is completed when
/// there is. 2: the answer is over.
#[napi(catch_unwind)]
pub fn model_push(handle: &Handle<NativeSession>, exchange: u32, operation: u32, batch: String) -> u32 {
    match exchanges(handle).map(|exchanges| exchanges.push(exchange, operation, batch)) {
        Ok(Pushed::Room) => pushed::ROOM,
        Ok(Pushed::Full) => pushed::FULL,
        Ok(Pushed::Over) | Err(_) => pushed::OVER,
    }
}
