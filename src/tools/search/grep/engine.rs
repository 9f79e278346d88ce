//! Searching: one pass over the tree that counts everything and keeps what fits, then the wanted part in path order.
//!
//! The number of all entries is always exact. Lines are kept on the way only while they fit into a budget; a file
//! whose lines were not kept is searched once more if the wanted part touches it. So memory is bounded whatever
//! matches, and the usual search reads each file once.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use ignore::DirEntry;
use serde::Serialize;

use super::query::{Mode, Query};
use super::sink::{Counter, Line, Lines};
use crate::tools::search::shown::{Shown, shown};
use crate::tools::search::stop::Stop;
use crate::tools::search::walk::{self, Visitor, Warnings};

/// Most bytes of JSON in a result. Ten times what a model is shown before a result becomes an artifact.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Bytes of lines all threads together keep before they only count.
const KEEP_BYTES: usize = 16 << 20;
/// A thread that read this much asks for helpers: about a millisecond of work.
const HELP_AFTER_BYTES: u64 = 2 << 20;

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The wanted entries as JSON objects, separated by commas.
    pub(super) entries: String,
    /// How many they are.
    pub(super) returned: u64,
    /// How many there are altogether.
    pub(super) total: u64,
    /// Whether wanted entries are missing because the result is too large.
    pub(super) truncated: bool,
    /// Returned lines that were cut.
    pub(super) lines_cut: u64,
    /// Files whose name had to be escaped.
    pub(super) inexact_names: u64,
    /// What could not be read.
    pub(super) warnings: Warnings,
}

/// A file with matches.
#[derive(Debug)]
struct Hits {
    path: PathBuf,
    /// Entries it contributes.
    entries: u64,
    /// Its number, in count mode.
    count: u64,
    /// Its lines in content mode, where they were kept.
    lines: Option<Vec<Line>>,
}

/// Searches a file or a tree.
///
/// # Errors
/// The one file to search cannot be read; the text says why.
pub(super) fn search(query: &Query, root: &Path, stop: &Stop) -> Result<Outcome, String> {
    let budget = AtomicUsize::new(KEEP_BYTES);
    let meta = root.metadata().map_err(|error| format!("{}: {error}", shown(root).text))?;
    let is_tree = meta.is_dir();
    let mut visitors = if is_tree {
        walk::walk(&mut query.walk(root), stop, || Worker::new(query, &budget, stop, false))
    } else if meta.is_file() {
        let mut worker = Worker::new(query, &budget, stop, true);
        worker.search_file(root).map_err(|error| format!("{}: {error}", shown(root).text))?;
        vec![worker]
    } else {
        return Err(format!("{}: neither a file nor a directory", shown(root).text));
    };
    let mut hits = Vec::new();
    let mut warnings = Warnings::default();
    for visitor in &mut visitors {
        hits.append(&mut visitor.hits);
        warnings.merge(std::mem::take(&mut visitor.warnings));
    }
    hits.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut again = Worker::new(query, &budget, stop, !is_tree);
    let mut outcome = select(query, hits, &mut again);
    outcome.warnings = warnings;
    outcome.warnings.merge(again.warnings);
    Ok(outcome)
}

/// One thread's part of a search.
struct Worker<'a> {
    query: &'a Query,
    matcher: RegexMatcher,
    searcher: Searcher,
    budget: &'a AtomicUsize,
    stop: &'a Stop,
    hits: Vec<Hits>,
    warnings: Warnings,
    bytes_read: u64,
}

impl Visitor for Worker<'_> {
    fn visit(&mut self, entry: &DirEntry) {
        if entry.file_type().is_some_and(|kind| kind.is_file())
            && let Err(error) = self.search_file(entry.path())
            // A file that vanished between listing and opening was not there.
            && error.kind() != io::ErrorKind::NotFound
        {
            self.warn(format!("{}: {error}", shown(entry.path()).text));
        }
    }

    fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    fn wants_help(&self) -> bool {
        self.bytes_read > HELP_AFTER_BYTES
    }
}

impl<'a> Worker<'a> {
    fn new(query: &'a Query, budget: &'a AtomicUsize, stop: &'a Stop, explicit: bool) -> Self {
        Self {
            query,
            // A clone has its own cache: threads do not wait for each other.
            matcher: query.matcher.clone(),
            searcher: query.searcher(explicit),
            budget,
            stop,
            hits: Vec::new(),
            warnings: Warnings::default(),
            bytes_read: 0,
        }
    }

    fn search_file(&mut self, path: &Path) -> io::Result<()> {
        let mut input = Input { file: open(path)?, stop: self.stop, bytes: 0 };
        let result = match self.query.request.mode {
            Mode::FilesWithMatches => self.count(path, &mut input, true),
            Mode::Count => self.count(path, &mut input, false),
            Mode::Content => self.lines(path, &mut input),
        };
        self.bytes_read += input.bytes;
        result
    }

    fn count(&mut self, path: &Path, input: &mut Input<'_>, first_only: bool) -> io::Result<()> {
        let mut sink =
            if first_only { Counter::first(&self.matcher, self.stop) } else { Counter::all(&self.matcher, self.stop) };
        self.searcher.search_reader(&self.matcher, input, &mut sink)?;
        if sink.count > 0 {
            self.hits.push(Hits { path: path.to_owned(), entries: 1, count: sink.count, lines: None });
        }
        Ok(())
    }

    fn lines(&mut self, path: &Path, input: &mut Input<'_>) -> io::Result<()> {
        let mut sink = Lines::counting(&self.matcher, self.stop, MAX_OUTPUT_BYTES);
        self.searcher.search_reader(&self.matcher, input, &mut sink)?;
        if let Some(offset) = sink.binary_at()
            && sink.count > 0
        {
            self.warnings.push(format!("{}: binary from byte {offset}, not searched further", shown(path).text));
        }
        if sink.count > 0 {
            let fits = !sink.overflow && self.reserve(sink.bytes);
            let lines = fits.then_some(sink.kept);
            self.hits.push(Hits { path: path.to_owned(), entries: sink.count, count: 0, lines });
        }
        Ok(())
    }

    /// Entries `range` of a file whose lines were not kept.
    /// Says too whether there were more than fit into a result.
    fn lines_again(&mut self, path: &Path, range: Range<u64>) -> io::Result<(Vec<Line>, bool)> {
        let mut input = Input { file: open(path)?, stop: self.stop, bytes: 0 };
        let mut sink = Lines::window(&self.matcher, self.stop, range, MAX_OUTPUT_BYTES);
        self.searcher.search_reader(&self.matcher, &mut input, &mut sink)?;
        Ok((sink.kept, sink.overflow))
    }

    fn reserve(&self, bytes: usize) -> bool {
        self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// The wanted entries, in order.
fn select(query: &Query, hits: Vec<Hits>, again: &mut Worker<'_>) -> Outcome {
    let window = query.request.window;
    let total: u64 = hits.iter().map(|hits| hits.entries).sum();
    let mut outcome = Outcome { total, ..Outcome::default() };
    let mut position = 0;
    for hits in hits {
        let start = position;
        position += hits.entries;
        if position <= window.offset {
            continue;
        }
        if start >= window.end() || outcome.truncated || again.stop.is_set() {
            break;
        }
        let name = shown(&hits.path);
        outcome.inexact_names += u64::from(!name.exact);
        if query.request.mode != Mode::Content {
            let count = (query.request.mode == Mode::Count).then_some(hits.count);
            outcome.push(&Entry { count, ..Entry::of(&name) });
            continue;
        }
        let range = window.offset.saturating_sub(start)..(window.end() - start).min(hits.entries);
        let (lines, more) = match hits.lines {
            Some(mut lines) => {
                lines.truncate(usize::try_from(range.end).unwrap_or(usize::MAX));
                lines.drain(..usize::try_from(range.start).unwrap_or(usize::MAX).min(lines.len()));
                (lines, false)
            }
            None => match again.lines_again(&hits.path, range) {
                Ok(found) => found,
                Err(error) => {
                    again.warn(format!("{}: {error}", name.text));
                    continue;
                }
            },
        };
        for line in lines {
            outcome.lines_cut += u64::from(line.is_cut);
            let is_context = line.is_context.then_some(true);
            let content = Some(line.text.as_str());
            outcome.push(&Entry { line_number: line.number, content, is_context, ..Entry::of(&name) });
        }
        outcome.truncated |= more;
    }
    outcome
}

impl Outcome {
    fn push(&mut self, entry: &Entry<'_>) {
        if self.truncated {
            return;
        }
        // Entries are strings and numbers: they always serialise.
        let Ok(json) = serde_json::to_string(entry) else { return };
        if self.entries.len() + json.len() > MAX_OUTPUT_BYTES {
            self.truncated = true;
            return;
        }
        if self.returned > 0 {
            self.entries.push(',');
        }
        self.entries.push_str(&json);
        self.returned += 1;
    }
}

#[derive(Serialize)]
struct Entry<'a> {
    file_path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_context: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_not_utf8: Option<bool>,
}

impl<'a> Entry<'a> {
    fn of(name: &'a Shown) -> Self {
        Self {
            file_path: &name.text,
            line_number: None,
            content: None,
            count: None,
            is_context: None,
            name_not_utf8: (!name.exact).then_some(true),
        }
    }
}

/// A file that reads as ended with an error once the search must stop.
struct Input<'a> {
    file: File,
    stop: &'a Stop,
    bytes: u64,
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            // Not `Interrupted`: readers try again after that one.
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the search was stopped"));
        }
        let count = self.file.read(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

/// Opens a regular file, not what a link that was put in its place meanwhile points to, and without waiting for a
/// writer should it be a pipe by now.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_of_a_stopped_search_ends_with_an_error() {
        let file = tempfile::tempfile().expect("file");
        file.set_len(1 << 20).expect("sized");
        let stop = Stop::default();
        let mut input = Input { file, stop: &stop, bytes: 0 };
        assert_eq!(input.read(&mut [0; 64]).expect("read"), 64);
        stop.set();
        assert!(input.read(&mut [0; 64]).is_err());
    }
}
