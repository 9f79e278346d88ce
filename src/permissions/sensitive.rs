//! Files that hold secrets, judged by name and place alone; contents are never read.

/// How much harm reading or changing a file may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sensitivity {
    /// Data that may be private.
    Low,
    /// Configuration that often holds tokens.
    Medium,
    /// Keys and credentials.
    High,
}

const HIGH_NAMES: &[&str] = &["id_rsa", "id_ed25519", "id_ecdsa", "keystore", "pgpass", "my.cnf"];
const HIGH_EXTENSIONS: &[&str] = &["pem", "key", "p12", "pfx"];
const HIGH_DIRECTORIES: &[&str] = &["/.ssh/", "/.aws/", "/.config/gcloud/", "/.kube/"];
const MEDIUM_NAMES: &[&str] = &["npmrc", "pypirc", "dockercfg", "netrc", "git-credentials"];
const LOW_EXTENSIONS: &[&str] = &["sqlite", "db", "sql"];

/// Level of a path, or `None` for an ordinary file. Case does not matter; both separators do, however many there are.
pub fn sensitivity(path: &str) -> Option<Sensitivity> {
    let path = path.replace('\\', "/").to_lowercase();
    let segments: Vec<&str> = path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    let name = segments.last().copied().unwrap_or_default();
    let bare = name.strip_prefix('.').unwrap_or(name);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let high_name = HIGH_NAMES.contains(&bare)
        || HIGH_EXTENSIONS.contains(&extension)
        || name.ends_with("credentials.json")
        || (name.starts_with("service-account") && extension == "json");
    // A directory is as sensitive as what is in it: a search looks through it.
    let rooted = format!("/{}/", segments.join("/"));
    if high_name || HIGH_DIRECTORIES.iter().any(|directory| rooted.contains(directory)) {
        Some(Sensitivity::High)
    } else if name == ".env"
        || name.starts_with(".env.")
        || MEDIUM_NAMES.contains(&bare)
        || name == "config.toml"
        || name.starts_with("secrets.")
    {
        Some(Sensitivity::Medium)
    } else if LOW_EXTENSIONS.contains(&extension) {
        Some(Sensitivity::Low)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_name_then_directory() {
        use Sensitivity::{High, Low, Medium};
        for (path, expected) in [
            ("/r/.ssh/known_hosts", Some(High)),
            ("~/.aws/config", Some(High)),
            ("/r/ID_RSA", Some(High)),
            ("/r/.pgpass", Some(High)),
            ("/r/server.PEM", Some(High)),
            ("/r/my-credentials.json", Some(High)),
            ("/r/service-account-7.json", Some(High)),
            ("C:\\u\\.kube\\config", Some(High)),
            ("/r/.env", Some(Medium)),
            ("/r/.env.local", Some(Medium)),
            ("/r/.npmrc", Some(Medium)),
            ("/r/secrets.yaml", Some(Medium)),
            ("/r/a.sqlite", Some(Low)),
            ("/r//.config/./gcloud//x", Some(High)),
            ("/r/.ssh", Some(High)),
            ("/r/.kube/", Some(High)),
            ("/r/id_rsa/", Some(High)),
            ("/r/id_rsa/.", Some(High)),
            ("/r/.env//", Some(Medium)),
            ("/r/.sshd", None),
            ("/", None),
            ("/r/keystore.ts", None),
            ("/r/monkey.ts", None),
            ("/r/environment.ts", None),
        ] {
            assert_eq!(sensitivity(path), expected, "{path}");
        }
    }
}
