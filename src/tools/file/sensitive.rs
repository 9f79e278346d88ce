//! Which files are sensitive by their name: they hold secrets, or git runs what they say. Writing one is `destructive`:
//! it asks, whatever the mode. Nothing is blocked here.

/// Base names that are sensitive as a whole.
const NAMES: &[&str] = &[
    "credentials",
    "credentials.json",
    "credentials.yaml",
    "credentials.yml",
    "secrets",
    "secrets.json",
    "secrets.yaml",
    "secrets.yml",
    ".npmrc",
    ".pypirc",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
];

/// Endings of key files.
const EXTENSIONS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".keystore", ".ovpn"];

/// Whether writing a path is destructive: it holds secrets, or lies in a `.git` directory, whose configuration and hooks
/// name programs that the next `git status` would run. A directory with a file `HEAD` can be a repository as well.
pub fn is_sensitive(path: &str) -> bool {
    let folded = folded(path);
    let mut segments = folded.split('/').filter(|segment| !segment.is_empty());
    holds_secrets(path) || segments.clone().next_back() == Some("head") || segments.any(|segment| segment == ".git")
}

/// Whether a path names a file that usually holds secrets. `\` separates like `/`; case does not matter.
///
/// All names are ASCII. Lower-casing already folds the one letter with a canonical ASCII equivalent (the Kelvin
/// sign), so Unicode normalisation could not change the answer.
pub fn holds_secrets(path: &str) -> bool {
    let path = folded(path);
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let Some(name) = segments.last() else { return false };
    *name == ".env"
        || name.starts_with(".env.")
        || NAMES.contains(name)
        || segments.contains(&".gnupg")
        || segments.ends_with(&[".kube", "config"])
        // An extension needs a stem: a file called `.key` has none.
        || EXTENSIONS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

fn folded(path: &str) -> String {
    path.replace('\\', "/").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for path in [
            "/r/.env",
            "/r/.env.local",
            "/r/.ENV",
            "/r/.npmrc",
            "/r/server.pem",
            "/r/id_ed25519",
            "/r/credentials.json",
            "/r/Secrets.YML",
            "C:\\x\\.kube\\config",
            "/r/.gnupg/any",
            "/r/a.ovpn",
            "/r/server.\u{212a}ey",
            "/r/.git/config",
            "/r/.git",
            "/r/sub/.GIT/hooks/pre-commit",
            "/r/bare/HEAD",
            "C:\\r\\.git\\info\\attributes",
        ] {
            assert!(is_sensitive(path), "{path}");
        }
    }

    #[test]
    fn ordinary_files_with_similar_names_are_not_sensitive() {
        for path in [
            "/r/secretary.txt",
            "/r/monkey.ts",
            "/r/keystore.ts",
            "/r/.envrc",
            "/r/kube/config",
            "/r/.key",
            "/r/.gitignore",
            "/r/HEAD.md",
            "/r/head/x",
            "/r/a.git/x",
            "",
        ] {
            assert!(!is_sensitive(path), "{path}");
        }
    }
}
