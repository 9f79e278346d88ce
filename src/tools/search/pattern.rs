//! Glob patterns: what they match, and what they say about where matches can be.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

#[cfg(test)]
mod tests;

/// Alternatives one `{1..9}` range may expand to; more is a mistake, not a search.
const MAX_RANGE: u32 = 1000;

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum PatternError {
    #[error("glob pattern {0:?} names no file; write for instance \"**/*\"")]
    Empty(String),
    #[error("glob pattern {0:?} must not contain \"..\"; pass the directory to search as path")]
    Parent(String),
    #[error("glob pattern {0:?} uses {1}(...), which is not supported; use {{a,b}} alternatives or several searches")]
    Extglob(String, char),
    #[error("glob pattern {0:?} has a range of more than {MAX_RANGE} alternatives")]
    Range(String),
    #[error("glob pattern {0:?} is not valid: {1}")]
    Syntax(String, String),
}

/// Whether letters match in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Sensitive,
    Insensitive,
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// Directory an absolute pattern starts in; the rest of the pattern is relative to it.
    pub(super) base: Option<PathBuf>,
    /// The part that is matched against relative paths.
    pub(super) relative: String,
    set: GlobSet,
    /// `!pattern`: everything else matches.
    negated: bool,
    directories_only: bool,
    /// Leading segments without special characters, lower-cased where case does not matter: matches lie below them.
    prefix: Vec<String>,
    case: Case,
    max_depth: Option<usize>,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The pattern is not valid, or leaves the directory it starts in.
    pub(super) fn parse(given: &str, case: Case) -> Result<Self, PatternError> {
        let (negated, text) = match given.strip_prefix('!') {
            Some(rest) if !rest.starts_with('(') => (true, rest),
            _ => (false, given),
        };
        let (base, text) = split_base(text);
        let mut text = text;
        while let Some(rest) = text.strip_prefix("./") {
            text = rest.trim_start_matches('/');
        }
        let directories_only = text.ends_with('/');
        let text = text.trim_end_matches('/');
        if text.is_empty() || text == "." {
            return Err(PatternError::Empty(given.to_owned()));
        }
        if text.split('/').any(|segment| segment == "..") {
            return Err(PatternError::Parent(given.to_owned()));
        }
        let relative = expand(text, given)?;
        let mut set = GlobSetBuilder::new();
        set.add(compile(&relative, case).map_err(|error| PatternError::Syntax(given.to_owned(), error))?);
        // Names like `[id]` are common in web projects; taken literally they must match too.
        if relative.contains('[')
            && let Ok(literal) = compile(&relative.replace('[', "[[]"), case)
        {
            set.add(literal);
        }
        let set = set.build().map_err(|error| PatternError::Syntax(given.to_owned(), error.to_string()))?;
        let prefix = if negated { Vec::new() } else { literal_prefix(&relative, case) };
        let unbounded = negated || relative.contains("**") || has_separator_in_braces(&relative);
        let max_depth = (!unbounded).then(|| relative.split('/').count());
        Ok(Self { base, relative, set, negated, directories_only, prefix, case, max_depth })
    }

    /// Whether an entry matches, given its path relative to the root, in the system's own encoding.
    pub(super) fn matches(&self, relative: &[u8], is_dir: bool) -> bool {
        (is_dir || !self.directories_only)
            && self.set.is_match_candidate(&Candidate::from_bytes(relative)) != self.negated
    }

    /// Whether matches can lie below a directory of this name, `depth` levels below the root (1 is directly below).
    pub(super) fn may_contain(&self, name: &OsStr, depth: usize) -> bool {
        let Some(wanted) = depth.checked_sub(1).and_then(|level| self.prefix.get(level)) else { return true };
        match (name.to_str(), self.case) {
            (Some(name), Case::Sensitive) => name == wanted,
            (Some(name), Case::Insensitive) => name.eq_ignore_ascii_case(wanted) || name.to_lowercase() == *wanted,
            (None, _) => false,
        }
    }

    /// How deep matches can lie; `None` is without end.
    pub(super) fn max_depth(&self) -> Option<usize> {
        self.max_depth
    }

    /// The last segment: what names of files must match.
    pub(super) fn last_segment(&self) -> &str {
        self.relative.rsplit('/').next().unwrap_or(&self.relative)
    }

    /// Whether the pattern says what not to find.
    pub(super) fn is_negated(&self) -> bool {
        self.negated
    }
}

fn compile(pattern: &str, case: Case) -> Result<globset::Glob, String> {
    GlobBuilder::new(pattern)
        .case_insensitive(case == Case::Insensitive)
        .literal_separator(true)
        .empty_alternates(true)
        .build()
        .map_err(|error| error.kind().to_string())
}

fn is_special(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!' | '(' | ')')
}

/// Splits an absolute pattern at the last directory that is named without special characters.
fn split_base(text: &str) -> (Option<PathBuf>, &str) {
    if !Path::new(text).is_absolute() {
        return (None, text);
    }
    let special = text.find(|c| is_special(c) && !(cfg!(windows) && c == '\\')).unwrap_or(text.len());
    let separator = |c: char| c == '/' || (cfg!(windows) && c == '\\');
    match text[..special].rfind(separator) {
        Some(at) => (Some(PathBuf::from(&text[..=at])), &text[at + 1..]),
        None => (None, text),
    }
}

/// Rewrites what fast-glob knows and globset does not: `@(a|b)`, `?(a|b)`, `{1..3}`.
fn expand(text: &str, given: &str) -> Result<String, PatternError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_group = 0_usize;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let escaped = after.chars().next().map_or(0, char::len_utf8);
                out.push_str(&rest[..1 + escaped]);
                rest = &after[escaped..];
                continue;
            }
            '@' | '?' if after.starts_with('(') && after.contains(')') => {
                out.push_str(if c == '@' { "{" } else { "{," });
                in_group += 1;
                rest = &after[1..];
                continue;
            }
            '+' | '*' | '!' if after.starts_with('(') && after.contains(')') => {
                return Err(PatternError::Extglob(given.to_owned(), c));
            }
            '|' if in_group > 0 => out.push(','),
            ')' if in_group > 0 => {
                in_group -= 1;
                out.push('}');
            }
            '{' => {
                if let Some((body, tail)) = after.split_once('}')
                    && let Some((from, to)) = body.split_once("..")
                    && let Some(range) = expand_range(from, to)
                {
                    out.push_str(&range.ok_or_else(|| PatternError::Range(given.to_owned()))?);
                    rest = tail;
                    continue;
                }
                out.push(c);
            }
            _ => out.push(c),
        }
        rest = after;
    }
    Ok(out)
}

/// `{from..to}` as alternatives. Outer `None`: not a range; inner `None`: too large.
fn expand_range(from: &str, to: &str) -> Option<Option<String>> {
    let alternatives = |values: Vec<String>| format!("{{{}}}", values.join(","));
    if let (Ok(a), Ok(b)) = (from.parse::<u32>(), to.parse::<u32>()) {
        let (low, high) = (a.min(b), a.max(b));
        if high - low >= MAX_RANGE {
            return Some(None);
        }
        let width = if from.starts_with('0') || to.starts_with('0') { from.len().max(to.len()) } else { 0 };
        return Some(Some(alternatives((low..=high).map(|n| format!("{n:0width$}")).collect())));
    }
    let letter = |text: &str| match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    };
    let (a, b) = (letter(from)?, letter(to)?);
    Some(Some(alternatives(
        (a.min(b)..=a.max(b)).filter(u8::is_ascii_alphabetic).map(|l| char::from(l).into()).collect(),
    )))
}

fn literal_prefix(pattern: &str, case: Case) -> Vec<String> {
    let mut segments: Vec<&str> = pattern.split('/').collect();
    segments.pop();
    let literal = segments.into_iter().take_while(|segment| !segment.is_empty() && !segment.contains(is_special));
    match case {
        Case::Sensitive => literal.map(str::to_owned).collect(),
        Case::Insensitive => literal.map(str::to_lowercase).collect(),
    }
}

fn has_separator_in_braces(pattern: &str) -> bool {
    let mut depth = 0_i32;
    pattern.chars().any(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth > 0 && c == '/'
    })
}
