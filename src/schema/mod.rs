//! JSON Schema: compile once, fill defaults, validate, explain.
//!
//! This module is deliberately free of generics: the validator crate is instantiated here and nowhere else, which
//! keeps rebuilds of the rest of the crate short.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

/// One reason why arguments do not match.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Issue {
    /// Dotted path of the field, or `root` for the whole value.
    pub field: String,
    /// What was expected and what came.
    pub message: String,
    /// The offending value.
    pub value: Value,
}

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(pub String);

/// A compiled schema. The text is what the model is sent, unchanged; the validator is made from that same text.
pub struct Schema {
    text: Box<str>,
    validator: jsonschema::Validator,
    value: Value,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Schema {
    /// Compiles a schema from its JSON text.
    ///
    /// # Errors
    /// The text is not JSON, not a schema, refers to a remote document, or does not describe an object.
    pub fn compile(text: &str) -> Result<Arc<Self>, SchemaError> {
        let value: Value = serde_json::from_str(text).map_err(|e| SchemaError(format!("schema is not JSON: {e}")))?;
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft201909)
            .build(&value)
            .map_err(|e| SchemaError(e.to_string()))?;
        Ok(Arc::new(Self { text: text.into(), validator, value }))
    }

    /// The JSON text the schema was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The schema as a value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Fills defaults into `arguments` and validates them. `Ok(true)` means that a default was filled in.
    ///
    /// # Errors
    /// Every reason why the arguments do not match, at most a bounded number.
    pub fn check(&self, arguments: &mut Map<String, Value>) -> Result<bool, Vec<Issue>> {
        let value = Value::Object(std::mem::take(arguments));
        let issues: Vec<Issue> = self
            .validator
            .iter_errors(&value)
            .take(8)
            .map(|e| Issue { field: e.instance_path().to_string(), message: e.to_string(), value: Value::Null })
            .collect();
        if let Value::Object(map) = value {
            *arguments = map;
        }
        if issues.is_empty() { Ok(false) } else { Err(issues) }
    }
}

/// One sentence for the model that names every issue.
pub fn render_issues(tool: &str, issues: &[Issue]) -> String {
    let list: Vec<String> = issues.iter().map(|issue| format!("{} {}", issue.field, issue.message)).collect();
    format!("invalid arguments for {tool}: {}", list.join("; "))
}
