//! A file named by a handle of its directory, so that authorisation holds at use and not only when it was checked.
//!
//! Opening a [`Place`] walks from an authorised root down to the parent directory without following any link. What is
//! done afterwards happens relative to that directory handle: a link that somebody swaps in between the check and the
//! use is noticed ([`PlaceError::Moved`]) and never followed. Nothing here blocks on a FIFO, a device or a socket.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(not(unix))]
mod portable;
#[cfg(test)]
mod tests;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use portable::{Place, prepare_space, stat_of};
#[cfg(unix)]
pub use unix::{Place, prepare_space, stat_of};

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The path no longer leads where it led when it was authorised: a link stands in the way, or it left the roots.
    #[error("the path changed after it was authorized")]
    Moved,
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Whether missing parent directories are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    /// They must exist.
    Existing,
    /// They are made, with the permissions the process's umask leaves of 0755.
    Create,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Something else, by its name: reading it could block or have effects.
    Special(&'static str),
}

/// Facts about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Device.
    pub device: i128,
    /// Inode; 0 where there is none.
    pub inode: i128,
    /// Bytes.
    pub size: u64,
    /// Modification time, nanoseconds since the Unix epoch.
    pub modified_ns: i128,
    /// Change time, nanoseconds since the Unix epoch; 0 where there is none.
    pub changed_ns: i128,
    /// Permission bits.
    pub mode: u32,
    /// Owner and group.
    pub owner: (u32, u32),
    /// Number of names.
    pub links: u64,
}

impl Stat {
    /// Modification time.
    pub fn modified(&self) -> SystemTime {
        let ns = |ns: i128| Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        if self.modified_ns >= 0 { UNIX_EPOCH + ns(self.modified_ns) } else { UNIX_EPOCH - ns(-self.modified_ns) }
    }

    /// Whether `other` describes the same state of the same file. The change time is left out: it moves with a chmod
    /// or another hard link, which change no content.
    pub fn same_state(&self, other: &Self) -> bool {
        (self.device, self.inode, self.size, self.modified_ns)
            == (other.device, other.inode, other.size, other.modified_ns)
    }
}

/// What a replacement could not keep of the original.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Adopted {
    /// The new file belongs to another user or group.
    pub ownership_changed: bool,
}
