//! What the context of a running tool call shows, made when the tool looks at it.

use napi::bindgen_prelude::External;
use napi_derive::napi;
use serde_json::{Value, json};

use super::error::thrown;
use super::mailbox::About;
use super::session::{NativeSession, js};
use crate::contract::CatalogEntry;
use crate::error::Error;

/// The runtime context of a tool call as JSON text; that of the request under way once the call has ended.
#[napi(catch_unwind)]
pub fn snapshot(handle: &External<NativeSession>, call: u32) -> napi::Result<String> {
    let snapshot = match handle.mailbox.about(call) {
        Some(about) => about.snapshot(),
        None => js(handle.session.snapshot())?,
    };
    serde_json::to_string(&*snapshot).map_err(|error| thrown(&Error::internal(error.to_string())))
}

/// What a running tool call could discover as JSON text, or `null` once it has ended.
#[napi(catch_unwind)]
pub fn discoverable(handle: &External<NativeSession>, call: u32) -> Option<String> {
    let Some(About::Tool(tool)) = handle.mailbox.about(call) else { return None };
    let entries = tool.services.catalog.as_ref()?.discoverable();
    let shown = |entry: &CatalogEntry| {
        json!({
            "name": entry.name,
            "aliases": entry.aliases,
            "displayName": entry.display_name.as_deref().unwrap_or(&entry.name),
            "description": entry.description,
            "hint": entry.hint,
        })
    };
    Some(Value::Array(entries.iter().map(shown).collect()).to_string())
}
