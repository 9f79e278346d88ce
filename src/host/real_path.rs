//! What a path is called canonically, with and without waiting for the file system.
//!
//! Linux answers from its cache or says at once that it cannot (`RESOLVE_CACHED`), so that a look that needs no disk can
//! be made on any thread; everything else belongs on the blocking pool.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Most links that are followed in one path, as in Linux.
const MAX_LINKS: usize = 40;

/// A file whatever its name: device and number. Windows has none that holds without keeping the file open, so hard links
/// are two files there.
pub type Identity = (u64, u64);

/// Questions to a file system. `WouldBlock` says that the answer has to be waited for.
pub trait Look {
    /// The canonical form of a path that exists.
    ///
    /// # Errors
    /// As the file system says.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// What a link contains.
    ///
    /// # Errors
    /// It is no link, or as the file system says.
    fn target(&self, link: &Path) -> io::Result<PathBuf>;
    /// The file behind a path.
    ///
    /// # Errors
    /// There is none, or it has no identity.
    fn identity(&self, path: &Path) -> io::Result<Identity>;
}

/// The canonical form of a path, whether or not it exists.
///
/// # Errors
/// `WouldBlock`, or what keeps an ancestor from being looked at.
pub fn resolved(look: &impl Look, path: &Path) -> io::Result<PathBuf> {
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
pub struct Blocking;

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
pub struct Cached;

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

    /// The canonical form of a directory.
    pub(super) fn directory(path: &Path) -> io::Result<PathBuf> {
        named(&open(path, OFlags::DIRECTORY)?)
    }

    fn named(file: &OwnedFd) -> io::Result<PathBuf> {
        let link = fs::readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::with_capacity(256))
            .map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        let name = link.into_bytes();
        // The kernel writes this behind the name of a file that is gone, and others before what is no path.
        if name.ends_with(b" (deleted)") || !name.starts_with(b"/") {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(std::ffi::OsString::from_vec(name).into())
    }

    impl Look for Cached {
        fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
            named(&open(path, OFlags::empty())?)
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

/// The canonical form of a directory, as far as the kernel has it at hand.
///
/// # Errors
/// `WouldBlock`: the answer has to be waited for. Anything else: it is no directory that can be looked at.
pub fn cached_directory(path: &Path) -> io::Result<PathBuf> {
    #[cfg(target_os = "linux")]
    return cached::directory(path);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Resolves `.` and `..` by text, as `path.resolve` of Node and the file tools do.
pub fn normalized(path: &Path) -> PathBuf {
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
