#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

struct World {
    _dir: TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, outside) = (base.join("root"), base.join("outside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(root.join("a.txt"), "in").unwrap();
        fs::write(outside.join("secret.txt"), "out").unwrap();
        Self { _dir: dir, root, outside }
    }

    fn roots(&self) -> Roots {
        roots_of(&[&self.root]).unwrap()
    }

    fn path(&self, rel: &str) -> String {
        format!("{}/{rel}", self.root.display())
    }
}

fn roots_of(roots: &[&Path]) -> Result<Roots, ToolFailure> {
    Roots::from_snapshot(&ContextSnapshot {
        filesystem_roots: roots.iter().map(|root| root.to_path_buf()).collect(),
        ..ContextSnapshot::default()
    })
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ToolFailure>) -> String {
    let failure = result.unwrap_err();
    assert_eq!(failure.error.kind, ToolErrorType::PermissionDenied);
    assert_eq!(failure.model.as_text(), failure.error.message);
    failure.error.message
}

#[test]
fn a_context_without_roots_has_no_access() {
    assert_eq!(refusal(roots_of(&[])), "No filesystem access in current context");
}

#[test]
fn a_root_that_is_missing_relative_or_a_file_refuses_everything() {
    let world = World::new();
    let gone = world.root.join("gone");
    let text = refusal(roots_of(&[&world.root, &gone]));
    assert!(text.starts_with(&format!("Unable to resolve filesystem root \"{}\": ENOENT", gone.display())), "{text}");
    for relative in ["", ".", "root"] {
        assert!(refusal(roots_of(&[&world.root, Path::new(relative)])).contains("must be absolute"), "{relative:?}");
    }
    assert!(refusal(roots_of(&[&world.root, &world.root.join("a.txt")])).contains("must be a directory"));
}

#[test]
fn existing_paths_inside_become_canonical() {
    let world = World::new();
    let roots = world.roots();
    symlink("a.txt", world.root.join("link.txt")).unwrap();
    for rel in ["a.txt", "link.txt", "./sub/../a.txt", "../root/a.txt", "a.txt/"] {
        assert_eq!(roots.resolve(&world.path(rel), Missing::Refuse).unwrap(), world.root.join("a.txt"), "{rel}");
    }
    assert_eq!(roots.resolve(&world.path(""), Missing::Refuse).unwrap(), world.root);
}

#[test]
fn paths_outside_are_refused_however_they_are_written() {
    let world = World::new();
    let roots = world.roots();
    symlink(world.outside.join("secret.txt"), world.root.join("link.txt")).unwrap();
    symlink(&world.outside, world.root.join("dirlink")).unwrap();
    for rel in ["../outside/secret.txt", "link.txt", "dirlink/secret.txt", "dirlink", "..", "../../../../../etc/passwd"]
    {
        let path = world.path(rel);
        for missing in [Missing::Refuse, Missing::Allow] {
            assert_eq!(
                refusal(roots.resolve(&path, missing)),
                format!("Filesystem path is outside authorized roots: {path}")
            );
        }
    }
    assert!(refusal(roots.resolve(&world.path("dirlink/new.txt"), Missing::Allow)).contains("outside"));
}

#[test]
fn a_sibling_whose_name_starts_like_the_root_is_outside() {
    let world = World::new();
    let sibling = world.root.with_file_name("rootbeer");
    fs::create_dir(&sibling).unwrap();
    assert!(refusal(world.roots().resolve(sibling.to_str().unwrap(), Missing::Refuse)).contains("outside"));
}

#[test]
fn a_missing_target_is_allowed_only_on_request() {
    let world = World::new();
    let path = world.path("new/deep/f.txt");
    let text = refusal(world.roots().resolve(&path, Missing::Refuse));
    assert!(text.starts_with(&format!("Unable to resolve filesystem path \"{path}\": ENOENT")), "{text}");
    assert_eq!(world.roots().resolve(&path, Missing::Allow).unwrap(), world.root.join("new/deep/f.txt"));
}

#[test]
fn a_missing_target_below_an_inner_directory_link_is_named_by_its_real_place() {
    let world = World::new();
    fs::create_dir(world.root.join("real")).unwrap();
    symlink("real", world.root.join("alias")).unwrap();
    let found = world.roots().resolve(&world.path("alias/x/f.txt"), Missing::Allow).unwrap();
    assert_eq!(found, world.root.join("real/x/f.txt"));
}

#[test]
fn dangling_links_and_link_loops_are_refused() {
    let world = World::new();
    symlink(world.outside.join("later"), world.root.join("dangling")).unwrap();
    symlink("loop", world.root.join("loop")).unwrap();
    for rel in ["dangling", "dangling/f.txt"] {
        let text = refusal(world.roots().resolve(&world.path(rel), Missing::Allow));
        assert!(text.contains("contains an unresolved symbolic link"), "{text}");
    }
    assert!(refusal(world.roots().resolve(&world.path("loop"), Missing::Allow)).contains("ELOOP"));
}

#[test]
fn a_file_used_as_a_directory_and_a_nul_byte_are_refused() {
    let world = World::new();
    assert!(refusal(world.roots().resolve(&world.path("a.txt/x"), Missing::Allow)).contains("ENOTDIR"));
    assert!(refusal(world.roots().resolve(&world.path("a\0b"), Missing::Allow)).contains("NUL byte"));
}

#[test]
fn a_root_that_is_a_link_is_reported_by_its_target() {
    let world = World::new();
    let link = world.root.with_file_name("rootlink");
    symlink(&world.root, &link).unwrap();
    let roots = roots_of(&[&link]).unwrap();
    let found = roots.resolve(link.join("a.txt").to_str().unwrap(), Missing::Refuse).unwrap();
    assert_eq!(found, world.root.join("a.txt"));
}

#[test]
fn the_longest_root_locates_a_path() {
    let world = World::new();
    let inner = world.root.join("inner");
    fs::create_dir(&inner).unwrap();
    let roots = roots_of(&[&world.root, &inner]).unwrap();
    let target = inner.join("x/y");
    assert_eq!(roots.locate(&target), Some((inner.as_path(), Path::new("x/y"))));
    assert_eq!(roots.locate(&world.outside), None);
}

#[test]
fn relative_paths_need_a_working_directory() {
    let world = World::new();
    let text = refusal(world.roots().resolve_relative("a.txt", Missing::Refuse));
    assert_eq!(text, "Relative filesystem path requires a working directory: a.txt");
    let roots = Roots::from_snapshot(&ContextSnapshot {
        filesystem_roots: vec![world.root.clone()],
        cwd: Some(world.root.clone()),
        ..ContextSnapshot::default()
    })
    .unwrap();
    assert_eq!(roots.resolve_relative("a.txt", Missing::Refuse).unwrap(), world.root.join("a.txt"));
    assert_eq!(roots.resolve_relative(".", Missing::Refuse).unwrap(), world.root);
    assert!(refusal(roots.resolve_relative("../outside", Missing::Refuse)).contains("outside"));
}
