//! Grep: finds lines that match a regular expression, with ripgrep's engine and defaults, in this process.
//!
//! Results come in path order, then line order, on every run, so that `offset` pages through one list. Context lines
//! are entries with `is_context`. It reads no user configuration, follows no symbolic link, searches hidden files only
//! where `glob` names them, and bounds what it returns; a cut is always said.

mod engine;
mod query;
mod sink;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::json;

use self::engine::Outcome;
use self::query::{Mode, Query, Request, Window};
use super::scope;
use super::shown::shown;
use super::stop::{self, Ended};
use crate::contract::{
    Behavior, InterruptBehavior, ModelContent, PrepareContext, Rewrites, SideEffect, Subject, Tool, ToolContext,
    ToolDescription, ToolError, ToolErrorType, ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield,
};
use crate::tools::constant_schema;

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;

const NAME: &str = "Grep";
/// Longer results become artifacts.
const MAX_RESULT_CHARS: usize = 100_000;
/// Context beyond this is the whole file; Read serves that better.
const MAX_CONTEXT: u64 = 100_000;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "pattern": { "type": "string", "minLength": 1, "description": "Regular expression (Rust syntax: no look-around, no back-references)" },
    "path": { "type": "string", "description": "File or directory to search; the working directory by default" },
    "glob": { "type": "string", "description": "Only files that match this glob, for instance \"*.ts\", \"src/**/*.{js,ts}\" or \"!*.test.ts\"" },
    "type": { "type": "string", "description": "Only files of this ripgrep type, for instance js, ts, py, rust, go, md" },
    "output_mode": { "type": "string", "enum": ["content", "files_with_matches", "count"], "default": "files_with_matches", "description": "Lines, files, or matching lines counted by file" },
    "-i": { "type": "boolean", "description": "Ignore case" },
    "-n": { "type": "boolean", "default": true, "description": "Line numbers, in content mode" },
    "-B": { "type": "integer", "minimum": 0, "description": "Lines of context before each match, in content mode" },
    "-A": { "type": "integer", "minimum": 0, "description": "Lines of context after each match, in content mode" },
    "-C": { "type": "integer", "minimum": 0, "description": "Lines of context before and after each match; overrides -B and -A" },
    "head_limit": { "type": "integer", "minimum": 1, "description": "Return at most this many entries" },
    "offset": { "type": "integer", "minimum": 0, "description": "Skip this many entries first" },
    "multiline": { "type": "boolean", "default": false, "description": "Let matches span lines, and `.` match line breaks" }
  },
  "required": ["pattern", "output_mode", "-n", "multiline"]
}"#;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = ToolDescription {
        short: "Finds text in files with a regular expression.".into(),
        long: Some("Returns a JSON array, ordered by path and line: {file_path} for files_with_matches, {file_path, count} for count, {file_path, line_number, content} for content, with is_context on context lines.".into()),
        usage_notes: vec![
            "Rust regular expressions: escape literal braces and brackets, for instance `interface\\{\\}`.".into(),
            "Hidden files, binary files, dependency and build directories, and inside git repositories whatever git ignores, are left out.".into(),
            "Use head_limit and offset to page through long results.".into(),
        ],
        important: vec!["To find files by name use Glob.".into()],
    };
    let behavior =
        Behavior::of(ToolKind::ReadOnly).with_side_effect(SideEffect::Pure).with_interrupt(InterruptBehavior::Cancel);
    let schema = constant_schema(SCHEMA);
    let mut spec = ToolSpec::new(NAME, description.render(), schema, behavior);
    spec.display_name = Some("Content Search".into());
    spec.group = Some("filesystem".into());
    spec.max_result_chars = Some(MAX_RESULT_CHARS);
    spec
});

/// Arguments of a call.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct GrepParams {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    #[serde(default)]
    output_mode: Mode,
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    #[serde(default = "yes", rename = "-n")]
    line_numbers: bool,
    #[serde(default, rename = "-B")]
    before: Option<u64>,
    #[serde(default, rename = "-A")]
    after: Option<u64>,
    #[serde(default, rename = "-C")]
    around: Option<u64>,
    #[serde(default)]
    head_limit: Option<u64>,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    multiline: bool,
}

fn yes() -> bool {
    true
}

/// The Grep tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrepTool;

impl Tool for GrepTool {
    type Params = GrepParams;

    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn subject(&self, params: &GrepParams) -> Subject {
        scope::subject(&params.pattern, params.path.as_deref())
    }

    async fn prepare(&self, params: &GrepParams, cx: &PrepareContext) -> Result<Rewrites, ToolFailure> {
        scope::prepare(params.path.as_deref(), cx).await
    }

    async fn execute(&self, params: GrepParams, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        let message = format!("Searching for pattern \"{}\"...", params.pattern);
        cx.emit(ToolYield::progress(message, json!({ "pattern": params.pattern }))).await;
        let request = request(&params);
        let path = params.path.clone();
        let snapshot = Arc::clone(&cx.snapshot);
        let ended = stop::run(&cx, move |stop| {
            let root = scope::authorize(&snapshot, path.as_deref())?;
            let query = Query::compile(request, &root).map_err(|error| failed(error.to_string()))?;
            let outcome = engine::search(&query, &root, stop).map_err(failed)?;
            Ok::<_, ToolFailure>((root, outcome))
        })
        .await?;
        match ended {
            Ended::Done(Ok((root, outcome))) => Ok(render(&params, &root, outcome)),
            Ended::Done(Err(failure)) => Err(failure),
            Ended::Aborted => Err(scope::aborted("Search aborted")),
        }
    }
}

fn request(params: &GrepParams) -> Request {
    let content = params.output_mode == Mode::Content;
    let context = |side: Option<u64>| {
        let lines = if content { params.around.or(side).unwrap_or(0) } else { 0 };
        usize::try_from(lines.min(MAX_CONTEXT)).unwrap_or(0)
    };
    Request {
        pattern: params.pattern.clone(),
        glob: params.glob.clone().filter(|glob| !glob.is_empty()),
        file_type: params.file_type.clone().filter(|name| !name.is_empty()),
        mode: params.output_mode,
        ignore_case: params.ignore_case,
        line_numbers: content && params.line_numbers,
        before: context(params.before),
        after: context(params.after),
        multiline: params.multiline,
        window: Window { offset: params.offset.unwrap_or(0), limit: params.head_limit },
    }
}

fn failed(message: String) -> ToolFailure {
    let error = ToolError::new(ToolErrorType::ExecutionError, message);
    ToolFailure::new(format!("Search execution failed: {}", error.message), error)
}

fn render(params: &GrepParams, root: &Path, outcome: Outcome) -> ToolSuccess {
    let Outcome { entries, returned, total, truncated, lines_cut, inexact_names, warnings } = outcome;
    let offset = params.offset.unwrap_or(0);
    let mut notes = Vec::new();
    if truncated {
        notes.push(json!({
            "truncated": true,
            "note": format!("the result was cut after {returned} of {total} entries because of its size; continue with offset {}", offset + returned),
        }));
    }
    if warnings.count > 0 {
        notes.push(json!({
            "partial": true,
            "note": format!("{} path(s) could not be searched completely: {}", warnings.count, warnings.texts.join("; ")),
        }));
    }
    let exit_code = if warnings.count > 0 { 2 } else { u8::from(total == 0) };
    let mut metadata = json!({
        "search_pattern": params.pattern,
        "search_path": shown(root).text,
        "output_mode": params.output_mode,
        "case_insensitive": params.ignore_case,
        "total_matches": returned,
        "original_total": total,
        "offset": offset,
        "head_limit": params.head_limit,
        "strategy": "ripgrep",
        "exit_code": exit_code,
        "truncated": truncated,
        "summary": format!("Search \"{}\": {returned} matches", params.pattern),
    });
    if truncated {
        metadata["next_offset"] = (offset + returned).into();
    }
    if lines_cut > 0 {
        metadata["lines_cut"] = lines_cut.into();
    }
    if inexact_names > 0 {
        metadata["names_not_utf8"] = inexact_names.into();
    }
    scope::note_warnings(&mut metadata, &warnings);
    ToolSuccess::new(ModelContent::Json(array(entries, &notes))).with_metadata(metadata)
}

/// One JSON array of the entries, which are JSON already, and the notes about them.
fn array(mut entries: String, notes: &[serde_json::Value]) -> Box<serde_json::value::RawValue> {
    for note in notes {
        if !entries.is_empty() {
            entries.push(',');
        }
        entries.push_str(&note.to_string());
    }
    serde_json::value::RawValue::from_string(format!("[{entries}]")).unwrap_or_default()
}
