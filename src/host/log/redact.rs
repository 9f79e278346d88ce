//! Secrets leave texts before they become log entries.
//!
//! Two nets: the strings a Session is known to hold (its key, its header values, variables whose name says that they
//! are secret), and forms that only credentials have. Whoever speaks is expected to say nothing secret to begin with;
//! this is for texts of others, such as the message of an error.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Shorter strings are words, not secrets: replacing them would spoil texts and hide nothing.
const SHORTEST: usize = 6;
/// Longest text of an entry, in characters.
const LONGEST: usize = 2_000;
/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// Last parts of the names of variables whose values are secrets.
const SECRET_PARTS: [&str; 14] = [
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "COOKIE",
];

/// Whether the name of a variable says that its value is a secret: a part of it ends like one, as in
/// `AWS_SECRET_ACCESS_KEY`, `GITHUB_TOKEN` or `npm_config_authToken`.
pub fn holds_secret(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        let part = part.to_ascii_uppercase();
        part == "PAT" || SECRET_PARTS.iter().any(|secret| part.ends_with(secret))
    })
}

/// What no text may show.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// The longest first, so that a secret that contains another one leaves no rest.
    secrets: Vec<String>,
}

impl Redactor {
    /// Hides these strings.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut redactor = Self::default();
        redactor.add(secrets);
        redactor
    }

    /// Hides these strings too.
    pub fn add(&mut self, secrets: impl IntoIterator<Item = String>) {
        for secret in secrets {
            // Errors that are shown with `Debug`, and pieces of JSON, have quotes and backslashes escaped.
            let escaped = serde_json::to_string(&secret).unwrap_or_default();
            let escaped = escaped.get(1..escaped.len().saturating_sub(1)).unwrap_or_default();
            for form in [secret.trim(), escaped.trim()] {
                if form.chars().count() >= SHORTEST && !self.secrets.iter().any(|known| known == form) {
                    self.secrets.push(form.to_owned());
                }
            }
        }
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// The text without secrets, and not longer than an entry may be.
    pub fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), HIDDEN);
            }
        }
        // The tests below compile the pattern; without it nothing would be known to be harmless.
        let Some(credential) = &*CREDENTIAL else { return HIDDEN.to_owned() };
        let text = credential.replace_all(&text, |found: &Captures<'_>| {
            let kept = found.iter().skip(1).flatten().next().map_or("", |kept| kept.as_str());
            // The password of a URL was found by what follows it.
            let rest = if found[0].ends_with('@') { "@" } else { "" };
            format!("{kept}{HIDDEN}{rest}")
        });
        // Last, so that no secret is cut in two and missed.
        match text.char_indices().nth(LONGEST) {
            None => text.into_owned(),
            Some((at, _)) => format!("{}…", &text[..at]),
        }
    }
}

/// An authorization header, a scheme with its token, a named key, a password in a URL. The first group is what stays.
static CREDENTIAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = concat!(
        r#"(\bauthorization["']?\s*[:=]\s*["']?)[^\s"',;]+(?:\s+[^\s"',;]+)?"#,
        r#"|(\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{16,}"#,
        r#"|(\bapi[-_ ]?key["']?\s*[:=]\s*["']?)[^\s"',;&]+"#,
        r#"|(\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+@"#,
    );
    Regex::new(&format!("(?i){forms}")).ok()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secrets_leave_in_every_form_they_take() {
        let redactor = Redactor::new(
            ["sk-live-1234", "sk-live-1234-long", "short", "with \"quotes\"", " padded-key "].map(str::to_owned),
        );
        for (text, expected) in [
            ("refused sk-live-1234, really", "refused ***, really"),
            ("refused sk-live-1234-long", "refused ***"),
            ("a short word stays", "a short word stays"),
            ("raw with \"quotes\" in it", "raw *** in it"),
            (r#"{"m":"with \"quotes\""}"#, r#"{"m":"***"}"#),
            ("x padded-key x", "x *** x"),
        ] {
            assert_eq!(redactor.clean(text), expected);
        }
    }

    #[test]
    fn forms_of_credentials_leave_although_nobody_knows_them() {
        let redactor = Redactor::default();
        for (text, expected) in [
            ("Authorization: Bearer abc", "Authorization: ***"),
            (r#"{"authorization":"Basic eHg6eXk=","n":1}"#, r#"{"authorization":"***","n":1}"#),
            ("sent bearer abcdefghijklmnop123", "sent bearer ***"),
            ("x-api-key: abc, next", "x-api-key: ***, next"),
            ("?apiKey=abc&n=1", "?apiKey=***&n=1"),
            ("postgres://user:pa55@host/db", "postgres://user:***@host/db"),
            ("basic understanding of bearer tokens", "basic understanding of bearer tokens"),
            ("http://127.0.0.1:8080/v1 is down", "http://127.0.0.1:8080/v1 is down"),
        ] {
            assert_eq!(redactor.clean(text), expected);
        }
    }

    #[test]
    fn a_long_text_is_cut_after_its_secrets_left() {
        let redactor = Redactor::new(["k".repeat(40)]);
        let text = format!("{}{}", "x".repeat(LONGEST - 10), "k".repeat(40));
        let clean = redactor.clean(&text);
        assert!(!clean.contains('k'), "{clean}");
        assert_eq!(redactor.clean(&"é".repeat(LONGEST + 1)).chars().count(), LONGEST + 1, "the mark comes on top");
    }

    #[test]
    fn names_of_variables_tell_secrets() {
        for name in [
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "npm_config__authToken",
            "DB_PASSWORD",
            "GH_PAT",
        ] {
            assert!(holds_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "PWD", "LANG", "GIT_AUTHOR_NAME", "TOKENIZERS_PARALLELISM", "PATTERN"] {
            assert!(!holds_secret(name), "{name}");
        }
    }
}
