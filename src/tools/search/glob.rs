//! Glob: finds files by name pattern, newest first.
//!
//! It lists dot files, follows no symbolic link, leaves out what git ignores and what [`rules`] names, and never looks
//! outside of the authorised roots. Only the best `max_results` matches are held, whatever the size of the tree.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use ignore::{DirEntry, WalkBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::pattern::{Case, Pattern};
use super::rules::{self, Excluded, Restored};
use super::scope;
use super::shown::{shown, shown_relative};
use super::stop::{self, Ended, Stop};
use super::walk::{self, Visitor, Warnings};
use crate::contract::{
    Behavior, InterruptBehavior, PrepareContext, Rewrites, SideEffect, Subject, Tool, ToolContext, ToolDescription,
    ToolError, ToolErrorType, ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield,
};
use crate::host::clock;
use crate::tools::constant_schema;

#[cfg(test)]
mod tests;

const NAME: &str = "Glob";
const DEFAULT_MAX_RESULTS: usize = 100;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "pattern": { "type": "string", "minLength": 1, "description": "Glob pattern, for instance \"**/*.ts\" or \"src/{a,b}/*.json\"" },
    "path": { "type": "string", "description": "Directory to search; the working directory by default" },
    "max_results": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "How many matches to return at most" },
    "include_directories": { "type": "boolean", "default": false, "description": "Also return directories that match" },
    "case_sensitive": { "type": "boolean", "default": false, "description": "Tell upper and lower case apart" }
  },
  "required": ["pattern", "max_results", "include_directories", "case_sensitive"]
}"#;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = ToolDescription {
        short: "Finds files whose path matches a glob pattern.".into(),
        long: Some("Returns paths relative to the searched directory, the most recently modified first.".into()),
        usage_notes: vec![
            "`*` stays within one path segment, `**` crosses segments; `?`, `[ab]`, `{a,b}` and `{1..3}` work too.".into(),
            "A pattern without `**/` matches only directly below the searched directory: use `**/*.ts` for every depth.".into(),
            "Dot files are found. Symbolic links are not followed.".into(),
            "Left out: what git ignores, dependency and build directories, logs and lock files, unless the pattern names them.".into(),
        ],
        important: vec!["To find text inside of files use Grep.".into()],
    };
    let behavior =
        Behavior::of(ToolKind::ReadOnly).with_side_effect(SideEffect::Pure).with_interrupt(InterruptBehavior::Cancel);
    let schema = constant_schema(SCHEMA);
    let mut spec = ToolSpec::new(NAME, description.render(), schema, behavior);
    spec.display_name = Some("File Pattern Match".into());
    spec.group = Some("filesystem".into());
    spec
});

/// Arguments of a call.
#[derive(Debug, Clone, Deserialize)]
pub struct GlobParams {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default = "default_max_results")]
    max_results: usize,
    #[serde(default)]
    include_directories: bool,
    #[serde(default)]
    case_sensitive: bool,
}

fn default_max_results() -> usize {
    DEFAULT_MAX_RESULTS
}

/// The Glob tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct GlobTool;

impl Tool for GlobTool {
    type Params = GlobParams;

    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn subject(&self, params: &GlobParams) -> Subject {
        let pattern = parse(params).ok();
        match pattern.as_ref().and_then(|pattern| pattern.base.as_deref()).and_then(Path::to_str) {
            // An absolute pattern says by itself where it searches; nobody has made that path canonical yet.
            Some(base) => Subject { canonical: false, ..scope::subject(&params.pattern, Some(base)) },
            None => scope::subject(&params.pattern, params.path.as_deref()),
        }
    }

    async fn prepare(&self, params: &GlobParams, cx: &PrepareContext) -> Result<Rewrites, ToolFailure> {
        let pattern = parse(params)?;
        match pattern.base.as_deref().and_then(Path::to_str) {
            // Authorised only: the argument the caller gave is not the directory that is searched.
            Some(base) => scope::prepare(Some(base), cx).await.map(|_| Rewrites::new()),
            None => scope::prepare(params.path.as_deref(), cx).await,
        }
    }

    async fn execute(&self, params: GlobParams, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        let pattern = parse(&params)?;
        let root = locate(&params, &pattern, &cx).await?;
        let place = shown(&root).text;
        let data = json!({ "pattern": params.pattern, "searchRoot": place });
        let message = format!("Searching in {place} for pattern \"{}\"...", params.pattern);
        cx.emit(ToolYield::progress(message, data)).await;
        let query =
            Arc::new(Query { root, pattern, limit: params.max_results, directories: params.include_directories });
        let searched = Arc::clone(&query);
        match stop::run(&cx, move |stop| search(&searched, stop)).await? {
            Ended::Done(found) => Ok(render(&params, &query.root, found)),
            Ended::Aborted => Err(scope::aborted("File search aborted")),
        }
    }
}

fn parse(params: &GlobParams) -> Result<Pattern, ToolError> {
    let case = if params.case_sensitive { Case::Sensitive } else { Case::Insensitive };
    Pattern::parse(&params.pattern, case)
        .map_err(|error| ToolError::new(ToolErrorType::ValidationError, error.to_string()))
}

/// The directory to search. An absolute pattern brings its own, which is authorised like a path.
async fn locate(params: &GlobParams, pattern: &Pattern, cx: &ToolContext) -> Result<PathBuf, ToolFailure> {
    let path = params.path.clone();
    let base = pattern.base.clone();
    let snapshot = Arc::clone(&cx.snapshot);
    cx.blocking(move |_| {
        let root = match base.as_deref().and_then(Path::to_str) {
            Some(base) => scope::authorize(&snapshot, Some(base))?,
            None => scope::authorize(&snapshot, path.as_deref())?,
        };
        match root.metadata() {
            Ok(meta) if meta.is_dir() => Ok(root),
            Ok(_) => {
                let text = format!("Search path must be a directory: {}", shown(&root).text);
                Err(ToolError::new(ToolErrorType::ValidationError, text).into())
            }
            Err(error) => {
                let text = match error.kind() {
                    ErrorKind::NotFound => format!("Search path does not exist: {}", shown(&root).text),
                    _ => format!("{error}: {}", shown(&root).text),
                };
                let error = ToolError::new(ToolErrorType::ExecutionError, text);
                Err(ToolFailure::new(format!("Search failed: {}", error.message), error))
            }
        }
    })
    .await?
}

struct Query {
    root: PathBuf,
    pattern: Pattern,
    limit: usize,
    directories: bool,
}

/// A match. The order is that of the result: files before directories, newest first, then by path.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    is_dir: bool,
    modified: SystemTime,
    path: PathBuf,
    size: u64,
}

impl Found {
    fn key(&self) -> (bool, std::cmp::Reverse<SystemTime>, &[u8]) {
        (self.is_dir, std::cmp::Reverse(self.modified), self.path.as_os_str().as_encoded_bytes())
    }
}

impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best matches of a search, best first.
#[derive(Debug, Default)]
struct Best {
    matches: Vec<Found>,
    total: usize,
    warnings: Warnings,
}

fn search(query: &Arc<Query>, stop: &Stop) -> Best {
    let mut builder = walk_builder(query);
    let root_len = root_prefix_len(&query.root);
    let visitors = walk::walk(&mut builder, stop, || Collector {
        query,
        root_len,
        heap: BinaryHeap::new(),
        total: 0,
        warnings: Warnings::default(),
    });
    let mut best = Best::default();
    for visitor in visitors {
        best.total += visitor.total;
        best.matches.extend(visitor.heap);
        best.warnings.merge(visitor.warnings);
    }
    best.matches.sort_unstable();
    best.matches.truncate(query.limit);
    best
}

/// Bytes of the root and the separator after it: what comes before the relative path of an entry.
fn root_prefix_len(root: &Path) -> usize {
    let bytes = root.as_os_str().as_encoded_bytes();
    bytes.len() + usize::from(!bytes.last().is_some_and(|last| std::path::is_separator(char::from(*last))))
}

fn walk_builder(query: &Arc<Query>) -> WalkBuilder {
    let pattern = &query.pattern;
    let excluded = Excluded::unless_named((!pattern.is_negated()).then_some(pattern.relative.as_str()));
    let keep_files = !pattern.is_negated() && rules::is_excluded_file(pattern.last_segment().as_ref());
    let restored = Restored::new(&query.root);
    let mut builder = rules::git_rules(&query.root);
    builder.max_depth(pattern.max_depth());
    let query = Arc::clone(query);
    builder.filter_entry(move |entry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        if entry.depth() == 0 {
            return true;
        }
        if !is_dir {
            return keep_files || !rules::is_excluded_file(entry.file_name()) || restored.contains(entry, false);
        }
        let name = entry.file_name();
        query.pattern.may_contain(name, entry.depth())
            && (!excluded.contains(name) || (name != ".git" && restored.contains(entry, true)))
    });
    builder
}

/// One thread's matches: a heap with the worst kept one on top.
struct Collector<'a> {
    query: &'a Query,
    root_len: usize,
    heap: BinaryHeap<Found>,
    total: usize,
    warnings: Warnings,
}

impl Visitor for Collector<'_> {
    fn visit(&mut self, entry: &DirEntry) {
        let Some(kind) = entry.file_type() else { return };
        let is_dir = kind.is_dir();
        if !(kind.is_file() || is_dir && self.query.directories) {
            return;
        }
        let bytes = entry.path().as_os_str().as_encoded_bytes();
        if !bytes.get(self.root_len..).is_some_and(|relative| self.query.pattern.matches(relative, is_dir)) {
            return;
        }
        // An entry that vanished in between was not there.
        let Ok(meta) = entry.metadata() else { return };
        self.total += 1;
        let modified = meta.modified().unwrap_or(UNIX_EPOCH);
        if self.heap.len() >= self.query.limit {
            let key = (is_dir, std::cmp::Reverse(modified), bytes);
            match self.heap.peek() {
                Some(worst) if key < worst.key() => drop(self.heap.pop()),
                _ => return,
            }
        }
        let size = if is_dir { 0 } else { meta.len() };
        self.heap.push(Found { is_dir, modified, path: entry.path().to_owned(), size });
    }

    fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }
}

fn render(params: &GlobParams, root: &Path, found: Best) -> ToolSuccess {
    let pattern = &params.pattern;
    let truncated = found.total > found.matches.len();
    let mut lines = String::new();
    let mut all_exact = true;
    let matches: Vec<Value> = found
        .matches
        .iter()
        .map(|found| {
            let relative = shown_relative(found.path.strip_prefix(root).unwrap_or(&found.path));
            all_exact &= relative.exact;
            lines.push_str("\n- ");
            lines.push_str(&relative.text);
            let mut item = json!({
                "path": shown(&found.path).text,
                "relative_path": relative.text,
                "is_directory": found.is_dir,
            });
            if !found.is_dir {
                item["size"] = found.size.into();
            }
            item["modified"] = clock::iso(found.modified).into();
            if !relative.exact {
                item["name_not_utf8"] = true.into();
            }
            item
        })
        .collect();
    let count = matches.len();
    let mut text = match (count, truncated) {
        (0, _) => format!("No files found matching \"{pattern}\""),
        (_, false) => format!("Found {count} file(s) matching \"{pattern}\":\n{lines}"),
        (_, true) => format!("Found at least {count} file(s) matching \"{pattern}\" (truncated):\n{lines}"),
    };
    if count > 0 {
        text.push_str("\n\nUse the relative_path values above for Read/Edit operations.");
    }
    if !all_exact {
        text.push_str("\nNames with \\xNN are not valid UTF-8; other tools cannot open them by that text.");
    }
    if found.warnings.count > 0 {
        text.push_str(&format!("\nThe search is incomplete: {} path(s) could not be read.", found.warnings.count));
    }
    let mut metadata = json!({
        "search_path": shown(root).text,
        "pattern": pattern,
        "total_matches": count,
        "returned_matches": count,
        "total_found": found.total,
        "max_results": params.max_results,
        "include_directories": params.include_directories,
        "case_sensitive": params.case_sensitive,
        "truncated": truncated,
        "matches": matches,
        "summary": format!("Found {count} files matching \"{pattern}\""),
    });
    scope::note_warnings(&mut metadata, &found.warnings);
    ToolSuccess::new(text).with_metadata(metadata)
}
