use super::*;

const THREE: &str = "first\nsecond\nthird\n";

async fn range(world: &World, name: &str, offset: Option<u64>, limit: Option<u64>) -> ToolSuccess {
    let mut arguments = json!({ "file_path": world.path(name) });
    for (key, value) in [("offset", offset), ("limit", limit)] {
        if let Some(value) = value {
            arguments[key] = value.into();
        }
    }
    world.call("Read", arguments).await.unwrap()
}

async fn encoded(world: &World, name: &str, encoding: &str) -> ToolSuccess {
    world.call("Read", json!({ "file_path": world.path(name), "encoding": encoding })).await.unwrap()
}

#[tokio::test]
async fn a_whole_file_is_given_exactly_as_it_is() {
    for text in ["line 1\n\n  indented\ttab\nlast", "\u{feff}hello", "a\r\nb\r\n", "", "naïve 世界 🙂 e\u{301}\n"]
    {
        let world = World::with("a.ts", text);
        let read = world.read("a.ts").await;
        assert_eq!(read.model.as_text(), text);
        assert_eq!(read.metadata.get("lines_read"), None);
        assert_eq!(read.metadata["summary"], "Read a.ts");
        assert_eq!(read.metadata["file_size"], text.len());
    }
}

#[tokio::test]
async fn a_range_is_numbered_and_its_facts_are_told() {
    let world = World::with("a.ts", THREE);
    let read = range(&world, "a.ts", Some(1), Some(1)).await;
    assert_eq!(read.model.as_text(), "     2→second");
    let fact = |name: &str| read.metadata[name].clone();
    assert_eq!(
        [fact("lines_read"), fact("total_lines"), fact("start_line"), fact("end_line"), fact("file_type")],
        [json!(1), json!(4), json!(2), json!(2), json!(".ts")]
    );
    assert_eq!(fact("summary"), "Read 1 line from a.ts");
    assert_eq!(fact("file_path"), world.path("a.ts"));
    assert_eq!(range(&world, "a.ts", None, Some(2)).await.model.as_text(), "     1→first\n     2→second");
    assert_eq!(range(&world, "a.ts", Some(2), None).await.model.as_text(), "     3→third\n     4→");
    let beyond = range(&world, "a.ts", Some(50), Some(5)).await;
    assert_eq!((&beyond.metadata["lines_read"], &beyond.metadata["summary"]), (&json!(0), &json!("Read a.ts")));
}

#[tokio::test]
async fn a_range_works_for_text_of_any_extension() {
    let world = World::with("a.csv", THREE);
    assert_eq!(range(&world, "a.csv", Some(1), Some(1)).await.model.as_text(), "     2→second");
}

#[tokio::test]
async fn whole_numbers_may_be_written_as_floats() {
    let world = World::with("a.txt", THREE);
    let read = world.call("Read", json!({ "file_path": world.path("a.txt"), "offset": 1.0, "limit": 1.0 })).await;
    assert_eq!(read.unwrap().model.as_text(), "     2→second");
}

#[tokio::test]
async fn binary_extensions_are_read_as_base64() {
    for name in ["p.png", "P.PNG", "p.pdf", "p.woff2"] {
        let world = World::with(name, [0, 1, 2, 0xff]);
        for read in [world.read(name).await, encoded(&world, name, "base64").await] {
            assert_eq!(read.model.as_text(), "AAEC/w==", "{name}");
            assert_eq!((&read.metadata["is_binary"], &read.metadata["encoding"]), (&json!(true), &json!("base64")));
        }
    }
}

#[tokio::test]
async fn the_encoding_is_honoured_for_every_file() {
    let world = World::with("a.bin", b"AB\xE9");
    let read = encoded(&world, "a.bin", "binary").await;
    assert_eq!((read.model.as_text(), read.metadata.get("is_binary")), ("ABé", None));
    let world = World::with("a.ts", "AB");
    assert_eq!(encoded(&world, "a.ts", "base64").await.model.as_text(), "QUI=");
}

#[tokio::test]
async fn unknown_files_are_text_unless_they_hold_nul_bytes() {
    let world = World::with("a.dat", "plain\n");
    assert_eq!(world.read("a.dat").await.model.as_text(), "plain\n");
    fs::write(world.root.join("a.dat"), b"\x7fELF\0\0").unwrap();
    let read = world.read("a.dat").await;
    assert_eq!((read.model.as_text(), &read.metadata["is_binary"]), ("f0VMRgAA", &json!(true)));
}

#[tokio::test]
async fn text_in_another_encoding_is_shown_and_marked() {
    let world = World::with("a.ini", b"caf\xE9 = 1\n");
    let read = world.read("a.ini").await;
    assert_eq!((read.model.as_text(), &read.metadata["encoding_lossy"]), ("caf\u{fffd} = 1\n", &json!(true)));
}

/// RD03.
#[tokio::test]
async fn utf16_with_a_mark_is_decoded() {
    for order in [text::Utf16::Little, text::Utf16::Big] {
        let world = World::with("a.txt", order.encode("héllo\r\nwörld\r\n"));
        let read = world.read("a.txt").await;
        assert_eq!(read.model.as_text(), "héllo\r\nwörld\r\n");
        assert_eq!(read.metadata["encoding"], order.name());
        let line = range(&world, "a.txt", Some(1), Some(1)).await;
        assert_eq!((line.model.as_text(), &line.metadata["total_lines"]), ("     2→wörld\r", &json!(3)));
        assert_eq!(line.metadata["encoding"], order.name());
    }
}

/// RD05.
#[tokio::test]
async fn a_character_at_the_edge_of_a_sample_stays_whole() {
    for n in [511usize, 999, 1023, 4095, 8191, 65_535, 262_143] {
        for (back, character) in [(0, "ç"), (0, "🙂"), (1, "🙂"), (2, "🙂"), (3, "🙂")] {
            let text = format!("{}{character}\nx\n", "a".repeat(n - back));
            let world = World::with("sample", &text);
            assert_eq!(world.read("sample").await.model.as_text(), text);
            let last = range(&world, "sample", Some(1), Some(1)).await;
            assert_eq!(last.model.as_text(), "     2→x");
            assert_eq!(last.metadata.get("encoding_lossy"), None);
        }
    }
}

/// RD07.
#[tokio::test]
async fn a_file_that_is_too_large_names_what_works_and_it_does() {
    let world = World::with("big.log", "0123456789abcde\n".repeat(700_000));
    let failure =
        refused(world.call("Read", json!({ "file_path": world.path("big.log") })).await, ToolErrorType::ExecutionError);
    assert_eq!(failure.error.code.as_deref(), Some("FILE_TOO_LARGE"));
    assert!(failure.model.as_text().contains("use offset and limit"), "{failure:?}");
    let read = range(&world, "big.log", Some(0), Some(10_000)).await;
    assert_eq!(read.metadata["total_lines"], 700_001);
    let deep = range(&world, "big.log", Some(699_999), Some(1)).await;
    assert_eq!(deep.model.as_text(), "700000→0123456789abcde");
}

#[tokio::test]
async fn no_result_is_larger_than_the_pipeline_takes() {
    const MIB: usize = 1 << 20;
    for (name, size, encoding, fits) in [
        ("a.txt", 10 * MIB, "utf8", true),
        ("a.txt", 10 * MIB + 1, "utf8", false),
        ("a.png", 15 * MIB / 2, "utf8", true),
        ("a.png", 8 * MIB, "utf8", false),
        ("a.txt", 5 * MIB, "binary", true),
        ("a.txt", 6 * MIB, "binary", false),
        ("lossy", 4 * MIB, "utf8", false),
    ] {
        let byte = if name == "a.txt" && encoding == "utf8" { b'a' } else { 0xFF };
        let world = World::with(name, vec![byte; size]);
        let read = world.call("Read", json!({ "file_path": world.path(name), "encoding": encoding })).await;
        match read {
            Ok(read) => assert!(fits && read.model.as_text().len() <= 10 * MIB, "{name} {size}"),
            Err(failure) => assert!(!fits && failure.error.code.as_deref() == Some("FILE_TOO_LARGE"), "{failure:?}"),
        }
    }
}

#[tokio::test]
async fn missing_files_and_directories_are_told_apart() {
    let world = World::new();
    fs::create_dir(world.root.join("sub")).unwrap();
    let path = world.path("absent.txt");
    let failure = refused(world.call("Read", json!({ "file_path": &path })).await, ToolErrorType::PermissionDenied);
    assert!(failure.model.as_text().starts_with(&format!("Unable to resolve filesystem path \"{path}\": ENOENT")));
    for path in [world.path("sub"), world.path("")] {
        let failure = refused(world.call("Read", json!({ "file_path": &path })).await, ToolErrorType::ExecutionError);
        let path = path.trim_end_matches('/');
        assert_eq!(failure.model.as_text(), format!("Cannot read a directory: {path}"));
        assert_eq!(failure.error.message, "Target is a directory, not a file");
    }
}

#[tokio::test]
async fn reading_without_a_session_works_and_leaves_no_record() {
    let mut world = World::with("a.txt", "x");
    let session = world.session.take();
    world.read("a.txt").await;
    world.session = session;
    refused(world.edit("a.txt", "x", "y").await, ToolErrorType::ValidationError);
}
