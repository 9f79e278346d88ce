use super::*;
use crate::tools::shell::capture::{Capture, Counts};

fn of(text: &str) -> Captured {
    Captured { text: text.to_owned(), dropped: Counts::default() }
}

fn seq(n: usize) -> String {
    (1..=n).map(|i| format!("{i}\n")).collect()
}

#[test]
fn every_tier_has_a_pattern_that_compiles() {
    assert!(PATTERNS.iter().all(Option::is_some));
}

#[test]
fn commands_find_their_tier() {
    for (command, lines) in [
        ("git add .", 30),
        ("GIT RM x", 30),
        ("npm i", 30),
        ("pnpm install", 30),
        ("podman pull x", 30),
        ("pip3 install x", 30),
        ("npm run build", 100),
        ("git status", 100),
        ("ls -1 .", 100),
        ("  find . -name x", 100),
        ("rg x", 100),
        ("cargo build", 100),
        ("go mod tidy", 100),
        ("npm run test", 200),
        ("git log", 200),
        ("ls", 150),
        ("lsof -i", 150),
        ("echo git add", 150),
        ("cargo test", 150),
    ] {
        let at = |n| show(command, &of(&seq(n))).cut.is_some();
        assert!(!at(lines) && at(lines + 1), "{command} is cut after {lines} lines");
    }
}

#[test]
fn short_output_is_trimmed_and_left_whole() {
    assert_eq!(show("x", &of("\n\n  a\n\nb\n\n")), Shown { text: "a\n\nb".into(), cut: None });
    assert_eq!(show("x", &of("")), Shown { text: String::new(), cut: None });
}

#[test]
fn long_output_shows_its_first_and_last_lines() {
    let shown = show("seq 200", &of(&seq(200)));
    let lines: Vec<&str> = shown.text.split('\n').collect();
    assert_eq!(lines[..50], (1..=50).map(|i| i.to_string()).collect::<Vec<_>>());
    assert_eq!(lines[50..53], ["", "... (100 lines truncated, showing first 50 and last 50 of 200 total) ...", ""]);
    assert_eq!(lines[53..], (151..=200).map(|i| i.to_string()).collect::<Vec<_>>());
    assert_eq!(shown.cut, Some((200, 103)));
}

#[test]
fn a_summary_follows_where_the_command_has_one() {
    let shown = show("git add .", &of(&seq(31)));
    assert!(shown.text.contains("(11 lines truncated, showing first 10 and last 10 of 31 total)"));
    assert!(shown.text.ends_with("\n31\n\n[Summary: Successfully processed 31 files]"), "{}", shown.text);
}

#[test]
fn ends_that_do_not_fit_are_scaled_and_never_overlap() {
    let limits = Limits { max_lines: 5, max_chars: 1000, head_lines: 10, tail_lines: 10 };
    let shown = cut(&of(&seq(12)), limits, None);
    assert_eq!(shown.text, "1\n2\n3\n\n... (7 lines truncated, showing first 3 and last 2 of 12 total) ...\n\n11\n12");
}

#[test]
fn one_long_line_keeps_both_ends_within_the_limit() {
    let shown = show("x", &of(&format!("start{}end", "x".repeat(20_000))));
    assert!(shown.text.starts_with("startx") && shown.text.ends_with("xend"));
    assert!(shown.text.contains("... (20008 chars truncated) ..."));
    assert_eq!(units(&shown.text), 15_000);
}

#[test]
fn characters_are_cut_on_their_edges() {
    for shift in 0..3 {
        let text = format!("{}{}", "a".repeat(shift), "🦀".repeat(20_000));
        let shown = show("x", &of(&text));
        assert!(units(&shown.text) <= 15_000 && units(&shown.text) >= 14_996);
        assert!(!shown.text.contains('\u{fffd}'));
    }
}

#[test]
fn a_flood_reports_what_the_capture_left_out() {
    let mut capture = Capture::default();
    for i in 1..=1_000_000 {
        capture.push(format!("{i}\n").as_bytes());
    }
    let shown = show("seq 1 1000000", &capture.finish());
    assert!(shown.text.starts_with("1\n2\n") && shown.text.ends_with("\n1000000"));
    assert!(shown.text.contains("(999900 lines truncated, showing first 50 and last 50 of 1000000 total)"));
}

#[test]
fn a_flood_in_one_line_counts_all_of_it() {
    let mut capture = Capture::default();
    for _ in 0..30 {
        capture.push(&vec![b'a'; 1_000_000]);
    }
    capture.push(b"\nEND\n");
    let shown = show("x", &capture.finish());
    assert!(shown.text.starts_with("aaa") && shown.text.ends_with("a\nEND"));
    assert!(shown.text.contains("... (30000004 chars truncated) ..."), "{}", &shown.text[7_400..7_600]);
}

#[test]
fn the_note_names_the_streams_that_were_cut() {
    let (whole, cut) = (show("x", &of("a")), show("x", &of(&seq(200))));
    assert_eq!(note(&whole, &whole), None);
    assert_eq!(note(&cut, &whole).unwrap(), "Output truncated: stdout: 200 lines → 103 lines");
    assert_eq!(
        note(&cut, &cut).unwrap(),
        "Output truncated: stdout: 200 lines → 103 lines, stderr: 200 lines → 103 lines"
    );
}
