//! `DiscoverTools`: finds tools that are registered but not declared, and asks the Session to declare them.
//!
//! It only finds what the current policy would show. It activates nothing itself: the Session applies its effect, and
//! the tools are callable from the next turn on.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;

use super::rank::ranked;
use crate::contract::{
    Behavior, RuntimePatch, SideEffect, Tool, ToolContext, ToolDescription, ToolEffect, ToolError, ToolErrorType,
    ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield, one_line,
};
use crate::tools::constant_schema;

const NAME: &str = crate::tools::DISCOVERY_TOOL;
/// Results unless the model asks for another number.
const DEFAULT_RESULTS: usize = 5;

/// What the model may pass.
#[derive(Debug, Deserialize)]
pub(super) struct Params {
    query: String,
    max_results: Option<usize>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let schema = constant_schema(
        &json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "minLength": 1, "description": "Words that describe the wanted tool" },
                "max_results": {
                    "type": "integer", "minimum": 1, "maximum": 10,
                    "description": "Most tools to activate; 5 unless given"
                }
            },
            "required": ["query"]
        })
        .to_string(),
    );
    let description = ToolDescription {
        short: "Find and activate tools that are available but not declared.".to_owned(),
        long: Some("Matching tools are declared from the next turn on.".to_owned()),
        usage_notes: vec!["Use it when no declared tool fits the task.".to_owned()],
        important: Vec::new(),
    };
    let behavior = Behavior::of(ToolKind::ReadOnly).with_side_effect(SideEffect::Idempotent);
    ToolSpec {
        display_name: Some("Discover Tools".to_owned()),
        group: Some("system".to_owned()),
        services: vec!["discoverableCatalog".to_owned()],
        ..ToolSpec::new(NAME, description.render(), schema, behavior)
    }
});

/// The tool.
pub(super) struct DiscoverTools;

impl Tool for DiscoverTools {
    type Params = Params;

    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn execute(&self, params: Params, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        let Some(catalog) = &cx.services.catalog else {
            let message = "there is no catalogue of tools here: DiscoverTools works in a session only";
            return Err(ToolError::new(ToolErrorType::ExecutionError, message).with_code("SERVICE_MISSING").into());
        };
        let mut found = ranked(&params.query, catalog.discoverable());
        found.truncate(params.max_results.unwrap_or(DEFAULT_RESULTS));
        if found.is_empty() {
            let text = format!("No hidden tools matched \"{}\".", one_line(&params.query));
            return Ok(ToolSuccess::new(text).with_metadata(json!({ "summary": "no matching tools" })));
        }
        let names: Vec<&str> = found.iter().map(|entry| &*entry.name).collect();
        let patch = Box::new(RuntimePatch::discovering(&names));
        cx.emit(ToolYield::Effect { effect: ToolEffect::RuntimePatch { patch } }).await;
        let lines = found.iter().map(|entry| format!("\n- {}: {}", entry.name, one_line(&entry.description)));
        let text = lines.fold("Activated deferred tools:".to_owned(), |text, line| text + &line);
        let summary = format!("activated {} tools", names.len());
        Ok(ToolSuccess::new(text).with_metadata(json!({ "discoveredTools": names, "summary": summary })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_compiles_and_needs_the_catalogue() {
        assert_eq!(&*SPEC.name, NAME);
        assert_eq!(SPEC.services, ["discoverableCatalog"]);
        let check = |text: &str| SPEC.schema.check(&mut serde_json::from_str(text).unwrap());
        assert!(check(r#"{"query":"x"}"#).is_ok());
        assert!(check(r#"{"query":"x","max_results":11}"#).is_err());
        assert!(check(r#"{"query":""}"#).is_err());
    }
}
