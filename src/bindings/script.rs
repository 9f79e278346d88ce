//! The scripted provider: its script, its journal, and turns that are JavaScript functions.

use std::sync::Arc;

use napi::bindgen_prelude::External;
use napi_derive::napi;

use super::env::NativeEnv;
use super::error::thrown;
use super::mailbox::{Answer, Mailbox};
use crate::contract::BoxFuture;
use crate::error::{Error, ErrorCode, Result};
use crate::providers::scripted::{Script, ScriptSource};

/// What the facade holds for a script.
pub struct NativeScript {
    /// The script.
    pub script: Arc<Script>,
    mailbox: Arc<Mailbox>,
}

impl Drop for NativeScript {
    fn drop(&mut self) {
        self.mailbox.retire();
    }
}

struct JsTurns {
    mailbox: Arc<Mailbox>,
}

impl ScriptSource for JsTurns {
    fn next(&self, request_json: String) -> BoxFuture<'_, Result<String>> {
        Box::pin(async move {
            let mut call = self.mailbox.call("turn", &request_json, None);
            match call.answer().await? {
                Answer::Json(json) => Ok(json),
                Answer::Text(text) => Ok(serde_json::to_string(&text).unwrap_or_default()),
                // The facade found no turn left in a list that holds functions.
                Answer::Thrown(cause) if cause.code.as_deref() == Some(ErrorCode::InvalidRequest.as_str()) => {
                    Err(Error::new(ErrorCode::InvalidRequest, cause.message))
                }
                Answer::Thrown(cause) => Err(Error::new(
                    ErrorCode::ModelStreamError,
                    format!("the scripted provider's function failed: {}", cause.message),
                )
                .with_cause(cause)),
            }
        })
    }
}

/// Opens a script: `options` is JSON text with `turns`, or without them when a function answers.
#[napi(catch_unwind)]
pub fn open_script(
    env: &External<NativeEnv>,
    key: u32,
    options: String,
    is_function: bool,
) -> napi::Result<External<NativeScript>> {
    let mailbox = env.port.open(key);
    let script = if is_function {
        Script::from_source(Arc::new(JsTurns { mailbox: Arc::clone(&mailbox) }), &options)
    } else {
        Script::parse(&options)
    };
    match script {
        Ok(script) => Ok(External::new(NativeScript { script, mailbox })),
        Err(error) => {
            mailbox.retire();
            Err(thrown(&error))
        }
    }
}

/// Number of requests so far.
#[napi(catch_unwind)]
pub fn script_length(handle: &External<NativeScript>) -> u32 {
    u32::try_from(handle.script.len()).unwrap_or(u32::MAX)
}

/// The n-th request as JSON text.
#[napi(catch_unwind)]
pub fn script_request(handle: &External<NativeScript>, n: u32) -> Option<String> {
    handle.script.request(n as usize)
}

/// Number of turns that were not played yet; `null` when a function answers.
#[napi(catch_unwind)]
pub fn script_turns_left(handle: &External<NativeScript>) -> Option<u32> {
    handle.script.turns_left().map(|left| u32::try_from(left).unwrap_or(u32::MAX))
}

/// Settles a call of the function; `kind` as in `settle`.
#[napi(catch_unwind)]
pub fn settle_turn(handle: &External<NativeScript>, call: u32, kind: u32, text: String) {
    let answer = match kind {
        0 => Answer::Json(text),
        1 => Answer::Text(text),
        _ => Answer::Thrown(serde_json::from_str(&text).unwrap_or_default()),
    };
    handle.mailbox.settle(call, answer);
}
