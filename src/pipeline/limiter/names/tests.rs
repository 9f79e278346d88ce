use std::fs;

use tempfile::TempDir;

use super::*;

/// The name of a path, from the cache where it is there.
async fn name(path: impl AsRef<Path>) -> FileName {
    match Disk.name(path.as_ref()) {
        Answer::Now(name) => name,
        Answer::Later(lookup) => lookup.await,
    }
}

async fn key(path: impl AsRef<Path>) -> OsString {
    name(path).await.key
}

async fn identity(path: impl AsRef<Path>) -> Option<Identity> {
    match Disk.identity(&name(path).await) {
        Answer::Now(identity) => identity,
        Answer::Later(lookup) => lookup.await,
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

#[tokio::test]
async fn a_key_is_the_same_for_every_spelling_and_never_climbs_above_the_root() {
    let (_folder, w) = folder();
    let shown = w.to_str().unwrap();
    let wanted = key(w.join("a")).await;
    for path in [
        format!("/{shown}/a"),
        format!("{shown}/./a"),
        format!("{shown}//a/"),
        format!("{shown}/x/../a"),
        format!("/..{shown}/a"),
    ] {
        assert_eq!(key(&path).await, wanted, "{path}");
    }
    assert_ne!(key(w.join("b")).await, wanted);
    // Without a working directory nothing is inferred from the process.
    assert_eq!(key("x/../a").await, "a");
    assert_ne!(key("a").await, key("b").await);
}

#[cfg(unix)]
#[tokio::test]
async fn links_lead_to_one_key_whether_the_file_is_there_or_not() {
    use std::os::unix::fs::symlink;
    let (_folder, w) = folder();
    fs::create_dir(w.join("real")).unwrap();
    symlink("real", w.join("folder link")).unwrap();
    symlink("../real/there", w.join("real/file link")).unwrap();
    symlink("file link", w.join("real/link of a link")).unwrap();
    symlink("real/not yet/deep/file", w.join("dangling")).unwrap();
    let there = ["real/there", "folder link/there", "real/file link", "folder link/file link", "real/link of a link"];
    // Dangling first, then leading somewhere: the key may not change when the file is made.
    let mut keys = Vec::new();
    for exists in [false, true] {
        for path in there {
            keys.push(key(w.join(path)).await);
        }
        if !exists {
            fs::write(w.join("real/there"), "").unwrap();
        }
    }
    for parents in [false, true] {
        let mut deep = Vec::new();
        for path in ["real/not yet/deep/file", "folder link/not yet/deep/file", "dangling"] {
            deep.push(key(w.join(path)).await);
        }
        assert!(deep.iter().all(|one| *one == deep[0]), "{deep:?}");
        if !parents {
            fs::create_dir_all(w.join("real/not yet/deep")).unwrap();
        }
    }
    assert!(keys.iter().all(|one| *one == keys[0]), "{keys:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn what_cannot_be_resolved_is_named_as_written() {
    use std::os::unix::fs::symlink;
    let (_folder, w) = folder();
    symlink("circle", w.join("circle")).unwrap();
    fs::write(w.join("file"), "").unwrap();
    for path in ["circle", "circle/a", "file/below", "nul\0", &"long".repeat(100)] {
        let first = key(w.join(path)).await;
        assert_eq!(first, key(w.join("x/..").join(path)).await, "{path:?}");
        assert_eq!(identity(w.join(path)).await, None, "{path:?}");
    }
    // Two links that lead to each other for good end as well.
    symlink("b/x", w.join("a")).unwrap();
    symlink("a/x", w.join("b")).unwrap();
    assert_eq!(key(w.join("a")).await, folded(w.join("a").as_os_str()));
}

#[tokio::test]
async fn names_that_some_file_system_takes_for_the_same_have_one_key() {
    let (_folder, w) = folder();
    for same in [
        ["Makefile", "makefile", "MAKEFILE"],
        ["Straße", "STRASSE", "strasse"],
        ["é", "e\u{301}", "É"],
        ["ΣΟΦΟΣ", "σοφος", "σοφος"],
    ] {
        let first = key(w.join(same[0])).await;
        for name in same {
            assert_eq!(key(w.join(name)).await, first, "{name}");
        }
        // The same when the file exists: a key that changes while it is held excludes nobody.
        fs::write(w.join(same[0]), "").unwrap();
        assert_eq!(key(w.join(same[1])).await, first);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn hard_links_are_one_file_and_copies_are_not() {
    let (_folder, w) = folder();
    fs::write(w.join("a"), "text").unwrap();
    fs::hard_link(w.join("a"), w.join("b")).unwrap();
    fs::copy(w.join("a"), w.join("c")).unwrap();
    let a = identity(w.join("a")).await;
    assert!(a.is_some());
    assert_eq!(identity(w.join("b")).await, a);
    assert_ne!(identity(w.join("c")).await, a);
    assert_eq!(identity(w.join("d")).await, None);
    assert_eq!(Blocking.identity(&w.join("a")).ok(), a, "both ways to look say the same");
}

#[cfg(target_os = "linux")]
#[test]
fn what_the_kernel_has_at_hand_needs_no_waiting_and_agrees_with_the_disk() {
    use std::os::unix::fs::symlink;
    let (_folder, w) = folder();
    fs::write(w.join("file"), "").unwrap();
    symlink("file", w.join("link")).unwrap();
    for path in ["file", "link", ".", "missing", "missing/deep"] {
        let path = normalized(&w.join(path));
        let disk = resolved(&Blocking, &path).unwrap();
        match resolved(&Cached, &path) {
            Ok(cached) => assert_eq!(cached, disk),
            // Old kernels and some sandboxes do not answer; asking the disk is what happens then.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{path:?}"),
        }
    }
}
