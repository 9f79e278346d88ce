use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::*;

/// WR06: what was approved is swapped for a link before it runs.
#[tokio::test]
async fn a_link_swapped_in_after_approval_is_not_followed() {
    for tool in ["Read", "Edit", "Write"] {
        let world = World::with("f", "old");
        let secret = world.base.join("secret");
        fs::write(&secret, "TOPSECRET old").unwrap();
        world.read("f").await;
        let mut arguments =
            json!({ "file_path": world.path("f"), "content": "new", "old_string": "old", "new_string": "new" });
        fill_defaults(tool, &mut arguments);
        let prepared = world.prepare(tool, arguments).await.unwrap();
        fs::remove_file(world.root.join("f")).unwrap();
        symlink(&secret, world.root.join("f")).unwrap();
        let outcome = world.execute(tool, prepared).await;
        assert_eq!(outcome.error().unwrap().kind, ToolErrorType::PermissionDenied, "{tool}");
        assert!(!outcome.model().as_text().contains("TOPSECRET"));
        assert_eq!(fs::read(&secret).unwrap(), b"TOPSECRET old");
        assert_eq!(world.names(), ["f"]);
    }
}

#[tokio::test]
async fn a_directory_swapped_for_a_link_after_approval_is_not_entered() {
    for name in ["sub/f", "sub/new", "sub/deep/new"] {
        let world = World::new();
        let outside = world.base.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::create_dir(world.root.join("sub")).unwrap();
        let mut arguments = json!({ "file_path": world.path(name), "content": "new" });
        fill_defaults("Write", &mut arguments);
        let prepared = world.prepare("Write", arguments).await.unwrap();
        fs::remove_dir(world.root.join("sub")).unwrap();
        symlink(&outside, world.root.join("sub")).unwrap();
        let outcome = world.execute("Write", prepared).await;
        assert_eq!(outcome.error().unwrap().kind, ToolErrorType::PermissionDenied, "{name}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_path_that_was_never_prepared_is_checked_all_the_same() {
    let world = World::new();
    let secret = world.base.join("secret");
    fs::write(&secret, "TOPSECRET").unwrap();
    for path in [secret.to_str().unwrap().to_owned(), format!("{}/../secret", world.root.display())] {
        let object = json!({ "file_path": path, "encoding": "utf8" }).as_object().unwrap().clone();
        let prepared = Prepared {
            arguments: Arguments::from_object(object),
            behavior: find("Read").spec().behavior,
            subject: crate::contract::Subject::default(),
        };
        let outcome = world.execute("Read", prepared).await;
        assert_eq!(outcome.error().unwrap().kind, ToolErrorType::PermissionDenied, "{path}");
    }
}

/// RD08.
#[tokio::test]
async fn what_is_no_regular_file_fails_at_once() {
    let world = World::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, world.root.join("pipe"), 0o600.into()).unwrap();
    let _listener = UnixListener::bind(world.root.join("socket")).unwrap();
    for (name, kind) in [("pipe", "FIFO"), ("socket", "socket")] {
        for tool in ["Read", "Edit", "Write"] {
            let arguments =
                json!({ "file_path": world.path(name), "old_string": "a", "new_string": "b", "content": "c" });
            let failure = refused(world.call(tool, arguments).await, ToolErrorType::ExecutionError);
            assert_eq!(failure.error.message, format!("Target is a {kind}, not a regular file"), "{tool}");
        }
    }
    assert_eq!(world.names(), ["pipe", "socket"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn devices_are_refused_and_files_of_proc_are_read() {
    let mut world = World::new();
    world.root = PathBuf::from("/dev");
    let failure = refused(world.call("Read", json!({ "file_path": "/dev/zero" })).await, ToolErrorType::ExecutionError);
    assert_eq!(failure.model.as_text(), "Cannot read a character device: /dev/zero");
    world.root = PathBuf::from("/proc");
    let read = world.call("Read", json!({ "file_path": "/proc/self/status" })).await.unwrap();
    assert!(read.model.as_text().starts_with("Name:"));
    assert_eq!(read.metadata["file_size"], 0);
}
