//! Places where there are no directory handles: the path is resolved again at each use, which narrows the gap between
//! check and use but cannot close it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{Adopted, Kind, Parents, PlaceError, Stat};
use crate::tools::paths::{Missing, Roots};

/// Attempts to find a free temporary name; names are 64 random bits, so a second attempt is already unlikely.
const NAME_ATTEMPTS: usize = 16;

/// A path in an authorised root.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    parent: PathBuf,
}

impl Place {
    /// Checks that a canonical path still lies in its root.
    ///
    /// # Errors
    /// [`PlaceError::Moved`]: it does not. The directory cannot be opened.
    pub fn open(roots: &Roots, canonical: &Path, parents: Parents) -> Result<Self, PlaceError> {
        let in_its_root = || match canonical.to_str().map(|text| roots.resolve(text, Missing::Allow)) {
            Some(Ok(real)) if real == canonical => Ok(()),
            _ => Err(PlaceError::Moved),
        };
        in_its_root()?;
        if canonical.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        let parent = canonical.parent().ok_or(PlaceError::Moved)?;
        if parents == Parents::Create {
            fs::create_dir_all(parent)?;
            in_its_root()?;
        } else {
            parent.metadata()?;
        }
        Ok(Self { path: canonical.to_owned(), parent: parent.to_owned() })
    }

    /// Facts about the name itself; `None` where there is nothing.
    ///
    /// # Errors
    /// The system refused.
    pub fn stat(&self) -> Result<Option<Stat>, PlaceError> {
        match fs::symlink_metadata(&self.path) {
            Ok(meta) => Ok(Some(convert(&meta))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// [`PlaceError::Moved`]: it is a link now. The system refused.
    pub fn read(&self) -> Result<File, PlaceError> {
        self.open_with(OpenOptions::new().read(true))
    }

    /// Opens the existing file for writing, without emptying it.
    ///
    /// # Errors
    /// As [`Place::read`].
    pub fn write(&self) -> Result<File, PlaceError> {
        self.open_with(OpenOptions::new().write(true))
    }

    fn open_with(&self, options: &OpenOptions) -> Result<File, PlaceError> {
        if fs::symlink_metadata(&self.path)?.is_symlink() {
            return Err(PlaceError::Moved);
        }
        Ok(options.open(&self.path)?)
    }

    /// Whether this process may write the file.
    ///
    /// # Errors
    /// It may not.
    pub fn check_writable(&self) -> io::Result<()> {
        match fs::metadata(&self.path)?.permissions().readonly() {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => Ok(()),
        }
    }

    /// Makes an empty temporary file beside the place; it is removed on drop.
    ///
    /// # Errors
    /// The system refused.
    pub fn temporary(&self, _private: bool) -> io::Result<Temporary<'_>> {
        for _ in 0..NAME_ATTEMPTS {
            let path = self.parent.join(format!(".blade-{:016x}.tmp", fastrand::u64(..)));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Temporary { place: self, path, file, armed: true }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }

    /// Makes the directory's entries durable, where the system can.
    pub fn sync_directory(&self) {}
}

/// A file that is not visible under its final name yet.
#[derive(Debug)]
pub struct Temporary<'a> {
    place: &'a Place,
    path: PathBuf,
    file: File,
    armed: bool,
}

impl Temporary<'_> {
    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Takes over the permissions of the original.
    ///
    /// # Errors
    /// The permissions could not be set.
    pub fn adopt(&self, original: &File, _stat: &Stat) -> io::Result<Adopted> {
        self.file.set_permissions(original.metadata()?.permissions())?;
        Ok(Adopted::default())
    }

    /// Takes the place's name, in the stead of what had it.
    ///
    /// # Errors
    /// The system refused; the temporary file is gone.
    pub fn replace(mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.place.path)?;
        self.armed = false;
        Ok(())
    }

    /// Takes the place's name if nothing has it.
    ///
    /// # Errors
    /// `AlreadyExists`: something has it. The system refused. The temporary file is gone.
    pub fn claim(self) -> io::Result<()> {
        // A hard link refuses to take an existing name; the temporary name goes with the drop.
        match fs::hard_link(&self.path, &self.place.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Err(_) if fs::symlink_metadata(&self.place.path).is_err() => self.replace(),
            Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Ok(()) => Ok(()),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.armed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Facts about an open file.
///
/// # Errors
/// The system refused.
pub fn stat_of(file: &File) -> io::Result<Stat> {
    Ok(convert(&file.metadata()?))
}

/// Nothing to reserve here.
///
/// # Errors
/// Never.
pub fn prepare_space(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

fn convert(meta: &fs::Metadata) -> Stat {
    let kind = match meta.file_type() {
        kind if kind.is_symlink() => Kind::Link,
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_file() => Kind::File,
        _ => Kind::Special("special file"),
    };
    let modified = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Stat {
        kind,
        device: 0,
        inode: 0,
        size: meta.len(),
        modified_ns: i128::try_from(modified.as_nanos()).unwrap_or(i128::MAX),
        changed_ns: 0,
        mode: 0o644,
        owner: (0, 0),
        links: 1,
    }
}
