//! Runtime context: what a Session's tools may touch, merged per request into an immutable snapshot.
//! Nothing is inferred from the process working directory.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::contract::{ContextSnapshot, FilesystemCapability};
use crate::error::{Error, Result};

/// Merges a request's context over the Session's default: scalars override, `environment` and `metadata` merge per
/// key, `filesystem` merges with its `roots` replaced as a whole, other capabilities are replaced as a whole.
pub fn merge(base: &Value, over: &Value) -> Value {
    let (Some(base), Some(over)) = (base.as_object(), over.as_object()) else {
        return if over.is_null() { base.clone() } else { over.clone() };
    };
    let mut merged = base.clone();
    for (key, value) in over {
        let value = match (key.as_str(), base.get(key)) {
            ("environment" | "metadata", Some(old)) => merge_keys(old, value),
            ("capabilities", Some(old)) => merge_capabilities(old, value),
            _ => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    Value::Object(merged)
}

fn merge_keys(old: &Value, new: &Value) -> Value {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return new.clone() };
    let mut merged: Map<String, Value> = old.clone();
    merged.extend(new.iter().map(|(key, value)| (key.clone(), value.clone())));
    Value::Object(merged)
}

fn merge_capabilities(old: &Value, new: &Value) -> Value {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return new.clone() };
    let mut merged = old.clone();
    for (key, value) in new {
        let value = match (key.as_str(), old.get(key)) {
            ("filesystem", Some(before)) => merge_keys(before, value),
            _ => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    Value::Object(merged)
}

/// Takes the snapshot of a merged context.
///
/// # Errors
/// `CONFIG_ERROR` when a known part has the wrong form; the message names it.
pub fn snapshot(session_id: &str, turn_id: &str, context: Value) -> Result<ContextSnapshot> {
    let context = if context.is_null() { Value::Object(Map::new()) } else { context };
    if !context.is_object() {
        return Err(Error::config(format!("runtime context must be an object, got {context}")));
    }
    let wrong = |what: &str, error: serde_json::Error| Error::config(format!("runtime context: {what}: {error}"));
    let filesystem: FilesystemCapability = match context.pointer("/capabilities/filesystem") {
        None | Some(Value::Null) => FilesystemCapability::default(),
        Some(value) => serde_json::from_value(value.clone())
            .map_err(|e| wrong("capabilities.filesystem must be {roots: string[], cwd?: string}", e))?,
    };
    let environment: BTreeMap<String, String> = match context.get("environment") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(value) => {
            serde_json::from_value(value.clone()).map_err(|e| wrong("environment must map names to strings", e))?
        }
    };
    Ok(ContextSnapshot {
        session_id: session_id.to_owned(),
        turn_id: turn_id.to_owned(),
        context,
        filesystem_roots: filesystem.roots,
        cwd: filesystem.cwd,
        environment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn contexts_merge_by_the_documented_rules() {
        let base = json!({
            "id": "a", "environment": {"A": "1", "B": "1"}, "metadata": {"x": 1},
            "capabilities": {"filesystem": {"roots": ["/r1", "/r2"], "cwd": "/r1"}, "network": {"allowDomains": ["a"]}},
        });
        let over = json!({
            "id": "b", "environment": {"B": "2"}, "metadata": {"y": 2},
            "capabilities": {"filesystem": {"roots": ["/r3"]}, "network": {"allowDomains": ["b"]}},
        });
        assert_eq!(
            merge(&base, &over),
            json!({
                "id": "b", "environment": {"A": "1", "B": "2"}, "metadata": {"x": 1, "y": 2},
                "capabilities": {"filesystem": {"roots": ["/r3"], "cwd": "/r1"}, "network": {"allowDomains": ["b"]}},
            })
        );
        assert_eq!(merge(&base, &Value::Null), base);
        assert_eq!(merge(&Value::Null, &over), over);
    }

    #[test]
    fn a_snapshot_takes_roots_cwd_and_environment_and_names_what_is_wrong() {
        let taken =
            snapshot("s", "t", json!({"capabilities": {"filesystem": {"roots": ["/r"], "cwd": "/r/a"}}})).unwrap();
        assert_eq!(taken.filesystem_roots, [std::path::PathBuf::from("/r")]);
        assert_eq!(taken.cwd, Some("/r/a".into()));
        let error = snapshot("s", "t", json!({"capabilities": {"filesystem": {"roots": "/r"}}})).unwrap_err();
        assert!(error.message.contains("capabilities.filesystem"), "{}", error.message);
        for wrong in [json!("x"), json!(5), json!(true), json!([])] {
            let error = snapshot("s", "t", wrong).unwrap_err();
            assert!(error.message.contains("must be an object"), "{}", error.message);
        }
    }
}
