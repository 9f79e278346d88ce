//! What a command sees of the world: an allow-list of host variables, then the runtime's, then the call's own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::host::EnvSnapshot;

/// Host variables that reach a command, besides every `LC_*`. Everything else may be a secret and stays out.
const HOST_VARIABLES: [&str; 13] = [
    "COLORTERM",
    "FORCE_COLOR",
    "HOME",
    "LANG",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "TERM",
    "TEMP",
    "TMP",
    "TMPDIR",
    "USER",
];

/// Without these no program starts on Windows; none of them holds a secret.
#[cfg(windows)]
const PLATFORM_VARIABLES: [&str; 6] = ["COMSPEC", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "USERPROFILE", "WINDIR"];
#[cfg(not(windows))]
const PLATFORM_VARIABLES: [&str; 0] = [];

/// Tells a command that it runs under this package. Set last, so that nothing overrides it.
const CLI_VARIABLE: &str = "BLADE_CLI";

/// The environment of a command.
pub(super) fn build(
    host: &EnvSnapshot,
    runtime: &BTreeMap<String, String>,
    call: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let mut vars: BTreeMap<OsString, OsString> =
        host.iter().filter(|(name, _)| is_handed_on(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in runtime.iter().chain(call) {
        vars.insert(name.into(), value.into());
    }
    vars.insert(CLI_VARIABLE.into(), "1".into());
    vars
}

/// A name or value the operating system cannot pass on: it would make starting the command fail without saying why.
pub(super) fn unusable(vars: &BTreeMap<String, String>) -> Option<&str> {
    vars.iter()
        .find(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0'))
        .map(|(name, _)| name.as_str())
}

/// The shell to run, looked up in the host's `PATH`: a call that changes `PATH` for its command must not change which
/// shell reads it.
pub(super) fn find_bash(host: &EnvSnapshot) -> PathBuf {
    let name = if cfg!(windows) { "bash.exe" } else { "bash" };
    let path = host.get("PATH").map(OsString::as_os_str).unwrap_or_default();
    std::env::split_paths(path)
        .chain([PathBuf::from("/bin"), PathBuf::from("/usr/bin"), PathBuf::from("/usr/local/bin")])
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|candidate| is_executable(candidate))
        .unwrap_or_else(|| PathBuf::from(name))
}

fn is_handed_on(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let same = |known: &&str| if cfg!(windows) { known.eq_ignore_ascii_case(name) } else { *known == name };
    name.starts_with("LC_") || HOST_VARIABLES.iter().chain(&PLATFORM_VARIABLES).any(same)
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn secrets_of_the_host_stay_out_and_later_sources_win() {
        let host = EnvSnapshot::of(
            [
                ("PATH", "/bin"),
                ("LC_ALL", "C"),
                ("AWS_SECRET_ACCESS_KEY", "s"),
                ("HOME", "/h"),
                ("USER", "me"),
                ("NODE_OPTIONS", "-r x"),
            ]
            .map(|(k, v)| (k.into(), v.into())),
        );
        let vars = build(
            &host,
            &map(&[("ONE", "runtime"), ("TWO", "runtime"), ("HOME", "/r")]),
            &map(&[("TWO", "call"), ("BLADE_CLI", "0")]),
        );
        let seen: Vec<_> =
            vars.iter().map(|(k, v)| format!("{}={}", k.to_string_lossy(), v.to_string_lossy())).collect();
        assert_eq!(seen, ["BLADE_CLI=1", "HOME=/r", "LC_ALL=C", "ONE=runtime", "PATH=/bin", "TWO=call", "USER=me"]);
    }

    #[test]
    fn names_the_system_cannot_pass_on_are_found() {
        assert_eq!(unusable(&map(&[("A", "x"), ("B=C", "y")])), Some("B=C"));
        assert_eq!(unusable(&map(&[("A", "x\0")])), Some("A"));
        assert_eq!(unusable(&map(&[("A", "x=y\nz")])), None);
    }
}
