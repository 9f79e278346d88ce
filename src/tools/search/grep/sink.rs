//! What happens to the matches of one file, in the three output modes. The rules for binary files are ripgrep's.

use std::io;
use std::ops::Range;

use bstr::ByteSlice;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use crate::tools::search::stop::Stop;

/// Longest line shown, in characters; long lines are cut around their first match.
const MAX_LINE_CHARS: usize = 2000;
/// Characters shown before the match of a line that is cut.
const CHARS_BEFORE_MATCH: usize = 400;
/// How far past a match the expression may look (as ripgrep's printer has it).
const MAX_LOOK_AHEAD: usize = 128;

/// Finds out whether, or how often, a file matches.
#[derive(Debug)]
pub(super) struct Counter<'a> {
    matcher: &'a RegexMatcher,
    stop: &'a Stop,
    first_only: bool,
    /// Matching lines; in multi-line searches matches.
    pub(super) count: u64,
}

impl<'a> Counter<'a> {
    pub(super) fn first(matcher: &'a RegexMatcher, stop: &'a Stop) -> Self {
        Self { matcher, stop, first_only: true, count: 0 }
    }

    pub(super) fn all(matcher: &'a RegexMatcher, stop: &'a Stop) -> Self {
        Self { matcher, stop, first_only: false, count: 0 }
    }
}

impl Sink for Counter<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.first_only {
            self.count = 1;
            return Ok(false);
        }
        self.count += if searcher.multi_line_with_matcher(self.matcher) { matches_in(self.matcher, found)? } else { 1 };
        Ok(!self.stop.is_set())
    }

    fn finish(&mut self, searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        // A binary file among others has no matches, even where its text part had some.
        if finish.binary_byte_offset().is_some() && searcher.binary_detection().quit_byte().is_some() {
            self.count = 0;
        }
        Ok(())
    }
}

fn matches_in(matcher: &RegexMatcher, found: &SinkMatch<'_>) -> io::Result<u64> {
    let range = found.bytes_range_in_buffer();
    let buffer = found.buffer();
    let seen = buffer.get(..(range.end + MAX_LOOK_AHEAD).min(buffer.len())).unwrap_or(buffer);
    let mut count = 0;
    matcher
        .find_iter_at(seen, range.start, |one| {
            let inside = one.start() < range.end;
            count += u64::from(inside);
            inside
        })
        .map_err(|never| io::Error::other(never.to_string()))?;
    // The searcher found a match here, whatever a look from inside of the block says.
    Ok(count.max(1))
}

/// A line of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: Option<u64>,
    pub(super) text: String,
    pub(super) is_context: bool,
    pub(super) is_cut: bool,
}

/// Collects lines `from..to` of a file's entries as long as they fit, and counts all of them unless told to stop.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    matcher: &'a RegexMatcher,
    stop: &'a Stop,
    from: u64,
    to: u64,
    room: usize,
    stop_when_full: bool,
    /// Entries seen.
    pub(super) count: u64,
    /// Entries kept; all of `from..to`, or as many as fit.
    pub(super) kept: Vec<Line>,
    /// Bytes the kept lines take.
    pub(super) bytes: usize,
    /// Whether an entry of `from..to` did not fit.
    pub(super) overflow: bool,
    binary_at: Option<u64>,
}

impl<'a> Lines<'a> {
    /// Counts all entries and keeps them while `room` bytes last.
    pub(super) fn counting(matcher: &'a RegexMatcher, stop: &'a Stop, room: usize) -> Self {
        Self::new(matcher, stop, 0..u64::MAX, room, false)
    }

    /// Keeps entries `range` while `room` bytes last, then stops.
    pub(super) fn window(matcher: &'a RegexMatcher, stop: &'a Stop, range: Range<u64>, room: usize) -> Self {
        Self::new(matcher, stop, range, room, true)
    }

    fn new(matcher: &'a RegexMatcher, stop: &'a Stop, range: Range<u64>, room: usize, stop_when_full: bool) -> Self {
        Self {
            matcher,
            stop,
            from: range.start,
            to: range.end,
            room,
            stop_when_full,
            count: 0,
            kept: Vec::new(),
            bytes: 0,
            overflow: false,
            binary_at: None,
        }
    }

    /// Where the file turned out to be binary, although the caller asked for it: nothing after that is shown.
    pub(super) fn binary_at(&self) -> Option<u64> {
        self.binary_at
    }

    fn add(&mut self, number: Option<u64>, line: &[u8], is_context: bool) -> bool {
        let index = self.count;
        self.count += 1;
        if index < self.from || index >= self.to || self.overflow {
            return !(self.stop_when_full && (index >= self.to || self.overflow));
        }
        let (text, is_cut) = excerpt(line, is_context, self.matcher);
        let bytes = text.len() + size_of::<Line>();
        if self.bytes + bytes > self.room {
            self.overflow = true;
            return !self.stop_when_full;
        }
        self.bytes += bytes;
        self.kept.push(Line { number, text, is_context, is_cut });
        !(self.stop_when_full && self.count >= self.to)
    }

    /// A binary file the caller named: what follows its first NUL byte is not shown.
    fn is_past_text(&self, searcher: &Searcher) -> bool {
        self.binary_at.is_some() && searcher.binary_detection().convert_byte().is_some()
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.is_past_text(searcher) {
            return Ok(false);
        }
        for (line, number) in found.lines().zip(0..) {
            if !self.add(found.line_number().map(|first| first + number), line, false) {
                return Ok(false);
            }
        }
        Ok(!self.stop.is_set())
    }

    fn context(&mut self, searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.is_past_text(searcher) {
            return Ok(false);
        }
        Ok(self.add(context.line_number(), context.bytes(), true))
    }

    fn binary_data(&mut self, _: &Searcher, offset: u64) -> io::Result<bool> {
        self.binary_at.get_or_insert(offset);
        Ok(true)
    }
}

/// A line as text, without its terminator; cut around its first match where it is long.
fn excerpt(line: &[u8], is_context: bool, matcher: &RegexMatcher) -> (String, bool) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A character has at least one byte.
    if line.len() <= MAX_LINE_CHARS {
        return (line.to_str_lossy().into_owned(), false);
    }
    let hit = if is_context { None } else { matcher.find(line).ok().flatten().map(|found| found.start()) };
    let start = match hit {
        Some(hit) if hit > MAX_LINE_CHARS - CHARS_BEFORE_MATCH => char_start(line, hit - CHARS_BEFORE_MATCH),
        _ => 0,
    };
    let rest = &line[start..];
    let end = rest.char_indices().nth(MAX_LINE_CHARS).map_or(line.len(), |(at, _, _)| start + at);
    let mut text = String::new();
    if start > 0 {
        text.push_str(&format!("[... {start} bytes cut] "));
    }
    text.push_str(&line[start..end].to_str_lossy());
    if end < line.len() {
        text.push_str(&format!(" [... {} bytes cut]", line.len() - end));
    }
    (text, start > 0 || end < line.len())
}

/// The start of the character that holds byte `at`.
fn char_start(line: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at).rev().find(|i| !(0x80..0xC0).contains(&line[*i])).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(pattern: &str) -> RegexMatcher {
        RegexMatcher::new_line_matcher(pattern).expect("valid")
    }

    #[test]
    fn a_line_of_the_limit_is_whole_and_one_more_character_is_cut() {
        let whole = "ü".repeat(MAX_LINE_CHARS);
        assert_eq!(excerpt(format!("{whole}\r\n").as_bytes(), false, &matcher("ü")), (whole.clone(), false));
        let (text, cut) = excerpt(format!("{whole}x").as_bytes(), false, &matcher("ü"));
        assert_eq!((text, cut), (format!("{whole} [... 1 bytes cut]"), true));
    }

    #[test]
    fn a_long_line_is_cut_around_its_match() {
        let line = format!("{}needle{}", "é".repeat(5000), "z".repeat(5000));
        let (text, cut) = excerpt(line.as_bytes(), false, &matcher("needle"));
        assert!(cut && text.contains("needle") && text.starts_with("[... 9600 bytes cut] é"), "{}", &text[..60]);
        assert!(text.chars().count() < MAX_LINE_CHARS + 60);
        let (context, _) = excerpt(line.as_bytes(), true, &matcher("needle"));
        assert!(context.starts_with('é') && !context.contains("needle"));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        assert_eq!(excerpt(b"a\xFFb\n", false, &matcher("a")).0, "a\u{FFFD}b");
    }

    #[test]
    fn lines_beyond_the_room_are_counted_or_end_the_search_and_are_told() {
        let text = b"one\ntwo\nthree\nfour\n";
        let (any, stop) = (matcher("."), Stop::default());
        let room = 2 * (size_of::<Line>() + 4);
        let search = |mut sink: Lines<'_>| {
            Searcher::new().search_slice(&any, text, &mut sink).expect("searched");
            let kept: Vec<String> = sink.kept.into_iter().map(|line| line.text).collect();
            (kept.join(" "), sink.count, sink.overflow)
        };
        assert_eq!(search(Lines::counting(&any, &stop, room)), ("one two".into(), 4, true));
        assert_eq!(search(Lines::window(&any, &stop, 1..4, room)), ("two three".into(), 4, true));
        assert_eq!(search(Lines::window(&any, &stop, 1..3, 1000)), ("two three".into(), 3, false));
    }
}
