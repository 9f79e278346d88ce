//! Server-sent events, parsed incrementally from bytes by the WHATWG algorithm.
//!
//! Pieces may be cut anywhere: in a line end, in a character, in the byte order mark. The usual event, one `data:` line
//! followed by a blank line in the same piece, is handed out as a slice of that piece without being copied.

use bytes::Bytes;
use memchr::memchr2;

/// Bound of one line and of the data of one event. Real frames stay below a megabyte.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event. The slices live until the parser is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The data lines joined with line feeds, as bytes: the reader decides what to do about broken UTF-8.
    pub data: &'a [u8],
    /// The `event` field; empty where there was none.
    pub event: &'a [u8],
}

/// A line or an event is larger than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than {limit} bytes")]
pub struct SseTooLarge {
    /// The bound.
    pub limit: usize,
}

/// The parser. Feed it with [`SseParser::push`], then call [`SseParser::next_event`] until it has no more.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    piece: Bytes,
    at: usize,
    /// The beginning of a line whose end was not in its piece.
    carry: Vec<u8>,
    /// Data lines of the event so far; the last one may still lie in the piece.
    data: Data,
    joined: Vec<u8>,
    event: Vec<u8>,
    last_id: Option<Box<str>>,
    retry_ms: Option<u64>,
    /// The piece ended with a carriage return: a line feed at the start of the next one belongs to it.
    skip_line_feed: bool,
    first_line: bool,
    /// What was handed out last is to be forgotten.
    handed_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    None,
    /// In the piece, from–to.
    InPiece(usize, usize),
    Joined,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseParser {
    /// A parser with its own bound.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            piece: Bytes::new(),
            at: 0,
            carry: Vec::new(),
            data: Data::None,
            joined: Vec::new(),
            event: Vec::new(),
            last_id: None,
            retry_ms: None,
            skip_line_feed: false,
            first_line: true,
            handed_out: false,
        }
    }

    /// Adds a piece. Contract: the pieces before have been read to their end.
    pub fn push(&mut self, piece: Bytes) {
        debug_assert!(self.at >= self.piece.len(), "the piece before was read to its end");
        self.forget();
        self.piece = piece;
        self.at = 0;
        if self.skip_line_feed && !self.piece.is_empty() {
            self.skip_line_feed = false;
            if self.piece[0] == b'\n' {
                self.at = 1;
            }
        }
    }

    /// The next complete event, or `None` when another piece is needed.
    ///
    /// # Errors
    /// A line or an event exceeds the bound.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseTooLarge> {
        self.forget();
        while let Some(length) = memchr2(b'\n', b'\r', &self.piece[self.at..]) {
            let (from, to) = (self.at, self.at + length);
            self.at = to + 1;
            if self.piece[to] == b'\r' {
                match self.piece.get(self.at) {
                    Some(b'\n') => self.at += 1,
                    Some(_) => {}
                    None => self.skip_line_feed = true,
                }
            }
            if self.carry.is_empty() {
                self.line_in_piece(from, to)?;
            } else {
                let mut line = std::mem::take(&mut self.carry);
                self.bound(line.len() + length)?;
                line.extend_from_slice(&self.piece[from..to]);
                self.line(&line, None)?;
                if line.is_empty() {
                    continue;
                }
                line.clear();
                self.carry = line;
            }
            if self.handed_out {
                if self.data != Data::None {
                    return Ok(Some(self.current()));
                }
                self.forget();
            }
        }
        self.keep_rest()?;
        Ok(None)
    }

    /// At the end of the stream: the event that was still open, which the algorithm drops. Adapters whose providers
    /// leave out the final blank line may want it.
    ///
    /// # Errors
    /// The event exceeds the bound.
    pub fn rest(&mut self) -> Result<Option<SseEvent<'_>>, SseTooLarge> {
        self.forget();
        let line = std::mem::take(&mut self.carry);
        if !line.is_empty() {
            self.line(&line, None)?;
        }
        if self.data == Data::None {
            return Ok(None);
        }
        self.handed_out = true;
        Ok(Some(self.current()))
    }

    /// The last `id` field.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The last valid `retry` field, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    fn current(&self) -> SseEvent<'_> {
        let data = match self.data {
            Data::None => &[][..],
            Data::InPiece(from, to) => &self.piece[from..to],
            Data::Joined => &self.joined,
        };
        SseEvent { data, event: &self.event }
    }

    fn forget(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.data = Data::None;
            self.joined.clear();
            self.event.clear();
        }
    }

    fn line_in_piece(&mut self, from: usize, to: usize) -> Result<(), SseTooLarge> {
        self.bound(to - from)?;
        let line = &self.piece[from..to];
        if !self.first_line {
            if line.is_empty() {
                self.handed_out = true;
                return Ok(());
            }
            if let (Data::None, Some(value)) = (self.data, line.strip_prefix(b"data:")) {
                let start = to - value.len() + usize::from(value.first() == Some(&b' '));
                self.data = Data::InPiece(start, to);
                return Ok(());
            }
        }
        // A cheap clone of the handle frees `self` while the line is read.
        let piece = self.piece.clone();
        self.line(&piece[from..to], Some(from))
    }

    /// Reads one line; `at` is where it lies in the piece, if it does.
    fn line(&mut self, line: &[u8], at: Option<usize>) -> Result<(), SseTooLarge> {
        let (line, at) = match line.strip_prefix(BOM) {
            Some(rest) if self.first_line => (rest, at.map(|at| at + BOM.len())),
            _ => (line, at),
        };
        self.first_line = false;
        if line.is_empty() {
            self.handed_out = true;
            return Ok(());
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let name = &line[..colon];
        let mut start = (colon + 1).min(line.len());
        if line.get(start) == Some(&b' ') {
            start += 1;
        }
        let value = &line[start..];
        match name {
            b"data" => {
                if let (Data::None, Some(at)) = (self.data, at) {
                    self.data = Data::InPiece(at + start, at + line.len());
                } else {
                    self.join()?;
                    if self.data == Data::Joined {
                        self.joined.push(b'\n');
                    }
                    self.bound(self.joined.len() + value.len())?;
                    self.joined.extend_from_slice(value);
                    self.data = Data::Joined;
                }
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.last_id = Some(String::from_utf8_lossy(value).into()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            }
            // A comment has an empty name; unknown fields are ignored.
            _ => {}
        }
        Ok(())
    }

    /// Copies data that lies in the piece, because it is about to be joined or the piece to be replaced.
    fn join(&mut self) -> Result<(), SseTooLarge> {
        if let Data::InPiece(from, to) = self.data {
            self.bound(to - from)?;
            self.joined.clear();
            self.joined.extend_from_slice(&self.piece[from..to]);
            self.data = Data::Joined;
        }
        Ok(())
    }

    fn keep_rest(&mut self) -> Result<(), SseTooLarge> {
        self.join()?;
        let rest = self.piece.split_off(self.at.min(self.piece.len()));
        self.bound(self.carry.len() + rest.len())?;
        self.carry.extend_from_slice(&rest);
        self.piece = Bytes::new();
        self.at = 0;
        Ok(())
    }

    fn bound(&self, size: usize) -> Result<(), SseTooLarge> {
        if size > self.limit { Err(SseTooLarge { limit: self.limit }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
