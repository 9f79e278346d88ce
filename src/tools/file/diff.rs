//! The short diff that goes with an edit: the first change with a few lines around it.

use serde_json::json;
use similar::TextDiff;

use super::matching::{line_end, line_start};

/// Unchanged lines shown on either side.
const CONTEXT: usize = 4;
/// Texts around the change that are compared; the cost of a diff grows with the square of what differs.
const MAX_TEXT: usize = 64 * 1024;

/// Diff around the first change, between its markers; `None` when the change is too large to be worth showing.
///
/// `old` and `new` are the texts before and after; `start` is where both first differ, `old_end` and `new_end` are the
/// ends of the replaced and of the inserted text, `line` is the line of `start`, counted from 1.
pub fn snippet(old: &[u8], new: &[u8], start: usize, old_end: usize, new_end: usize, line: usize) -> Option<String> {
    let (mut from, mut before) = (line_start(old, start), 0);
    while before < CONTEXT && from > 0 {
        from = line_start(old, from - 1);
        before += 1;
    }
    let old = window(old, from, old_end)?;
    let new = window(new, from, new_end)?;
    let patch =
        TextDiff::from_lines(&old, &new).unified_diff().context_radius(CONTEXT).header("file", "file").to_string();
    let snippet = json!({ "patch": patch, "startLine": line.saturating_sub(before).max(1), "matchLine": line });
    Some(format!("\n<<<DIFF>>>\n{snippet}\n<<</DIFF>>>\n"))
}

/// The text from `from` to a few lines after `end`.
fn window(text: &[u8], from: usize, end: usize) -> Option<String> {
    let mut until = end;
    for _ in 0..=CONTEXT {
        until = line_end(text, until);
        if until - from > MAX_TEXT {
            return None;
        }
    }
    Some(String::from_utf8_lossy(&text[from..until]).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parse(snippet: &str) -> Value {
        let body = snippet.strip_prefix("\n<<<DIFF>>>\n").unwrap().strip_suffix("\n<<</DIFF>>>\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn the_first_change_is_shown_with_four_lines_around_it() {
        let lines: Vec<String> = (1..=20).map(|n| format!("l{n}\n")).collect();
        let old = lines.concat();
        let start = old.find("l10").unwrap();
        let new = old.replace("l10\n", "L\nM\n");
        let value = parse(&snippet(old.as_bytes(), new.as_bytes(), start, start + 3, start + 3, 10).unwrap());
        assert_eq!((&value["startLine"], &value["matchLine"]), (&json!(6), &json!(10)));
        let patch = value["patch"].as_str().unwrap();
        assert!(patch.starts_with("--- file\n+++ file\n@@ "), "{patch}");
        assert!(patch.contains(" l6\n l7\n l8\n l9\n-l10\n+L\n+M\n l11\n l12\n l13\n l14\n"), "{patch}");
    }

    #[test]
    fn a_change_at_the_very_start_or_end_has_what_context_there_is() {
        let value = parse(&snippet(b"a", b"b", 0, 1, 1, 1).unwrap());
        assert_eq!(value["startLine"], 1);
        let value = parse(&snippet(b"a\n", b"", 0, 2, 0, 1).unwrap());
        assert!(value["patch"].as_str().unwrap().contains("-a"));
    }

    #[test]
    fn a_very_large_change_has_no_snippet() {
        let old = vec![b'x'; MAX_TEXT + 1];
        assert_eq!(snippet(&old, b"", 0, old.len(), 0, 1), None);
    }
}
