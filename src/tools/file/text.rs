//! From bytes to text and back: which encoding a file has, judged by its content.

use std::borrow::Cow;
use std::path::Path;

use encoding_rs::{UTF_16BE, UTF_16LE};

/// Bytes looked at to tell text from binary. Only NUL bytes and marks count, so cutting a character does no harm.
pub const SNIFF: usize = 8 * 1024;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Extensions that are text whatever the first bytes look like.
const TEXT: &[&str] = &[
    "",
    ".txt",
    ".md",
    ".js",
    ".ts",
    ".jsx",
    ".tsx",
    ".json",
    ".xml",
    ".html",
    ".htm",
    ".css",
    ".scss",
    ".sass",
    ".less",
    ".yml",
    ".yaml",
    ".toml",
    ".ini",
    ".cfg",
    ".py",
    ".rb",
    ".php",
    ".java",
    ".cpp",
    ".c",
    ".h",
    ".hpp",
    ".rs",
    ".go",
    ".sh",
    ".bash",
    ".zsh",
    ".fish",
    ".ps1",
    ".bat",
    ".cmd",
    ".sql",
    ".graphql",
    ".vue",
    ".svelte",
    ".astro",
    ".dockerfile",
    ".gitignore",
    ".env",
];

/// Extensions that are read as base64.
const BINARY: &[&str] = &[
    ".jpg", ".jpeg", ".png", ".gif", ".bmp", ".svg", ".ico", ".webp", ".mp3", ".wav", ".mp4", ".avi", ".mov", ".wmv",
    ".flv", ".webm", ".pdf", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".zip", ".tar", ".gz", ".rar", ".7z",
    ".exe", ".dll", ".so", ".ttf", ".otf", ".woff", ".woff2", ".eot",
];

/// Extension of a path: lower case, with its dot, or empty. A dot-file has none.
pub fn extension(path: &Path) -> String {
    path.extension().map(|ext| format!(".{}", ext.to_string_lossy().to_lowercase())).unwrap_or_default()
}

/// Last segment of a path.
pub fn base_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Text in UTF-8, or in an unknown encoding that keeps ASCII.
    Text,
    /// Text in UTF-16 with a byte order mark.
    Utf16(Utf16),
    /// Bytes.
    Binary,
}

/// Whether the extension alone says that a file is binary.
pub fn is_binary_extension(extension: &str) -> bool {
    BINARY.contains(&extension)
}

/// Judges a file by its extension and its first bytes.
pub fn sniff(extension: &str, start: &[u8]) -> Content {
    if is_binary_extension(extension) {
        return Content::Binary;
    }
    if let Some(encoding) = Utf16::of(start) {
        return Content::Utf16(encoding);
    }
    if start[..start.len().min(SNIFF)].contains(&0) && !TEXT.contains(&extension) {
        return Content::Binary;
    }
    Content::Text
}

/// Whether the bytes start with the byte order mark of UTF-8.
pub fn has_utf8_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(UTF8_MARK)
}

/// Byte order of UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utf16 {
    /// Low byte first.
    Little,
    /// High byte first.
    Big,
}

impl Utf16 {
    /// The byte order a mark declares. The mark of little-endian UTF-32 starts the same way and is no UTF-16.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xFF, 0xFE, 0, 0, ..] => None,
            [0xFF, 0xFE, ..] => Some(Self::Little),
            [0xFE, 0xFF, ..] => Some(Self::Big),
            _ => None,
        }
    }

    /// Name of the encoding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "utf-16le",
            Self::Big => "utf-16be",
        }
    }

    /// Text without the mark; the flag says that something could not be decoded.
    pub fn decode(self, bytes: &[u8]) -> (Cow<'_, str>, bool) {
        let encoding = match self {
            Self::Little => UTF_16LE,
            Self::Big => UTF_16BE,
        };
        encoding.decode_with_bom_removal(bytes)
    }

    /// Bytes of a text, with the mark.
    pub fn encode(self, text: &str) -> Vec<u8> {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        match self {
            Self::Little => units.flat_map(u16::to_le_bytes).collect(),
            Self::Big => units.flat_map(u16::to_be_bytes).collect(),
        }
    }
}

/// Length in UTF-16 units, which is what a JavaScript string calls its length.
pub fn utf16_len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// One character a byte.
pub fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_lower_case_and_dot_files_have_none() {
        for (path, expected) in [("/a/X.TXT", ".txt"), ("/a/.env", ""), ("/a/Dockerfile", ""), ("/a/b.tar.gz", ".gz")] {
            assert_eq!(extension(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn content_decides_where_the_extension_says_nothing() {
        for (ext, bytes, expected) in [
            (".kt", &b"fun main()"[..], Content::Text),
            (".bin", b"a\0b", Content::Binary),
            (".txt", b"a\0b", Content::Text),
            (".png", b"<svg/>", Content::Binary),
            (".txt", b"\xFF\xFEh\0", Content::Utf16(Utf16::Little)),
            (".log", b"\xFE\xFF\0h", Content::Utf16(Utf16::Big)),
            (".bin", b"\xFF\xFE\0\0h\0\0\0", Content::Binary),
            (".ini", b"caf\xE9", Content::Text),
        ] {
            assert_eq!(sniff(ext, bytes), expected, "{ext} {bytes:?}");
        }
    }

    #[test]
    fn utf16_survives_the_way_there_and_back() {
        for order in [Utf16::Little, Utf16::Big] {
            let bytes = order.encode("héllo\r\n😀");
            assert_eq!(Utf16::of(&bytes), Some(order));
            assert_eq!(order.decode(&bytes), (Cow::Borrowed("héllo\r\n😀"), false));
        }
        assert!(Utf16::Little.decode(b"\xFF\xFE\x00\xD8").1, "a lone surrogate is an error");
    }

    #[test]
    fn lengths_count_like_javascript() {
        assert_eq!((utf16_len("abc"), utf16_len("世界🙂")), (3, 4));
        assert_eq!(latin1(b"AB\xE9"), "ABé");
    }
}
