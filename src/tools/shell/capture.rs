//! Output of a command in bounded memory: the beginning and the end are kept, the middle is counted.

use std::collections::VecDeque;

/// Kept from the beginning of a stream. The largest cutting tier shows 20000 characters, at most four bytes each, from
/// either end; the rest is room for blank space that is trimmed first.
const HEAD_BYTES: usize = 512 * 1024;
/// Kept from the end of a stream.
const TAIL_BYTES: usize = 512 * 1024;

/// A stream as it is read.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: Counts,
    total: u64,
}

/// What was left out between head and tail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Bytes.
    pub bytes: u64,
    /// Characters as JavaScript counts them (UTF-16 units).
    pub units: u64,
    /// Line ends.
    pub newlines: u64,
}

/// A stream that was read, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Captured {
    /// Beginning and end, joined where something was left out.
    pub text: String,
    /// What is missing at the join.
    pub dropped: Counts,
}

impl Captured {
    /// Length of everything that was printed, in UTF-16 units.
    pub fn units(&self) -> u64 {
        units(&self.text) + self.dropped.units
    }
}

impl Capture {
    /// Takes bytes as they come.
    pub fn push(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = HEAD_BYTES - self.head.len();
        if room > 0 {
            let (head, rest) = bytes.split_at(room.min(bytes.len()));
            self.head.extend_from_slice(head);
            bytes = rest;
        }
        // Of a chunk longer than the tail only its end can stay.
        if bytes.len() > TAIL_BYTES {
            let (skipped, kept) = bytes.split_at(bytes.len() - TAIL_BYTES);
            self.drop_tail(self.tail.len());
            self.dropped.add(skipped);
            bytes = kept;
        }
        self.drop_tail((self.tail.len() + bytes.len()).saturating_sub(TAIL_BYTES));
        self.tail.extend(bytes);
    }

    /// Everything that was kept, as text. Bytes that are not UTF-8 become U+FFFD, but a character that was cut by the
    /// bound is left out and counted instead.
    pub fn finish(mut self) -> Captured {
        if self.dropped.bytes == 0 {
            let mut bytes = self.head;
            bytes.extend(self.tail);
            return Captured { text: lossy(bytes), dropped: Counts::default() };
        }
        let head_end = self.head.len() - incomplete_suffix(&self.head);
        self.dropped.add(&self.head[head_end..]);
        self.head.truncate(head_end);
        let tail: Vec<u8> = self.tail.into();
        let start = tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
        self.dropped.add(&tail[..start]);
        let mut text = lossy(self.head);
        text.push_str(&String::from_utf8_lossy(&tail[start..]));
        Captured { text, dropped: self.dropped }
    }

    fn drop_tail(&mut self, count: usize) {
        let (front, back) = self.tail.as_slices();
        let in_front = count.min(front.len());
        self.dropped.add(&front[..in_front]);
        self.dropped.add(&back[..count - in_front]);
        self.tail.drain(..count);
    }
}

impl Counts {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        // One unit for each first byte, one more for those of four-byte characters. Exact for valid UTF-8.
        self.units += bytes.iter().map(|b| u64::from(!is_continuation(*b)) + u64::from(*b >= 0xF0)).sum::<u64>();
    }
}

/// Length of a text in UTF-16 units, as JavaScript counts.
pub(super) fn units(text: &str) -> u64 {
    if text.is_ascii() { text.len() as u64 } else { text.chars().map(|c| c.len_utf16() as u64).sum() }
}

/// How many bytes at the end begin a character that is not complete yet.
pub(super) fn incomplete_suffix(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let needed = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if back < needed { back } else { 0 };
    }
    0
}

/// Text of bytes, reusing the buffer when it is valid.
pub(super) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(chunks: impl IntoIterator<Item = Vec<u8>>) -> Captured {
        let mut capture = Capture::default();
        for chunk in chunks {
            capture.push(&chunk);
            assert!(capture.head.len() <= HEAD_BYTES && capture.tail.len() <= TAIL_BYTES);
        }
        capture.finish()
    }

    #[test]
    fn a_short_stream_is_kept_whole_even_when_characters_arrive_in_pieces() {
        let text = "世界 🦀 end";
        assert_eq!(capture(text.bytes().map(|b| vec![b])).text, text);
        assert_eq!(capture([b"a\xff\xfe\x00b".to_vec()]).text, "a\u{fffd}\u{fffd}\0b");
    }

    #[test]
    fn a_long_stream_keeps_both_ends_and_counts_the_middle() {
        let line = vec![b"0123456789abcde\n".repeat(4096); 40];
        let total: usize = line.iter().map(Vec::len).sum();
        let got = capture(std::iter::once(b"START".to_vec()).chain(line).chain([b"END".to_vec()]));
        assert!(got.text.starts_with("START0123") && got.text.ends_with("\nEND"));
        assert_eq!(got.text.len() as u64 + got.dropped.bytes, total as u64 + 8);
        let newlines = got.text.matches('\n').count() as u64 + got.dropped.newlines;
        assert_eq!(newlines, total as u64 / 16);
    }

    #[test]
    fn the_bounds_never_split_a_character() {
        for shift in 0..4 {
            for text in ["語", "🦀", "é"] {
                let mut bytes = "a".repeat(shift).into_bytes();
                bytes.extend(text.repeat(700_000).into_bytes());
                let all = bytes.len() as u64;
                let got = capture([bytes]);
                assert!(!got.text.contains('\u{fffd}'), "{text} shifted by {shift}");
                assert_eq!(got.text.len() as u64 + got.dropped.bytes, all);
                let each = text.chars().map(|c| c.len_utf16() as u64).sum::<u64>();
                assert_eq!(got.units(), shift as u64 + each * 700_000);
            }
        }
    }

    #[test]
    fn an_unfinished_character_at_the_end_is_recognised() {
        for (bytes, expected) in [
            (&b"a"[..], 0),
            (b"", 0),
            (b"\xe4", 1),
            (b"x\xe4\xb8", 2),
            (b"\xe4\xb8\x96", 0),
            (b"\xf0\x9f\xa6", 3),
            (b"\xff", 0),
        ] {
            assert_eq!(incomplete_suffix(bytes), expected, "{bytes:x?}");
        }
    }
}
