//! The one owner of file access: opening, reading, the guard before writing, and replacing.
//!
//! Invariant: between the guard and the replacement of a file nothing in this process changes it (one lock a file),
//! and a change by another process is noticed right before the new content becomes visible.
//!
//! Everything here blocks; it runs on the blocking pool.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use serde_json::json;

use super::place::{Kind, Parents, Place, PlaceError, Stat, prepare_space, stat_of};
use super::records::{ContentHash, Fingerprint, hash, records};
use crate::contract::{ToolError, ToolErrorType, ToolFailure};
use crate::host::CancelToken;
use crate::tools::paths::{Roots, denied, describe_io, io_code};

/// Bytes read or written between two looks at the cancellation.
pub const CHUNK: usize = 256 * 1024;

/// Least room a read is given.
const LAST_READ: usize = 4096;

/// What a tool is doing, for its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Reading.
    Read,
    /// Editing.
    Edit,
    /// Writing.
    Write,
}

impl Action {
    fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Write => "write",
        }
    }

    fn gerund(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Edit => "editing",
            Self::Write => "writing",
        }
    }
}

/// Why a file could not be used.
#[derive(Debug)]
pub enum Problem {
    /// There is none.
    Missing,
    /// It is a directory.
    Directory,
    /// It is a FIFO, a device or a socket.
    Special(&'static str),
    /// The path does not lead where it led when it was authorised.
    Moved,
    /// It is larger than the tool takes.
    TooLarge {
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
        /// What would work.
        advice: &'static str,
    },
    /// The call was cancelled; nothing was changed.
    Cancelled,
    /// The system refused.
    Io {
        /// What was tried.
        operation: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// Any other failure, ready to be told.
    Told(Box<ToolFailure>),
}

impl From<ToolFailure> for Problem {
    fn from(failure: ToolFailure) -> Self {
        Self::Told(Box::new(failure))
    }
}

impl Problem {
    fn io(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { operation, error }
    }

    fn place(operation: &'static str) -> impl FnOnce(PlaceError) -> Self {
        move |error| match error {
            PlaceError::Moved => Self::Moved,
            PlaceError::Io(error) => Self::Io { operation, error },
        }
    }

    /// The failure to tell.
    pub fn into_failure(self, action: Action, path: &Path) -> ToolFailure {
        let shown = path.display();
        let verb = action.verb();
        let failure = |model: String, message: String, code: &str| {
            ToolFailure::new(model, ToolError::new(ToolErrorType::ExecutionError, message).with_code(code))
        };
        match self {
            Self::Told(failure) => *failure,
            Self::Missing => failure(format!("File not found: {shown}"), format!("File not found: {shown}"), "ENOENT"),
            Self::Directory => failure(
                format!("Cannot {verb} a directory: {shown}"),
                "Target is a directory, not a file".to_owned(),
                "EISDIR",
            ),
            Self::Special(kind) => failure(
                format!("Cannot {verb} a {kind}: {shown}"),
                format!("Target is a {kind}, not a regular file"),
                "NOT_A_REGULAR_FILE",
            ),
            Self::Moved => denied(format!("Filesystem path changed after it was authorized: {shown}")),
            Self::TooLarge { size, limit, advice } => {
                let text =
                    format!("File is too large to {verb}: {shown} has {size} bytes, the limit is {limit}; {advice}");
                let mut told = failure(text.clone(), text, "FILE_TOO_LARGE");
                told.error.details = Some(json!({ "size": size, "limit": limit }));
                told
            }
            Self::Cancelled => ToolFailure::new(
                format!("File {verb} aborted"),
                ToolError::new(ToolErrorType::ExecutionError, "Operation aborted"),
            ),
            Self::Io { operation, error } => {
                let text = describe_io(&error, operation, path);
                let code = io_code(&error).map(str::to_owned);
                let message = format!("File {verb} failed: {text}");
                let mut error = ToolError::new(ToolErrorType::ExecutionError, message.clone())
                    .with_details(json!({ "message": text, "operation": operation }));
                error.code = code;
                ToolFailure::new(message, error)
            }
        }
    }
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub struct Opened {
    file: File,
    /// Facts from before the first byte was read, so that a change during the reading shows up as a change.
    pub stat: Stat,
}

/// Opens a regular file of the roots.
///
/// # Errors
/// It is missing, no regular file, or has moved.
pub fn open(place: &Place) -> Result<Opened, Problem> {
    // Looking before opening: opening some devices has effects.
    check_regular(&place.stat().map_err(Problem::place("lstat"))?.ok_or(Problem::Missing)?)?;
    let file = match place.read() {
        Err(PlaceError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Err(Problem::Missing),
        other => other.map_err(Problem::place("open"))?,
    };
    let stat = stat_of(&file).map_err(Problem::io("fstat"))?;
    check_regular(&stat)?;
    Ok(Opened { file, stat })
}

/// Finds the place of a canonical path.
///
/// # Errors
/// Its directory is missing or has moved.
pub fn find(roots: &Roots, path: &Path, parents: Parents) -> Result<Place, Problem> {
    Place::open(roots, path, parents).map_err(|error| match error {
        PlaceError::Io(error) if error.kind() == io::ErrorKind::IsADirectory => Problem::Directory,
        other => Problem::place(if parents == Parents::Create { "mkdir" } else { "open" })(other),
    })
}

fn check_regular(stat: &Stat) -> Result<(), Problem> {
    match stat.kind {
        Kind::File => Ok(()),
        Kind::Directory => Err(Problem::Directory),
        Kind::Link => Err(Problem::Moved),
        Kind::Special(kind) => Err(Problem::Special(kind)),
    }
}

impl Opened {
    /// Reads on into `buffer`; 0 is the end.
    ///
    /// # Errors
    /// Cancelled, or the system refused.
    pub fn read_some(&mut self, buffer: &mut [u8], cancel: &CancelToken) -> Result<usize, Problem> {
        loop {
            if cancel.is_cancelled() {
                return Err(Problem::Cancelled);
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(Problem::io("read")),
            }
        }
    }

    /// Reads to the end of the file; `bytes` is what was read of it before. Files that say they are empty (as those of
    /// `/proc` do) are read all the same.
    ///
    /// # Errors
    /// It has more than `limit` bytes. Cancelled, or the system refused.
    pub fn read_all(
        &mut self,
        mut bytes: Vec<u8>,
        limit: u64,
        advice: &'static str,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, Problem> {
        let too_large = |size| Problem::TooLarge { size, limit, advice };
        if self.stat.size > limit {
            return Err(too_large(self.stat.size));
        }
        // Room for the last, empty read too, so that a file that keeps its size never makes the buffer grow.
        let expected = usize::try_from(self.stat.size).unwrap_or(0) + LAST_READ;
        bytes.reserve_exact(expected.saturating_sub(bytes.len()));
        loop {
            let end = bytes.len();
            bytes.resize((end + CHUNK).min(bytes.capacity().max(end + LAST_READ)), 0);
            let read = self.read_some(&mut bytes[end..], cancel)?;
            bytes.truncate(end + read);
            if read == 0 {
                return Ok(bytes);
            }
            if bytes.len() as u64 > limit {
                return Err(too_large(bytes.len() as u64));
            }
        }
    }
}

/// Remembers that a Session has seen a file; without a Session there is nobody to remember it for.
pub fn remember(session: Option<&str>, path: &Path, stat: &Stat, hash: Option<ContentHash>) {
    if let Some(session) = session {
        records().store(session, path, Fingerprint { stat: stat.clone(), hash });
    }
}

/// The state in which the Session has seen the file it wants to change.
///
/// # Errors
/// There is no Session, or it has not read the file.
pub fn seen(action: Action, session: Option<&str>, path: &Path) -> Result<Fingerprint, ToolFailure> {
    let Some(session) = session else {
        let error = ToolError::new(ToolErrorType::PermissionDenied, "Session ID required for existing file writes");
        return Err(ToolFailure::from(error).with_metadata(json!({ "requiresRead": true, "requiresSession": true })));
    };
    records().find(session, path).ok_or_else(|| {
        let model = format!("You must use the Read tool before {} this existing file.", action.gerund());
        let message = format!("File not read before {}", action.verb());
        ToolFailure::new(model, ToolError::new(ToolErrorType::ValidationError, message).with_code("FILE_NOT_READ"))
            .with_metadata(json!({ "requiresRead": true }))
    })
}

/// Refuses a file that is not in the state in which it was seen.
///
/// # Errors
/// It has changed.
pub fn check_fresh(action: Action, seen: &Fingerprint, now: &Fingerprint) -> Result<(), ToolFailure> {
    seen.difference(now).map_or(Ok(()), |difference| Err(stale(action, &difference)))
}

fn stale(action: Action, difference: &str) -> ToolFailure {
    let model =
        format!("The file changed since it was read. Read it again before {}.\n\nDetails: {difference}", action.verb());
    let error = ToolError::new(ToolErrorType::ValidationError, "File modified externally")
        .with_code("FILE_STALE")
        .with_details(json!({ "externalModification": difference }));
    ToolFailure::new(model, error)
}

/// Runs `work` while no other call of this process changes the file.
pub fn exclusively<T>(path: &Path, work: impl FnOnce() -> T) -> T {
    static LOCKS: LazyLock<Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>> = LazyLock::new(Mutex::default);
    let lock = {
        let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        match locks.get(path).and_then(Weak::upgrade) {
            Some(lock) => lock,
            None => {
                let lock = Arc::new(Mutex::new(()));
                locks.insert(path.to_owned(), Arc::downgrade(&lock));
                lock
            }
        }
    };
    let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// What a replacement did besides changing the content.
#[derive(Debug)]
pub struct Written {
    /// Facts about the new file.
    pub stat: Stat,
    /// The old file was overwritten where it lies, because it has other names or its directory takes no new file.
    pub in_place: bool,
    /// The new file belongs to another user or group than the old one.
    pub ownership_changed: bool,
}

/// Creates a file that does not exist.
///
/// # Errors
/// Something took the name meanwhile (told as stale). Cancelled, or the system refused. Nothing is left behind.
pub fn create(action: Action, place: &Place, content: &[u8], cancel: &CancelToken) -> Result<Written, Problem> {
    let temporary = place.temporary(false).map_err(Problem::io("open"))?;
    fill(temporary.file(), content, cancel)?;
    let file = temporary.file().try_clone().map_err(Problem::io("dup"))?;
    temporary.claim().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Problem::from(stale(action, "a file of this name was created meanwhile")),
        _ => Problem::Io { operation: "rename", error },
    })?;
    place.sync_directory();
    Ok(Written { stat: stat_of(&file).map_err(Problem::io("fstat"))?, in_place: false, ownership_changed: false })
}

/// Replaces the content of a file that was opened and checked before. `old` is its content where it is known; it is
/// put back should overwriting in place fail half-way.
///
/// # Errors
/// The file changed since it was opened. Cancelled, or the system refused. The old content is intact.
pub fn replace(
    action: Action,
    place: &Place,
    original: &Opened,
    old: Option<&[u8]>,
    content: &[u8],
    cancel: &CancelToken,
) -> Result<Written, Problem> {
    place.check_writable().map_err(Problem::io("open"))?;
    // A rename would leave the other names of the file with the old content.
    if original.stat.links > 1 {
        return overwrite(action, place, original, old, content, cancel);
    }
    let refused = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices
        )
    };
    let temporary = match place.temporary(true) {
        Ok(temporary) => temporary,
        Err(error) if refused(&error) => return overwrite(action, place, original, old, content, cancel),
        Err(error) => return Err(Problem::Io { operation: "open", error }),
    };
    fill(temporary.file(), content, cancel)?;
    let adopted = temporary.adopt(&original.file, &original.stat).map_err(Problem::io("fchmod"))?;
    let file = temporary.file().try_clone().map_err(Problem::io("dup"))?;
    check_unchanged(action, place, &original.stat)?;
    match temporary.replace() {
        Ok(()) => {}
        // The name itself is a mount point, as a single file given to a container is.
        Err(error) if refused(&error) => return overwrite(action, place, original, old, content, cancel),
        Err(error) => return Err(Problem::Io { operation: "rename", error }),
    }
    place.sync_directory();
    let stat = stat_of(&file).map_err(Problem::io("fstat"))?;
    Ok(Written { stat, in_place: false, ownership_changed: adopted.ownership_changed })
}

fn check_unchanged(action: Action, place: &Place, stat: &Stat) -> Result<(), Problem> {
    let now = place.stat().map_err(Problem::place("lstat"))?;
    match now {
        Some(now) if now.kind == Kind::Link => Err(Problem::Moved),
        Some(now) if now.same_state(stat) => Ok(()),
        Some(_) => Err(stale(action, "it changed while the new content was written").into()),
        None => Err(stale(action, "it was deleted").into()),
    }
}

/// Writes everything and makes it durable.
fn fill(mut file: &File, content: &[u8], cancel: &CancelToken) -> Result<(), Problem> {
    for chunk in content.chunks(CHUNK) {
        if cancel.is_cancelled() {
            return Err(Problem::Cancelled);
        }
        file.write_all(chunk).map_err(Problem::io("write"))?;
    }
    file.sync_all().map_err(Problem::io("fsync"))?;
    if cancel.is_cancelled() { Err(Problem::Cancelled) } else { Ok(()) }
}

/// Overwrites the file where it lies. Space is reserved first; what fails all the same is undone.
fn overwrite(
    action: Action,
    place: &Place,
    original: &Opened,
    old: Option<&[u8]>,
    content: &[u8],
    cancel: &CancelToken,
) -> Result<Written, Problem> {
    let file = place.write().map_err(Problem::place("open"))?;
    let stat = stat_of(&file).map_err(Problem::io("fstat"))?;
    if !stat.same_state(&original.stat) {
        return Err(stale(action, "it changed while the new content was written").into());
    }
    if cancel.is_cancelled() {
        return Err(Problem::Cancelled);
    }
    let size = content.len() as u64;
    if size > stat.size
        && let Err(error) = prepare_space(&file, size)
    {
        // Give back what was reserved beyond the end. With its old time the file is again what the Session has read.
        let _ = file.set_len(stat.size).and_then(|()| file.set_modified(stat.modified()));
        return Err(Problem::Io { operation: "write", error });
    }
    // Not cancellable from here: half a file is worse than a late answer.
    let put = |bytes: &[u8]| -> io::Result<()> {
        let mut file = &file;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_all()
    };
    if let Err(error) = put(content) {
        if let Some(old) = old {
            let _ = put(old).and_then(|()| file.set_modified(stat.modified()));
        }
        return Err(Problem::Io { operation: "write", error });
    }
    let stat = stat_of(&file).map_err(Problem::io("fstat"))?;
    Ok(Written { stat, in_place: true, ownership_changed: false })
}

/// Remembers a file that this process has just written.
pub fn remember_written(session: Option<&str>, path: &Path, written: &Written, content: &[u8]) {
    remember(session, path, &written.stat, Some(hash(content)));
}
