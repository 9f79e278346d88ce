//! Results too large for the conversation, kept as private files of the Session and removed with it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use tracing::Span;

use crate::error::{Error, Result};
use crate::host::{clock, env};

/// Where artifacts are kept, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ArtifactOptions {
    /// An absolute path. Each Session makes a directory of its own in it. The system's temporary directory unless given.
    pub directory: Option<PathBuf>,
    /// Whether they stay when the Session ends.
    pub keep: bool,
}

impl ArtifactOptions {
    /// Reads what the application gave; the defaults where it gave nothing.
    ///
    /// # Errors
    /// `CONFIG_ERROR`: a field is unknown or of the wrong type, or the directory depends on the working directory of the
    /// process.
    pub fn parse(given: Option<Value>) -> Result<Self> {
        let Some(given) = given else { return Ok(Self::default()) };
        let options: Self =
            serde_json::from_value(given).map_err(|error| Error::config(format!("artifacts: {error}")))?;
        match &options.directory {
            Some(path) if !path.is_absolute() => {
                let path = path.display().to_string();
                Err(Error::config(format!("artifacts.directory must be an absolute path, got {path:?}")))
            }
            _ => Ok(options),
        }
    }
}

/// Artifacts of one Session. Their directory is made on first use, readable by its owner alone, never in a working tree
/// unless the application named one, and removed with this value at the latest.
#[derive(Debug)]
pub struct Artifacts {
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    base: PathBuf,
    keep: bool,
    made: Mutex<Option<TempDir>>,
}

impl Default for Artifacts {
    fn default() -> Self {
        Self::new(ArtifactOptions::default())
    }
}

impl Artifacts {
    /// Nothing is made yet.
    ///
    /// Contract: where no directory is given the environment is read, see [`env::temporary_directory`].
    pub fn new(options: ArtifactOptions) -> Self {
        let ArtifactOptions { directory, keep } = options;
        let base = directory.unwrap_or_else(env::temporary_directory);
        Self { place: Arc::new(Place { base, keep, made: Mutex::default() }) }
    }

    /// Stores one result and gives its path.
    ///
    /// # Errors
    /// The file cannot be written; nothing of it is left behind.
    pub async fn store(&self, session: &str, tool: &str, text: &str) -> io::Result<PathBuf> {
        let (session, tool) = (session.to_owned(), tool.to_owned());
        let record = serde_json::json!({
            "toolName": tool,
            "sessionId": session,
            "modelContent": text,
            "createdAt": clock::iso(clock::now()),
        })
        .to_string();
        let (place, span) = (Arc::clone(&self.place), Span::current());
        let write = move || span.in_scope(|| place.write(&part(&session), &part(&tool), record.as_bytes()));
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }

    /// Whether nothing is there to be removed.
    pub fn is_empty(&self) -> bool {
        self.place.lock().is_none()
    }

    /// Removes everything that was stored, unless it is kept.
    pub async fn clear(&self) {
        let (made, keep) = (self.place.lock().take(), self.place.keep);
        let Some(made) = made.filter(|_| !keep) else { return };
        let removed = tokio::task::spawn_blocking(move || if made.path().exists() { made.close() } else { Ok(()) });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(%error, "artifacts could not be removed");
        }
    }
}

impl Place {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TempDir>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, session: &str, tool: &str, record: &[u8]) -> io::Result<PathBuf> {
        let directory = {
            let mut made = self.lock();
            match &*made {
                Some(directory) => directory.path().to_owned(),
                None => made.insert(self.make(session)?).path().to_owned(),
            }
        };
        let stamp = format!("{}-{}", clock::now_ms(), uuid::Uuid::new_v4().simple());
        let path = directory.join(format!("{session}-{tool}-{stamp}.json"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        if let Err(error) = file.write_all(record) {
            drop(file);
            // Half an artifact would be taken for a whole one.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(path)
    }

    /// The name has a random part: nobody else can have made the directory before.
    fn make(&self, session: &str) -> io::Result<TempDir> {
        private_directories(&self.base)?;
        let prefix = format!("blade-results-{session}-");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).disable_cleanup(self.keep);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        builder.tempdir_in(&self.base)
    }
}

/// Makes what is missing of a path, for its owner alone.
fn private_directories(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// A name that is safe as part of a file name.
fn part(name: &str) -> String {
    let mut safe = String::new();
    for c in name.chars().take(64) {
        let allowed = c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if allowed {
            safe.push(c);
        } else if !safe.ends_with('-') {
            safe.push('-');
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> TempDir {
        tempfile::Builder::new().prefix("artifacts-test-").tempdir().unwrap()
    }

    fn artifacts_in(directory: &Path, keep: bool) -> Artifacts {
        Artifacts::new(ArtifactOptions { directory: Some(directory.to_owned()), keep })
    }

    fn entries(path: &Path) -> usize {
        std::fs::read_dir(path).map_or(0, |entries| entries.count())
    }

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn artifacts_are_private_and_leave_with_their_session() {
        let artifacts = Artifacts::default();
        assert!(artifacts.is_empty());
        let path = artifacts.store("sess/../x", "My Tool", "text").await.unwrap();
        let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let (tool, session, content) = (&record["toolName"], &record["sessionId"], &record["modelContent"]);
        assert_eq!((tool, session, content), (&"My Tool".into(), &"sess/../x".into(), &"text".into()));
        assert!(record["createdAt"].as_str().unwrap().ends_with('Z'));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("sess-..-x-My-Tool-"), "{name}");
        let directory = path.parent().unwrap();
        assert_eq!(directory.parent().unwrap(), env::temporary_directory());
        #[cfg(unix)]
        assert_eq!((mode(directory), mode(&path)), (0o700, 0o600));
        artifacts.clear().await;
        assert!(!directory.exists() && artifacts.is_empty());
    }

    #[tokio::test]
    async fn a_session_makes_its_own_directory_in_the_one_it_is_given() {
        let base = base();
        let inside = base.path().join("made/for/it");
        let (one, other) = (artifacts_in(&inside, false), artifacts_in(&inside, false));
        let first = one.store("s", "T", "1").await.unwrap();
        let second = one.store("s", "T", "2").await.unwrap();
        let third = other.store("s", "T", "3").await.unwrap();
        assert_eq!(first.parent(), second.parent());
        assert_ne!(first.parent(), third.parent());
        assert_eq!(entries(&inside), 2);
        #[cfg(unix)]
        assert_eq!((mode(&inside), mode(first.parent().unwrap())), (0o700, 0o700));
        one.clear().await;
        drop(other);
        assert_eq!(entries(&inside), 0, "cleared or dropped, what was stored is gone");
    }

    #[tokio::test]
    async fn what_is_kept_outlives_its_session() {
        let base = base();
        let artifacts = artifacts_in(base.path(), true);
        let path = artifacts.store("s", "T", "kept").await.unwrap();
        artifacts.clear().await;
        drop(artifacts);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn what_somebody_else_removed_is_no_error() {
        let base = base();
        let artifacts = artifacts_in(base.path(), false);
        let path = artifacts.store("s", "T", "text").await.unwrap();
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        assert_eq!(artifacts.store("s", "T", "text").await.unwrap_err().kind(), io::ErrorKind::NotFound);
        artifacts.clear().await;
        artifacts.store("s", "T", "a new directory").await.unwrap();
    }

    #[tokio::test]
    async fn a_place_that_takes_nothing_is_an_error_that_leaves_nothing() {
        let base = base();
        let file = base.path().join("a-file");
        std::fs::write(&file, "").unwrap();
        let too_long = base.path().join("x".repeat(300));
        for place in [file.clone(), file.join("below"), too_long] {
            let artifacts = artifacts_in(&place, false);
            assert!(artifacts.store("s", "T", "text").await.is_err(), "{}", place.display());
            assert!(artifacts.is_empty());
        }
        assert_eq!(entries(base.path()), 1);
    }

    #[test]
    fn a_directory_that_depends_on_the_process_is_refused() {
        for path in ["results", "./results", "../results", ""] {
            let given = serde_json::json!({ "directory": path });
            let message = ArtifactOptions::parse(Some(given)).unwrap_err().message;
            assert!(message.starts_with("artifacts.directory must be an absolute path"), "{message}");
        }
        assert_eq!(ArtifactOptions::parse(None).unwrap(), ArtifactOptions::default());
    }
}
