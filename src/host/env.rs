//! The process environment, captured at a moment when reading it is safe, and handed in from there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// A copy of the process environment.
#[derive(Debug, Clone, Default)]
pub struct EnvSnapshot {
    vars: Arc<[(OsString, OsString)]>,
}

/// Where the system keeps temporary files.
///
/// Contract: as for [`EnvSnapshot::capture`], which variable says so is read here.
pub fn temporary_directory() -> PathBuf {
    std::env::temp_dir()
}

impl EnvSnapshot {
    /// Copies the environment of this process.
    ///
    /// Contract: call it on the thread that may change the environment (in Node the JavaScript thread, where
    /// `process.env` is written), because the C library's environment must not be read while it is changed.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn capture() -> Self {
        Self { vars: std::env::vars_os().collect() }
    }

    /// An environment with just these variables.
    pub fn of(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { vars: vars.into_iter().collect() }
    }

    /// One variable.
    pub fn get(&self, name: &str) -> Option<&OsString> {
        self.vars.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// All variables.
    pub fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.vars.iter().map(|(key, value)| (key, value))
    }
}
