use serde_json::Value;

use super::*;
use crate::contract::ToolOutcome;
use crate::host::{CancelReason, Tasks};
use crate::tools::search::testing::{Tree, Yields, call, context, error, failure, metadata, model_json, tree};

async fn grep(tree: &Tree, arguments: Value) -> ToolOutcome {
    tree.call(&GrepTool, arguments).await
}

/// Entries as `path:line:content`, `path:count` or `path`, relative to the tree; context lines with `-`.
fn entries(tree: &Tree, outcome: &ToolOutcome) -> Vec<String> {
    let list = model_json(outcome);
    list.as_array()
        .expect("array")
        .iter()
        .map(|entry| {
            let path = entry["file_path"].as_str().expect("path");
            let mut text = path.strip_prefix(&format!("{}/", tree.root.display())).unwrap_or(path).to_owned();
            let mark = if entry["is_context"] == json!(true) { '-' } else { ':' };
            for field in ["line_number", "count"] {
                if let Some(number) = entry[field].as_u64() {
                    text.push_str(&format!("{mark}{number}"));
                }
            }
            if let Some(content) = entry["content"].as_str() {
                text.push_str(&format!("{mark}{content}"));
            }
            text
        })
        .collect()
}

async fn found(tree: &Tree, arguments: Value) -> Vec<String> {
    entries(tree, &grep(tree, arguments).await)
}

#[test]
fn the_specification_compiles_and_is_that_of_a_pure_reader() {
    let spec = Tool::spec(&GrepTool);
    assert_eq!((spec.name.as_ref(), spec.max_result_chars), ("Grep", Some(100_000)));
    assert!(spec.behavior.read_only && spec.behavior.concurrency_safe);
    assert_eq!((spec.behavior.side_effect, spec.behavior.interrupt), (SideEffect::Pure, InterruptBehavior::Cancel));
}

#[tokio::test]
async fn the_three_modes_have_their_shapes_and_metadata() {
    let tree = tree(&[("a.txt", "x x\nx\ny\n"), ("b.txt", "y\n"), ("s/c.txt", "z\nx:9:tail\n")]);
    assert_eq!(found(&tree, json!({ "pattern": "x" })).await, ["a.txt", "s/c.txt"]);
    assert_eq!(found(&tree, json!({ "pattern": "x", "output_mode": "count" })).await, ["a.txt:2", "s/c.txt:1"]);
    let lines = json!({ "pattern": "x", "output_mode": "content" });
    assert_eq!(found(&tree, lines).await, ["a.txt:1:x x", "a.txt:2:x", "s/c.txt:2:x:9:tail"]);
    let outcome = grep(&tree, json!({ "pattern": "y", "output_mode": "content", "-n": false, "head_limit": 1 })).await;
    let root = tree.root.to_str().expect("text");
    assert_eq!(model_json(&outcome), json!([{ "file_path": format!("{root}/a.txt"), "content": "y" }]));
    assert_eq!(
        metadata(&outcome),
        json!({
            "search_pattern": "y", "search_path": root, "output_mode": "content", "case_insensitive": false,
            "total_matches": 1, "original_total": 2, "offset": 0, "head_limit": 1, "strategy": "ripgrep",
            "exit_code": 0, "truncated": false, "summary": "Search \"y\": 1 matches",
        })
    );
}

#[tokio::test]
async fn no_match_is_an_empty_list() {
    let tree = tree(&[("a.txt", "x\n")]);
    let outcome = grep(&tree, json!({ "pattern": "absent" })).await;
    assert_eq!((outcome.model().as_text(), &metadata(&outcome)["exit_code"]), ("[]", &json!(1)));
}

#[tokio::test]
async fn context_lines_are_marked_neighbours() {
    let tree = tree(&[("a.txt", "l1\nl2: with:3:colons\nneedle\nl4 - dash\nl5\nl6\nneedle\n")]);
    let search = |extra: Value| {
        let mut arguments = json!({ "pattern": "needle", "output_mode": "content" });
        arguments.as_object_mut().expect("object").extend(extra.as_object().expect("object").clone());
        arguments
    };
    let around = ["a.txt-2-l2: with:3:colons", "a.txt:3:needle", "a.txt-4-l4 - dash", "a.txt-6-l6", "a.txt:7:needle"];
    assert_eq!(found(&tree, search(json!({ "-C": 1 }))).await, around);
    assert_eq!(found(&tree, search(json!({ "-C": 1, "-B": 9, "-A": 9 }))).await, around);
    assert_eq!(found(&tree, search(json!({ "-B": 1 }))).await, [around[0], around[1], around[3], around[4]]);
    assert_eq!(found(&tree, search(json!({ "-A": 1 }))).await, [around[1], around[2], around[4]]);
    let page = found(&tree, search(json!({ "-C": 1, "offset": 1, "head_limit": 2 }))).await;
    assert_eq!(page, around[1..3]);
}

#[tokio::test]
async fn filters_by_glob_type_and_hidden_state() {
    let tree = tree(&[
        ("a.ts", "x\n"),
        ("b.js", "x\n"),
        ("s/c.ts", "x\n"),
        (".hid/d.ts", "x\n"),
        (".e.ts", "x\n"),
        (".git/f.ts", "x\n"),
    ]);
    for (filter, want) in [
        (json!({}), vec!["a.ts", "b.js", "s/c.ts"]),
        (json!({ "glob": "*.ts" }), vec![".e.ts", "a.ts", "s/c.ts"]),
        (json!({ "glob": "!*.ts" }), vec!["b.js"]),
        (json!({ "glob": "*.{js,md}" }), vec!["b.js"]),
        (json!({ "glob": ".hid/**" }), vec![".hid/d.ts"]),
        (json!({ "glob": ".git/**" }), vec![]),
        (json!({ "type": "ts" }), vec![".e.ts", "a.ts", "s/c.ts"]),
        (json!({ "path": ".hid" }), vec![".hid/d.ts"]),
    ] {
        let mut arguments = filter.clone();
        arguments["pattern"] = json!("x");
        assert_eq!(found(&tree, arguments).await, want, "{filter}");
    }
}

#[tokio::test]
async fn dependency_directories_are_left_out_at_any_depth_unless_named() {
    let tree = tree(&[
        ("node_modules/p/a.ts", "x\n"),
        ("pkg/node_modules/p/a.ts", "x\n"),
        ("pkg/dist/o.ts", "x\n"),
        ("pkg/src/a.ts", "x\n"),
    ]);
    assert_eq!(found(&tree, json!({ "pattern": "x" })).await, ["pkg/src/a.ts"]);
    assert_eq!(found(&tree, json!({ "pattern": "x", "path": "pkg/dist" })).await, ["pkg/dist/o.ts"]);
    assert_eq!(found(&tree, json!({ "pattern": "x", "glob": "node_modules/**" })).await, ["node_modules/p/a.ts"]);
}

#[tokio::test]
async fn git_ignore_files_count_inside_a_repository_only() {
    let tree = tree(&[
        (".gitignore", "*.gen\n!keep.gen\nout2/\n"),
        ("a.gen", "x\n"),
        ("keep.gen", "x\n"),
        ("s/out2/a", "x\n"),
    ]);
    assert_eq!(found(&tree, json!({ "pattern": "x" })).await, ["a.gen", "keep.gen", "s/out2/a"]);
    tree.put(".git/HEAD", b"ref: x\n");
    assert_eq!(found(&tree, json!({ "pattern": "x" })).await, ["keep.gen"]);
    assert_eq!(found(&tree, json!({ "pattern": "x", "path": "s" })).await, Vec::<String>::new());
}

#[tokio::test]
async fn binary_files_are_skipped_in_a_tree_and_searched_when_named() {
    let tree = tree(&[("b.txt", "needle\n")]);
    tree.put("a.bin", b"\0\0\0 needle \0");
    assert_eq!(found(&tree, json!({ "pattern": "needle" })).await, ["b.txt"]);
    assert_eq!(found(&tree, json!({ "pattern": "needle", "path": "a.bin" })).await, ["a.bin"]);
    let named = grep(&tree, json!({ "pattern": "needle", "path": "a.bin", "output_mode": "content" })).await;
    assert_eq!(metadata(&named)["original_total"], json!(0));
}

#[tokio::test]
async fn utf16_with_a_mark_is_decoded_and_bad_utf8_is_replaced() {
    let tree = tree(&[]);
    let utf16: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain("αβ needle\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    tree.put("u.txt", &utf16);
    tree.put("v.txt", b"\xFFneedle\n");
    let lines = json!({ "pattern": "needle", "output_mode": "content" });
    assert_eq!(found(&tree, lines).await, ["u.txt:1:αβ needle", "v.txt:1:\u{FFFD}needle"]);
}

#[tokio::test]
async fn matches_span_lines_only_in_multiline_mode() {
    let tree = tree(&[("a.txt", "zero\nstart\nend\nstart\nend\n")]);
    assert_eq!(found(&tree, json!({ "pattern": "start.end" })).await, Vec::<String>::new());
    let lines = json!({ "pattern": "t.end", "multiline": true, "output_mode": "content", "head_limit": 3 });
    assert_eq!(found(&tree, lines).await, ["a.txt:2:start", "a.txt:3:end", "a.txt:4:start"]);
    assert_eq!(
        found(&tree, json!({ "pattern": "t.end", "multiline": true, "output_mode": "count" })).await,
        ["a.txt:2"]
    );
}

#[tokio::test]
async fn patterns_that_look_like_options_are_text() {
    let tree = tree(&[("-rf", "x -77\n--pre=sh\na->b\n-e\n")]);
    for (pattern, line) in
        [("-77", "-rf:1:x -77"), ("--pre", "-rf:2:--pre=sh"), ("->", "-rf:3:a->b"), ("-e$", "-rf:4:-e")]
    {
        assert_eq!(found(&tree, json!({ "pattern": pattern, "output_mode": "content" })).await, [line]);
    }
    assert_eq!(found(&tree, json!({ "pattern": "x", "path": "-rf" })).await, ["-rf"]);
}

#[tokio::test]
async fn bad_expressions_types_and_globs_say_what_would_work() {
    let tree = tree(&[("a.txt", "x\n")]);
    for (arguments, parts) in [
        (json!({ "pattern": "foo(" }), ["foo(", "unclosed group"]),
        (json!({ "pattern": "(?=x)" }), ["look-around", "not supported"]),
        (json!({ "pattern": "(a)\\1" }), ["backreferences", "write the text out"]),
        (json!({ "pattern": "a\\nb" }), ["not allowed", "multiline"]),
        (json!({ "pattern": "a{2,1}" }), ["a{2,1}", "backslash"]),
        (json!({ "pattern": "x", "type": "nosuch" }), ["unrecognized file type: nosuch", "*.nosuch"]),
        (json!({ "pattern": "x", "glob": "{a" }), ["{a", "not valid"]),
    ] {
        let outcome = grep(&tree, arguments.clone()).await;
        let (kind, model) = failure(&outcome);
        assert_eq!(kind, ToolErrorType::ExecutionError, "{arguments}");
        assert_eq!(model, format!("Search execution failed: {}", error(&outcome).message));
        assert!(parts.iter().all(|part| model.contains(part)), "{model}");
    }
}

#[tokio::test]
async fn bad_paths_are_refused_with_their_class() {
    let outside = tree(&[("s.txt", "x SECRET\n")]);
    let tree = tree(&[("a.txt", "x\n")]);
    for path in [outside.root.to_str().expect("text"), "none"] {
        let outcome = grep(&tree, json!({ "pattern": "x", "path": path })).await;
        assert_eq!(failure(&outcome).0, ToolErrorType::PermissionDenied, "{path}");
    }
    let nowhere = call(&GrepTool, json!({ "pattern": "x" }), context(&[], None)).await;
    assert_eq!(failure(&nowhere).0, ToolErrorType::PermissionDenied);
    let no_cwd = call(&GrepTool, json!({ "pattern": "x" }), context(&[&tree.root], None)).await;
    assert_eq!(failure(&no_cwd).0, ToolErrorType::ValidationError);
    let blank = grep(&tree, json!({ "pattern": "x", "path": "" })).await;
    assert_eq!(entries(&tree, &blank), ["a.txt"]);
}

#[tokio::test]
async fn pages_of_a_large_tree_join_to_the_whole_list() {
    let files: Vec<(String, String)> =
        (0..400).map(|i| (format!("d{}/f{i:03}.txt", i % 9), "x 1\ny\nx 2\n".to_owned())).collect();
    let tree = tree(&files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    let page = |offset: u64, limit: Option<u64>| {
        let mut arguments = json!({ "pattern": "x", "output_mode": "content", "offset": offset });
        if let Some(limit) = limit {
            arguments["head_limit"] = json!(limit);
        }
        arguments
    };
    let whole = found(&tree, page(0, None)).await;
    assert_eq!(whole.len(), 800);
    assert_eq!(whole, {
        let mut sorted = whole.clone();
        sorted.sort();
        sorted
    });
    let mut joined = Vec::new();
    for offset in (0..900).step_by(97) {
        joined.extend(found(&tree, page(offset, Some(97))).await);
    }
    assert_eq!(joined, whole);
}

#[tokio::test]
async fn a_flood_is_cut_told_and_continues_where_it_ended() {
    let text = "some line of text that matches\n".repeat(10_000);
    let tree = tree(
        &(0..8)
            .map(|i| (format!("f{i:02}.txt"), text.as_str()))
            .collect::<Vec<_>>()
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect::<Vec<_>>(),
    );
    let flood = json!({ "pattern": ".", "output_mode": "content" });
    let outcome = grep(&tree, flood.clone()).await;
    let facts = metadata(&outcome);
    assert_eq!((&facts["truncated"], &facts["original_total"]), (&json!(true), &json!(80_000)));
    let list = model_json(&outcome);
    let list = list.as_array().expect("array");
    let returned = facts["total_matches"].as_u64().expect("number");
    assert_eq!((list.len() as u64, facts["next_offset"].as_u64()), (returned + 1, Some(returned)));
    assert_eq!(list.last().expect("note")["truncated"], json!(true));
    assert!(outcome.model().as_text().len() < 1_100_000);
    // Stable between runs, and the next page starts right after the cut.
    assert_eq!(grep(&tree, flood).await.model().as_text(), outcome.model().as_text());
    let next =
        grep(&tree, json!({ "pattern": ".", "output_mode": "content", "offset": returned, "head_limit": 1 })).await;
    assert_eq!(model_json(&next)[0]["line_number"], json!(returned % 10_000 + 1));
}

#[tokio::test]
async fn the_wanted_part_is_found_again_in_files_too_large_to_keep() {
    let text: String = (1..=200_000).map(|i| format!("line {i} with some words behind it\n")).collect();
    let tree = tree(&[("a.txt", "line 0\n"), ("big.txt", &text), ("c.txt", "line last\n")]);
    let deep = json!({ "pattern": "line", "output_mode": "content", "offset": 199_999, "head_limit": 3 });
    assert_eq!(
        found(&tree, deep).await,
        [
            "big.txt:199999:line 199999 with some words behind it",
            "big.txt:200000:line 200000 with some words behind it",
            "c.txt:1:line last"
        ]
    );
}

#[tokio::test]
async fn a_cancelled_call_is_interrupted() {
    let tree = tree(&[("a.txt", "x\n")]);
    let cx = tree.context();
    cx.cancel.cancel(CancelReason::Abort);
    let outcome = call(&GrepTool, json!({ "pattern": "x" }), cx).await;
    assert_eq!(failure(&outcome), (ToolErrorType::Interrupted, "Search aborted".into()));
}

#[tokio::test]
async fn cancelling_stops_inside_of_a_long_file() {
    // Sparse: no room on disk, and far longer to search than this test may take.
    let tree = tree(&[]);
    let file = std::fs::File::create(tree.root.join("long.txt")).expect("created");
    file.set_len(64 << 30).expect("sized");
    let yields = Arc::new(Yields::default());
    let cx = ToolContext { yields: yields.clone(), ..tree.context() };
    let cancel = cx.cancel.clone();
    let work = Tasks::new().spawn(call(&GrepTool, json!({ "pattern": "needle", "path": "long.txt" }), cx));
    while yields.0.lock().expect("lock").is_empty() {
        tokio::task::yield_now().await;
    }
    let asked = tokio::time::Instant::now();
    cancel.cancel(CancelReason::Abort);
    assert_eq!(failure(&work.await.expect("joined")), (ToolErrorType::Interrupted, "Search aborted".into()));
    assert!(asked.elapsed().as_secs() < 5, "took {:?}", asked.elapsed());
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed() {
    let outside = tree(&[("s.txt", "x\n")]);
    let tree = tree(&[("a.txt", "x\n")]);
    std::os::unix::fs::symlink(&outside.root, tree.root.join("out")).expect("link");
    std::os::unix::fs::symlink(".", tree.root.join("loop")).expect("link");
    assert_eq!(found(&tree, json!({ "pattern": "x" })).await, ["a.txt"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn names_that_are_not_utf8_are_escaped_and_marked() {
    use std::os::unix::ffi::OsStrExt;
    let tree = tree(&[("b.txt", "x\n")]);
    std::fs::write(tree.root.join(std::ffi::OsStr::from_bytes(b"a\xFFz.txt")), "x\n").expect("written");
    let outcome = grep(&tree, json!({ "pattern": "x" })).await;
    assert_eq!(entries(&tree, &outcome), ["a\\xFFz.txt", "b.txt"]);
    assert_eq!(model_json(&outcome)[0]["name_not_utf8"], json!(true));
    assert_eq!(metadata(&outcome)["names_not_utf8"], json!(1));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_warning_and_matches_stay() {
    use std::os::unix::fs::PermissionsExt;
    let tree = tree(&[("a.txt", "x\n"), ("closed.txt", "x\n")]);
    let closed = tree.root.join("closed.txt");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).expect("closed");
    let readable_anyway = std::fs::File::open(&closed).is_ok();
    let outcome = grep(&tree, json!({ "pattern": "x" })).await;
    let facts = metadata(&outcome);
    assert_eq!(model_json(&outcome)[0]["file_path"], json!(tree.root.join("a.txt")));
    // The superuser reads everything: there is nothing to warn of.
    let warned = (&facts["partial"], &facts["exit_code"]) == (&json!(true), &json!(2));
    assert_eq!(warned, !readable_anyway, "{facts}");
}

#[tokio::test]
async fn a_line_too_long_to_hold_is_a_warning_and_other_matches_stay() {
    let tree = tree(&[("a.txt", "x\n"), ("c.txt", "x\n")]);
    tree.put("b.txt", &vec![b'x'; 33 << 20]);
    let outcome = grep(&tree, json!({ "pattern": "x" })).await;
    let facts = metadata(&outcome);
    assert_eq!(
        (&facts["original_total"], &facts["partial"], &facts["exit_code"]),
        (&json!(2), &json!(true), &json!(2))
    );
    let warning = facts["warnings"][0].as_str().expect("text");
    assert!(warning.contains("b.txt: configured allocation limit"), "{warning}");
    let list = model_json(&outcome);
    assert!(list[2]["note"].as_str().expect("note").contains(warning), "{list}");
}
