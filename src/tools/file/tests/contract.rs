use super::*;
use crate::contract::{InterruptBehavior, SideEffect, ToolKind};

#[test]
fn the_declarations_follow_the_contract_table() {
    let rows: Vec<_> = tools()
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            (
                spec.name.to_string(),
                spec.display_name.clone().unwrap(),
                (spec.behavior.kind, spec.behavior.side_effect, spec.behavior.interrupt),
                (spec.max_result_chars, spec.strict, spec.group.clone().unwrap()),
            )
        })
        .collect();
    let group = || "filesystem".to_owned();
    let row = |name: &str, title: &str, behavior, limits| (name.to_owned(), title.to_owned(), behavior, limits);
    use {InterruptBehavior::*, SideEffect::*};
    assert_eq!(
        rows,
        [
            row("Read", "File Read", (ToolKind::ReadOnly, Pure, Cancel), (Some(500_000), None, group())),
            row("Edit", "File Edit", (ToolKind::Write, NonIdempotent, Block), (None, Some(true), group())),
            row("Write", "File Write", (ToolKind::Write, Idempotent, Block), (None, Some(true), group())),
        ]
    );
}

#[test]
fn the_tools_are_built_once() {
    assert!(tools().iter().zip(tools()).all(|(one, other)| Arc::ptr_eq(one, &other)));
}

#[test]
fn the_schemas_say_what_is_checked() {
    for (tool, arguments, fits) in [
        ("Read", json!({ "file_path": "/x", "encoding": "utf8", "note": "extra" }), true),
        ("Read", json!({ "file_path": "/x", "encoding": "utf8", "limit": 10000, "offset": 0 }), true),
        ("Read", json!({ "encoding": "utf8" }), false),
        ("Read", json!({ "file_path": "", "encoding": "utf8" }), false),
        ("Read", json!({ "file_path": "/x", "encoding": "utf8", "limit": "5" }), false),
        ("Read", json!({ "file_path": "/x", "encoding": "utf8", "limit": 0 }), false),
        ("Read", json!({ "file_path": "/x", "encoding": "utf8", "limit": 10001 }), false),
        ("Read", json!({ "file_path": "/x", "encoding": "utf8", "offset": -1 }), false),
        ("Read", json!({ "file_path": "/x", "encoding": "utf8", "offset": 1.5 }), false),
        ("Read", json!({ "file_path": "/x", "encoding": "utf8", "offset": null }), false),
        ("Read", json!({ "file_path": "/x", "encoding": "latin1" }), false),
        ("Edit", json!({ "file_path": "/x", "old_string": "", "new_string": "y", "replace_all": false }), false),
        ("Edit", json!({ "file_path": "/x", "old_string": "x", "new_string": "", "replace_all": false }), true),
        ("Write", json!({ "file_path": "/x", "encoding": "utf8", "create_directories": true }), false),
    ] {
        let mut object = arguments.as_object().unwrap().clone();
        assert_eq!(find(tool).spec().schema.check(&mut object).is_ok(), fits, "{tool} {arguments}");
        assert!(!find(tool).spec().schema.text().contains("must be absolute"));
    }
}

#[tokio::test]
async fn a_relative_path_is_a_validation_failure_that_names_the_field() {
    let world = World::new();
    for tool in ["Read", "Edit", "Write"] {
        let arguments =
            json!({ "file_path": "rel.txt", "old_string": "a", "new_string": "b", "content": "c", "extra": 1 });
        let failure = refused(world.call(tool, arguments).await, ToolErrorType::ValidationError);
        assert_eq!(failure.error.code.as_deref(), Some("TOOL_VALIDATION_ERROR"));
        let issue = json!({ "field": "file_path", "message": "Path must be absolute", "value": "rel.txt" });
        assert_eq!(failure.error.details, Some(json!({ "issues": [issue] })));
    }
}

#[tokio::test]
async fn a_call_is_judged_by_its_canonical_path() {
    let world = World::with("real.txt", "x");
    std::os::unix::fs::symlink("real.txt", world.root.join("link.txt")).unwrap();
    let prepared =
        world.prepare("Read", json!({ "file_path": world.path("link.txt"), "encoding": "utf8" })).await.unwrap();
    assert_eq!(prepared.subject.content, Some(world.path("real.txt")));
    assert_eq!(prepared.subject.affected_paths, [world.path("real.txt")]);
    assert_eq!(prepared.arguments.object["file_path"], world.path("real.txt"));
}

#[tokio::test]
async fn changing_a_sensitive_file_is_destructive() {
    let world = World::new();
    for (name, destructive) in [(".env.local", true), ("server.pem", true), ("secretary.txt", false)] {
        let mut arguments = json!({ "file_path": world.path(name), "content": "x" });
        fill_defaults("Write", &mut arguments);
        assert_eq!(world.prepare("Write", arguments).await.unwrap().behavior.destructive, destructive, "{name}");
    }
}

#[tokio::test]
async fn a_cancelled_call_changes_nothing_and_says_so() {
    let world = World::with("a.txt", "old");
    world.read("a.txt").await;
    world.cancel.cancel(CancelReason::Abort);
    for (tool, word) in [("Read", "read"), ("Edit", "edit"), ("Write", "write")] {
        let arguments =
            json!({ "file_path": world.path("a.txt"), "old_string": "old", "new_string": "new", "content": "new" });
        let failure = refused(world.call(tool, arguments).await, ToolErrorType::ExecutionError);
        assert_eq!(failure.error.message, "Operation aborted");
        assert_eq!(failure.model.as_text(), format!("File {word} aborted"));
    }
    assert_eq!(world.bytes("a.txt"), b"old");
}

#[tokio::test]
async fn a_forgotten_session_must_read_again() {
    let world = World::with("a.txt", "old");
    world.read("a.txt").await;
    forget_session(world.session.as_ref().unwrap().as_str());
    refused(world.edit("a.txt", "old", "new").await, ToolErrorType::ValidationError);
}
