//! Cuts long output for the model: lines first, then characters, by limits that depend on the command.

use std::sync::LazyLock;

use regex::Regex;

use super::capture::{Captured, units};

/// How much of a stream the model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    max_lines: usize,
    max_chars: usize,
    head_lines: usize,
    tail_lines: usize,
}

const AGGRESSIVE: Limits = Limits { max_lines: 30, max_chars: 3_000, head_lines: 10, tail_lines: 10 };
const MODERATE: Limits = Limits { max_lines: 100, max_chars: 10_000, head_lines: 40, tail_lines: 40 };
const CONSERVATIVE: Limits = Limits { max_lines: 200, max_chars: 20_000, head_lines: 80, tail_lines: 80 };
const DEFAULT: Limits = Limits { max_lines: 150, max_chars: 15_000, head_lines: 50, tail_lines: 50 };

/// Command patterns in order, the first match decides: pattern, limits, summary (`{n}` is the number of lines).
const TIERS: [(&str, Limits, Option<&str>); 14] = [
    (r"git\s+(rm|add)\b", AGGRESSIVE, Some("Successfully processed {n} files")),
    (
        r"(npm|pnpm|yarn|bun)\s+(install|i|add|remove|uninstall)\b",
        AGGRESSIVE,
        Some("Package operation completed ({n} lines of output)"),
    ),
    (r"(docker|podman)\s+(build|pull|push)\b", AGGRESSIVE, Some("Docker operation completed ({n} lines)")),
    (
        r"(pip3?|poetry|pipenv)\s+(install|uninstall)\b",
        AGGRESSIVE,
        Some("Python package operation completed ({n} lines)"),
    ),
    (
        r"(npm|pnpm|yarn|bun)\s+(run|exec)\s+(build|compile|bundle)\b",
        MODERATE,
        Some("Build completed ({n} lines of output)"),
    ),
    (r"git\s+(status|branch|remote)\b", MODERATE, None),
    (r"(ls|dir|tree)\s", MODERATE, Some("Listed {n} items")),
    (r"find\s", MODERATE, Some("Found {n} matches")),
    (r"(grep|rg|ag)\s", MODERATE, Some("Found {n} matching lines")),
    (r"(cargo|rustup)\s+(build|install|update)\b", MODERATE, Some("Rust operation completed ({n} lines)")),
    (r"go\s+(build|get|mod)\b", MODERATE, Some("Go operation completed ({n} lines)")),
    (r"(npm|pnpm|yarn|bun)\s+(run|exec)\s+(test|lint|check)\b", CONSERVATIVE, None),
    (r"git\s+(log|diff|show)\b", CONSERVATIVE, None),
    ("", DEFAULT, None),
];

static PATTERNS: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| TIERS.iter().map(|(pattern, ..)| Regex::new(&format!("(?i)^{pattern}")).ok()).collect());

/// A stream as the model is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// The text, without blank space at its ends.
    pub text: String,
    /// Lines before and after cutting, when something was cut.
    pub cut: Option<(u64, u64)>,
}

/// Trims a stream and cuts it by the limits of its command.
pub(super) fn show(command: &str, captured: &Captured) -> Shown {
    let command = command.trim_start();
    let (limits, summary) = TIERS
        .iter()
        .zip(PATTERNS.iter())
        .find(|(_, pattern)| pattern.as_ref().is_some_and(|pattern| pattern.is_match(command)))
        .map_or((DEFAULT, None), |((_, limits, summary), _)| (*limits, *summary));
    cut(captured, limits, summary)
}

fn cut(captured: &Captured, limits: Limits, summary: Option<&str>) -> Shown {
    let text = captured.text.trim();
    let lines = text.matches('\n').count() as u64 + captured.dropped.newlines + u64::from(!text.is_empty());
    let chars = units(text) + captured.dropped.units;
    if lines <= limits.max_lines as u64 && chars <= limits.max_chars as u64 {
        return Shown { text: text.to_owned(), cut: None };
    }
    // What the capture left out never shows: where it kept both ends, they alone are longer than the character limit.
    let mut shown = if lines > limits.max_lines as u64 { cut_lines(text, lines, limits) } else { text.to_owned() };
    let shown_units = units(&shown);
    if shown_units > limits.max_chars as u64 {
        // After cutting lines only what is left was measured again; before, all that was printed counts.
        let all = if lines > limits.max_lines as u64 { shown_units } else { chars };
        shown = cut_chars(&shown, all, limits.max_chars);
    }
    let left = shown.matches('\n').count() as u64 + 1;
    if let Some(summary) = summary {
        shown.push_str(&format!("\n\n[Summary: {}]", summary.replace("{n}", &lines.to_string())));
    }
    Shown { text: shown, cut: Some((lines, left)) }
}

fn cut_lines(text: &str, total: u64, limits: Limits) -> String {
    let (head, tail) = ends(limits);
    let mut out: String = text.split_inclusive('\n').take(head).collect();
    out.push_str(&format!(
        "\n... ({} lines truncated, showing first {head} and last {tail} of {total} total) ...\n\n",
        total - (head + tail) as u64
    ));
    let from = text.rmatch_indices('\n').nth(tail.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    out.push_str(if tail == 0 { "" } else { &text[from..] });
    out
}

/// Head and tail that fit into the line limit; the head gets the larger share.
fn ends(limits: Limits) -> (usize, usize) {
    let wanted = limits.head_lines + limits.tail_lines;
    if wanted <= limits.max_lines {
        return (limits.head_lines, limits.tail_lines);
    }
    let head = (limits.max_lines * limits.head_lines).div_ceil(wanted);
    (head, limits.max_lines - head)
}

fn cut_chars(text: &str, total: u64, max: usize) -> String {
    let marker = format!("\n... ({total} chars truncated) ...\n");
    let room = max.saturating_sub(marker.len());
    let (head, tail) = (room.div_ceil(2), room / 2);
    format!("{}{marker}{}", &text[..prefix(text, head)], &text[suffix(text, tail)..])
}

/// Byte length of the longest prefix of at most `max` UTF-16 units.
fn prefix(text: &str, max: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > max {
            return at;
        }
    }
    text.len()
}

/// Byte offset of the longest suffix of at most `max` UTF-16 units.
fn suffix(text: &str, max: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.len_utf16();
        if used > max {
            return at + c.len_utf8();
        }
    }
    0
}

/// The note about both streams, when either was cut.
pub(super) fn note(stdout: &Shown, stderr: &Shown) -> Option<String> {
    let parts: Vec<String> = [("stdout", stdout), ("stderr", stderr)]
        .iter()
        .filter_map(|(name, shown)| shown.cut.map(|(before, after)| format!("{name}: {before} lines → {after} lines")))
        .collect();
    (!parts.is_empty()).then(|| format!("Output truncated: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests;
