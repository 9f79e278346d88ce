//! What a path means to the file locks: one key for every way to write it.
//!
//! The key is the canonical path with its letters folded. Links are followed, those of parent directories too; what does
//! not exist yet is named below its nearest existing ancestor. Case is folded on every file system: whether a directory
//! tells `a` from `A` cannot be seen while it is empty, and a key that becomes another one while it is held excludes
//! nobody. Two files whose names differ in case alone wait for each other; nothing worse comes of it.
//!
//! Looking a path up must not hold up the JavaScript thread or a runtime worker. Linux answers from its cache or says at
//! once that it cannot (`RESOLVE_CACHED`); everything else goes to the blocking pool.

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use icu_normalizer::ComposingNormalizerBorrowed;
use tokio_util::task::AbortOnDropHandle;

pub(super) use crate::host::real_path::Identity;
use crate::host::real_path::{Blocking, Cached, Look, normalized, resolved};

/// A path as the locks know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileName {
    path: PathBuf,
    key: OsString,
}

impl FileName {
    fn new(path: PathBuf) -> Self {
        let key = folded(path.as_os_str());
        Self { path, key }
    }

    /// The name of a path that cannot be looked up.
    pub(super) fn as_written(path: &Path) -> Self {
        Self::new(normalized(path))
    }

    /// Equal for all spellings of the path.
    pub(super) fn key(&self) -> &OsString {
        &self.key
    }
}

/// What may take a moment.
pub(super) enum Answer<T> {
    Now(T),
    Later(Pin<Box<dyn Future<Output = T> + Send>>),
}

/// How paths are looked up.
pub(super) trait Names: Send + Sync {
    /// The canonical name of a path.
    fn name(&self, path: &Path) -> Answer<FileName>;

    /// The file a name stands for now, if there is one.
    fn identity(&self, name: &FileName) -> Answer<Option<Identity>>;
}

/// The file system of this machine.
pub(super) struct Disk;

impl Names for Disk {
    fn name(&self, path: &Path) -> Answer<FileName> {
        // A relative path would mean the working directory of the host process, which belongs to nobody.
        if !path.is_absolute() {
            return Answer::Now(FileName::as_written(path));
        }
        let path = normalized(path);
        match resolved(&Cached, &path) {
            Ok(canonical) => Answer::Now(FileName::new(canonical)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let written = FileName::new(path.clone());
                later(move || resolved(&Blocking, &path).map(FileName::new).ok(), written)
            }
            Err(_) => Answer::Now(FileName::new(path)),
        }
    }

    fn identity(&self, name: &FileName) -> Answer<Option<Identity>> {
        if !name.path.is_absolute() {
            return Answer::Now(None);
        }
        match Cached.identity(&name.path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let path = name.path.clone();
                later(move || Some(Blocking.identity(&path).ok()), None)
            }
            found => Answer::Now(found.ok()),
        }
    }
}

/// Asks on the blocking pool; what was not begun when nobody waits any more is not begun at all.
fn later<T: Send + Clone + 'static>(ask: impl FnOnce() -> Option<T> + Send + 'static, otherwise: T) -> Answer<T> {
    let task = AbortOnDropHandle::new(tokio::task::spawn_blocking(ask));
    Answer::Later(Box::pin(async move { task.await.ok().flatten().unwrap_or(otherwise) }))
}

/// One form of names that some file system takes for the same: letters of any case, composed or not.
fn folded(name: &OsStr) -> OsString {
    let Some(text) = name.to_str() else { return name.to_ascii_lowercase() };
    if text.is_ascii() {
        return text.to_ascii_lowercase().into();
    }
    let composed = ComposingNormalizerBorrowed::new_nfc();
    // By way of the capitals, where `ß` is `SS` and both sigmas are one.
    composed.normalize(&composed.normalize(text).to_uppercase().to_lowercase()).into_owned().into()
}

#[cfg(test)]
mod tests;
