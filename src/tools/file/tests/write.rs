use super::*;

#[tokio::test]
async fn a_new_file_holds_exactly_what_was_given() {
    let mut world = World::new();
    world.session = None;
    let success = world.write("x/y/z.txt", "héllo\r\nno newline").await.unwrap();
    assert_eq!(world.bytes("x/y/z.txt"), "héllo\r\nno newline".as_bytes());
    let told = model(&success);
    assert_eq!((&told["file_path"], &told["size"]), (&json!(world.path("x/y/z.txt")), &json!(18)));
    assert!(told["modified"].as_str().unwrap().ends_with('Z'));
    assert_eq!(fs::read_dir(world.root.join("x/y")).unwrap().count(), 1, "no temporary file stays");
}

#[tokio::test]
async fn metadata_counts_characters_bytes_and_lines() {
    let world = World::new();
    let metadata = world.write("a.txt", "世界🙂\n").await.unwrap().metadata;
    assert_eq!(
        [&metadata["content_size"], &metadata["file_size"], &metadata["created_directories"], &metadata["has_diff"]],
        [&json!(5), &json!(11), &json!(true), &json!(false)]
    );
    assert_eq!(metadata["summary"], "Wrote 2 lines to a.txt");
    assert_eq!((&metadata["oldContent"], &metadata["newContent"]), (&json!(""), &json!("世界🙂\n")));
}

#[tokio::test]
async fn a_missing_parent_is_an_error_when_it_must_not_be_made() {
    let world = World::new();
    let arguments = json!({ "file_path": world.path("x/z.txt"), "content": "n", "create_directories": false });
    let failure = refused(world.call("Write", arguments).await, ToolErrorType::ExecutionError);
    assert!(failure.model.as_text().starts_with("File write failed: ENOENT"), "{failure:?}");
    assert_eq!(failure.error.code.as_deref(), Some("ENOENT"));
    assert!(world.names().is_empty());
}

#[tokio::test]
async fn bytes_can_be_given_as_base64_or_as_characters() {
    let world = World::new();
    for (content, encoding, expected) in [
        ("AAEC", "base64", Ok(&[0u8, 1, 2][..])),
        ("AA E\nC/w", "base64", Ok(&[0, 1, 2, 0xff])),
        ("é", "binary", Ok(&[0xe9])),
        ("A*EC", "base64", Err(())),
        ("世", "binary", Err(())),
    ] {
        let name = format!("{}.bin", world.names().len());
        let arguments = json!({ "file_path": world.path(&name), "content": content, "encoding": encoding });
        match (world.call("Write", arguments).await, expected) {
            (Ok(success), Ok(bytes)) => {
                assert_eq!(world.bytes(&name), bytes);
                assert_eq!(success.metadata["summary"], format!("Wrote {} bytes to {name}", bytes.len()));
                assert_eq!(success.metadata.get("newContent"), None);
            }
            (outcome, Err(())) => {
                refused(outcome, ToolErrorType::ValidationError);
            }
            (outcome, _) => panic!("{outcome:?}"),
        }
    }
}

#[tokio::test]
async fn an_existing_file_must_be_read_first() {
    let mut world = World::with("a.txt", "old");
    for (outcome, word) in
        [(world.write("a.txt", "new").await, "writing"), (world.edit("a.txt", "old", "new").await, "editing")]
    {
        let failure = refused(outcome, ToolErrorType::ValidationError);
        let text = format!("You must use the Read tool before {word} this existing file.");
        assert_eq!(failure.model.as_text(), text);
        assert_eq!(Value::Object(failure.metadata), json!({ "requiresRead": true }));
    }
    let session = world.session.replace(SessionId::generate());
    world.read("a.txt").await;
    world.session = session;
    refused(world.write("a.txt", "new").await, ToolErrorType::ValidationError);
    world.session = None;
    let failure = refused(world.write("a.txt", "new").await, ToolErrorType::PermissionDenied);
    assert_eq!(Value::Object(failure.metadata), json!({ "requiresRead": true, "requiresSession": true }));
    assert_eq!(world.bytes("a.txt"), b"old");
}

#[tokio::test]
async fn a_file_that_was_read_is_overwritten_and_may_then_be_edited() {
    let world = World::with("a.txt", "old");
    world.read("a.txt").await;
    assert_eq!(world.write("a.txt", "old").await.unwrap().metadata["has_diff"], false);
    let metadata = world.write("a.txt", "new text").await.unwrap().metadata;
    assert_eq!((&metadata["has_diff"], &metadata["oldContent"]), (&json!(true), &json!("old")));
    world.edit("a.txt", "new", "newer").await.unwrap();
    assert_eq!(world.bytes("a.txt"), b"newer text");
}

/// WR02.
#[tokio::test]
async fn a_stale_read_never_overwrites() {
    let world = World::with("a.txt", "one");
    let path = world.root.join("a.txt");
    world.read("a.txt").await;
    let modified = path.metadata().unwrap().modified().unwrap();
    fs::write(&path, "two").unwrap();
    set_modified(&path, modified);
    let failure = refused(world.write("a.txt", "mine").await, ToolErrorType::ValidationError);
    let text = failure.model.as_text();
    assert!(text.starts_with("The file changed since it was read. Read it again before write.\n\nDetails: "), "{text}");
    assert_eq!(failure.error.details, Some(json!({ "externalModification": "its content changed" })));
    set_modified(&path, modified + std::time::Duration::from_secs(5));
    refused(world.edit("a.txt", "two", "mine").await, ToolErrorType::ValidationError);
    assert_eq!(world.bytes("a.txt"), b"two");
    world.read("a.txt").await;
    world.write("a.txt", "mine").await.unwrap();
    assert_eq!(world.bytes("a.txt"), b"mine");
}

/// WR01.
#[tokio::test]
async fn a_lost_byte_order_mark_is_told() {
    let world = World::with("a.ps1", b"\xEF\xBB\xBFold\n");
    world.read("a.ps1").await;
    let told = model(&world.write("a.ps1", "\u{feff}hi\n").await.unwrap());
    assert_eq!((told.get("note"), world.bytes("a.ps1")), (None, b"\xEF\xBB\xBFhi\n".to_vec()));
    let told = model(&world.write("a.ps1", "hi\n").await.unwrap());
    assert!(told["note"].as_str().unwrap().contains("byte order mark"));
    assert_eq!(world.bytes("a.ps1"), b"hi\n");
}

#[tokio::test]
async fn a_refused_call_makes_no_directories() {
    let world = World::with("a.txt", "x");
    let arguments = json!({ "file_path": world.path("a.txt/deep/f"), "content": "n" });
    refused(world.call("Write", arguments).await, ToolErrorType::PermissionDenied);
    fs::create_dir(world.root.join("sub")).unwrap();
    refused(world.write("sub", "x").await, ToolErrorType::ExecutionError);
    assert_eq!(world.names(), ["a.txt", "sub"]);
}
