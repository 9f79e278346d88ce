//! The final form of results: what is blank, what is too long, and the facts every result has.

use super::*;
use crate::contract::ModelContent;
use crate::hooks::{HookCounts, HookEvent, HookLimits, HookOutput, HookPort, Hooks};
use crate::model::SessionId;

fn json_success(value: &str) -> ToolOutcome {
    let raw = serde_json::value::RawValue::from_string(value.to_owned()).unwrap();
    ToolOutcome::Success(ToolSuccess::new(ModelContent::Json(raw)))
}

#[tokio::test]
async fn only_an_empty_text_and_null_say_nothing() {
    type Case = (&'static str, fn() -> ToolOutcome, &'static str);
    let cases: [Case; 7] = [
        ("Empty", || ToolOutcome::Success(ToolSuccess::new("")), "Execution completed"),
        ("Null", || json_success("null"), "Execution completed"),
        ("EmptyJson", || json_success("\"\""), "Execution completed"),
        ("Space", || ToolOutcome::Success(ToolSuccess::new(" ")), " "),
        ("Zero", || json_success("0"), "0"),
        ("False", || json_success("false"), "false"),
        ("NoItems", || json_success("[]"), "[]"),
    ];
    let mut bench = Bench::default();
    for (name, ends, _) in cases {
        bench = bench.tool(name, ToolKind::ReadOnly, Deed::Ends(ends));
    }
    let pipeline = bench.build();
    for (name, _, expected) in cases {
        assert_eq!(text(&run(&pipeline, &call(name, "{}"), &context(YOLO)).await), expected, "{name}");
    }
}

#[tokio::test]
async fn the_limit_of_characters_is_for_texts_alone() {
    let limited = |spec: &mut ToolSpec| spec.max_result_chars = Some(10);
    let pipeline = Bench::default()
        .tool_with("Text", ToolKind::ReadOnly, Deed::Answers("é".repeat(11)), limited)
        .tool_with("Fits", ToolKind::ReadOnly, Deed::Answers("é".repeat(10)), limited)
        .tool_with("Object", ToolKind::ReadOnly, Deed::Ends(|| json_success(r#"{"a":"0123456789"}"#)), limited)
        .tool("Free", ToolKind::ReadOnly, Deed::Answers("x".repeat(100_000)))
        .build();
    for (name, externalized) in [("Text", true), ("Fits", false), ("Object", false), ("Free", false)] {
        let mut report = run(&pipeline, &call(name, "{}"), &context(YOLO)).await;
        let found = report.outcome.metadata_mut().contains_key("resultExternalized");
        assert_eq!(found, externalized, "{name}");
    }
    pipeline.artifacts().clear().await;
}

#[tokio::test]
async fn where_nothing_can_be_stored_a_long_result_is_cut_and_the_note_about_it_counts() {
    let base = tempfile::Builder::new().prefix("artifacts-test-").tempdir().unwrap();
    let file = base.path().join("no-directory");
    std::fs::write(&file, "").unwrap();
    // The note takes room, so more is gone than is over the limit; at 999 over, that is a digit more.
    for (length, limit, removed) in [(150, 100, 74), (1_099, 100, 1_025), (150, 149, 25), (150, 3, 150)] {
        let artifacts = Artifacts::new(ArtifactOptions { directory: Some(file.clone()), keep: false });
        let pipeline = Bench::default()
            .tool_with("Long", ToolKind::ReadOnly, Deed::Answers("é".repeat(length)), |spec| {
                spec.max_result_chars = Some(limit);
            })
            .build()
            .with_artifacts(artifacts);
        let mut report = run(&pipeline, &call("Long", "{}"), &context(YOLO)).await;
        let shown = text(&report).to_owned();
        assert_eq!(shown.chars().count(), limit, "{length} to {limit}: {shown}");
        if limit > 30 {
            assert!(shown.ends_with(&format!("\n[{removed} characters removed]")), "{length} to {limit}: {shown}");
            assert_eq!(shown.matches('é').count(), length - removed);
        }
        let metadata = report.outcome.metadata_mut();
        assert_eq!(metadata["resultTruncated"], true);
        assert_eq!(metadata["resultSizeLimit"], limit);
        assert_eq!(metadata["modelContentOriginalLength"], length);
        assert!(!metadata.contains_key("resultExternalized") && !metadata.contains_key("resultArtifactPath"));
    }
}

/// Objects to results.
struct Objects;

impl HookPort for Objects {
    fn run<'a>(&'a self, _: HookEvent, _: usize, _: &'a str, _: &'a CancelToken) -> BoxFuture<'a, Result<HookOutput>> {
        Box::pin(async {
            Ok(serde_json::from_value(json!({ "action": "abort", "reason": "not this" })).expect("a hook output"))
        })
    }
}

#[tokio::test]
async fn every_result_says_which_run_of_which_tool_it_is_and_when_it_settled() {
    let said = || {
        let metadata = json!({ "summary": "its own", "executionId": "forged", "timestamp": "forged" });
        ToolOutcome::Success(ToolSuccess::new("ok").with_metadata(metadata))
    };
    let failed = || {
        let failure: ToolFailure = ToolError::new(ToolErrorType::ExecutionError, "no").into();
        ToolOutcome::Error(failure.with_metadata(json!({ "summary": "its own" })))
    };
    let bench = || {
        Bench::default()
            .tool_with("Works", ToolKind::ReadOnly, Deed::Ends(said), |spec| spec.aliases = vec!["Old".into()])
            .tool("Fails", ToolKind::ReadOnly, Deed::Ends(failed))
    };
    let counts = HookCounts::from_iter([(HookEvent::PostToolUse, 1)]);
    let port = Some(Arc::new(Objects) as Arc<dyn HookPort>);
    let hooks = Hooks::new(SessionId::new("s"), port, counts, HookLimits::default(), Default::default());
    let plain = bench().build();
    let objected = bench().build().with_hooks(Arc::new(hooks));
    let mut seen = std::collections::HashSet::new();
    let before = crate::host::clock::now_ms();
    for (pipeline, asked, arguments, name, summary) in [
        (&plain, "Works", "{}", "Works", true),
        (&plain, "Old", "{}", "Works", true),
        (&plain, "Fails", "{}", "Fails", true),
        (&plain, "Fails", r#"{"n":"no integer"}"#, "Fails", false),
        (&plain, "Nowhere", "{}", "Nowhere", false),
        (&objected, "Works", "{}", "Works", false),
    ] {
        let mut report = run(pipeline, &call(asked, arguments), &context(YOLO)).await;
        let metadata = report.outcome.metadata_mut();
        assert_eq!(metadata["toolName"], name);
        let settled = metadata["timestamp"].as_u64().expect("milliseconds");
        assert!((before..=crate::host::clock::now_ms()).contains(&settled), "{asked}: {settled}");
        assert!(seen.insert(metadata["executionId"].as_str().unwrap().to_owned()), "{asked}: used twice");
        assert_eq!(metadata.get("summary").is_some(), summary, "{asked}: {metadata:?}");
    }
    assert!(seen.iter().all(|id| id.starts_with("exec_")), "{seen:?}");
}
