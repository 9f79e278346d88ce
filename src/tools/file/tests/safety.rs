use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::operation::{Action, Opened, Problem};
use super::place::{Parents, Place};
use super::*;
use crate::tools::paths::Roots;

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

/// WR04. The test runs itself again on a file system of one mebibyte, where the system lets it mount one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_leaves_the_old_bytes_and_no_temporary_file() {
    const NAME: &str = "tools::file::tests::safety::a_full_disk_leaves_the_old_bytes_and_no_temporary_file";
    let world = World::new();
    let disk = rustix::fs::statvfs(&world.root).unwrap();
    if disk.f_blocks * disk.f_frsize > 4 << 20 {
        let script = r#"mount -t tmpfs -o size=1m none "$1" && TMPDIR="$1" exec "$2" --exact "$3""#;
        let status = std::process::Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
            .args([world.root.as_path(), &std::env::current_exe().unwrap(), Path::new(NAME)])
            .stdout(std::process::Stdio::null())
            .status();
        // 101 is a failed test; anything else that is no success is a system that mounts nothing for us.
        assert_ne!(status.ok().and_then(|status| status.code()), Some(101));
        return;
    }
    let old = "x".repeat(100 * 1024);
    for links in [1, 2] {
        fs::write(world.root.join("f"), &old).unwrap();
        if links == 2 {
            fs::hard_link(world.root.join("f"), world.root.join("g")).unwrap();
        }
        fs::write(world.root.join("ballast"), vec![0; (1 << 20) - (150 + 16) * 1024]).unwrap();
        let names = world.names();
        world.read("f").await;
        let write = world.write("f", &"y".repeat(2 << 20)).await;
        let edit = world.edit_all("f", &old, &"z".repeat(600 * 1024)).await;
        for outcome in [write, edit] {
            let failure = refused(outcome, ToolErrorType::ExecutionError);
            assert_eq!(failure.error.code.as_deref(), Some("ENOSPC"), "{failure:?}");
        }
        assert_eq!(world.bytes("f"), old.as_bytes());
        assert_eq!(world.names(), names);
        // The failed attempts changed nothing, so the file is as it was read.
        world.edit_all("f", &old, "small").await.unwrap();
        assert_eq!(world.bytes("f"), b"small");
    }
}

fn place(world: &World, name: &str) -> Place {
    let roots = Roots::from_snapshot(&world.snapshot()).unwrap();
    operation::find(&roots, &world.root.join(name), Parents::Existing).unwrap()
}

fn replace(world: &World, place: &Place, opened: &Opened) -> Result<operation::Written, Problem> {
    operation::replace(Action::Edit, place, opened, None, b"mine", &world.cancel)
}

#[test]
fn a_change_between_the_guard_and_the_replacement_is_noticed() {
    let stale = |outcome: Result<operation::Written, Problem>| match outcome {
        Err(Problem::Told(failure)) => assert_eq!(failure.error.code.as_deref(), Some("FILE_STALE")),
        other => panic!("{other:?}"),
    };
    for links in [1, 2] {
        let world = World::with("f", "old");
        if links == 2 {
            fs::hard_link(world.root.join("f"), world.base.join("other name")).unwrap();
        }
        let place = place(&world, "f");
        let opened = operation::open(&place).unwrap();
        fs::write(world.root.join("f"), "theirs").unwrap();
        stale(replace(&world, &place, &opened));
        assert_eq!((world.bytes("f"), world.names()), (b"theirs".to_vec(), vec!["f".to_owned()]));
    }
    let world = World::with("f", "old");
    let gone = place(&world, "f");
    let opened = operation::open(&gone).unwrap();
    fs::remove_file(world.root.join("f")).unwrap();
    assert!(replace(&world, &gone, &opened).is_err());
    assert!(world.names().is_empty());
    fs::write(world.root.join("f"), "theirs").unwrap();
    stale(operation::create(Action::Write, &gone, b"mine", &world.cancel));
    assert_eq!((world.bytes("f"), world.names()), (b"theirs".to_vec(), vec!["f".to_owned()]));
}

#[test]
fn a_link_swapped_in_between_the_guard_and_the_replacement_is_not_followed() {
    let world = World::with("f", "old");
    let secret = world.base.join("secret");
    fs::write(&secret, "secret").unwrap();
    let place = place(&world, "f");
    let opened = operation::open(&place).unwrap();
    fs::remove_file(world.root.join("f")).unwrap();
    symlink(&secret, world.root.join("f")).unwrap();
    assert!(matches!(replace(&world, &place, &opened), Err(Problem::Moved)));
    assert_eq!(fs::read(&secret).unwrap(), b"secret");
    assert_eq!(world.names(), ["f"]);
}

#[test]
fn a_cancelled_replacement_leaves_the_old_bytes_and_no_temporary_file() {
    let world = World::with("f", "old");
    let place = place(&world, "f");
    let opened = operation::open(&place).unwrap();
    world.cancel.cancel(CancelReason::Deadline);
    assert!(matches!(replace(&world, &place, &opened), Err(Problem::Cancelled)));
    assert_eq!((world.bytes("f"), world.names()), (b"old".to_vec(), vec!["f".to_owned()]));
}

/// Root may write into any directory; everybody else gets the file overwritten where it lies.
#[tokio::test]
async fn a_directory_that_takes_no_new_file_does_not_stop_an_edit() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::with("f", "old");
    world.read("f").await;
    fs::set_permissions(&world.root, fs::Permissions::from_mode(0o555)).unwrap();
    let success = world.edit("f", "old", "new").await;
    fs::set_permissions(&world.root, fs::Permissions::from_mode(0o755)).unwrap();
    let in_place = success.unwrap().metadata.contains_key("written_in_place");
    assert_eq!((world.bytes("f"), in_place), (b"new".to_vec(), !rustix::process::geteuid().is_root()));
}
