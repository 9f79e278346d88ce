//! The direction of dependencies, enforced: which top-level module may name which, and which crates and parts of the
//! standard library belong to one module only. Prose in ARCHITECTURE.md explains the picture; this file is the rule.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Top-level modules from left to right. A module may import from any layer to its left, never from its own layer
/// (except through [`SIDEWAYS`]) and never from one to its right.
const LAYERS: &[&[&str]] = &[
    &["model", "error"],
    &["host", "schema"],
    &["contract"],
    &["registry", "permissions", "hooks", "providers", "prompts", "context", "durable"],
    &["pipeline", "mcp", "tools"],
    &["agent"],
    &["session"],
    &["namzu"],
    &["bindings"],
];

/// Imports within one layer. Each pair needs a reason; the pairs must not form a circle.
const SIDEWAYS: &[(&str, &str)] = &[
    // An event of a failed request carries the public error code.
    ("model", "error"),
];

/// Modules that may import less than their layer allows. A tool that needs a service of the Session asks for it in
/// its spec and gets a narrow trait object in its context.
const NARROWED: &[(&str, &[&str])] = &[("tools", &["contract", "host", "schema", "model", "error"])];

/// A path that belongs to some places only: what it begins with, and the prefixes of the files that may name it.
struct Reserved {
    paths: &'static [&'static str],
    homes: &'static [&'static str],
    reason: &'static str,
}

const RESERVED: &[Reserved] = &[
    Reserved {
        paths: &["napi", "napi_derive", "napi_sys"],
        homes: &["bindings/"],
        reason: "the core does not know Node",
    },
    Reserved { paths: &["reqwest"], homes: &["providers/", "mcp/", "tools/web/"], reason: "only these speak HTTP" },
    Reserved {
        // Pure parts stay free: `env::split_paths`, the type `SystemTime` of a file's times, tokio's `Instant`.
        paths: &[
            "env::*",
            "env::args",
            "env::args_os",
            "env::current_dir",
            "env::current_exe",
            "env::home_dir",
            "env::remove_var",
            "env::set_current_dir",
            "env::set_var",
            "env::temp_dir",
            "env::var",
            "env::var_os",
            "env::vars",
            "env::vars_os",
            "SystemTime::now",
            "std::time::Instant",
        ],
        homes: &["host/"],
        reason: "the clock, the environment and the working directory are handed in",
    },
];

/// A `::`-separated path found in a file, with the line it begins on and the module it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    line: usize,
    segments: Vec<String>,
    /// Inline modules around the path.
    nesting: usize,
}

/// One word, `::`, or other punctuation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    PathSep,
    Punct(char),
}

/// Splits Rust source into tokens with their lines, without comments, strings, characters and lifetimes.
fn tokens(source: &str) -> Vec<(usize, Token)> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut found = Vec::new();
    let (mut i, mut line) = (0, 1);
    while i < chars.len() {
        let start = i;
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 || i >= chars.len() {
                        break;
                    }
                }
            }
            '"' => i = string_end(&chars, i),
            '\'' => {
                // A character ends with a quote after one (possibly escaped) character; anything else is a lifetime.
                if at(i + 1) == '\\' {
                    i += 3;
                    while i < chars.len() && at(i) != '\'' {
                        i += 1;
                    }
                    i += 1;
                } else if at(i + 2) == '\'' {
                    i += 3;
                } else {
                    i += 1;
                    while at(i).is_alphanumeric() || at(i) == '_' {
                        i += 1;
                    }
                }
            }
            c if c.is_alphabetic() || c == '_' => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                let word: String = chars[start..i].iter().collect();
                let raw = word.ends_with('r') && matches!(word.as_str(), "r" | "br" | "cr");
                if raw && (at(i) == '"' || at(i) == '#') {
                    let hashes = chars[i..].iter().take_while(|c| **c == '#').count();
                    if at(i + hashes) == '"' {
                        i = raw_string_end(&chars, i + hashes + 1, hashes);
                    } else {
                        // `r#type`: the word after the mark is what counts.
                        i += hashes;
                    }
                } else {
                    found.push((line, Token::Word(word)));
                }
            }
            ':' if at(i + 1) == ':' => {
                found.push((line, Token::PathSep));
                i += 2;
            }
            c if c.is_whitespace() => i += 1,
            c => {
                found.push((line, Token::Punct(c)));
                i += 1;
            }
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

fn string_end(chars: &[char], open: usize) -> usize {
    let mut i = open + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

fn raw_string_end(chars: &[char], mut i: usize, hashes: usize) -> usize {
    while i < chars.len() {
        if chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return i + 1 + hashes;
        }
        i += 1;
    }
    i
}

/// Every path of a file; the groups of a `use` are multiplied out.
fn paths(source: &str) -> Vec<Found> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut inline_modules: Vec<usize> = Vec::new();
    let (mut i, mut depth) = (0, 0_usize);
    while let Some((_, token)) = tokens.get(i) {
        match token {
            Token::Punct('{') => depth += 1,
            Token::Punct('}') => {
                depth = depth.saturating_sub(1);
                if inline_modules.last() == Some(&depth) {
                    inline_modules.pop();
                }
            }
            Token::Word(word)
                if word == "mod"
                    && matches!(tokens.get(i + 1), Some((_, Token::Word(_))))
                    && matches!(tokens.get(i + 2), Some((_, Token::Punct('{')))) =>
            {
                inline_modules.push(depth);
            }
            Token::Word(word) => {
                let in_use = word == "use";
                let start = if in_use { i + 1 } else { i };
                let end = collect(&tokens, start, &[], in_use, inline_modules.len(), &mut found);
                i = end.max(i + 1);
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// Reads one path at `i` (in a `use` with its groups), adds it below `prefix`, and returns the index behind it.
fn collect(
    tokens: &[(usize, Token)],
    mut i: usize,
    prefix: &[String],
    in_use: bool,
    nesting: usize,
    found: &mut Vec<Found>,
) -> usize {
    let mut segments = prefix.to_vec();
    let line = tokens.get(i).map_or(0, |(line, _)| *line);
    if matches!(tokens.get(i), Some((_, Token::PathSep))) {
        i += 1;
    }
    loop {
        match tokens.get(i) {
            Some((_, Token::Word(word))) if word != "as" => segments.push(word.clone()),
            Some((_, Token::Punct('*'))) if in_use => segments.push("*".to_owned()),
            Some((_, Token::Punct('{'))) if in_use => {
                i += 1;
                while !matches!(tokens.get(i), None | Some((_, Token::Punct('}')))) {
                    i = collect(tokens, i, &segments, in_use, nesting, found);
                    while !matches!(tokens.get(i), None | Some((_, Token::Punct(',' | '}')))) {
                        i += 1;
                    }
                    if matches!(tokens.get(i), Some((_, Token::Punct(',')))) {
                        i += 1;
                    }
                }
                return i + 1;
            }
            _ => break,
        }
        i += 1;
        if !matches!(tokens.get(i), Some((_, Token::PathSep))) {
            break;
        }
        i += 1;
    }
    if segments.len() > prefix.len() {
        found.push(Found { line, segments, nesting });
    }
    i
}

/// Number of modules above the items of a file: `tools/mod.rs` and `error.rs` are one deep.
fn module_depth(file: &str) -> usize {
    let parts = file.split('/').count();
    if file.ends_with("/mod.rs") { parts - 1 } else { parts }
}

/// The path from the crate root, if this one leaves its file through `crate` or enough `super`s.
fn from_crate_root(found: &Found, file: &str) -> Option<Vec<String>> {
    let (head, rest) = found.segments.split_first()?;
    if head == "crate" {
        return Some(rest.to_vec());
    }
    let start = usize::from(head == "self");
    let ups = found.segments[start..].iter().take_while(|segment| *segment == "super").count();
    (ups > 0 && ups == module_depth(file) + found.nesting).then(|| found.segments[start + ups..].to_vec())
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn may_import(from: &str, to: &str) -> bool {
    if from == to {
        return true;
    }
    if let Some((_, allowed)) = NARROWED.iter().find(|(module, _)| *module == from) {
        return allowed.contains(&to);
    }
    SIDEWAYS.contains(&(from, to)) || matches!((layer(from), layer(to)), (Some(from), Some(to)) if to < from)
}

/// Whether `path` names a reserved path, spelled in full or from one of its last segments.
fn names(path: &[String], reserved: &str) -> bool {
    let wanted: Vec<&str> = reserved.split("::").collect();
    if wanted.len() == 1 || wanted[0] == "std" {
        return path.len() >= wanted.len() && path.iter().zip(&wanted).all(|(have, want)| have == want);
    }
    path.windows(wanted.len()).any(|window| window.iter().zip(&wanted).all(|(have, want)| have == want))
}

/// Every rule that `source`, the text of `file` (relative to `src/`), breaks. `providers` are the concrete ones.
fn violations(file: &str, source: &str, providers: &BTreeSet<String>) -> Vec<String> {
    let module = file.split(['/', '.']).next().unwrap_or_default();
    let is_test = file.ends_with("tests.rs") || file.contains("/tests/");
    let mut broken = Vec::new();
    for found in paths(source) {
        let place = format!("src/{file}:{}", found.line);
        let written = found.segments.join("::");
        if let Some(target) = from_crate_root(&found, file) {
            if let Some(to) = target.first().filter(|to| layer(to).is_some() && module != "lib")
                && !may_import(module, to)
            {
                broken.push(format!("{place}: `{written}`: {module} must not import {to}"));
            }
            if module == "agent" && target.len() > 1 && target[0] == "providers" && providers.contains(&target[1]) {
                broken.push(format!("{place}: `{written}`: agent knows no provider by name"));
            }
        }
        for Reserved { paths, homes, reason } in RESERVED {
            let free = homes.iter().any(|home| file.starts_with(home)) || (is_test && homes == &["host/"]);
            if !free && let Some(reserved) = paths.iter().find(|reserved| names(&found.segments, reserved)) {
                broken.push(format!("{place}: `{written}`: {reserved} belongs to {}: {reason}", homes.join(", ")));
            }
        }
    }
    broken
}

fn source_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Rust files below `dir`, relative to `src/`, with forward slashes.
fn rust_files(dir: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(source_root()).map_err(io::Error::other)?;
            found.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// Folders below `src/providers/`: one a concrete provider.
fn concrete_providers() -> io::Result<BTreeSet<String>> {
    let entries = fs::read_dir(source_root().join("providers"))?;
    entries
        .filter(|entry| entry.as_ref().map_or(true, |entry| entry.path().is_dir()))
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

#[test]
fn every_import_points_left() -> Result<(), Box<dyn Error>> {
    let providers = concrete_providers()?;
    let mut files = Vec::new();
    rust_files(&source_root(), &mut files)?;
    files.sort();
    assert!(files.iter().any(|file| file == "lib.rs"), "no sources found below {}", source_root().display());
    let mut broken = Vec::new();
    for file in &files {
        broken.extend(violations(file, &fs::read_to_string(source_root().join(file))?, &providers));
    }
    assert!(broken.is_empty(), "{} broken rules:\n{}", broken.len(), broken.join("\n"));
    Ok(())
}

#[test]
fn every_top_level_module_has_a_layer() -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(source_root())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let module = name.trim_end_matches(".rs");
        assert!(module == "lib" || layer(module).is_some(), "src/{name} has no place in LAYERS");
    }
    Ok(())
}

#[test]
fn sideways_imports_stay_in_their_layer_and_form_no_circle() {
    for (from, to) in SIDEWAYS {
        assert_eq!(layer(from), layer(to), "{from} → {to} is not sideways");
        let mut reached = vec![*to];
        let mut next = 0;
        while let Some(module) = reached.get(next).copied() {
            assert_ne!(module, *from, "{from} reaches itself through {to}");
            reached.extend(SIDEWAYS.iter().filter(|(start, _)| *start == module).map(|(_, end)| *end));
            assert!(reached.len() <= SIDEWAYS.len() * SIDEWAYS.len() + 1, "a circle is reachable from {from}");
            next += 1;
        }
    }
}

#[test]
fn each_rule_catches_the_code_it_forbids() {
    let cases: &[(&str, &str, &str, usize)] = &[
        ("a plain import to the right", "model/ids.rs", "use crate::contract::Tool;", 1),
        ("an import to the left", "contract/tool.rs", "use crate::host::CancelToken;", 0),
        ("an import in its own module", "contract/tool.rs", "use crate::contract::result::ToolError;", 0),
        ("a neighbour of the same layer", "registry/mod.rs", "use crate::permissions::Mode;", 1),
        ("a listed neighbour", "model/events.rs", "use crate::error::ErrorCode;", 0),
        ("the reverse of a listed neighbour", "error.rs", "use crate::model::Message;", 1),
        ("a grouped import", "host/clock.rs", "use crate::{error::Error, session::Session};", 1),
        ("nested groups", "host/env.rs", "use crate::{model::{A, B as C}, agent::{self, x::Y}, tools::*};", 3),
        ("a path in an expression", "schema/mod.rs", "fn f() { let x = 1; crate::pipeline::run(x) }", 1),
        ("a path in a type", "schema/mod.rs", "struct S<'a>(&'a [crate::tools::T]);", 1),
        ("a path through super", "model/mod.rs", "use super::session::Session;", 1),
        ("super from a nested file", "providers/openai/stream.rs", "use super::super::super::agent::Turn;", 1),
        ("super inside the module", "providers/openai/stream.rs", "use super::super::model::ChatModel;", 0),
        ("super from an inline module", "host/clock.rs", "mod tests { use super::*; use super::super::Tasks; }", 0),
        ("super out of an inline module", "host/mod.rs", "mod a { mod b { use super::super::super::tools::T; } }", 1),
        ("super after an inline module", "host/mod.rs", "mod a { fn f() {} } use super::tools::T;", 1),
        (
            "a comment",
            "model/mod.rs",
            "// use crate::session::Session;\n/* crate::agent::x /* */ crate::tools::y */",
            0,
        ),
        (
            "a string",
            "model/mod.rs",
            "const A: &str = \"crate::session::S\"; const B: &str = r#\"\"crate::agent::A\"#;",
            0,
        ),
        (
            "a quote character before code",
            "model/mod.rs",
            "const Q: char = '\"'; use crate::tools::T; const R: char = '\\'';",
            1,
        ),
        ("a tool that takes a Session service", "tools/file/read.rs", "use crate::registry::ToolRegistry;", 1),
        ("a tool with its contract", "tools/file/read.rs", "use crate::{contract::Tool, tools::common::Limits};", 0),
        ("pipeline naming a tool", "pipeline/invoke.rs", "use crate::tools::bash::BashTool;", 1),
        ("agent naming a provider", "agent/turn.rs", "use crate::providers::openai::OpenAi;", 1),
        ("agent naming the model port", "agent/turn.rs", "use crate::providers::model::ChatModel;", 0),
        ("napi in the core", "session/mod.rs", "use napi::bindgen_prelude::*;", 1),
        ("the napi attribute in the core", "session/mod.rs", "#[napi_derive::napi] fn f() {}", 1),
        ("napi in the bindings", "bindings/session.rs", "use napi::{Env, Result}; use napi_derive::napi;", 0),
        ("HTTP in a tool", "tools/shell/bash.rs", "fn f(c: reqwest::Client) {}", 1),
        ("HTTP in its homes", "tools/web/request.rs", "use reqwest::Client;", 0),
        ("the environment", "tools/shell/bash.rs", "fn f() { std::env::vars_os(); }", 1),
        ("the environment by import", "agent/mod.rs", "use std::env::{split_paths, var_os};", 1),
        ("everything of the environment", "agent/mod.rs", "use std::env::*;", 1),
        ("a pure function beside the environment", "tools/shell/bash.rs", "fn f() { std::env::split_paths(p); }", 0),
        ("the working directory by a short path", "agent/mod.rs", "use std::env; fn f() { env::current_dir(); }", 1),
        ("the clock", "session/mod.rs", "fn f() { let now = SystemTime::now(); }", 1),
        ("the time of a file", "tools/search/glob.rs", "use std::time::SystemTime; struct F(SystemTime);", 0),
        ("the monotonic clock of std", "session/mod.rs", "use std::time::{Duration, Instant};", 1),
        ("the monotonic clock of tokio", "session/mod.rs", "use tokio::time::Instant; fn f() { Instant::now(); }", 0),
        ("the clock in host", "host/clock.rs", "use std::time::SystemTime; fn f() { SystemTime::now(); }", 0),
        ("a temporary folder in a test", "tools/file/tests.rs", "fn f() { std::env::temp_dir(); }", 0),
    ];
    let providers = BTreeSet::from(["openai".to_owned()]);
    for (name, file, source, expected) in cases {
        let found = violations(file, source, &providers);
        assert_eq!(found.len(), *expected, "{name}: {found:#?}");
    }
}

#[test]
fn a_violation_names_the_file_the_line_and_the_edge() {
    let found = violations("model/ids.rs", "//! Ids.\n\nuse crate::agent::Turn;\n", &BTreeSet::new());
    assert_eq!(found, ["src/model/ids.rs:3: `crate::agent::Turn`: model must not import agent"]);
}
