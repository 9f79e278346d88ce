//! What a log is told of calls.

use serde_json::Value;
use tracing::Instrument;

use super::*;
use crate::host::log::tests::session;
use crate::host::log::{LogEntry, LogLevel};

/// What is called, with which arguments; the tool's main name and kind; how the stages end.
type Case = (&'static str, &'static str, &'static str, Option<&'static str>, Vec<&'static str>);

/// Stage, outcome, class and code of each entry about the end of something.
fn endings(entries: &[LogEntry]) -> Vec<String> {
    let words = |entry: &LogEntry| {
        let facts = &entry.args[0];
        let said = ["stage", "outcome", "errorType", "errorCode"].map(|name| facts.get(name).and_then(Value::as_str));
        said.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    entries.iter().map(words).collect()
}

#[tokio::test]
async fn every_stage_tells_its_call_tool_kind_outcome_and_duration_and_nothing_of_what_it_is_about() {
    let (span, kept, _log) = session(LogLevel::Debug, &[]);
    let fails = || {
        let error = ToolError::new(ToolErrorType::NetworkError, "PRIVATE reason").with_code("NO_ROUTE");
        ToolOutcome::Error(error.into())
    };
    let pipeline = Bench::default()
        .tool("Depends", ToolKind::Execute, Deed::Answers("done".into()))
        .tool_with("Answers", ToolKind::ReadOnly, Deed::Answers("PRIVATE result".into()), |spec| {
            spec.aliases = vec!["Alias".into()];
        })
        .tool("Fails", ToolKind::Write, Deed::Ends(fails))
        .judged(|request| {
            let denied = request.input.get("content") == Some(&json!("PRIVATE no"));
            Ok(if denied { PermissionDecision::deny("PRIVATE policy") } else { PermissionDecision::allow() })
        })
        .build();
    let ends = ["resolve ok", "validate ok", "permit ok", "schedule ok", "invoke ok", "settle ok", "call ok"];
    let cases: [Case; 6] = [
        ("Alias", r#"{"content":"PRIVATE yes"}"#, "Answers", Some("readonly"), ends.to_vec()),
        ("Answers", r#"{"as":"write","content":"PRIVATE yes"}"#, "Answers", None, ends.to_vec()),
        (
            "Fails",
            r#"{"content":"PRIVATE yes"}"#,
            "Fails",
            Some("write"),
            [&ends[..4], &["invoke error network_error NO_ROUTE", "settle ok", "call error network_error NO_ROUTE"]]
                .concat(),
        ),
        (
            "Fails",
            r#"{"content":"PRIVATE no"}"#,
            "Fails",
            Some("write"),
            vec![
                "resolve ok",
                "validate ok",
                "permit refused permission_denied PERMISSION_DENIED",
                "settle ok",
                "call error permission_denied PERMISSION_DENIED",
            ],
        ),
        (
            "Fails",
            r#"{"n":"PRIVATE"}"#,
            "Fails",
            Some("write"),
            vec![
                "resolve ok",
                "validate refused validation_error TOOL_VALIDATION_ERROR",
                "settle ok",
                "call error validation_error TOOL_VALIDATION_ERROR",
            ],
        ),
        (
            "Nowhere",
            "{}",
            "Nowhere",
            None,
            vec![
                "resolve refused execution_error TOOL_NOT_FOUND",
                "settle ok",
                "call error execution_error TOOL_NOT_FOUND",
            ],
        ),
    ];
    for (asked, arguments, tool, kind, expected) in cases {
        let call = call(asked, arguments);
        run(&pipeline, &call, &context(YOLO)).instrument(span.clone()).await;
        let entries = kept.entries();
        assert_eq!(endings(&entries), expected, "{asked} {arguments}");
        for entry in &entries {
            let facts = &entry.args[0];
            assert_eq!((&facts["callId"], &facts["tool"]), (&json!(call.id), &json!(tool)), "{entry:#?}");
            assert!(facts["durationMs"].as_f64().is_some_and(|ms| ms >= 0.0), "{entry:#?}");
            assert_eq!((entry.category.as_str(), entry.level), ("pipeline", LogLevel::Debug));
            if let Some(kind) = kind {
                assert_eq!(facts["kind"], kind, "{entry:#?}");
            }
            let whole = serde_json::to_string(entry).unwrap();
            assert!(!whole.contains("PRIVATE"), "{whole}");
        }
    }
    // What a call does may depend on its input; from then on its stages say so.
    run(&pipeline, &call("Depends", r#"{"as":"write"}"#), &context(YOLO)).instrument(span).await;
    let kinds: Vec<Value> = kept.entries().iter().map(|entry| entry.args[0]["kind"].clone()).collect();
    assert_eq!(kinds, ["execute", "execute", "write", "write", "write", "execute", "execute"]);
}

#[tokio::test]
async fn a_call_that_cannot_be_stored_or_panics_is_told_with_its_call() {
    let (span, kept, _log) = session(LogLevel::Warn, &[]);
    let base = tempfile::Builder::new().prefix("artifacts-test-").tempdir().unwrap();
    let file = base.path().join("no-directory");
    std::fs::write(&file, "").unwrap();
    let pipeline = Bench::default()
        .tool_with("Long", ToolKind::ReadOnly, Deed::Answers("x".repeat(20)), |spec| spec.max_result_chars = Some(10))
        .tool("Panics", ToolKind::ReadOnly, Deed::Panics)
        .build()
        .with_artifacts(Artifacts::new(ArtifactOptions { directory: Some(file), keep: false }));
    for name in ["Long", "Panics"] {
        run(&pipeline, &call(name, "{}"), &context(YOLO)).instrument(span.clone()).await;
    }
    let told: Vec<_> = kept.entries().into_iter().map(|entry| (entry.level, entry.args[0]["tool"].clone())).collect();
    assert_eq!(told, [(LogLevel::Warn, json!("Long")), (LogLevel::Error, json!("Panics"))]);
}
