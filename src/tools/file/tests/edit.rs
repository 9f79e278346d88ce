use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

/// Reads the file, edits it, gives the outcome and the bytes after it.
async fn edited(before: impl AsRef<[u8]>, old: &str, new: &str) -> (Result<ToolSuccess, ToolFailure>, Vec<u8>) {
    let world = World::with("a.txt", before);
    world.read("a.txt").await;
    let outcome = world.edit("a.txt", old, new).await;
    assert_eq!(world.names(), ["a.txt"], "no temporary file stays");
    (outcome, world.bytes("a.txt"))
}

#[tokio::test]
async fn a_unique_match_is_replaced_and_the_facts_are_told() {
    let world = World::with("a.txt", "one two");
    world.read("a.txt").await;
    let success = world.edit("a.txt", "two", "three").await.unwrap();
    assert_eq!(world.bytes("a.txt"), b"one three");
    assert_eq!(model(&success), json!({ "file_path": world.path("a.txt"), "replacements": 1, "total_matches": 1 }));
    let mut metadata = Value::Object(success.metadata);
    let diff = metadata["diff_snippet"].take();
    assert!(diff.as_str().unwrap().starts_with("\n<<<DIFF>>>\n{"));
    metadata["last_modified"].take();
    assert_eq!(
        metadata,
        json!({
            "file_path": world.path("a.txt"), "matches_found": 1, "replacements_made": 1, "replace_all": false,
            "old_string_length": 3, "new_string_length": 5, "original_size": 7, "new_size": 9, "size_diff": 2,
            "last_modified": null, "summary": "Replaced 1 match in a.txt", "kind": "edit", "snapshot_created": false,
            "session_id": world.session.as_ref().unwrap().as_str(), "diff_snippet": null,
            "oldContent": "one two", "newContent": "one three",
        })
    );
    let yields = world.yields.0.lock().unwrap();
    assert!(matches!(&yields[1], ToolYield::Message { content } if content["summary"] == "Starting to read file..."));
    assert!(matches!(&yields[2], ToolYield::Progress(map) if map["data"] == json!({ "matches": 1 })));
}

#[tokio::test]
async fn an_ambiguous_match_changes_nothing_and_names_every_place() {
    let (outcome, after) = edited("same\r\nmiddle\r\n  same\r\n", "same", "z").await;
    let failure = refused(outcome, ToolErrorType::ValidationError);
    assert_eq!(failure.error.message, "old_string is not unique");
    assert!(failure.model.as_text().starts_with("old_string matches 2 locations."));
    let places = json!([{ "line": 1, "column": 1 }, { "line": 3, "column": 3 }]);
    assert_eq!(failure.error.details, Some(json!({ "matches": places, "count": 2 })));
    assert_eq!(after, b"same\r\nmiddle\r\n  same\r\n");
}

/// ED09.
#[tokio::test]
async fn overlapping_matches_are_ambiguous_but_replaced_without_overlap() {
    let world = World::with("a.txt", "aaaa\n");
    world.read("a.txt").await;
    refused(world.edit("a.txt", "aa", "b").await, ToolErrorType::ValidationError);
    let success = world.edit_all("a.txt", "aa", "b").await.unwrap();
    assert_eq!((model(&success)["replacements"].clone(), world.bytes("a.txt")), (json!(2), b"bb\n".to_vec()));
}

#[tokio::test]
async fn text_that_is_not_there_is_an_error_that_shows_what_is() {
    let (outcome, after) = edited("fn main() {\n    start( now );\n}\n", "start(now);", "x").await;
    let failure = refused(outcome, ToolErrorType::ExecutionError);
    assert_eq!(failure.error.details.as_ref().unwrap()["searchStringLength"], 11);
    assert!(failure.model.as_text().contains("Read the file again"));
    assert!(failure.model.as_text().ends_with("Closest lines:\n     2→    start( now );"), "{:?}", failure.model);
    assert_eq!(after, b"fn main() {\n    start( now );\n}\n");
}

#[tokio::test]
async fn equal_strings_are_refused() {
    let (outcome, _) = edited("alpha", "alpha", "alpha").await;
    let failure = refused(outcome, ToolErrorType::ValidationError);
    assert_eq!(failure.model.as_text(), "New string is identical; no replacement needed");
}

/// ED01, ED02, ED05, ED08, ED22 and the latin-1 file of ED06.
#[tokio::test]
async fn everything_outside_the_match_keeps_its_bytes() {
    for (before, old, new, after) in [
        (
            &b"\tif (a) {\r\n\t\tgo();\r\n\t}\r\n"[..],
            "\tif (a) {\n\t\tgo();",
            "\tif (b) {\n\t\tgo();\n\t\tstop();",
            &b"\tif (b) {\r\n\t\tgo();\r\n\t\tstop();\r\n\t}\r\n"[..],
        ),
        (b"one\r\ntwo\r\nthree\r\n", "two", "TWO", b"one\r\nTWO\r\nthree\r\n"),
        (b"\xEF\xBB\xBFWrite-Host 1\n# x\n", "Write-Host 1", "Write-Host 2", b"\xEF\xBB\xBFWrite-Host 2\n# x\n"),
        (b"say(1)", "say(1)", "say(\"$& $$ $1 ${x} $` $' \\1\")", b"say(\"$& $$ $1 ${x} $` $' \\1\")"),
        (b"a\nb", "a", "A", b"A\nb"),
        (b"a\nb\n", "a", "A", b"A\nb\n"),
        (b"a\nb", "b", "B\n", b"a\nB\n"),
        (b"caf\xE9 = 1\nport = 80\n", "80", "81", b"caf\xE9 = 1\nport = 81\n"),
        (b"keep drop keep2", " drop", "", b"keep keep2"),
    ] {
        let (outcome, bytes) = edited(before, old, new).await;
        outcome.unwrap();
        assert_eq!(bytes, after, "{old:?}");
    }
}

#[tokio::test]
async fn utf16_files_stay_utf16() {
    for order in [text::Utf16::Little, text::Utf16::Big] {
        let (outcome, bytes) = edited(order.encode("héllo\r\nwörld\r\n"), "wörld", "wörld\n!").await;
        assert_eq!(outcome.unwrap().metadata["encoding"], order.name());
        assert_eq!(bytes, order.encode("héllo\r\nwörld\r\n!\r\n"));
    }
    let broken = b"\xFF\xFEa\0\x00\xD8b\0";
    let (outcome, bytes) = edited(broken, "a", "b").await;
    assert!(refused(outcome, ToolErrorType::ExecutionError).model.as_text().contains("utf-16le"));
    assert_eq!(bytes, broken);
}

/// ED10.
#[tokio::test]
async fn another_normalisation_is_named_and_nothing_is_rewritten() {
    let before = "re\u{301}sume\u{301} = 1\ncafe\u{301}\n";
    let (outcome, after) = edited(before, "r\u{e9}sum\u{e9} = 1", "x").await;
    assert!(refused(outcome, ToolErrorType::ExecutionError).model.as_text().contains("Unicode normalization"));
    assert_eq!(after, before.as_bytes());
}

/// ED04.
#[tokio::test]
async fn edits_follow_each_other_without_another_read_until_somebody_else_writes() {
    let world = World::with("a.txt", "one\r\ntwo\r\n");
    world.read("a.txt").await;
    world.edit("a.txt", "one", "1").await.unwrap();
    world.edit("a.txt", "two", "2").await.unwrap();
    assert_eq!(world.bytes("a.txt"), b"1\r\n2\r\n");
    fs::write(world.root.join("a.txt"), "1\r\n3\r\n").unwrap();
    let failure = refused(world.edit("a.txt", "1", "x").await, ToolErrorType::ValidationError);
    assert_eq!(failure.error.message, "File modified externally");
    assert_eq!(world.bytes("a.txt"), b"1\r\n3\r\n");
}

/// ED15, without the read-only case: as root every file is writable.
#[tokio::test]
async fn permissions_survive_an_edit_and_a_write() {
    for mode in [0o755, 0o700, 0o751, 0o4755, 0o640] {
        let world = World::with("run.sh", "echo a\n");
        let path = world.root.join("run.sh");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        world.read("run.sh").await;
        world.edit("run.sh", "echo a", "echo b").await.unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, mode);
        world.write("run.sh", "echo c\n").await.unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, mode);
    }
}

#[tokio::test]
async fn a_read_only_file_is_refused_or_keeps_its_mode() {
    let world = World::with("a.txt", "old");
    let path = world.root.join("a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    world.read("a.txt").await;
    match world.edit("a.txt", "old", "new").await {
        Ok(_) => assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o444),
        Err(failure) => {
            assert_eq!(failure.error.code.as_deref(), Some("EACCES"));
            assert_eq!(world.bytes("a.txt"), b"old");
        }
    }
}

#[tokio::test]
async fn extended_attributes_survive_an_edit() {
    let world = World::with("a.txt", "old");
    let file = fs::File::open(world.root.join("a.txt")).unwrap();
    if rustix::fs::fsetxattr(&file, "user.note", b"kept", rustix::fs::XattrFlags::empty()).is_err() {
        return; // This file system has no extended attributes.
    }
    world.read("a.txt").await;
    world.edit("a.txt", "old", "new").await.unwrap();
    let file = fs::File::open(world.root.join("a.txt")).unwrap();
    let mut value = [0u8; 8];
    let size = rustix::fs::fgetxattr(&file, "user.note", &mut value[..]).unwrap();
    assert_eq!(&value[..size], b"kept");
}

/// ED17.
#[tokio::test]
async fn an_edit_through_a_link_changes_the_target_and_keeps_the_link() {
    let world = World::with("real.txt", "old");
    let link = world.root.join("link.txt");
    symlink("real.txt", &link).unwrap();
    let inode = link.symlink_metadata().unwrap().ino();
    world.read("link.txt").await;
    world.edit("link.txt", "old", "new").await.unwrap();
    world.write("link.txt", "newer").await.unwrap();
    assert_eq!(world.bytes("real.txt"), b"newer");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("real.txt"));
    assert_eq!(link.symlink_metadata().unwrap().ino(), inode);
}

/// ED19.
#[tokio::test]
async fn all_names_of_a_file_see_the_edit() {
    let world = World::with("a", "old text");
    fs::hard_link(world.root.join("a"), world.root.join("b")).unwrap();
    world.read("a").await;
    let success = world.edit("a", "old", "a much longer new").await.unwrap();
    assert_eq!(success.metadata["written_in_place"], true);
    world.edit("a", "a much longer new", "n").await.unwrap();
    assert_eq!((world.bytes("a"), world.bytes("b")), (b"n text".to_vec(), b"n text".to_vec()));
    assert_eq!(world.root.join("b").metadata().unwrap().nlink(), 2);
}

/// ED20.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_edits_of_one_file_all_land() {
    let lines: String = (1..=240).map(|n| format!("L{n:03}\n")).collect();
    for _ in 0..20 {
        let world = World::with("a.txt", &lines);
        world.read("a.txt").await;
        let edits = [("L010", "A"), ("L050", "B"), ("L090", "C"), ("L130", "D"), ("L170", "E"), ("L210", "F")];
        let outcomes = futures_util::future::join_all(edits.map(|(old, new)| world.edit("a.txt", old, new))).await;
        let expected = edits.iter().fold(lines.clone(), |text, (old, new)| text.replace(old, new));
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(String::from_utf8(world.bytes("a.txt")).unwrap(), expected);
    }
}

#[tokio::test]
async fn long_contents_are_left_out_of_the_metadata() {
    let world = World::with("a.txt", format!("x{}", "y".repeat(MAX_CONTENT)));
    world.read("a.txt").await;
    let success = world.edit("a.txt", "x", "z").await.unwrap();
    assert_eq!(success.metadata["content_omitted"], true);
    assert_eq!(success.metadata.get("oldContent"), None);
}
