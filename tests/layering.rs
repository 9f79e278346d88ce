//! The direction of dependencies, enforced: which top-level module may name which, and which crates and parts of the
//! standard library belong to one module only. Prose in ARCHITECTURE.md explains the picture; this file is the rule.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

#[path = "layering/source.rs"]
mod source;
use source::{Found, Token, paths, tokens};

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
    // The registry renders the exposed tools in the form the model port takes.
    ("registry", "providers"),
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

/// Modules that `source` declares for tests only, as paths below `src/` without `.rs`: `#[cfg(test)] mod fakes;`.
fn test_modules(file: &str, source: &str) -> Vec<String> {
    let folder = file.strip_suffix("/mod.rs").or_else(|| file.strip_suffix(".rs")).unwrap_or(file);
    let tokens: Vec<Token> = tokens(source).into_iter().map(|(_, token)| token).collect();
    let word = |token: &Token, text: &str| matches!(token, Token::Word(word) if word == text);
    let marks = ["cfg", "(", "test", ")", "]", "mod"];
    let is_mark = |token: &Token, mark: &str| match token {
        Token::Punct(c) => mark.chars().eq([*c]),
        token => word(token, mark),
    };
    tokens
        .windows(marks.len() + 2)
        .filter(|window| window.iter().zip(marks).all(|(token, mark)| is_mark(token, mark)))
        .filter_map(|window| match &window[marks.len()..] {
            [Token::Word(name), Token::Punct(';')] => Some(format!("{folder}/{name}")),
            _ => None,
        })
        .collect()
}

/// Whether `file` is one of the test modules or lies below one.
fn is_test(file: &str, test_modules: &BTreeSet<String>) -> bool {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    path.match_indices('/').map(|(end, _)| &path[..end]).chain([path]).any(|part| test_modules.contains(part))
}

/// Every rule that `source`, the text of `file` (relative to `src/`), breaks. `providers` are the concrete ones; a
/// `test` may read the world.
fn violations(file: &str, source: &str, providers: &BTreeSet<String>, test: bool) -> Vec<String> {
    let module = file.split(['/', '.']).next().unwrap_or_default();
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
            let free = homes.iter().any(|home| file.starts_with(home)) || (test && homes == &["host/"]);
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
    let mut sources = Vec::new();
    for file in &files {
        sources.push((file, fs::read_to_string(source_root().join(file))?));
    }
    let tests = sources.iter().flat_map(|(file, source)| test_modules(file, source)).collect();
    let broken: Vec<String> =
        sources.iter().flat_map(|(file, source)| violations(file, source, &providers, is_test(file, &tests))).collect();
    assert!(broken.is_empty(), "{} broken rules:\n{}", broken.len(), broken.join("\n"));
    Ok(())
}

/// Families of tools whose paths, guards and failures have one owner: the folder, its tools, the owner.
const OWNERS: &[(&str, &[&str], &str)] =
    &[("tools/file", &["read", "edit", "write"], "operation"), ("tools/search", &["glob", "grep"], "scope")];

#[test]
fn tools_reach_files_through_the_owner_of_their_family_only() -> Result<(), Box<dyn Error>> {
    for (folder, tools, owner) in OWNERS {
        for tool in *tools {
            let source = fs::read_to_string(source_root().join(folder).join(format!("{tool}.rs")))?;
            assert!(source.contains(&format!("use super::{owner}")), "{folder}/{tool}.rs does not use {owner}");
            for path in ["std::fs", "tokio::fs", "rustix"] {
                assert!(!source.contains(path), "{folder}/{tool}.rs names {path}, which is the business of {owner}");
            }
        }
    }
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
    ];
    let providers = BTreeSet::from(["openai".to_owned()]);
    for (name, file, source, expected) in cases {
        let found = violations(file, source, &providers, false);
        assert_eq!(found.len(), *expected, "{name}: {found:#?}");
    }
}

#[test]
fn a_violation_names_the_file_the_line_and_the_edge() {
    let found = violations("model/ids.rs", "//! Ids.\n\nuse crate::agent::Turn;\n", &BTreeSet::new(), false);
    assert_eq!(found, ["src/model/ids.rs:3: `crate::agent::Turn`: model must not import agent"]);
}

#[test]
fn only_modules_declared_for_tests_may_read_the_world() {
    let source = "#[cfg(test)]\nmod fakes;\n#[cfg(test)] mod inline {}\n#[cfg(unix)] mod unix;\nmod plain;";
    let tests: BTreeSet<String> = test_modules("tools/search/mod.rs", source).into_iter().collect();
    assert_eq!(tests, BTreeSet::from(["tools/search/fakes".to_owned()]));
    assert_eq!(test_modules("host/clock.rs", "#[cfg(test)] mod tests;"), ["host/clock/tests"]);
    for (file, expected) in [
        ("tools/search/fakes.rs", true),
        ("tools/search/fakes/mod.rs", true),
        ("tools/search/fakes/tree.rs", true),
        ("tools/search/fakes_too.rs", false),
        ("tools/search/plain.rs", false),
    ] {
        assert_eq!(is_test(file, &tests), expected, "{file}");
        let found = violations(file, "fn f() { std::env::temp_dir(); }", &BTreeSet::new(), is_test(file, &tests));
        assert_eq!(found.is_empty(), expected, "{file}: {found:?}");
    }
}
