//! Places on Unix: directory handles, `openat2` where the kernel has it, a walk without links elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{self, Access, AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::{Adopted, Kind, Parents, PlaceError, Stat};
use crate::tools::paths::Roots;

/// A handle that only names a directory, where the system has such a thing.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Flags of every open of a file: never wait for the other end of a FIFO, never get a controlling terminal, never
/// follow a link.
const CAREFUL: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Attempts to find a free temporary name; names are 64 random bits, so a second attempt is already unlikely.
const NAME_ATTEMPTS: usize = 16;

/// A name in a directory that is held open.
#[derive(Debug)]
pub struct Place {
    dir: OwnedFd,
    name: OsString,
}

impl Place {
    /// Opens the directory of a canonical path, starting at the root that holds it.
    ///
    /// # Errors
    /// [`PlaceError::Moved`]: a link stands in the way, or the path is in no root. The directory cannot be opened.
    pub fn open(roots: &Roots, canonical: &Path, parents: Parents) -> Result<Self, PlaceError> {
        let (root, below) = roots.locate(canonical).ok_or(PlaceError::Moved)?;
        // The path may be a root itself; then the directory of the root is where the walk starts.
        let (start, below) = match (below.file_name(), root.parent(), root.file_name()) {
            (Some(_), ..) => (root, below),
            (None, Some(parent), Some(name)) => (parent, Path::new(name)),
            (None, ..) => return Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
        };
        let (Some(name), Some(parent)) = (below.file_name(), below.parent()) else { return Err(PlaceError::Moved) };
        let start = fs::open(start, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).map_err(moved_or_io)?;
        Ok(Self { dir: descend(start, parent, parents)?, name: name.to_owned() })
    }

    /// Facts about the name itself; `None` where there is nothing.
    ///
    /// # Errors
    /// The system refused.
    pub fn stat(&self) -> Result<Option<Stat>, PlaceError> {
        match fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(convert(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// [`PlaceError::Moved`]: it is a link now. The system refused.
    pub fn read(&self) -> Result<File, PlaceError> {
        self.open_with(OFlags::RDONLY)
    }

    /// Opens the existing file for writing, without emptying it.
    ///
    /// # Errors
    /// As [`Place::read`].
    pub fn write(&self) -> Result<File, PlaceError> {
        self.open_with(OFlags::WRONLY)
    }

    fn open_with(&self, flags: OFlags) -> Result<File, PlaceError> {
        fs::openat(&self.dir, &self.name, flags | CAREFUL, Mode::empty()).map(File::from).map_err(moved_or_io)
    }

    /// Whether this process may write the file. A replacement by rename asks only the directory, so it would pass
    /// over the protection of a read-only file.
    ///
    /// # Errors
    /// It may not.
    pub fn check_writable(&self) -> io::Result<()> {
        match fs::accessat(&self.dir, &self.name, Access::WRITE_OK, AtFlags::EACCESS) {
            // Some systems know only the check for the real user.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                Ok(fs::accessat(&self.dir, &self.name, Access::WRITE_OK, AtFlags::empty())?)
            }
            other => Ok(other?),
        }
    }

    /// Makes an empty temporary file beside the place: private when it will take over the permissions of an original,
    /// with the permissions of any new file otherwise. It is removed on drop.
    ///
    /// # Errors
    /// The system refused.
    pub fn temporary(&self, private: bool) -> io::Result<Temporary<'_>> {
        let mode = Mode::from_raw_mode(if private { 0o600 } else { 0o666 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..NAME_ATTEMPTS {
            let name = format!(".blade-{:016x}.tmp", fastrand::u64(..));
            match fs::openat(&self.dir, name.as_str(), flags, mode) {
                Ok(file) => return Ok(Temporary { place: self, name, file: File::from(file), armed: true }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Makes the directory's entries durable, where the system can.
    pub fn sync_directory(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(dir) = fs::openat(&self.dir, ".", flags, Mode::empty()) {
            // Some file systems cannot sync a directory; the file itself is already safe.
            let _ = fs::fsync(dir);
        }
    }
}

/// A file that is not visible under its final name yet.
#[derive(Debug)]
pub struct Temporary<'a> {
    place: &'a Place,
    name: String,
    file: File,
    armed: bool,
}

impl Temporary<'_> {
    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Takes over owner, permissions and extended attributes of the original.
    ///
    /// # Errors
    /// The permissions could not be set.
    pub fn adopt(&self, original: &File, stat: &Stat) -> io::Result<Adopted> {
        let mut adopted = Adopted::default();
        let mut mode = stat.mode;
        let own = stat_of(&self.file)?;
        if own.owner != stat.owner {
            let (user, group) = (Uid::from_raw(stat.owner.0), Gid::from_raw(stat.owner.1));
            if fs::fchown(&self.file, Some(user), Some(group)).is_err() {
                // The group alone can often be kept. Set-id bits would lend the new owner's rights; they go.
                let _ = fs::fchown(&self.file, None, Some(group));
                adopted.ownership_changed = true;
                mode &= 0o1777;
            }
        }
        copy_attributes(original, &self.file);
        // After the owner (changing it clears set-id bits) and the attributes (an ACL rewrites the group bits).
        fs::fchmod(&self.file, Mode::from_raw_mode(mode as _))?;
        Ok(adopted)
    }

    /// Takes the place's name, in the stead of what had it.
    ///
    /// # Errors
    /// The system refused; the temporary file is gone.
    pub fn replace(mut self) -> io::Result<()> {
        fs::renameat(&self.place.dir, self.name.as_str(), &self.place.dir, &self.place.name)?;
        self.armed = false;
        Ok(())
    }

    /// Takes the place's name if nothing has it.
    ///
    /// # Errors
    /// `AlreadyExists`: something has it. The system refused. The temporary file is gone.
    pub fn claim(mut self) -> io::Result<()> {
        let (dir, name) = (&self.place.dir, &self.place.name);
        match exclusive_rename(dir.as_fd(), &self.name, name) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            other => {
                other?;
                self.armed = false;
                return Ok(());
            }
        }
        match fs::linkat(dir, self.name.as_str(), dir, name, AtFlags::empty()) {
            // File systems without hard links: look, then rename.
            Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) => {
                if fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                fs::renameat(dir, self.name.as_str(), dir, name)?;
                self.armed = false;
                Ok(())
            }
            other => Ok(other?),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.armed {
            let _ = fs::unlinkat(&self.place.dir, self.name.as_str(), AtFlags::empty());
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exclusive_rename(dir: rustix::fd::BorrowedFd<'_>, from: &str, to: &OsStr) -> rustix::io::Result<()> {
    fs::renameat_with(dir, from, dir, to, fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exclusive_rename(_: rustix::fd::BorrowedFd<'_>, _: &str, _: &OsStr) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

/// Facts about an open file.
///
/// # Errors
/// The system refused.
pub fn stat_of(file: &File) -> io::Result<Stat> {
    Ok(convert(&fs::fstat(file)?))
}

/// Reserves blocks for a file that is about to grow, so that a full disk is noticed before the first byte changes.
///
/// # Errors
/// There is no space. A file system that cannot reserve is no error.
pub fn prepare_space(file: &File, size: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) =
        fs::fallocate(file, fs::FallocateFlags::KEEP_SIZE, 0, size)
    {
        return Err(error.into());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, size);
    Ok(())
}

/// Walks down to `below` (names only) without following a link.
fn descend(start: OwnedFd, below: &Path, parents: Parents) -> Result<OwnedFd, PlaceError> {
    if below.as_os_str().is_empty() {
        return Ok(start);
    }
    #[cfg(target_os = "linux")]
    match beneath(&start, below) {
        Ok(dir) => return Ok(dir),
        Err(Errno::LOOP | Errno::XDEV) => return Err(PlaceError::Moved),
        // Missing parents, an old kernel, or a sandbox that knows no openat2: the walk decides.
        Err(_) => {}
    }
    walk(start, below, parents)
}

#[cfg(target_os = "linux")]
fn beneath(start: &OwnedFd, below: &Path) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..NAME_ATTEMPTS {
        match fs::openat2(start, below, DIRECTORY, Mode::empty(), resolve) {
            // A rename somewhere on the way made the kernel unsure; it asks to try again.
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

pub(super) fn walk(start: OwnedFd, below: &Path, parents: Parents) -> Result<OwnedFd, PlaceError> {
    let mut dir = start;
    for part in below.components() {
        let Component::Normal(name) = part else { return Err(PlaceError::Moved) };
        let open = |dir: &OwnedFd| fs::openat(dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        let next = match open(&dir) {
            Err(Errno::NOENT) if parents == Parents::Create => {
                match fs::mkdirat(&dir, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => open(&dir),
                    Err(error) => Err(error),
                }
            }
            other => other,
        };
        dir = next.map_err(|error| match fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if convert(&stat).kind == Kind::Link => PlaceError::Moved,
            _ => moved_or_io(error),
        })?;
    }
    Ok(dir)
}

fn moved_or_io(error: Errno) -> PlaceError {
    match error {
        Errno::LOOP => PlaceError::Moved,
        other => PlaceError::Io(other.into()),
    }
}

#[expect(clippy::unnecessary_cast, reason = "the widths and signs of these fields differ between systems")]
fn convert(stat: &fs::Stat) -> Stat {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Special("FIFO"),
        FileType::Socket => Kind::Special("socket"),
        FileType::CharacterDevice => Kind::Special("character device"),
        FileType::BlockDevice => Kind::Special("block device"),
        _ => Kind::Special("special file"),
    };
    let ns = |seconds: i128, nanos: i128| seconds * 1_000_000_000 + nanos;
    Stat {
        kind,
        device: stat.st_dev as i128,
        inode: stat.st_ino as i128,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ns: ns(stat.st_mtime as i128, stat.st_mtime_nsec as i128),
        changed_ns: ns(stat.st_ctime as i128, stat.st_ctime_nsec as i128),
        mode: stat.st_mode as u32 & 0o7777,
        owner: (stat.st_uid as u32, stat.st_gid as u32),
        links: stat.st_nlink as u64,
    }
}

/// Copies extended attributes as far as the system allows: some names belong to the kernel or to root.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn copy_attributes(from: &File, to: &File) {
    use std::os::unix::ffi::OsStrExt;

    let Ok(size) = fs::flistxattr_query(from) else { return };
    let mut names = vec![0u8; size];
    let Ok(size) = fs::flistxattr(from, &mut names[..]) else { return };
    // Capabilities were granted to the old content; the kernel drops them on a write too.
    let kept = |name: &&[u8]| !name.is_empty() && *name != b"security.capability";
    for name in names[..size].split(|byte| *byte == 0).filter(kept) {
        let name = OsStr::from_bytes(name);
        let Ok(size) = fs::fgetxattr_query(from, name) else { continue };
        let mut value = vec![0u8; size];
        if let Ok(size) = fs::fgetxattr(from, name, &mut value[..]) {
            let _ = fs::fsetxattr(to, name, &value[..size], fs::XattrFlags::empty());
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn copy_attributes(_: &File, _: &File) {}
