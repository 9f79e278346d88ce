#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct World {
    _dir: tempfile::TempDir,
    base: PathBuf,
}

/// `real/` holds `a.json`, links to it and out of it; `w` is a link to `real`.
fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("real/sub")).unwrap();
    fs::write(base.join("real/a.json"), "").unwrap();
    symlink("real", base.join("w")).unwrap();
    symlink("a.json", base.join("real/pub.json")).unwrap();
    symlink("../later/new.json", base.join("real/dangling.json")).unwrap();
    symlink("loop", base.join("real/loop")).unwrap();
    World { _dir: dir, base }
}

impl World {
    fn snapshot(&self) -> ContextSnapshot {
        let root = self.base.join("w");
        ContextSnapshot { filesystem_roots: vec![root.clone()], cwd: Some(root), ..ContextSnapshot::default() }
    }

    fn place(&self, path: &str) -> Place {
        let subject = Subject { affected_paths: vec![path.to_owned()], ..Subject::default() };
        locate(&subject, &self.snapshot()).remove(0)
    }

    fn at(&self, path: &str) -> String {
        shown(&self.base.join(path))
    }
}

#[test]
fn every_spelling_of_a_file_is_one_place() {
    let world = world();
    let expected = (world.at("real/a.json"), vec!["a.json".to_owned(), world.at("w/a.json")]);
    for path in ["a.json", "./a.json", "sub/../a.json", ".//a.json", "pub.json", "sub/../sub/../pub.json"] {
        for path in [path.to_owned(), world.at(&format!("w/{path}")), world.at(&format!("real/{path}"))] {
            let place = world.place(&path);
            assert_eq!((place.resolved.clone(), place.also.clone()), expected, "{path}");
            assert!(place.inside);
            assert!(place.given.contains(&path) || place.names().any(|name| name == path), "{path}");
        }
    }
    let place = world.place("pub.json");
    assert!(place.given.contains(&"pub.json".to_owned()) && place.given.contains(&world.at("w/pub.json")));
}

#[test]
fn what_does_not_exist_yet_is_named_by_where_it_would_be() {
    let world = world();
    assert_eq!(world.place("sub/new/x").resolved, world.at("real/sub/new/x"));
    let place = world.place("dangling.json");
    assert_eq!(place.resolved, world.at("later/new.json"));
    assert!(!place.inside);
    assert!(place.also.is_empty());
    assert!(world.place("loop/x").resolved.ends_with("real/loop/x"));
}

#[test]
fn roots_that_are_missing_empty_or_files_authorise_nothing() {
    let world = world();
    let roots = ["", ".", "gone", "real/a.json"].map(|root| match root {
        "" | "." => PathBuf::from(root),
        root => world.base.join(root),
    });
    let snapshot = ContextSnapshot { filesystem_roots: roots.to_vec(), ..ContextSnapshot::default() };
    for path in ["gone/x", "real/a.json", "real/sub/x"] {
        let subject = Subject { affected_paths: vec![world.at(path)], ..Subject::default() };
        assert!(!locate(&subject, &snapshot)[0].inside, "{path}");
    }
}

#[test]
fn a_path_of_which_only_the_text_is_known_has_no_certain_name_behind_dots() {
    assert_eq!(Place::unresolved("./a//b/").resolved, "a/b");
    let place = Place::unresolved("/w/a/../.env");
    assert_eq!(place.names().count(), 0);
    assert!(place.given.contains(&"/w/.env".to_owned()));
}
