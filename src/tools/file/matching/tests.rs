use proptest::prelude::*;

use super::nearest::NearLine;
use super::{Strategy, *};

/// Result of an edit with `replace_all`, and the rung that matched.
fn edit(text: &[u8], old: &str, new: &str) -> Option<(Strategy, Vec<u8>)> {
    let found = find(text, old)?;
    Some((found.strategy, apply(text, &found, old, new).bytes))
}

#[test]
fn the_first_rung_that_matches_decides() {
    use Strategy::*;
    for (name, text, old, new, expected) in [
        ("exact", "alpha beta", "beta", "B", Some((Exact, "alpha B"))),
        ("no pattern", "abc a.c", "a.c", "Z", Some((Exact, "abc Z"))),
        ("verbatim", "a T b", "T", "$& $1 $` $' $$ \\1", Some((Exact, "a $& $1 $` $' $$ \\1 b"))),
        ("no overlap", "aaaaa", "aa", "b", Some((Exact, "bba"))),
        (
            "crlf file",
            "\tif (a) {\r\n\t\tgo();\r\n\t}\r\n",
            "\tif (a) {\n\t\tgo();",
            "\tif (b) {\n\t\tgo();\n\t\tstop();",
            Some((LineEndings, "\tif (b) {\r\n\t\tgo();\r\n\t\tstop();\r\n\t}\r\n")),
        ),
        ("break removed", "a\r\nb", "\nb", "", Some((Exact, "a"))),
        ("leading break", "a\r\nb", "\nb", "\nc", Some((Exact, "a\r\nc"))),
        ("trailing break", "a\r\nb", "a\n", "", Some((LineEndings, "b"))),
        ("crlf searched in lf file", "a\nb\n", "a\r\nb", "c\r\nd", Some((LineEndings, "c\nd\n"))),
        ("one word in crlf", "one\r\ntwo\r\nthree\r\n", "two", "TWO", Some((Exact, "one\r\nTWO\r\nthree\r\n"))),
        ("new lines in crlf", "one\r\ntwo\r\n", "two", "2\n3", Some((Exact, "one\r\n2\r\n3\r\n"))),
        ("mixed file", "a\r\nb\nc\rd\n", "c", "C\nD", Some((Exact, "a\r\nb\nC\nD\rd\n"))),
        ("explicit crlf", "a\r\nb\r\n", "a\r\nb", "c\nd", Some((Exact, "c\nd\r\n"))),
        ("curly in file", "say \u{201C}hi\u{201D} now", "say \"hi\"", "bye", Some((NormalizeQuotes, "bye now"))),
        ("curly searched", "say 'hi'", "\u{2018}hi\u{2019}", "x", Some((NormalizeQuotes, "say x"))),
        ("curly and crlf", "\u{2019}a\r\nb\u{2019}", "'a\nb'", "x\ny", Some((NormalizeQuotes, "x\r\ny"))),
        ("escaped", "a\nb", "a\\nb", "c", Some((Unescape, "c"))),
        ("escaped in crlf", "a\r\nb", "a\\nb", "c", Some((Unescape, "c"))),
        ("indent", "  if x:\n    y\n", "    if x:\n      y", "  pass", Some((Flexible, "  pass\n"))),
        ("indent and crlf", "  a\r\n    b\r\nc", "    a\n      b\n", "  d\n", Some((Flexible, "  d\r\nc"))),
        ("one line", "  if x:\n", "    if x:", "y", None),
        ("no indent", "  a\n  b\n", "a\nb", "c", None),
        ("inner space", "start( now )", "start(now)", "begin(now)", None),
        ("empty", "abc", "", "x", None),
    ] {
        let got = edit(text.as_bytes(), old, new).map(|(s, bytes)| (s, String::from_utf8(bytes).unwrap()));
        assert_eq!(got, expected.map(|(s, text)| (s, text.to_owned())), "{name}");
    }
}

#[test]
fn overlapping_matches_are_counted_as_places() {
    let found = find(b"aaaa\n", "aa").unwrap();
    assert_eq!((found.ranges.len(), found.count, found.locations), (2, 3, vec![0, 1, 2]));
    let found = find(&b"x".repeat(1000), "x").unwrap();
    assert_eq!((found.count, found.locations.len()), (1000, MAX_LOCATIONS));
}

#[test]
fn unescaping_takes_one_level_away() {
    for (text, expected) in [
        ("a\\\\b", "a\\b"),
        ("\\n\\t\\r", "\n\t\r"),
        ("\\'\\\"\\`", "'\"`"),
        ("\\\n", "\n"),
        ("\\\\n", "\\n"),
        ("\\q", "\\q"),
        ("end\\", "end\\"),
    ] {
        assert_eq!(unescape(text), expected, "{text:?}");
    }
}

#[test]
fn positions_count_every_kind_of_line_break_once() {
    let text = "same\r\nmiddle\r\n  same\rx\n😀y".as_bytes();
    let offsets: Vec<usize> =
        ["same", "  same", "x", "y"].iter().map(|it| memchr::memmem::rfind(text, it.as_bytes()).unwrap()).collect();
    let at = |line, column| Position { line, column };
    assert_eq!(positions(text, &[0, offsets[0], offsets[2], offsets[3]]), [at(1, 1), at(3, 3), at(4, 1), at(5, 3)]);
    assert_eq!(positions(b"a\r\nb", &[1, 2, 3]), [at(1, 2), at(1, 3), at(2, 1)]);
}

#[test]
fn bytes_that_are_no_utf8_are_left_alone() {
    let (strategy, bytes) = edit(b"caf\xE9 = 1\nport = 80\n", "80", "81").unwrap();
    assert_eq!((strategy, &bytes[..]), (Strategy::Exact, &b"caf\xE9 = 1\nport = 81\n"[..]));
}

#[test]
fn similar_lines_are_named_best_first() {
    let text = b"fn start() {\n    begin( now );\n    start( now );\n}\n";
    let found = nearest(text, "start(now);");
    assert_eq!(found[0], NearLine { line: 3, text: "    start( now );".to_owned() });
    assert_eq!(nearest(text, "zzz qqq www"), []);
    assert_eq!(nearest(text, "x"), []);
}

#[test]
fn another_normalisation_of_the_same_text_is_recognised() {
    let text = "re\u{301}sume\u{301} = 1\n".as_bytes();
    assert!(normalized_twin(text, "r\u{e9}sum\u{e9} = 1"));
    assert!(!normalized_twin(text, "resume = 1"));
    assert!(!normalized_twin(b"abc", "abd"));
}

proptest! {
    #[test]
    fn bytes_outside_the_matches_never_change(
        text in prop::collection::vec(prop::sample::select(
            vec!["a", "b", "\n", "\r\n", "\r", " ", "\t", "'", "\"", "\u{2019}", "\u{201C}", "\\", "n", "é"]), 0..60),
        needle in prop::collection::vec(prop::sample::select(
            vec!["a", "b", "\n", "\r\n", " ", "'", "\"", "\u{2019}", "\\", "n", "é"]), 1..6),
        replacement in "[ab\n]{0,4}",
        broken in any::<bool>(),
    ) {
        let mut text = text.concat().into_bytes();
        if broken {
            text.insert(text.len() / 2, 0xFF);
        }
        let needle = needle.concat();
        let Some(found) = find(&text, &needle) else { return Ok(()) };
        let edited = apply(&text, &found, &needle, &replacement).bytes;
        // Walk both texts: every gap between matches must be there unchanged, and in order.
        let (mut old, mut new) = (0, 0);
        for range in &found.ranges {
            prop_assert!(old <= range.start && range.start < range.end && range.end <= text.len());
            let gap = &text[old..range.start];
            prop_assert_eq!(&edited[new..new + gap.len()], gap);
            new += gap.len();
            let rest = &edited[new..];
            let plain = replacement.as_bytes();
            let crlf = replacement.replace('\n', "\r\n");
            new += if rest.starts_with(crlf.as_bytes()) { crlf.len() } else {
                prop_assert!(rest.starts_with(plain));
                plain.len()
            };
            old = range.end;
        }
        prop_assert_eq!(&edited[new..], &text[old..]);
        if found.strategy == Strategy::Exact {
            let matched = &text[found.ranges[0].clone()];
            prop_assert!(matched == needle.as_bytes() || matched.strip_prefix(b"\r") == Some(needle.as_bytes()));
        }
    }
}
