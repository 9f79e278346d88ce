//! What a search leaves out without being told: directories of dependencies and build output, logs, lock files.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::{DirEntry, IncrementalIgnore, WalkBuilder};

/// Directories no search enters, at any depth below its root.
pub(super) const DIRECTORIES: [&str; 16] = [
    "node_modules",
    ".git",
    "dist",
    "build",
    "out",
    ".next",
    ".nuxt",
    ".cache",
    ".parcel-cache",
    "coverage",
    ".nyc_output",
    ".idea",
    ".vscode",
    ".vs",
    "bower_components",
    "jspm_packages",
];

/// File names Glob leaves out, at any depth.
const FILES: [&str; 17] = [
    "*.log",
    "npm-debug.log*",
    "yarn-debug.log*",
    "pnpm-debug.log*",
    "*.lock",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "*.tmp",
    "*.temp",
    "*.swp",
    "*.bak",
    "*~",
    ".DS_Store",
    "Thumbs.db",
    "*.pid",
    "*.seed",
];

static FILE_SET: LazyLock<GlobSet> = LazyLock::new(|| {
    let mut set = GlobSetBuilder::new();
    for pattern in FILES {
        if let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() {
            set.add(glob);
        }
    }
    set.build().unwrap_or_default()
});

/// The excluded directories, less those the caller named: who asks for `node_modules/x/*.d.ts` wants it.
#[derive(Debug, Clone)]
pub(super) struct Excluded {
    names: HashSet<&'static str>,
}

impl Excluded {
    /// All but the directories that `glob` names as a whole path segment. `.git` stays out even then.
    pub(super) fn unless_named(glob: Option<&str>) -> Self {
        let named: HashSet<&str> =
            glob.filter(|g| !g.starts_with('!')).into_iter().flat_map(|g| g.split('/')).collect();
        Self { names: DIRECTORIES.into_iter().filter(|name| *name == ".git" || !named.contains(name)).collect() }
    }

    /// Whether a directory of this name is left out.
    pub(super) fn contains(&self, name: &OsStr) -> bool {
        name.to_str().is_some_and(|name| self.names.contains(name))
    }
}

/// Whether Glob leaves out files of this name. A pattern's last segment can be asked about too: `*.log` is.
pub(super) fn is_excluded_file(name: &OsStr) -> bool {
    FILE_SET.is_match(Path::new(name))
}

/// Whether `dir` lies in a git work tree.
pub(super) fn in_git_repository(dir: &Path) -> bool {
    dir.ancestors().any(|dir| dir.join(".git").exists())
}

/// Ignore rules as git has them. Inside a repository: all of them, up to its top and no further. Outside of one: every
/// `.gitignore` from `root` downwards, none above. The user's global excludes do not count: results must not depend
/// on who runs the search.
pub(super) fn git_rules(root: &Path) -> WalkBuilder {
    let in_repository = in_git_repository(root);
    let mut builder = WalkBuilder::new(root);
    builder
        .current_dir(root)
        .hidden(false)
        .ignore(false)
        .git_global(false)
        .git_ignore(true)
        .git_exclude(true)
        .require_git(in_repository)
        .parents(in_repository);
    builder
}

/// Answers whether a `!` rule of an ignore file brings back what the default rules leave out. Ignore files are read on
/// the first question; most searches never ask.
pub(super) struct Restored {
    root: PathBuf,
    matcher: Mutex<Option<IncrementalIgnore>>,
}

impl Restored {
    pub(super) fn new(root: &Path) -> Self {
        let matcher = git_rules(root).build_matchers().into_iter().next();
        Self { root: root.to_owned(), matcher: Mutex::new(matcher) }
    }

    /// Whether the ignore files name this entry in a `!` rule.
    pub(super) fn contains(&self, entry: &DirEntry, is_dir: bool) -> bool {
        let Ok(relative) = entry.path().strip_prefix(&self.root) else { return false };
        // A poisoned lock means that another thread panicked here; its panic is reported, this answer is not used.
        let Ok(mut matcher) = self.matcher.lock() else { return false };
        matcher.as_mut().is_some_and(|matcher| matcher.matched(relative, is_dir).is_whitelist())
    }
}
