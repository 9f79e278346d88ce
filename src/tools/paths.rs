//! Which paths a call may touch: every path is made canonical and must lie inside one of the authorised roots.
//!
//! All functions here look at the file system and block; call them on the blocking pool. They say what a path means
//! *now*. A tool that opens the file later must not trust the answer alone: it opens the file relative to its root
//! (`tools::file`), so that a link that was swapped in meanwhile cannot lead outside.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::contract::{ContextSnapshot, ToolError, ToolErrorType, ToolFailure};

#[cfg(test)]
mod tests;

/// What a missing target means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    Refuse,
    /// It is about to be created: its nearest existing ancestor is resolved instead.
    Allow,
}

/// The authorised roots of a context, canonical, and its working directory.
///
/// Invariant: there is at least one root, and every root is absolute and free of symbolic links.
#[derive(Debug, Clone)]
pub struct Roots {
    roots: Vec<PathBuf>,
    cwd: Option<PathBuf>,
}

impl Roots {
    /// Takes the roots of a snapshot.
    ///
    /// # Errors
    /// `permission_denied`: there is no root, or one of them cannot be resolved. One bad root refuses everything, so
    /// that a typing error in a list of roots is not mistaken for a smaller workspace.
    pub fn from_snapshot(snapshot: &ContextSnapshot) -> Result<Self, ToolFailure> {
        if snapshot.filesystem_roots.is_empty() {
            return Err(denied("No filesystem access in current context"));
        }
        let roots = snapshot.filesystem_roots.iter().map(|root| canonical_root(root)).collect::<Result<_, _>>()?;
        Ok(Self { roots, cwd: snapshot.cwd.clone() })
    }

    /// The canonical roots, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(PathBuf::as_path)
    }

    /// The root that holds a canonical path, and the rest of the path below it. The longest root wins.
    pub fn locate<'a>(&'a self, canonical: &'a Path) -> Option<(&'a Path, &'a Path)> {
        self.roots
            .iter()
            .filter_map(|root| canonical.strip_prefix(root).ok().map(|rest| (root.as_path(), rest)))
            .max_by_key(|(root, _)| root.as_os_str().len())
    }

    /// Whether a canonical path equals a root or lies below one, segment by segment.
    pub fn contains(&self, canonical: &Path) -> bool {
        self.locate(canonical).is_some()
    }

    /// The canonical form of an absolute path inside the roots. `.` and `..` are resolved by text first, then links.
    ///
    /// # Errors
    /// `permission_denied`: the path is relative, cannot be resolved, hangs on a dangling link, or lies outside.
    pub fn resolve(&self, path: &str, missing: Missing) -> Result<PathBuf, ToolFailure> {
        if !Path::new(path).is_absolute() {
            return Err(denied(format!("Relative filesystem path requires a working directory: {path}")));
        }
        self.resolve_absolute(path, Path::new(path), missing)
    }

    /// Like [`Roots::resolve`], but a relative path starts at the working directory of the context.
    ///
    /// # Errors
    /// As [`Roots::resolve`], and `permission_denied` for a relative path where there is no working directory.
    pub fn resolve_relative(&self, path: &str, missing: Missing) -> Result<PathBuf, ToolFailure> {
        match &self.cwd {
            Some(cwd) if cwd.is_absolute() => self.resolve_absolute(path, &cwd.join(path), missing),
            _ => self.resolve(path, missing),
        }
    }

    fn resolve_absolute(&self, given: &str, path: &Path, missing: Missing) -> Result<PathBuf, ToolFailure> {
        if given.contains('\0') {
            let shown = given.replace('\0', "\\0");
            return Err(denied(format!("Unable to resolve filesystem path \"{shown}\": it contains a NUL byte")));
        }
        let unresolved = |error: &io::Error| {
            denied(format!("Unable to resolve filesystem path \"{given}\": {}", describe_io(error, "realpath", path)))
        };
        let path = &normalize(path);
        let canonical = match path.canonicalize() {
            Ok(canonical) => simplify(canonical),
            Err(error) if error.kind() == io::ErrorKind::NotFound && missing == Missing::Allow => {
                match canonical_missing(path) {
                    Ok(Some(canonical)) => canonical,
                    Ok(None) => {
                        let text = format!("Filesystem path contains an unresolved symbolic link: {given}");
                        return Err(denied(text));
                    }
                    Err(error) => return Err(unresolved(&error)),
                }
            }
            Err(error) => return Err(unresolved(&error)),
        };
        if self.contains(&canonical) {
            Ok(canonical)
        } else {
            Err(denied(format!("Filesystem path is outside authorized roots: {given}")))
        }
    }
}

/// A `permission_denied` failure with the same text for the model and for programs.
pub fn denied(text: impl Into<String>) -> ToolFailure {
    ToolError::new(ToolErrorType::PermissionDenied, text).into()
}

/// A system error the way Node words it: `ENOENT: no such file or directory, open '/path'`.
pub fn describe_io(error: &io::Error, operation: &str, path: &Path) -> String {
    let path = path.display();
    match errno_name(error) {
        Some((name, text)) => format!("{name}: {text}, {operation} '{path}'"),
        None => format!("{error}, {operation} '{path}'"),
    }
}

/// Symbolic name of a system error, for instance `ENOENT`; `None` for those nobody can act on.
pub fn io_code(error: &io::Error) -> Option<&'static str> {
    errno_name(error).map(|(name, _)| name)
}

/// Symbolic name and text of the errors a caller can act on.
fn errno_name(error: &io::Error) -> Option<(&'static str, &'static str)> {
    use io::ErrorKind as Kind;
    Some(match error.kind() {
        Kind::NotFound => ("ENOENT", "no such file or directory"),
        Kind::PermissionDenied => match error.raw_os_error() {
            Some(1) => ("EPERM", "operation not permitted"),
            _ => ("EACCES", "permission denied"),
        },
        Kind::AlreadyExists => ("EEXIST", "file already exists"),
        Kind::NotADirectory => ("ENOTDIR", "not a directory"),
        Kind::IsADirectory => ("EISDIR", "illegal operation on a directory"),
        Kind::ReadOnlyFilesystem => ("EROFS", "read-only file system"),
        Kind::StorageFull => ("ENOSPC", "no space left on device"),
        Kind::QuotaExceeded => ("EDQUOT", "disk quota exceeded"),
        Kind::FileTooLarge => ("EFBIG", "file too large"),
        Kind::InvalidFilename => ("ENAMETOOLONG", "name too long"),
        Kind::ResourceBusy => ("EBUSY", "resource busy or locked"),
        Kind::ExecutableFileBusy => ("ETXTBSY", "text file is busy"),
        _ => return errno_by_number(error),
    })
}

#[cfg(unix)]
fn errno_by_number(error: &io::Error) -> Option<(&'static str, &'static str)> {
    use rustix::io::Errno;
    Some(match Errno::from_io_error(error)? {
        Errno::LOOP => ("ELOOP", "too many symbolic links encountered"),
        Errno::MFILE => ("EMFILE", "too many open files"),
        Errno::NFILE => ("ENFILE", "file table overflow"),
        Errno::NXIO => ("ENXIO", "no such device or address"),
        Errno::IO => ("EIO", "i/o error"),
        _ => return None,
    })
}

#[cfg(not(unix))]
fn errno_by_number(_: &io::Error) -> Option<(&'static str, &'static str)> {
    None
}

fn canonical_root(root: &Path) -> Result<PathBuf, ToolFailure> {
    let unresolved =
        |cause: String| denied(format!("Unable to resolve filesystem root \"{}\": {cause}", root.display()));
    // A relative root would mean the working directory of the host process, which belongs to nobody.
    if !root.is_absolute() {
        return Err(unresolved("a root must be absolute".to_owned()));
    }
    let canonical = root.canonicalize().map_err(|error| unresolved(describe_io(&error, "realpath", root)))?;
    if !canonical.is_dir() {
        return Err(unresolved("a root must be a directory".to_owned()));
    }
    Ok(simplify(canonical))
}

/// Resolves `.` and `..` by text, as `path.resolve` of Node does.
fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // Above the top there is nothing: `/..` is `/`.
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Canonical form of a path that does not exist: its nearest existing ancestor made canonical, plus the missing rest.
/// `None` means that a dangling link stands in the way; where it would lead is not known, so it is not followed.
fn canonical_missing(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut missing = Vec::new();
    let mut current = path;
    loop {
        match current.symlink_metadata() {
            Ok(meta) => {
                return match current.canonicalize() {
                    Ok(base) => {
                        let mut canonical = simplify(base);
                        canonical.extend(missing.iter().rev());
                        Ok(Some(canonical))
                    }
                    Err(error) if meta.is_symlink() && error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                };
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (Some(parent), Some(name)) = (current.parent(), current.file_name()) else { return Err(error) };
                missing.push(name);
                current = parent;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(not(windows))]
fn simplify(path: PathBuf) -> PathBuf {
    path
}

/// Drops the `\\?\` that Windows puts before canonical drive paths, so that they equal what people write.
#[cfg(windows)]
fn simplify(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(rest) if rest.as_bytes().get(1) == Some(&b':') && rest.len() < 260 => PathBuf::from(rest),
        _ => path,
    }
}
