//! Paths as text. A name that is not Unicode is shown with `\xNN` for the bytes that are not, and marked.

use std::fmt::Write as _;
use std::path::Path;

/// A path for people, models and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// The text, with `/` between names on every system where the path is relative.
    pub(super) text: String,
    /// Whether the text is the path: `false` where bytes had to be escaped.
    pub(super) exact: bool,
}

/// The text of a path.
pub(super) fn shown(path: &Path) -> Shown {
    match path.to_str() {
        Some(text) => Shown { text: text.to_owned(), exact: true },
        None => Shown { text: escaped(path.as_os_str().as_encoded_bytes()), exact: false },
    }
}

/// The text of a path relative to a search root, with `/` separators.
pub(super) fn shown_relative(path: &Path) -> Shown {
    let mut shown = shown(path);
    if std::path::MAIN_SEPARATOR != '/' {
        shown.text = shown.text.replace(std::path::MAIN_SEPARATOR, "/");
    }
    shown
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn bytes_that_are_not_utf8_are_escaped_and_marked() {
        let path = Path::new(OsStr::from_bytes(b"d\xC3\xBC/a\xFFz.txt"));
        assert_eq!(shown(path), Shown { text: "dü/a\\xFFz.txt".into(), exact: false });
        assert_eq!(shown(Path::new("a/b")), Shown { text: "a/b".into(), exact: true });
    }
}
