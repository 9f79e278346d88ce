//! Where the paths of a call lead: one place for one file, however it is spelled.
//!
//! [`locate`] looks at the file system and blocks. It says what a path means *now*, for rules and path safety; a tool
//! that opens files has to make sure by itself that it opens what was judged.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::contract::{ContextSnapshot, Subject};
use crate::host::real_path;

#[cfg(test)]
mod tests;

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
    let real = |absolute: &Path| Some(if subject.canonical { absolute.to_owned() } else { resolve(absolute) });
    subject.affected_paths.iter().zip(given).filter_map(|(path, given)| ground.place(path, given, real)).collect()
}

/// The same where no disk has to be waited for: `None` says that [`locate`] has to.
pub fn locate_now(subject: &Subject, snapshot: &ContextSnapshot) -> Option<Vec<Place>> {
    let known = |path: &PathBuf| match path.is_absolute().then(|| real_path::cached_directory(path)) {
        Some(Ok(real)) => Some(Some((path.clone(), real))),
        Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => None,
        // No directory, or none that can be looked at, authorises nothing.
        _ => Some(None),
    };
    let roots: Vec<_> =
        snapshot.filesystem_roots.iter().map(known).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    let cwd = match &snapshot.cwd {
        // Mostly one of the roots: what is known of it need not be asked again.
        Some(cwd) => match roots.iter().find(|(path, _)| path == cwd) {
            Some(root) => Some(root.clone()),
            None => known(cwd)?,
        },
        None => None,
    };
    let ground = Ground { roots, cwd };
    let given = subject.given_paths.iter().map(Some).chain(std::iter::repeat(None));
    let mut places = subject.affected_paths.iter().zip(given);
    let place = |(path, given): (&String, Option<&String>)| {
        ground.place(
            path,
            given,
            |absolute| if subject.canonical { Some(absolute.to_owned()) } else { resolve_now(absolute) },
        )
    };
    places.by_ref().map(place).collect()
}

/// The canonical form of a path as far as the kernel has it at hand. What `..` climbs out of may be a link, so such a
/// path is followed step by step by [`resolve`].
fn resolve_now(path: &Path) -> Option<PathBuf> {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if climbs { None } else { real_path::resolved(&real_path::Cached, path).ok() }
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

    /// `None` where `real` does not know what a path is called.
    fn place(&self, path: &str, given: Option<&String>, real: impl Fn(&Path) -> Option<PathBuf>) -> Option<Place> {
        let Some(absolute) = self.absolute(path) else { return Some(Place::unresolved(path)) };
        let climbs = absolute.components().any(|part| part == Component::ParentDir);
        let within =
            |path: &Path| self.roots.iter().any(|(named, root)| path.starts_with(named) || path.starts_with(root));
        let by_text = !climbs && within(&absolute);
        let real = real(&absolute)?;
        let resolved = shown(&real);
        let inside = self.roots.iter().any(|(_, root)| real.starts_with(root));
        let mut also = Vec::new();
        if let Some((_, cwd)) = &self.cwd {
            also.extend(below(&real, cwd));
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
        Some(place)
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
                spellings.extend(below(Path::new(&plain), base));
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

/// The way from a directory to a path below it.
fn below(path: &Path, directory: &Path) -> Option<String> {
    let way = path.strip_prefix(directory).ok()?;
    Some(if way.as_os_str().is_empty() { ".".to_owned() } else { shown(way) })
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
