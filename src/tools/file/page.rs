//! A range of lines, numbered, taken from bytes as they stream by. Memory is bounded by what is shown.

use std::fmt::Write;

use memchr::{memchr, memchr_iter};
use serde_json::json;

use crate::contract::Metadata;

/// Characters of a line that are shown.
pub const MAX_LINE_CHARS: usize = 2000;
/// Bytes of a line that are kept: enough for one character more than is shown.
const KEPT: usize = (MAX_LINE_CHARS + 1) * 4;
/// Bytes of one page. What is beyond is on the next page; the text says where it starts.
pub const MAX_PAGE: usize = 256 * 1024;
/// A cut line longer than this gets a note: here `...` hides much more than it shows.
const NOTED_LINE: u64 = 10_000;
/// Lines noted.
const MAX_NOTES: usize = 3;

/// The page under construction.
#[derive(Debug)]
pub struct Page {
    first: u64,
    limit: u64,
    /// Number of the current line, from 0.
    line: u64,
    buffer: Vec<u8>,
    /// Bytes of the current line, also those that are not kept.
    length: u64,
    out: String,
    lines: u64,
    full: bool,
    next_offset: Option<u64>,
    cut: Vec<(u64, u64)>,
    lossy: bool,
}

impl Page {
    /// A page of at most `limit` lines from line `first` (counted from 0).
    pub fn new(first: u64, limit: u64) -> Self {
        Self {
            first,
            limit,
            line: 0,
            buffer: Vec::new(),
            length: 0,
            out: String::new(),
            lines: 0,
            full: false,
            next_offset: None,
            cut: Vec::new(),
            lossy: false,
        }
    }

    /// Whether nothing more will be shown.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Lines shown.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.full {
                self.line += memchr_iter(b'\n', bytes).count() as u64;
                return;
            }
            let end = memchr(b'\n', bytes);
            if self.line >= self.first {
                self.keep(&bytes[..end.unwrap_or(bytes.len())]);
                if end.is_some() {
                    self.end_line();
                }
            }
            let Some(end) = end else { return };
            self.line += 1;
            bytes = &bytes[end + 1..];
        }
    }

    /// Takes the end of the text and tells how many lines it has: one more than it has line breaks.
    pub fn finish(&mut self) -> u64 {
        if !self.full && self.line >= self.first {
            self.end_line();
        }
        self.full = true;
        self.line + 1
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.buffer.len()).min(bytes.len());
        self.buffer.extend_from_slice(&bytes[..room]);
        self.length += bytes.len() as u64;
    }

    fn end_line(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let length = std::mem::take(&mut self.length);
        let text = match std::str::from_utf8(&buffer) {
            Ok(text) => text.into(),
            // A character that the buffer's end cuts lies beyond what is shown.
            Err(error) if error.error_len().is_none() && length > buffer.len() as u64 => {
                String::from_utf8_lossy(&buffer[..error.valid_up_to()])
            }
            Err(_) => {
                self.lossy = true;
                String::from_utf8_lossy(&buffer)
            }
        };
        let (shown, rest) = match text.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => (&text[..end], "..."),
            None => (&text[..], ""),
        };
        if !self.out.is_empty() && self.out.len() + shown.len() > MAX_PAGE {
            (self.full, self.next_offset) = (true, Some(self.line));
            return;
        }
        if !rest.is_empty() && length > NOTED_LINE && self.cut.len() < MAX_NOTES {
            self.cut.push((self.line + 1, length));
        }
        if self.lines > 0 {
            self.out.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{:>6}→{shown}{rest}", self.line + 1);
        self.lines += 1;
        self.full = self.lines >= self.limit;
        // The buffer is reused; its capacity is bounded.
        self.buffer = buffer;
        self.buffer.clear();
    }

    /// Facts known whether or not the whole text was counted.
    pub fn metadata(&self, offset: u64) -> Metadata {
        let mut metadata = Metadata::new();
        metadata.insert("lines_read".into(), self.lines.into());
        metadata.insert("start_line".into(), offset.saturating_add(1).into());
        metadata.insert("end_line".into(), offset.saturating_add(self.lines).into());
        metadata.insert("encoding".into(), "utf8".into());
        if let Some(next) = self.next_offset {
            metadata.insert("next_offset".into(), next.into());
        }
        if !self.cut.is_empty() {
            let cut = self.cut.iter().map(|(line, bytes)| json!({ "line": line, "bytes": bytes })).collect();
            metadata.insert("cut_lines".into(), cut);
        }
        if self.lossy {
            metadata.insert("encoding_lossy".into(), true.into());
        }
        metadata
    }

    /// The numbered lines, followed by notes on what is not shown; `rest_of_line` says how to see a cut line.
    pub fn text(self, total: Option<u64>, rest_of_line: &str) -> String {
        if self.lines == 0 {
            let total = total.unwrap_or_default();
            let (lines, first) = (if total == 1 { "line" } else { "lines" }, self.first);
            return format!(
                "[Nothing to show: the file has {total} {lines}, offset {first} is past its end. Offsets start at 0.]"
            );
        }
        let mut text = self.out;
        for (line, bytes) in &self.cut {
            let _ = write!(
                text,
                "\n[Line {line} was cut after {MAX_LINE_CHARS} characters: it has {bytes} bytes. To see the rest, \
                 {rest_of_line}.]"
            );
        }
        if let Some(next) = self.next_offset {
            let total = total.map_or_else(|| "more".to_owned(), |total| total.to_string());
            let _ = write!(
                text,
                "\n[Page limit reached: {} of {total} lines shown. Continue with offset {next}.]",
                self.lines
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(text: &[u8], first: u64, limit: u64, step: usize) -> (String, u64, Metadata) {
        let mut page = Page::new(first, limit);
        text.chunks(step.max(1)).for_each(|chunk| page.feed(chunk));
        let total = page.finish();
        let metadata = page.metadata(first);
        (page.text(Some(total), "use Bash"), total, metadata)
    }

    #[test]
    fn lines_are_numbered_from_one_and_a_final_break_opens_an_empty_line() {
        let text = b"first\nsecond\nthird\n";
        assert_eq!(page(text, 1, 1, 99).0, "     2→second");
        assert_eq!(page(text, 0, 10_000, 99).0, "     1→first\n     2→second\n     3→third\n     4→");
        assert_eq!(page(text, 2, u64::MAX, 1).0, "     3→third\n     4→");
        let (beyond, total, metadata) = page(text, 50, 5, 3);
        assert_eq!(beyond, "[Nothing to show: the file has 4 lines, offset 50 is past its end. Offsets start at 0.]");
        assert_eq!((total, &metadata["lines_read"]), (4, &json!(0)));
        assert_eq!(page(b"", 0, 1, 1).0, "     1→");
        assert_eq!(page(b"a\r\nb\r\n", 0, 1, 1).0, "     1→a\r");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let body = "a".repeat(1999);
        let cut = |text: String| page(text.as_bytes(), 0, 1, 7).0.trim_start()[4..].to_owned();
        assert_eq!(cut("x".repeat(2000)), "x".repeat(2000));
        assert_eq!(cut("x".repeat(2001)), format!("{}...", "x".repeat(2000)));
        assert_eq!(cut(format!("{body}😀tail")), format!("{body}😀..."));
        assert_eq!(cut("😀".repeat(2400)), format!("{}...", "😀".repeat(2000)));
    }

    #[test]
    fn an_endless_line_is_bounded_and_says_how_long_it_is() {
        let text = vec![b'z'; 5 << 20];
        let (shown, total, metadata) = page(&text, 0, 1, CHUNK_FOR_TEST);
        assert!(shown.len() < 10_000);
        assert!(shown.contains("[Line 1 was cut after 2000 characters: it has 5242880 bytes."), "{}", &shown[2000..]);
        assert_eq!((total, &metadata["cut_lines"][0]["bytes"]), (1, &json!(5_242_880)));
        assert_eq!(metadata.get("encoding_lossy"), None);
    }

    const CHUNK_FOR_TEST: usize = 64 * 1024;

    #[test]
    fn a_page_ends_at_its_limit_and_the_next_one_continues_where_it_says() {
        let line = "y".repeat(99);
        let text = format!("{line}\n").repeat(10_000);
        let (first, total, metadata) = page(text.as_bytes(), 0, 10_000, CHUNK_FOR_TEST);
        assert!(first.len() <= MAX_PAGE + 200);
        assert_eq!(total, 10_001);
        let next = metadata["next_offset"].as_u64().unwrap();
        assert_eq!(metadata["lines_read"], next);
        assert!(first.ends_with(&format!("Continue with offset {next}.]")));
        let (second, ..) = page(text.as_bytes(), next, 1, CHUNK_FOR_TEST);
        assert_eq!(second, format!("{:>6}→{line}", next + 1));
    }

    #[test]
    fn bytes_that_are_no_text_are_marked() {
        assert_eq!(page(b"caf\xE9\nx", 0, 9, 2).2["encoding_lossy"], true);
        assert_eq!(page(b"caf\xE9\nx", 1, 9, 2).2.get("encoding_lossy"), None);
    }

    proptest! {
        #[test]
        fn pages_equal_a_split_of_the_text(text in "[a-c\n\u{e9}]{0,40}", first in 0u64..8, limit in 1u64..8, step in 1usize..9) {
            let lines: Vec<&str> = text.split('\n').collect();
            let expected: Vec<String> = lines.iter().enumerate().skip(first as usize).take(limit as usize)
                .map(|(n, line)| format!("{:>6}→{line}", n + 1)).collect();
            let (shown, total, metadata) = page(text.as_bytes(), first, limit, step);
            let nothing = expected.is_empty() && shown.starts_with("[Nothing");
            prop_assert!(nothing || shown == expected.join("\n"), "{}", shown);
            prop_assert_eq!(total, lines.len() as u64);
            prop_assert_eq!(&metadata["lines_read"], &json!(expected.len()));
        }
    }
}
