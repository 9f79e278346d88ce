//! The same searches by this module and by the `rg` program must give the same.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::GrepTool;
use crate::tools::search::rules;
use crate::tools::search::testing::{Tree, metadata, model_json, tree};

const QUERIES: usize = 160;

/// A small deterministic generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

fn corpus(dice: &mut Dice) -> Tree {
    let words =
        ["alpha", "Beta", "gamma42", "needle", "naïve", "世界", "foo(bar)", "a.b", "x: 1", "\tend", "--flag", "a\\b"];
    let tree = tree(&[
        (".git/HEAD", "ref: x\n"),
        (".gitignore", "*.gen\nskipped/\n!keep.gen\n/rooted.txt\n"),
        (".ignore", "viaignore.txt\n"),
        ("sub/.rgignore", "*.rgi\n"),
    ]);
    let folders = ["", "sub/", "sub/deep/", "skipped/", "node_modules/p/", "pkg/dist/", ".hidden/", "a b/", "pkg/"];
    let names = [
        "a.ts",
        "b.rs",
        "c.md",
        "d.gen",
        "keep.gen",
        "e.rgi",
        "viaignore.txt",
        "rooted.txt",
        ".dot.ts",
        "f.py",
        "G.TS",
    ];
    for folder in folders {
        for name in names {
            let mut text = String::new();
            for _ in 0..dice.below(40) {
                for _ in 0..dice.below(5) {
                    let _ = write!(text, "{} ", dice.one(&words));
                }
                text.push_str(dice.one(&["\n", "\n", "\n", "\r\n", "\n\n"]));
            }
            if dice.below(4) == 0 {
                text.push_str("needle without a final line break");
            }
            tree.put(&format!("{folder}{name}"), text.as_bytes());
        }
    }
    tree.put("bin.ts", b"needle alpha\n\0needle\n");
    tree.put("late.ts", format!("{}\0needle\n", "needle alpha line\n".repeat(9000)).as_bytes());
    tree.put("latin.md", b"na\xEFve needle\nalpha\n");
    let utf16: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain("needle α\nBeta\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    tree.put("utf16.md", &utf16);
    tree.put("bom.md", "\u{FEFF}needle first\n".as_bytes());
    tree.put("empty.md", b"");
    tree
}

fn query(dice: &mut Dice) -> Value {
    let patterns = [
        "needle",
        "alpha|Beta",
        "^needle",
        "needle$",
        "\\bend\\b",
        "[0-9]+",
        "(?i)BETA",
        "世.",
        "foo\\(bar\\)",
        "a\\.b",
        "\\s+$",
        "^$",
        ".",
        "gamma\\d{2} ",
        "--flag",
        "a\\\\b",
        "\\p{Han}+",
        "n(a|e)\\w+",
        "x: 1\\s",
        "[^ -~]",
        "absent",
        "needle\\s+alpha",
        "\\w+ needle",
    ];
    let mut query =
        json!({ "pattern": dice.one(&patterns), "output_mode": dice.one(&["content", "files_with_matches", "count"]) });
    if dice.below(4) == 0 {
        query["-i"] = json!(true);
    }
    if dice.below(5) == 0 {
        query["multiline"] = json!(true);
        query["pattern"] = json!(dice.one(&[
            "alpha.*?needle",
            "needle\\s+\\w+",
            "\\n\\n",
            "Beta\\s*\\n\\w",
            "end.{0,9}\\n.",
            "needle"
        ]));
    }
    match dice.below(6) {
        0 => {
            query["glob"] =
                json!(dice.one(&["*.ts", "!*.ts", "sub/**", "**/deep/*.md", "*.{rs,py}", "*.gen", "[ab].*"]))
        }
        1 => query["type"] = json!(dice.one(&["ts", "rust", "md", "py"])),
        2 => query["path"] = json!(dice.one(&["sub", "a b", ".hidden", "sub/deep", "a.ts", "bom.md", "sub/c.md"])),
        _ => {}
    }
    if query["output_mode"] == json!("content") {
        match dice.below(6) {
            0 => query["-n"] = json!(false),
            1 => query["-C"] = json!(dice.below(4)),
            2 => query["-A"] = json!(dice.below(3)),
            3 => query["-B"] = json!(dice.below(3)),
            _ => {}
        }
    }
    query
}

/// What `rg --json`, `rg -l` or `rg -c` says, in the shape of this module's entries.
fn by_ripgrep(root: &Path, query: &Value) -> Vec<Value> {
    let mut rg = Command::new("rg");
    rg.current_dir(root).args(["--no-config", "--no-ignore-global", "--sort", "path", "--no-messages"]);
    if query["multiline"] == json!(true) {
        rg.args(["-U", "--multiline-dotall"]);
    }
    if query["-i"] == json!(true) {
        rg.arg("-i");
    }
    if let Some(glob) = query["glob"].as_str() {
        rg.arg(format!("--glob={glob}"));
    }
    // Deviation: the last glob wins, and here it is the default rules that do; `*.ts` does not open `node_modules`.
    for name in rules::DIRECTORIES {
        rg.arg(format!("--glob=!**/{name}/**"));
    }
    if let Some(name) = query["type"].as_str() {
        rg.arg(format!("--type={name}"));
    }
    for side in ["-A", "-B", "-C"] {
        if let Some(lines) = query[side].as_u64() {
            rg.arg(format!("{side}{lines}"));
        }
    }
    let mode = query["output_mode"].as_str().expect("mode");
    rg.args(match mode {
        "content" => ["--json", "--no-mmap"],
        "count" => ["-c", "-H"],
        _ => ["-l", "-H"],
    });
    let path = query["path"].as_str().map_or_else(|| root.to_owned(), |path| root.join(path));
    rg.arg("--").arg(query["pattern"].as_str().expect("pattern")).arg(path);
    let output = rg.output().expect("rg runs");
    assert!(output.status.code().is_some_and(|code| code < 2), "{query}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut entries = Vec::new();
    for line in text.lines() {
        match mode {
            "content" => json_lines(line, query["-n"] != json!(false), &mut entries),
            "count" => {
                let (path, count) = line.rsplit_once(':').expect("count");
                entries.push(json!({ "file_path": path, "count": count.parse::<u64>().expect("number") }));
            }
            _ => entries.push(json!({ "file_path": line })),
        }
    }
    entries
}

fn json_lines(line: &str, numbers: bool, entries: &mut Vec<Value>) {
    let event: Value = serde_json::from_str(line).expect("JSON");
    let kind = event["type"].as_str().expect("type");
    if !matches!(kind, "match" | "context") {
        return;
    }
    let data = &event["data"];
    let bytes = match (data["lines"]["text"].as_str(), data["lines"]["bytes"].as_str()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(coded)) => base64(coded),
        (None, None) => panic!("no line in {line}"),
    };
    for (piece, number) in bytes.split_inclusive(|b| *b == b'\n').zip(data["line_number"].as_u64().expect("number")..) {
        let text = String::from_utf8_lossy(piece);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let mut entry = json!({ "file_path": data["path"]["text"] });
        if numbers {
            entry["line_number"] = number.into();
        }
        entry["content"] = text.strip_suffix('\r').unwrap_or(text).into();
        if kind == "context" {
            entry["is_context"] = true.into();
        }
        entries.push(entry);
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value =
        |c: u8| b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|b| *b == c);
    let bits: Vec<u32> = text.bytes().filter_map(value).map(|v| v as u32).collect();
    let mut out = Vec::new();
    for chunk in bits.chunks(4) {
        let word = chunk.iter().enumerate().fold(0, |word, (i, v)| word | v << (18 - 6 * i));
        out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    out
}

#[tokio::test]
async fn generated_searches_give_what_ripgrep_gives() {
    if Command::new("rg").arg("--version").output().is_err() {
        let in_ci = std::env::vars_os().any(|(name, value)| name == "CI" && value == "true");
        assert!(!in_ci, "rg is missing: CI must install ripgrep to compare with it");
        eprintln!("rg is not installed: searches were NOT compared with ripgrep");
        return;
    }
    let mut dice = Dice(7);
    let tree = corpus(&mut dice);
    let mut with_matches = 0;
    for number in 0..QUERIES {
        let query = query(&mut dice);
        let outcome = tree.call(&GrepTool, query.clone()).await;
        assert_eq!(metadata(&outcome)["truncated"], json!(false), "{query}");
        let mut ours = model_json(&outcome).as_array().expect("array").clone();
        ours.retain(|entry| entry.get("note").is_none());
        let mut theirs = by_ripgrep(&tree.root, &query);
        // ripgrep sorts by text of the whole path, this module by segments.
        let order = |entry: &Value| (entry["file_path"].to_string(), entry["line_number"].as_u64());
        ours.sort_by_key(order);
        theirs.sort_by_key(order);
        with_matches += usize::from(!theirs.is_empty());
        let different = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
        assert!(
            ours == theirs,
            "query {number}: {query}: {} entries here, {} by rg; first difference {different:?}",
            ours.len(),
            theirs.len()
        );
    }
    assert!(with_matches > QUERIES / 2, "only {with_matches} searches found something");
}
