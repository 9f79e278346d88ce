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
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;

use icu_normalizer::ComposingNormalizerBorrowed;
use tokio_util::task::AbortOnDropHandle;

/// Most links that are followed in one path, as in Linux.
const MAX_LINKS: usize = 40;

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

/// A file whatever its name: device and number. Windows has none that holds without keeping the file open, so hard links
/// are two files there.
pub(super) type Identity = (u64, u64);

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

/// Questions to a file system. `WouldBlock` says that the answer has to be waited for.
trait Look {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    fn target(&self, link: &Path) -> io::Result<PathBuf>;
    fn identity(&self, path: &Path) -> io::Result<Identity>;
}

/// The canonical form of a path, whether or not it exists.
fn resolved(look: &impl Look, path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    let mut missing: Vec<OsString> = Vec::new();
    let mut links = 0;
    loop {
        match look.canonical(&at) {
            Ok(mut base) => {
                base.extend(missing.iter().rev());
                return Ok(base);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // A link to what does not exist yet stands for it: whoever writes through the link makes the file.
        match look.target(&at) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                let parent = look.canonical(at.parent().unwrap_or(&at))?;
                at = normalized(&parent.join(target));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
            _ => {
                let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
                    return Err(io::ErrorKind::NotFound.into());
                };
                missing.push(name.to_owned());
                at = parent.to_owned();
            }
        }
    }
}

/// Waits as long as the file system does; for the blocking pool.
struct Blocking;

impl Look for Blocking {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn target(&self, link: &Path) -> io::Result<PathBuf> {
        link.read_link()
    }

    #[cfg(unix)]
    fn identity(&self, path: &Path) -> io::Result<Identity> {
        use std::os::unix::fs::MetadataExt;
        path.metadata().map(|meta| (meta.dev(), meta.ino()))
    }

    #[cfg(not(unix))]
    fn identity(&self, _: &Path) -> io::Result<Identity> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Answers from what the kernel has at hand.
struct Cached;

#[cfg(target_os = "linux")]
mod cached {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{self, AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags};
    use rustix::io::Errno;

    use super::{Cached, Identity, Look};

    /// A handle that only names a file. Kernels and sandboxes without this call answer nothing from the cache.
    fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED).map_err(|error| match error {
            Errno::AGAIN | Errno::NOSYS | Errno::PERM | Errno::INVAL => io::ErrorKind::WouldBlock.into(),
            error => error.into(),
        })
    }

    impl Look for Cached {
        fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
            let file = open(path, OFlags::empty())?;
            let link = fs::readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::with_capacity(256))
                .map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
            let name = link.into_bytes();
            // The kernel writes this behind the name of a file that is gone, and others before what is no path.
            if name.ends_with(b" (deleted)") || !name.starts_with(b"/") {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(std::ffi::OsString::from_vec(name).into())
        }

        fn target(&self, link: &Path) -> io::Result<PathBuf> {
            // Contents of a link may have to be read from the disk; that there is nothing is known.
            open(link, OFlags::NOFOLLOW).and_then(|_| Err(io::ErrorKind::WouldBlock.into()))
        }

        fn identity(&self, path: &Path) -> io::Result<Identity> {
            let file = open(path, OFlags::empty())?;
            let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
            let stat =
                fs::statx(&file, "", flags, StatxFlags::INO).map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
            Ok((fs::makedev(stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino))
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Look for Cached {
    fn canonical(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn target(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn identity(&self, _: &Path) -> io::Result<Identity> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Resolves `.` and `..` by text, as `path.resolve` of Node and the file tools do.
fn normalized(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if whole.file_name().is_some() => {
                whole.pop();
            }
            Component::ParentDir if whole.has_root() => {}
            part => whole.push(part),
        }
    }
    whole
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
