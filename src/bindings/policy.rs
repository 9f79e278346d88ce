//! The permission handler factories and context helpers as plain functions over JSON text.

use napi::bindgen_prelude::External;
use napi_derive::napi;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::thrown;
use crate::contract::PermissionMode;
use crate::error::{Error, Result};
use crate::permissions::{
    PermissionDecision, PermissionRequest, RuleLists, Rules, decide_by_mode, decide_by_path_safety, decide_by_rules,
};
use crate::{context, contract};

fn parse<T: DeserializeOwned>(what: &str, json: &str) -> napi::Result<T> {
    serde_json::from_str(json).map_err(|error| thrown(&Error::config(format!("{what}: {error}"))))
}

fn encode(decision: &PermissionDecision) -> napi::Result<String> {
    serde_json::to_string(decision).map_err(|error| thrown(&Error::internal(error.to_string())))
}

/// Checks the name of a mode.
#[napi(catch_unwind)]
pub fn check_mode(mode: String) -> napi::Result<()> {
    parse::<PermissionMode>("permission mode", &Value::String(mode).to_string()).map(drop)
}

/// Decides by the modes table.
#[napi(catch_unwind)]
pub fn decide_mode(request: String, fallback: String) -> napi::Result<String> {
    let fallback: PermissionMode = parse("permission mode", &Value::String(fallback).to_string())?;
    encode(&decide_by_mode(&parse::<PermissionRequest>("permission request", &request)?, fallback))
}

/// Parsed rules of a handler.
pub struct NativeRules {
    rules: Rules,
}

/// Parses rule lists, once for all calls a handler judges.
#[napi(catch_unwind)]
pub fn compile_rules(lists: String) -> napi::Result<External<NativeRules>> {
    let lists: RuleLists = parse("permission rules", &lists)?;
    Rules::parse(&lists, "permission rules").map(|rules| External::new(NativeRules { rules })).map_err(|e| thrown(&e))
}

/// Parses `explicitAllowRules`.
#[napi(catch_unwind)]
pub fn compile_allow_rules(rules: String) -> napi::Result<External<NativeRules>> {
    let rules: Vec<String> = parse("explicitAllowRules", &rules)?;
    let rules = Rules::allowing(&rules, "explicitAllowRules").map_err(|error| thrown(&error))?;
    Ok(External::new(NativeRules { rules }))
}

/// Decides by rule lists.
#[napi(catch_unwind)]
pub fn decide_rules(request: String, rules: &External<NativeRules>) -> napi::Result<String> {
    encode(&decide_by_rules(&parse::<PermissionRequest>("permission request", &request)?, &rules.rules))
}

/// Decides by affected paths.
#[napi(catch_unwind)]
pub fn decide_paths(request: String, rules: &External<NativeRules>) -> napi::Result<String> {
    encode(&decide_by_path_safety(&parse::<PermissionRequest>("permission request", &request)?, &rules.rules))
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
