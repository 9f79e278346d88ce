//! Results too large for the conversation, kept as private files of the Session and removed with it.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use crate::host::clock;

/// Artifacts of one Session. The directory is made on first use, readable by its owner alone, outside of any working
/// tree, and removed when this value is dropped or cleared.
#[derive(Debug, Default)]
pub struct Artifacts {
    directory: Mutex<Option<TempDir>>,
}

impl Artifacts {
    /// Stores one result and gives its path.
    ///
    /// # Errors
    /// The file cannot be written; nothing is left behind.
    pub async fn store(&self, session: &str, tool: &str, text: &str) -> io::Result<PathBuf> {
        let directory = {
            let mut slot = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
            match &*slot {
                Some(directory) => directory.path().to_owned(),
                None => slot.insert(private_directory()?).path().to_owned(),
            }
        };
        let stamp = format!("{}-{}", clock::now_ms(), uuid::Uuid::new_v4().simple());
        let path = directory.join(format!("{}-{}-{stamp}.json", part(session), part(tool)));
        let record = serde_json::json!({
            "toolName": tool,
            "sessionId": session,
            "modelContent": text,
            "createdAt": clock::iso(clock::now()),
        });
        tokio::fs::write(&path, record.to_string()).await?;
        Ok(path)
    }

    /// Removes everything that was stored.
    pub fn clear(&self) {
        drop(self.directory.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn private_directory() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("blade-results-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir()
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

    #[tokio::test]
    async fn artifacts_are_private_and_leave_with_their_session() {
        let artifacts = Artifacts::default();
        let path = artifacts.store("sess/../x", "My Tool", "text").await.unwrap();
        let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(record["modelContent"], "text");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("sess-..-x-My-Tool-"), "{name}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        artifacts.clear();
        assert!(!path.exists());
    }
}
