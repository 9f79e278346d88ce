//! Where Edit finds its text: exactly, or by a ladder of small, named tolerances. Pure functions on bytes.
//!
//! Whatever rung matches, the result is a range of the file's own bytes; everything outside the ranges is copied as it
//! is. The file need not be valid UTF-8.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memchr2};

mod nearest;
#[cfg(test)]
mod tests;

pub use nearest::{nearest, normalized_twin};

/// Locations listed when a match is ambiguous. Overlapping ones are looked for up to this number.
pub const MAX_LOCATIONS: usize = 50;

/// The rung of the ladder that matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Byte for byte.
    Exact,
    /// Line breaks `\n` and `\r\n` count as equal.
    LineEndings,
    /// Curly quotes count as straight ones.
    NormalizeQuotes,
    /// The searched text was escaped once too often.
    Unescape,
    /// The searched lines are indented differently as a block.
    Flexible,
}

impl Strategy {
    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineEndings => "line_endings",
            Self::NormalizeQuotes => "normalize_quotes",
            Self::Unescape => "unescape",
            Self::Flexible => "flexible",
        }
    }
}

/// All matches of one rung.
#[derive(Debug, PartialEq, Eq)]
pub struct Matches {
    /// The rung.
    pub strategy: Strategy,
    /// Matches without overlap, from the left.
    pub ranges: Vec<Range<usize>>,
    /// Starts of all matches, overlapping ones included: the first [`MAX_LOCATIONS`].
    pub locations: Vec<usize>,
    /// How many places match, overlapping ones included as far as they were looked for.
    pub count: usize,
}

/// Finds `needle` in `text` by the first rung of the ladder that matches. An empty needle matches nothing.
pub fn find(text: &[u8], needle: &str) -> Option<Matches> {
    if needle.is_empty() {
        return None;
    }
    let search = |strategy, needle: &str| exact(strategy, text, needle.as_bytes());
    if let Some(found) = search(Strategy::Exact, needle) {
        return Some(found);
    }
    let lines = Projection::new(text, Fold::LineEndings);
    let plain = fold(needle, Fold::LineEndings);
    if (!lines.is_identity() || plain != needle)
        && let Some(found) = lines.find(Strategy::LineEndings, &plain)
    {
        return Some(found);
    }
    let quotes = Projection::new(text, Fold::LineEndingsAndQuotes);
    let straight = fold(needle, Fold::LineEndingsAndQuotes);
    if let Some(found) = quotes.find(Strategy::NormalizeQuotes, &straight) {
        return Some(found);
    }
    let unescaped = unescape(needle);
    if unescaped != needle {
        let found = search(Strategy::Unescape, &unescaped)
            .or_else(|| lines.find(Strategy::Unescape, &fold(&unescaped, Fold::LineEndings)));
        if found.is_some() {
            return found;
        }
    }
    flexible(text, needle)
}

/// A text after its matches were replaced.
#[derive(Debug, PartialEq, Eq)]
pub struct Edited {
    /// The new text.
    pub bytes: Vec<u8>,
    /// End of the first replacement in it.
    pub first_end: usize,
}

/// Replaces every range.
pub fn apply(text: &[u8], matches: &Matches, needle: &str, replacement: &str) -> Edited {
    let uniform = LineEnding::of(text);
    let mut bytes = Vec::with_capacity(text.len() + replacement.len());
    let (mut copied, mut first_end) = (0, None);
    for range in &matches.ranges {
        bytes.extend_from_slice(&text[copied..range.start]);
        bytes.extend_from_slice(adapt(&text[range.clone()], uniform, matches.strategy, needle, replacement).as_bytes());
        first_end.get_or_insert(bytes.len());
        copied = range.end;
    }
    bytes.extend_from_slice(&text[copied..]);
    Edited { bytes, first_end: first_end.unwrap_or(0) }
}

/// Line breaks of a text, where they are all alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnding {
    Lf,
    CrLf,
    MixedOrNone,
}

impl LineEnding {
    fn of(text: &[u8]) -> Self {
        let (mut lf, mut crlf) = (false, false);
        for at in memchr_iter(b'\n', text) {
            if at > 0 && text[at - 1] == b'\r' {
                crlf = true
            } else {
                lf = true
            }
            if lf && crlf {
                return Self::MixedOrNone;
            }
        }
        match (lf, crlf) {
            (true, false) => Self::Lf,
            (false, true) => Self::CrLf,
            _ => Self::MixedOrNone,
        }
    }
}

/// The replacement with the line breaks of what it replaces. A model writes `\n` whatever the file has; if it wrote
/// `\r` itself, it knows what it wants, and so it does wherever the file is no help.
fn adapt<'a>(matched: &[u8], file: LineEnding, strategy: Strategy, needle: &str, replacement: &'a str) -> Cow<'a, str> {
    let ending = match LineEnding::of(matched) {
        LineEnding::MixedOrNone => file,
        local => local,
    };
    match ending {
        LineEnding::CrLf if !needle.contains('\r') && !replacement.contains('\r') && replacement.contains('\n') => {
            replacement.replace('\n', "\r\n").into()
        }
        LineEnding::Lf if strategy == Strategy::LineEndings && needle.contains("\r\n") => {
            fold_line_endings(replacement)
        }
        _ => replacement.into(),
    }
}

fn exact(strategy: Strategy, text: &[u8], needle: &[u8]) -> Option<Matches> {
    let finder = Finder::new(needle);
    let starts: Vec<usize> = finder.find_iter(text).collect();
    let first = *starts.first()?;
    // Overlapping matches make an edit as ambiguous as separate ones do.
    let (mut locations, mut at) = (Vec::new(), first);
    loop {
        locations.push(at);
        match finder.find(&text[at + 1..]) {
            Some(next) if locations.len() < MAX_LOCATIONS => at += 1 + next,
            _ => break,
        }
    }
    let count = starts.len().max(locations.len());
    // A searched `\n` must not tear a `\r\n` apart: the break is taken whole.
    let whole = |start: usize| match needle[0] == b'\n' && text[..start].ends_with(b"\r") {
        true => start - 1,
        false => start,
    };
    let ranges = starts.into_iter().map(|start| whole(start)..start + needle.len()).collect();
    let locations = locations.into_iter().map(whole).collect();
    Some(Matches { strategy, ranges, locations, count })
}

/// What a projection treats as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fold {
    LineEndings,
    LineEndingsAndQuotes,
}

/// The file's bytes with some sequences folded to one byte, and the way back to the original offsets.
struct Projection<'a> {
    bytes: Cow<'a, [u8]>,
    /// For each folded byte: its offset here, and how many bytes were dropped up to and including it.
    folds: Vec<(usize, usize)>,
}

impl<'a> Projection<'a> {
    fn new(text: &'a [u8], fold: Fold) -> Self {
        let mut projection = Self { bytes: Cow::Borrowed(text), folds: Vec::new() };
        let (mut out, mut copied, mut at, mut dropped) = (Vec::new(), 0, 0, 0);
        while let Some(next) = memchr2(b'\r', 0xE2, &text[at..]) {
            at += next;
            let Some((byte, length)) = folded(&text[at..], fold) else {
                at += 1;
                continue;
            };
            out.extend_from_slice(&text[copied..at]);
            dropped += length - 1;
            projection.folds.push((out.len(), dropped));
            out.push(byte);
            at += length;
            copied = at;
        }
        if !projection.folds.is_empty() {
            out.extend_from_slice(&text[copied..]);
            projection.bytes = Cow::Owned(out);
        }
        projection
    }

    fn is_identity(&self) -> bool {
        self.folds.is_empty()
    }

    /// Offset in the original: folded bytes before `offset` count in their original length.
    fn original(&self, offset: usize) -> usize {
        let before = self.folds.partition_point(|(at, _)| *at < offset);
        offset + before.checked_sub(1).map_or(0, |last| self.folds[last].1)
    }

    fn find(&self, strategy: Strategy, needle: &str) -> Option<Matches> {
        let mut found = exact(strategy, &self.bytes, needle.as_bytes())?;
        for range in &mut found.ranges {
            *range = self.original(range.start)..self.original(range.end);
        }
        for location in &mut found.locations {
            *location = self.original(*location);
        }
        Some(found)
    }
}

fn folded(bytes: &[u8], fold: Fold) -> Option<(u8, usize)> {
    match (bytes, fold) {
        ([b'\r', b'\n', ..], _) => Some((b'\n', 2)),
        ([0xE2, 0x80, 0x98 | 0x99, ..], Fold::LineEndingsAndQuotes) => Some((b'\'', 3)),
        ([0xE2, 0x80, 0x9C | 0x9D, ..], Fold::LineEndingsAndQuotes) => Some((b'"', 3)),
        _ => None,
    }
}

fn fold(text: &str, fold: Fold) -> Cow<'_, str> {
    let lines = fold_line_endings(text);
    if fold == Fold::LineEndings {
        return lines;
    }
    lines
        .chars()
        .map(|c| match c {
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201C}' | '\u{201D}' => '"',
            other => other,
        })
        .collect::<String>()
        .into()
}

fn fold_line_endings(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// Takes one level of escaping away: `\n`, `\t`, `\r`, quotes, a backslash before a line break, and pairs of
/// backslashes. A backslash before anything else stays.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let ahead = chars.clone().next();
        out.push(match ahead {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some(quote @ ('\'' | '"' | '`' | '\\' | '\n')) => quote,
            _ => {
                out.push('\\');
                continue;
            }
        });
        chars.next();
    }
    out
}

/// Matches a block of lines that is indented differently as a whole: the indent of the first line is taken away from
/// all lines of the block, on both sides; then the lines must be equal. Only for several lines of which the first is
/// indented: anything less would match by accident.
fn flexible(text: &[u8], needle: &str) -> Option<Matches> {
    let (block, whole_last_line) = match needle.strip_suffix('\n') {
        Some(block) => (block.strip_suffix('\r').unwrap_or(block), true),
        None => (needle, false),
    };
    let lines: Vec<&[u8]> = block.split('\n').map(|line| without_cr(line.as_bytes())).collect();
    let indent = indent_of(lines[0]);
    if lines.len() < 2 && !whole_last_line || indent.is_empty() || indent.len() == lines[0].len() {
        return None;
    }
    let wanted: Vec<&[u8]> = lines.iter().map(|line| line.strip_prefix(indent).unwrap_or(line)).collect();
    // Starts of the file's lines; the first line of the block is found by its text, the rest is compared in place.
    let starts: Vec<usize> = std::iter::once(0).chain(memchr_iter(b'\n', text).map(|at| at + 1)).collect();
    let line = |index: usize| {
        let start = *starts.get(index)?;
        let end = starts.get(index + 1).map_or(text.len(), |next| next - 1);
        Some(without_cr(&text[start..end]))
    };
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut locations, mut count) = (Vec::new(), 0);
    for index in 0..starts.len() {
        let Some(first) = line(index) else { break };
        let indent = indent_of(first);
        if &first[indent.len()..] != wanted[0] {
            continue;
        }
        let same = |(offset, wanted): (usize, &&[u8])| {
            line(index + offset).is_some_and(|line| line.strip_prefix(indent).unwrap_or(line) == *wanted)
        };
        let last = index + wanted.len() - 1;
        if !wanted.iter().enumerate().all(same) || (whole_last_line && last + 1 >= starts.len()) {
            continue;
        }
        let end = match line(last) {
            Some(_) if whole_last_line => starts[last + 1],
            Some(line) => starts[last] + line.len(),
            None => break,
        };
        count += 1;
        if locations.len() < MAX_LOCATIONS {
            locations.push(starts[index]);
        }
        if ranges.last().is_none_or(|range| range.end <= starts[index]) {
            ranges.push(starts[index]..end);
        }
    }
    (count > 0).then_some(Matches { strategy: Strategy::Flexible, ranges, locations, count })
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn indent_of(line: &[u8]) -> &[u8] {
    &line[..line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()]
}

/// A place in a text, both counted from 1; columns count UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Position {
    /// Line; `\r\n`, `\n` and a lone `\r` each end one.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// Positions of ascending offsets, in one pass.
pub fn positions(text: &[u8], offsets: &[usize]) -> Vec<Position> {
    let (mut line, mut start, mut at) = (1, 0, 0);
    let mut out = Vec::with_capacity(offsets.len());
    for &offset in offsets {
        while let Some(found) = memchr2(b'\n', b'\r', &text[at..offset.max(at)]) {
            at += found + 1;
            // The `\n` of a `\r\n` that is cut by `offset` belongs to the same break, hence the look beyond it.
            if text[at - 1] == b'\r' && text.get(at) == Some(&b'\n') {
                if at == offset {
                    at -= 1;
                    break;
                }
                at += 1;
            }
            line += 1;
            start = at;
        }
        let column = super::text::utf16_len(&String::from_utf8_lossy(&text[start.min(offset)..offset])) + 1;
        out.push(Position { line, column });
    }
    out
}

/// Start of the line that holds `offset`.
pub fn line_start(text: &[u8], offset: usize) -> usize {
    memchr::memrchr(b'\n', &text[..offset]).map_or(0, |at| at + 1)
}

/// End of the line that holds `offset`, its line break included.
pub fn line_end(text: &[u8], offset: usize) -> usize {
    memchr(b'\n', &text[offset..]).map_or(text.len(), |at| offset + at + 1)
}
