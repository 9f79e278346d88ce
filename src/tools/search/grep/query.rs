//! A search, compiled: the expression, the filters, and what to keep of the matches.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use serde::{Deserialize, Serialize};

use crate::tools::search::rules::Excluded;

/// Longest line, and in multi-line mode longest file, a thread holds. Lines beyond it are data, not text.
const MAX_LINE_BYTES: usize = 32 << 20;
const MAX_MULTILINE_FILE_BYTES: usize = 128 << 20;

/// What an entry of the result is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// A line.
    Content,
    /// A file.
    #[default]
    FilesWithMatches,
    /// A file with its number of matching lines.
    Count,
}

/// Which entries of the whole list are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) offset: u64,
    pub(super) limit: Option<u64>,
}

impl Window {
    /// Number of the first entry that is not wanted.
    pub(super) fn end(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| self.offset.saturating_add(limit))
    }
}

/// A search as asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    pub(super) pattern: String,
    pub(super) glob: Option<String>,
    pub(super) file_type: Option<String>,
    pub(super) mode: Mode,
    pub(super) ignore_case: bool,
    pub(super) line_numbers: bool,
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) multiline: bool,
    pub(super) window: Window,
}

/// A search that cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum QueryError {
    #[error("invalid regular expression {pattern:?}: {reason}{hint}")]
    Regex { pattern: String, reason: String, hint: &'static str },
    #[error("unrecognized file type: {0}; use a ripgrep type such as js, ts, py, rust, go or md, or glob \"*.{0}\"")]
    Type(String),
    #[error("glob {glob:?} is not valid: {reason}")]
    Glob { glob: String, reason: String },
}

/// A search, ready to run.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) request: Request,
    pub(super) matcher: RegexMatcher,
    overrides: Override,
    types: Types,
    excluded: Excluded,
    hidden_named: HashSet<String>,
}

impl Query {
    /// Compiles a request for a search below `root`; a glob is relative to it.
    ///
    /// # Errors
    /// The expression, the glob or the type is not valid.
    pub(super) fn compile(request: Request, root: &Path) -> Result<Self, QueryError> {
        let matcher = matcher(&request)?;
        let overrides = overrides(request.glob.as_deref(), root)?;
        let types = types(request.file_type.as_deref())?;
        let glob = request.glob.as_deref();
        let excluded = Excluded::unless_named(glob);
        let hidden_named = glob
            .filter(|glob| !glob.starts_with('!'))
            .into_iter()
            .flat_map(|glob| glob.split('/'))
            .filter(|segment| segment.starts_with('.') && segment.len() > 1 && !segment.contains(['*', '?', '[', '{']))
            .map(str::to_owned)
            .collect();
        Ok(Self { request, matcher, overrides, types, excluded, hidden_named })
    }

    /// A searcher for one thread.
    pub(super) fn searcher(&self, explicit: bool) -> Searcher {
        let request = &self.request;
        // As ripgrep: a file the caller named is searched although it holds NUL bytes, others are left at the first.
        let binary = if explicit { BinaryDetection::convert(0) } else { BinaryDetection::quit(0) };
        SearcherBuilder::new()
            .line_number(request.line_numbers)
            .before_context(request.before)
            .after_context(request.after)
            .multi_line(request.multiline)
            .binary_detection(binary)
            // A map of a file that is cut meanwhile ends the process.
            .memory_map(MmapChoice::never())
            .heap_limit(Some(if request.multiline { MAX_MULTILINE_FILE_BYTES } else { MAX_LINE_BYTES }))
            .build()
    }

    /// The walk over `root` with ripgrep's defaults: hidden files left out, ignore files honoured, git's inside of
    /// repositories only. The user's own ripgrep and git configuration does not count.
    pub(super) fn walk(&self, root: &Path) -> WalkBuilder {
        let mut builder = WalkBuilder::new(root);
        builder
            .current_dir(root)
            .git_global(false)
            .require_git(true)
            .add_custom_ignore_filename(".rgignore")
            .overrides(self.overrides.clone())
            .types(self.types.clone());
        let excluded = self.excluded.clone();
        // Hidden directories the glob names are entered; the glob alone would not reach into them.
        let named = self.hidden_named.clone();
        let reach_hidden = !named.is_empty();
        builder.hidden(!reach_hidden);
        builder.filter_entry(move |entry| {
            let name = entry.file_name();
            if entry.depth() == 0 {
                return true;
            }
            if reach_hidden && is_hidden(name) && !name.to_str().is_some_and(|name| named.contains(name)) {
                return false;
            }
            !(entry.file_type().is_some_and(|kind| kind.is_dir()) && excluded.contains(name))
        });
        builder
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.')
}

fn matcher(request: &Request) -> Result<RegexMatcher, QueryError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).unicode(true).octal(false).case_insensitive(request.ignore_case).ban_byte(Some(0));
    if request.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&request.pattern).map_err(|error| {
        let reason = error.to_string();
        let hint = match error.kind() {
            ErrorKind::NotAllowed(_) => "; set multiline to true to match across lines",
            _ if reason.contains("look-around") => {
                "; look-ahead and look-behind are not supported: search for the plain text and filter the lines"
            }
            _ if reason.contains("backreferences") => "; back-references are not supported: write the text out",
            _ if reason.contains("repetition") || reason.contains("unclosed") || reason.contains("unopened") => {
                "; escape special characters with a backslash to search for them literally"
            }
            _ => "",
        };
        QueryError::Regex { pattern: request.pattern.clone(), reason, hint }
    })
}

fn overrides(glob: Option<&str>, root: &Path) -> Result<Override, QueryError> {
    let Some(glob) = glob else { return Ok(Override::empty()) };
    let invalid = |error: ignore::Error| QueryError::Glob { glob: glob.to_owned(), reason: error.to_string() };
    let mut builder = OverrideBuilder::new(root);
    builder.add(glob).map_err(invalid)?;
    builder.build().map_err(invalid)
}

fn types(name: Option<&str>) -> Result<Types, QueryError> {
    let Some(name) = name else { return Ok(Types::empty()) };
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    builder.select(name);
    builder.build().map_err(|_| QueryError::Type(name.to_owned()))
}
