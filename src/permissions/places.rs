//! Where the paths of a call lead: one place for one file, however it is spelled.
//!
//! [`locate`] looks at the file system and blocks. It says what a path means *now*, for rules and path safety; a tool
//! that opens files has to make sure by itself that it opens what was judged.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::contract::{ContextSnapshot, Subject};

/// Links that are followed before a path counts as leading nowhere.
const MAX_LINKS: usize = 40;

/// One path of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Place {
    /// The canonical path: absolute, links followed, also where the file does not exist yet.
    pub resolved: String,
    /// Other names of the same place: relative to the working directory, and below roots that are links themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// How the call spelled it, where that is another name: as it came, made absolute, and relative.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
    /// Whether it leads into an authorised root.
    #[serde(skip)]
    pub inside: bool,
    /// Whether it does so by its text too.
    #[serde(skip)]
    pub plainly_inside: bool,
}

impl Place {
    /// A path about which nothing more is known than its text.
    pub fn unresolved(path: &str) -> Self {
        let resolved = by_text(path).unwrap_or_default();
        let mut place = Self { given: vec![normalized(path)], ..Self::default() };
        place.given.extend((resolved != place.given[0] && !resolved.is_empty()).then(|| resolved.clone()));
        // What `..` takes back by text may be another place than where it leads: good enough to refuse, not to allow.
        if !path.split(['/', '\\']).any(|segment| segment == "..") {
            place.resolved = resolved;
        }
        place
    }

    /// The names that mean this place for certain.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.resolved.as_str()].into_iter().chain(self.also.iter().map(String::as_str)).filter(|name| !name.is_empty())
    }
}

/// The places of a call's paths, in their order.
pub fn locate(subject: &Subject, snapshot: &ContextSnapshot) -> Vec<Place> {
    let ground = Ground::of(snapshot);
    let given = subject.given_paths.iter().map(Some).chain(std::iter::repeat(None));
    subject.affected_paths.iter().zip(given).map(|(path, given)| ground.place(path, given, subject.canonical)).collect()
}

/// The places of paths that are canonical and authorised already, without a look at the file system: no other names.
pub fn as_stated(subject: &Subject) -> Vec<Place> {
    let given = subject.given_paths.iter().map(Some).chain(std::iter::repeat(None));
    let place = |(path, given): (&String, Option<&String>)| Place {
        resolved: normalized(path),
        given: given.filter(|given| *given != path).map(|given| normalized(given)).into_iter().collect(),
        also: Vec::new(),
        inside: true,
        plainly_inside: true,
    };
    subject.affected_paths.iter().zip(given).map(place).collect()
}

/// Whether a path begins at the top of a file system. Either separator counts on Windows only.
pub(super) fn is_absolute(path: &str) -> bool {
    let drive = || matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    path.starts_with('/') || (cfg!(windows) && (path.starts_with('\\') || drive()))
}

/// The text of a path with the separators rules are written with.
pub(super) fn normalized(path: &str) -> String {
    if cfg!(windows) { path.strip_prefix(r"\\?\").unwrap_or(path).replace('\\', "/") } else { path.to_owned() }
}

fn shown(path: &Path) -> String {
    normalized(&path.to_string_lossy())
}

/// `.`, `..` and doubled or final slashes taken out by text alone; `None` where nothing is left.
fn by_text(path: &str) -> Option<String> {
    let mut out = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), None | Some(Component::ParentDir)) => {
                out.push("..");
            }
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    (!out.as_os_str().is_empty()).then(|| shown(&out))
}

/// The directories paths are relative to, as they were given and as they are.
struct Ground {
    roots: Vec<(PathBuf, PathBuf)>,
    cwd: Option<(PathBuf, PathBuf)>,
}

impl Ground {
    fn of(snapshot: &ContextSnapshot) -> Self {
        // A root that cannot be resolved, or is no directory, authorises nothing.
        let known = |path: &PathBuf| {
            let real = path.is_absolute().then(|| path.canonicalize().ok()).flatten()?;
            real.is_dir().then(|| (path.clone(), real))
        };
        Self {
            roots: snapshot.filesystem_roots.iter().filter_map(known).collect(),
            cwd: snapshot.cwd.as_ref().and_then(known),
        }
    }

    fn place(&self, path: &str, given: Option<&String>, canonical: bool) -> Place {
        let Some(absolute) = self.absolute(path) else { return Place::unresolved(path) };
        let climbs = absolute.components().any(|part| part == Component::ParentDir);
        let within =
            |path: &Path| self.roots.iter().any(|(named, root)| path.starts_with(named) || path.starts_with(root));
        let by_text = !climbs && within(&absolute);
        let real = if canonical { absolute } else { resolve(&absolute) };
        let resolved = shown(&real);
        let inside = self.roots.iter().any(|(_, root)| real.starts_with(root));
        let mut also = Vec::new();
        if let Some((_, cwd)) = &self.cwd {
            also.extend(relative(&real, cwd));
        }
        for (named, root) in self.roots.iter().chain(&self.cwd) {
            if named != root
                && let Ok(rest) = real.strip_prefix(root)
            {
                let name = shown(&named.join(rest));
                if !also.contains(&name) {
                    also.push(name);
                }
            }
        }
        let mut place = Place { resolved, also, given: Vec::new(), inside, plainly_inside: inside && by_text };
        for text in [Some(path), given.map(String::as_str)].into_iter().flatten() {
            self.spell(text, &mut place);
        }
        place
    }

    fn absolute(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        self.cwd.as_ref().map(|(_, cwd)| cwd.join(path))
    }

    /// Adds the spellings of a given path that are no known names of its place.
    fn spell(&self, text: &str, place: &mut Place) {
        let mut spellings = vec![normalized(text)];
        if let Some(cwd) = &self.cwd {
            for base in [&cwd.0, &cwd.1] {
                let Some(plain) = by_text(&base.join(text).to_string_lossy()) else { continue };
                spellings.extend(relative(Path::new(&plain), base));
                spellings.push(plain);
            }
        } else {
            spellings.extend(by_text(text));
        }
        for spelling in spellings {
            if !place.names().any(|name| name == spelling) && !place.given.contains(&spelling) {
                place.given.push(spelling);
            }
        }
    }
}

/// The way from a directory to a path; `None` where they have nothing in common.
fn relative(path: &Path, from: &Path) -> Option<String> {
    let common = path.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    if common == 0 {
        return None;
    }
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(path.components().skip(common)).collect();
    Some(if way.as_os_str().is_empty() { ".".to_owned() } else { shown(&way) })
}

enum Step {
    Up,
    Into(OsString),
}

/// Follows every link, also a dangling one: writing through it creates what it names.
fn resolve(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut real = PathBuf::new();
    let mut ahead = Vec::new();
    let mut links = 0;
    enter(path, &mut real, &mut ahead);
    while let Some(step) = ahead.pop() {
        match step {
            Step::Up => drop(real.pop()),
            Step::Into(name) => {
                let next = real.join(name);
                match next.read_link() {
                    Ok(target) if links < MAX_LINKS => {
                        links += 1;
                        enter(&target, &mut real, &mut ahead);
                    }
                    _ => real = next,
                }
            }
        }
    }
    real
}

/// Puts the steps of a path in front of those that are left; an absolute one begins at the top again.
fn enter(path: &Path, real: &mut PathBuf, ahead: &mut Vec<Step>) {
    let mut steps = Vec::new();
    for part in path.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => real.push(part),
            Component::CurDir => {}
            Component::ParentDir => steps.push(Step::Up),
            Component::Normal(name) => steps.push(Step::Into(name.to_owned())),
        }
    }
    ahead.extend(steps.into_iter().rev());
}

#[cfg(all(test, unix))]
mod tests {
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
        assert_eq!(place.also[0], "../later/new.json");
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
}
