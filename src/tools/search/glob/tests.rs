use std::fs::{self, File};
use std::time::Duration;

use super::*;
use crate::contract::ToolOutcome;
use crate::host::{CancelReason, clock};
use crate::tools::search::testing::{Tree, Yields, call, context, failure, metadata, tree};

async fn glob(tree: &Tree, arguments: Value) -> Vec<String> {
    paths(&tree.call(&GlobTool, arguments).await)
}

/// Relative paths in the order of the result.
fn paths(outcome: &ToolOutcome) -> Vec<String> {
    let matches = metadata(outcome)["matches"].clone();
    matches.as_array().expect("array").iter().map(|m| m["relative_path"].as_str().expect("text").to_owned()).collect()
}

async fn sorted(tree: &Tree, arguments: Value) -> Vec<String> {
    let mut paths = glob(tree, arguments).await;
    paths.sort_unstable();
    paths
}

/// Sets the time of a file or directory to `seconds` ago.
fn age(tree: &Tree, path: &str, seconds: u64) {
    let time = UNIX_EPOCH + Duration::from_secs(1_800_000_000 - seconds);
    File::open(tree.root.join(path)).expect("opened").set_modified(time).expect("time set");
}

#[test]
fn the_specification_compiles_and_is_that_of_a_pure_reader() {
    let spec = Tool::spec(&GlobTool);
    assert_eq!((spec.name.as_ref(), spec.group.as_deref()), ("Glob", Some("filesystem")));
    assert!(spec.behavior.read_only && spec.behavior.concurrency_safe);
    assert_eq!((spec.behavior.side_effect, spec.behavior.interrupt), (SideEffect::Pure, InterruptBehavior::Cancel));
}

#[tokio::test]
async fn an_entry_has_its_paths_kind_size_and_time() {
    let tree = tree(&[("a/b.txt", "12345")]);
    age(&tree, "a/b.txt", 0);
    let outcome = tree.call(&GlobTool, json!({ "pattern": "**/*.txt" })).await;
    let time = clock::iso(UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let root = tree.root.to_str().expect("text");
    assert_eq!(
        metadata(&outcome),
        json!({
            "search_path": root, "pattern": "**/*.txt", "total_matches": 1, "returned_matches": 1, "total_found": 1,
            "max_results": 100, "include_directories": false, "case_sensitive": false, "truncated": false,
            "matches": [{ "path": format!("{root}/a/b.txt"), "relative_path": "a/b.txt", "is_directory": false, "size": 5, "modified": time }],
            "summary": "Found 1 files matching \"**/*.txt\"",
        })
    );
    assert_eq!(
        outcome.model().as_text(),
        "Found 1 file(s) matching \"**/*.txt\":\n\n- a/b.txt\n\nUse the relative_path values above for Read/Edit operations."
    );
}

#[tokio::test]
async fn no_match_is_a_success_that_says_so() {
    let tree = tree(&[("a.txt", "")]);
    let outcome = tree.call(&GlobTool, json!({ "pattern": "*.none" })).await;
    assert_eq!(outcome.model().as_text(), "No files found matching \"*.none\"");
}

#[tokio::test]
async fn files_come_newest_first_then_by_path_and_directories_last() {
    let tree = tree(&[("b.txt", ""), ("a.txt", ""), ("old.txt", ""), ("new.txt", ""), ("z/x", "")]);
    for (path, seconds) in [("new.txt", 1), ("a.txt", 10), ("b.txt", 10), ("old.txt", 99), ("z", 0)] {
        age(&tree, path, seconds);
    }
    let all = json!({ "pattern": "*", "include_directories": true });
    assert_eq!(glob(&tree, all).await, ["new.txt", "a.txt", "b.txt", "old.txt", "z"]);
}

#[tokio::test]
async fn the_cut_keeps_the_newest_and_is_told() {
    let tree = tree(&[("a.txt", ""), ("b.txt", ""), ("c.txt", ""), ("d.txt", "")]);
    for (path, seconds) in [("a.txt", 40), ("b.txt", 30), ("c.txt", 10), ("d.txt", 20)] {
        age(&tree, path, seconds);
    }
    let outcome = tree.call(&GlobTool, json!({ "pattern": "*", "max_results": 2 })).await;
    assert_eq!(paths(&outcome), ["c.txt", "d.txt"]);
    let facts = metadata(&outcome);
    assert_eq!(
        (&facts["truncated"], &facts["returned_matches"], &facts["total_found"]),
        (&json!(true), &json!(2), &json!(4))
    );
    assert!(outcome.model().as_text().starts_with("Found at least 2 file(s) matching \"*\" (truncated):"));
    assert_eq!(
        metadata(&tree.call(&GlobTool, json!({ "pattern": "*", "max_results": 4 })).await)["truncated"],
        json!(false)
    );
}

#[tokio::test]
async fn a_large_tree_gives_the_same_as_a_small_one() {
    let names: Vec<String> = (0..1200).map(|i| format!("d{}/e{}/f{i}.txt", i % 20, i % 7)).collect();
    let tree = tree(&names.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>());
    for (i, name) in names.iter().enumerate() {
        age(&tree, name, i as u64);
    }
    assert_eq!(glob(&tree, json!({ "pattern": "**/*.txt", "max_results": 1000 })).await, names[..1000]);
    assert_eq!(glob(&tree, json!({ "pattern": "d3/**/*.txt" })).await.len(), 60);
}

#[tokio::test]
async fn dependency_and_build_directories_are_left_out_at_any_depth_unless_named() {
    let tree = tree(&[("src/a.ts", ""), ("node_modules/p/i.ts", ""), ("pkg/dist/o.ts", ""), (".git/h.ts", "")]);
    assert_eq!(sorted(&tree, json!({ "pattern": "**/*.ts" })).await, ["src/a.ts"]);
    assert_eq!(sorted(&tree, json!({ "pattern": "node_modules/**/*.ts" })).await, ["node_modules/p/i.ts"]);
    assert_eq!(sorted(&tree, json!({ "pattern": ".git/**" })).await, Vec::<String>::new());
    assert_eq!(sorted(&tree, json!({ "pattern": "**/*.ts", "path": "node_modules" })).await, ["p/i.ts"]);
}

#[tokio::test]
async fn logs_and_lock_files_are_left_out_unless_the_pattern_names_them() {
    let tree = tree(&[("x.log", ""), ("sub/y.log", ""), ("yarn.lock", ""), ("a.json", ""), ("a.bak", "")]);
    assert_eq!(sorted(&tree, json!({ "pattern": "**/*" })).await, ["a.json"]);
    assert_eq!(sorted(&tree, json!({ "pattern": "**/*.log" })).await, ["sub/y.log", "x.log"]);
    assert_eq!(sorted(&tree, json!({ "pattern": "yarn.lock" })).await, ["yarn.lock"]);
}

#[tokio::test]
async fn ignore_rules_are_those_of_git_with_or_without_a_repository() {
    for repository in [false, true] {
        let tree = tree(&[
            (".gitignore", "# c\n\n*.gen.ts\n/top.ts\ntmp/\nvendored/*\n!vendored/keep.ts\n"),
            ("a.gen.ts", ""),
            ("x/b.gen.ts", ""),
            ("top.ts", ""),
            ("x/top.ts", ""),
            ("x/tmp/c.ts", ""),
            ("x/.gitignore", "local.ts\n!kept.gen.ts\n"),
            ("x/local.ts", ""),
            ("local.ts", ""),
            ("x/kept.gen.ts", ""),
            ("vendored/a.ts", ""),
            ("vendored/keep.ts", ""),
        ]);
        if repository {
            tree.put(".git/HEAD", b"ref: x\n");
        }
        assert_eq!(
            sorted(&tree, json!({ "pattern": "**/*.ts" })).await,
            ["local.ts", "vendored/keep.ts", "x/kept.gen.ts", "x/top.ts"]
        );
    }
}

#[tokio::test]
async fn a_negated_ignore_rule_brings_back_what_the_default_rules_leave_out() {
    let tree = tree(&[
        (".gitignore", "!keep.log\n!dist/\n"),
        ("keep.log", ""),
        ("other.log", ""),
        ("dist/a.js", ""),
        ("build/a.js", ""),
    ]);
    assert_eq!(sorted(&tree, json!({ "pattern": "**/*" })).await, [".gitignore", "dist/a.js", "keep.log"]);
}

#[tokio::test]
async fn ignored_copies_do_not_flood_the_result() {
    let mut files = vec![(".gitignore".to_owned(), ".agent/worktrees/"), ("src/a.php".to_owned(), "")];
    files.extend((0..6).map(|i| (format!(".agent/worktrees/w{i}/src/a.php"), "")));
    let tree = tree(&files.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>());
    assert_eq!(sorted(&tree, json!({ "pattern": "**/a.php" })).await, ["src/a.php"]);
}

#[tokio::test]
async fn ignore_files_above_the_root_count_inside_a_repository_only() {
    let tree = tree(&[(".gitignore", "*.gen\n"), ("sub/a.gen", ""), ("sub/b.txt", "")]);
    assert_eq!(sorted(&tree, json!({ "pattern": "*", "path": "sub" })).await, ["a.gen", "b.txt"]);
    tree.put(".git/HEAD", b"ref: x\n");
    assert_eq!(sorted(&tree, json!({ "pattern": "*", "path": "sub" })).await, ["b.txt"]);
}

#[tokio::test]
async fn dot_files_match_and_case_matters_on_request() {
    let tree = tree(&[(".env", ""), (".github/W.yml", ""), ("Readme.MD", ""), ("b.md", "")]);
    assert_eq!(sorted(&tree, json!({ "pattern": "**/*" })).await, [".env", ".github/W.yml", "Readme.MD", "b.md"]);
    assert_eq!(sorted(&tree, json!({ "pattern": ".GITHUB/*.yml" })).await, [".github/W.yml"]);
    assert_eq!(sorted(&tree, json!({ "pattern": "*.md", "case_sensitive": true })).await, ["b.md"]);
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed_and_cycles_end() {
    let outside = tree(&[("secret.txt", "")]);
    let tree = tree(&[("real/a.txt", "")]);
    std::os::unix::fs::symlink(&outside.root, tree.root.join("out")).expect("link");
    std::os::unix::fs::symlink("..", tree.root.join("real/loop")).expect("link");
    std::os::unix::fs::symlink("a.txt", tree.root.join("real/b.txt")).expect("link");
    assert_eq!(sorted(&tree, json!({ "pattern": "**/*", "include_directories": true })).await, ["real", "real/a.txt"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn names_that_are_not_utf8_are_escaped_and_marked() {
    use std::os::unix::ffi::OsStrExt;
    let tree = tree(&[("ok.txt", "")]);
    for name in [&b"a\xFFz.txt"[..], b"\xF0\x28"] {
        File::create(tree.root.join(std::ffi::OsStr::from_bytes(name))).expect("created");
    }
    let outcome = tree.call(&GlobTool, json!({ "pattern": "**/*" })).await;
    let mut found = paths(&outcome);
    found.sort_unstable();
    assert_eq!(found, ["\\xF0(", "a\\xFFz.txt", "ok.txt"]);
    assert!(outcome.model().as_text().contains("not valid UTF-8"));
}

#[tokio::test]
async fn names_with_special_characters_are_reached() {
    let tree = tree(&[("app/[id]/(grp)/page.tsx", "")]);
    assert_eq!(sorted(&tree, json!({ "pattern": "**/*.tsx", "path": "app/[id]" })).await, ["(grp)/page.tsx"]);
    assert_eq!(sorted(&tree, json!({ "pattern": "app/[id]/**/*.tsx" })).await, ["app/[id]/(grp)/page.tsx"]);
}

#[tokio::test]
async fn an_absolute_pattern_searches_inside_the_roots_only() {
    let outside = tree(&[("o.txt", "")]);
    let tree = tree(&[("sub/a.txt", "")]);
    let inside = format!("{}/sub/*.txt", tree.root.display());
    assert_eq!(sorted(&tree, json!({ "pattern": inside })).await, ["a.txt"]);
    let beyond = tree.call(&GlobTool, json!({ "pattern": format!("{}/*.txt", outside.root.display()) })).await;
    assert_eq!(failure(&beyond).0, ToolErrorType::PermissionDenied);
    let up = tree.call(&GlobTool, json!({ "pattern": "../*" })).await;
    assert_eq!(
        failure(&up),
        (
            ToolErrorType::ValidationError,
            "glob pattern \"../*\" must not contain \"..\"; pass the directory to search as path".into()
        )
    );
}

#[tokio::test]
async fn bad_paths_are_refused_with_their_class() {
    let outside = tree(&[("o.txt", "")]);
    let tree = tree(&[("a.txt", "")]);
    let file = format!("{}/a.txt", tree.root.display());
    let text = format!("Search path must be a directory: {file}");
    assert_eq!(
        failure(&tree.call(&GlobTool, json!({ "pattern": "*", "path": file })).await),
        (ToolErrorType::ValidationError, text)
    );
    for path in [outside.root.to_str().expect("text"), "none"] {
        let outcome = tree.call(&GlobTool, json!({ "pattern": "*", "path": path })).await;
        assert_eq!(failure(&outcome).0, ToolErrorType::PermissionDenied, "{path}");
    }
    let nowhere = call(&GlobTool, json!({ "pattern": "*" }), context(&[], None)).await;
    assert_eq!(
        failure(&nowhere),
        (ToolErrorType::PermissionDenied, "No filesystem access in the current runtime context.".into())
    );
    let no_cwd = call(&GlobTool, json!({ "pattern": "*" }), context(&[&tree.root], None)).await;
    assert_eq!(failure(&no_cwd).0, ToolErrorType::ValidationError);
}

#[tokio::test]
async fn the_path_argument_becomes_canonical_before_permissions_are_asked() {
    let tree = tree(&[("sub/a.txt", "")]);
    let cx = tree.context();
    let prepare = PrepareContext {
        session_id: None,
        snapshot: cx.snapshot,
        permission_mode: cx.permission_mode,
        cancel: cx.cancel,
    };
    let params: GlobParams = serde_json::from_value(json!({ "pattern": "*", "path": "./sub" })).expect("params");
    let rewrites = Tool::prepare(&GlobTool, &params, &prepare).await.expect("prepared");
    assert_eq!(rewrites, [("path", json!(tree.root.join("sub")))]);
}

#[tokio::test]
async fn progress_names_the_root_and_the_pattern() {
    let tree = tree(&[("a.txt", "")]);
    let yields = Arc::new(Yields::default());
    let cx = ToolContext { yields: yields.clone(), ..tree.context() };
    call(&GlobTool, json!({ "pattern": "*.txt" }), cx).await;
    let root = tree.root.to_str().expect("text");
    let want = ToolYield::progress(
        format!("Searching in {root} for pattern \"*.txt\"..."),
        json!({ "pattern": "*.txt", "searchRoot": root }),
    );
    assert_eq!(*yields.0.lock().expect("lock"), [want]);
}

#[tokio::test]
async fn a_cancelled_call_is_interrupted() {
    let tree = tree(&[("a.txt", "")]);
    let cx = tree.context();
    cx.cancel.cancel(CancelReason::Abort);
    let outcome = call(&GlobTool, json!({ "pattern": "*" }), cx).await;
    assert_eq!(failure(&outcome), (ToolErrorType::Interrupted, "File search aborted".into()));
}

#[cfg(unix)]
#[tokio::test]
async fn a_directory_that_cannot_be_read_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let tree = tree(&[("a.txt", ""), ("closed/b.txt", "")]);
    let closed = tree.root.join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("closed");
    let readable_anyway = fs::read_dir(&closed).is_ok();
    let outcome = tree.call(&GlobTool, json!({ "pattern": "**/*.txt" })).await;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("opened");
    // The superuser reads everything: there is nothing to warn of.
    let facts = metadata(&outcome);
    assert_eq!(facts["warning_count"] == json!(1), !readable_anyway, "{facts}");
}
