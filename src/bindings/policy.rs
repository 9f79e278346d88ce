//! The permission handler factories and context helpers as plain functions over JSON text.

use napi_derive::napi;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::thrown;
use crate::contract::PermissionMode;
use crate::error::{Error, Result};
use crate::permissions::{
    PermissionDecision, PermissionRequest, RuleLists, decide_by_mode, decide_by_path_safety, decide_by_rules,
};
use crate::{context, contract};

fn parse<T: DeserializeOwned>(what: &str, json: &str) -> napi::Result<T> {
    serde_json::from_str(json).map_err(|error| thrown(&Error::config(format!("{what}: {error}"))))
}

fn encode(decision: &PermissionDecision) -> napi::Result<String> {
    serde_json::to_string(decision).map_err(|error| thrown(&Error::internal(error.to_string())))
}

/// Decides by the modes table.
#[napi(catch_unwind)]
pub fn decide_mode(request: String, fallback: String) -> napi::Result<String> {
    let fallback: PermissionMode = parse("permission mode", &format!("\"{fallback}\""))?;
    encode(&decide_by_mode(&parse::<PermissionRequest>("permission request", &request)?, fallback))
}

/// Decides by rule lists.
#[napi(catch_unwind)]
pub fn decide_rules(request: String, lists: String) -> napi::Result<String> {
    let lists: RuleLists = parse("permission rules", &lists)?;
    encode(&decide_by_rules(&parse::<PermissionRequest>("permission request", &request)?, &lists))
}

/// Decides by affected paths.
#[napi(catch_unwind)]
pub fn decide_paths(request: String, allow_rules: String) -> napi::Result<String> {
    let rules: Vec<String> = parse("explicitAllowRules", &allow_rules)?;
    encode(&decide_by_path_safety(&parse::<PermissionRequest>("permission request", &request)?, &rules))
}

/// Merges two runtime contexts.
#[napi(catch_unwind)]
pub fn merge_context(base: String, over: String) -> napi::Result<String> {
    let (base, over): (Value, Value) = (parse("runtime context", &base)?, parse("runtime context", &over)?);
    Ok(context::merge(&base, &over).to_string())
}

/// Takes a snapshot of a merged runtime context.
#[napi(catch_unwind)]
pub fn context_snapshot(session_id: String, turn_id: String, context: String) -> napi::Result<String> {
    let taken: Result<contract::ContextSnapshot> =
        context::snapshot(&session_id, &turn_id, parse("runtime context", &context)?);
    let taken = taken.map_err(|error| thrown(&error))?;
    serde_json::to_string(&taken).map_err(|error| thrown(&Error::internal(error.to_string())))
}
