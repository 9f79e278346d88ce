#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;
use crate::contract::ContextSnapshot;
use crate::tools::paths::Roots;

fn world() -> (tempfile::TempDir, PathBuf, PathBuf, Roots) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, outside) = (base.join("root"), base.join("outside"));
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(root.join("sub/f"), "inside").unwrap();
    fs::write(outside.join("f"), "outside").unwrap();
    let snapshot = ContextSnapshot { filesystem_roots: vec![root.clone()], ..ContextSnapshot::default() };
    let roots = Roots::from_snapshot(&snapshot).unwrap();
    (dir, root, outside, roots)
}

fn moved<T: std::fmt::Debug>(result: Result<T, PlaceError>) {
    assert!(matches!(result, Err(PlaceError::Moved)), "{result:?}");
}

#[test]
fn a_parent_directory_swapped_for_a_link_is_not_entered() {
    let (_dir, root, outside, roots) = world();
    fs::rename(root.join("sub"), root.join("old")).unwrap();
    symlink(&outside, root.join("sub")).unwrap();
    for parents in [Parents::Existing, Parents::Create] {
        moved(Place::open(&roots, &root.join("sub/f"), parents));
        moved(Place::open(&roots, &root.join("sub/deep/f"), parents));
    }
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
}

#[test]
fn the_walk_without_openat2_refuses_links_too() {
    let (_dir, root, outside, _) = world();
    symlink(&outside, root.join("link")).unwrap();
    let start = || std::os::fd::OwnedFd::from(fs::File::open(&root).unwrap());
    moved(unix::walk(start(), Path::new("link"), Parents::Create));
    moved(unix::walk(start(), Path::new("link/new"), Parents::Create));
    moved(unix::walk(start(), Path::new("../outside"), Parents::Existing));
    assert!(unix::walk(start(), Path::new("sub"), Parents::Existing).is_ok());
    assert!(unix::walk(start(), Path::new("a/b/c"), Parents::Create).is_ok());
    assert!(root.join("a/b/c").is_dir());
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
}

#[test]
fn a_file_swapped_for_a_link_is_not_opened() {
    let (_dir, root, outside, roots) = world();
    let place = Place::open(&roots, &root.join("sub/f"), Parents::Existing).unwrap();
    fs::remove_file(root.join("sub/f")).unwrap();
    symlink(outside.join("f"), root.join("sub/f")).unwrap();
    moved(place.read());
    moved(place.write());
    assert_eq!(place.stat().unwrap().unwrap().kind, Kind::Link);
}

#[test]
fn a_directory_moved_after_opening_keeps_the_work_where_it_was_authorised() {
    let (_dir, root, outside, roots) = world();
    let place = Place::open(&roots, &root.join("sub/f"), Parents::Existing).unwrap();
    fs::rename(root.join("sub"), root.join("moved")).unwrap();
    symlink(&outside, root.join("sub")).unwrap();
    let temporary = place.temporary(true).unwrap();
    temporary.file().write_all(b"new").unwrap();
    temporary.replace().unwrap();
    assert_eq!(fs::read_to_string(root.join("moved/f")).unwrap(), "new");
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "outside");
}

#[test]
fn claiming_never_overwrites_and_leaves_no_temporary_file() {
    let (_dir, root, _, roots) = world();
    let taken = Place::open(&roots, &root.join("sub/f"), Parents::Existing).unwrap();
    let error = taken.temporary(false).unwrap().claim().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    let free = Place::open(&roots, &root.join("sub/g"), Parents::Existing).unwrap();
    free.temporary(false).unwrap().claim().unwrap();
    drop(free.temporary(false).unwrap());
    let mut names: Vec<_> = fs::read_dir(root.join("sub")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["f", "g"]);
    assert_eq!(fs::read_to_string(root.join("sub/f")).unwrap(), "inside");
}
