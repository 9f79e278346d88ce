//! Edit: replaces a piece of text in a file that the Session has read.
//!
//! The work is done on bytes, so that everything outside the match stays as it is, whatever its encoding. UTF-16 files
//! are decoded and encoded back. Nothing is changed unless the text is found, unambiguous, and the file is in the state
//! in which it was read.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use super::arguments::{self, authorize};
use super::matching::{self, Edited, MAX_LOCATIONS, Matches, Strategy};
use super::operation::{self, Action, Problem, Written};
use super::place::Parents;
use super::records::{Fingerprint, hash};
use super::text::{Utf16, base_name, utf16_len};
use super::{Caller, add_contents, add_effects, describe, diff, is_sensitive};
use crate::contract::{
    Behavior, ModelContent, PrepareContext, Rewrites, Subject, Tool, ToolContext, ToolDescription, ToolError,
    ToolErrorType, ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield,
};
use crate::host::{CancelToken, clock};
use crate::tools::constant_schema;
use crate::tools::paths::{Missing, Roots};

const NAME: &str = "Edit";
/// Largest file that is edited: the old and the new content are in memory at the same time.
const MAX_EDITED: u64 = 50 * 1024 * 1024;

const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","minLength":1,"description":"Absolute path of the file to edit"},"old_string":{"type":"string","minLength":1,"description":"Text to replace; it must match exactly and, unless replace_all is set, in one place only"},"new_string":{"type":"string","description":"Text to put in its place; may be empty"},"replace_all":{"type":"boolean","default":false,"description":"Replace every match"}},"required":["file_path","old_string","new_string","replace_all"]}"#;

/// Arguments of Edit.
#[derive(Debug, Deserialize)]
pub struct Params {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// The tool.
#[derive(Debug)]
pub struct EditTool {
    spec: ToolSpec,
}

impl EditTool {
    /// The tool with its declaration.
    pub(super) fn new() -> Self {
        let mut spec = ToolSpec::new(NAME, description(), constant_schema(SCHEMA), Behavior::of(ToolKind::Write));
        describe(&mut spec, "File Edit");
        spec.strict = Some(true);
        Self { spec }
    }
}

fn description() -> String {
    ToolDescription {
        short: "Replaces text in a file.".to_owned(),
        long: Some("Everything outside the replaced text keeps its exact bytes.".to_owned()),
        usage_notes: vec![
            "file_path must be an absolute path inside the authorized directories.".to_owned(),
            "old_string must match the file's text, indentation included, without the line numbers that Read shows."
                .to_owned(),
            "If old_string is in several places, add surrounding text to make it unique, or set replace_all."
                .to_owned(),
            "Line breaks are written as the file has them.".to_owned(),
        ],
        important: vec!["Use the Read tool on the file before you edit it.".to_owned()],
    }
    .render()
}

impl Tool for EditTool {
    type Params = Params;

    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn behavior(&self, params: &Params) -> Behavior {
        self.spec.behavior.with_destructive(is_sensitive(&params.file_path))
    }

    fn subject(&self, params: &Params) -> Subject {
        arguments::subject(&params.file_path)
    }

    async fn prepare(&self, params: &Params, cx: &PrepareContext) -> Result<Rewrites, ToolFailure> {
        let rewrites = authorize(&params.file_path, Missing::Refuse, cx).await?;
        if params.old_string == params.new_string {
            return Err(ToolFailure::new(
                "New string is identical; no replacement needed",
                ToolError::new(ToolErrorType::ValidationError, "New string is identical to old string"),
            ));
        }
        Ok(rewrites)
    }

    async fn execute(&self, params: Params, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        cx.emit(ToolYield::message("Starting to read file...")).await;
        let (snapshot, caller) = (cx.snapshot.clone(), Caller::of(&cx));
        let (success, replaced) = cx
            .blocking(move |cancel| {
                let roots = Roots::from_snapshot(&snapshot)?;
                let path = PathBuf::from(&params.file_path);
                let edit = || edit(&roots, &path, &params, &caller, cancel);
                operation::exclusively(&path, edit).map_err(|problem| problem.into_failure(Action::Edit, &path))
            })
            .await??;
        let plural = if replaced == 1 { "match" } else { "matches" };
        let message = format!("Found {replaced} {plural}, replacing...");
        cx.emit(ToolYield::progress(message, json!({ "matches": replaced }))).await;
        Ok(success)
    }
}

/// The edit itself; gives the number of replacements too.
fn edit(
    roots: &Roots,
    path: &Path,
    params: &Params,
    caller: &Caller,
    cancel: &CancelToken,
) -> Result<(ToolSuccess, usize), Problem> {
    if cancel.is_cancelled() {
        return Err(Problem::Cancelled);
    }
    let place = operation::find(roots, path, Parents::Existing)?;
    let mut opened = operation::open(&place)?;
    let seen = operation::seen(Action::Edit, caller.session(), path)?;
    let old_bytes = opened.read_all(Vec::new(), MAX_EDITED, "use Bash to change it", cancel)?;
    let now = Fingerprint { stat: opened.stat.clone(), hash: Some(hash(&old_bytes)) };
    operation::check_fresh(Action::Edit, &seen, &now)?;

    let utf16 = Utf16::of(&old_bytes);
    let old = decode(path, &old_bytes, utf16)?;
    let found = locate(path, &old, params)?;
    let new = matching::apply(&old, &found, &params.old_string, &params.new_string);
    let new_bytes = encode(&new.bytes, utf16)?;
    let written = operation::replace(Action::Edit, &place, &opened, Some(&old_bytes), &new_bytes, cancel)?;
    operation::remember_written(caller.session(), path, &written, &new_bytes);
    let replaced = found.ranges.len();
    let change = Change { old: &old, new: &new, found: &found, utf16, written: &written };
    Ok((render(path, params, caller, &change), replaced))
}

/// The text to search: the file's own bytes, or the text of a UTF-16 file.
fn decode<'a>(path: &Path, bytes: &'a [u8], utf16: Option<Utf16>) -> Result<Cow<'a, [u8]>, ToolFailure> {
    let Some(order) = utf16 else { return Ok(Cow::Borrowed(bytes)) };
    let (text, lossy) = order.decode(bytes);
    // What does not survive the way there and back would be damaged by an edit anywhere in the file.
    if lossy || order.encode(&text) != bytes {
        let name = order.name();
        let message = format!("file is not valid {name}; convert it to UTF-8 before editing: {}", path.display());
        return Err(ToolError::new(ToolErrorType::ExecutionError, message).with_code("INVALID_ENCODING").into());
    }
    Ok(Cow::Owned(text.into_owned().into_bytes()))
}

fn encode(text: &[u8], utf16: Option<Utf16>) -> Result<Cow<'_, [u8]>, ToolFailure> {
    let Some(order) = utf16 else { return Ok(Cow::Borrowed(text)) };
    match std::str::from_utf8(text) {
        Ok(text) => Ok(Cow::Owned(order.encode(text))),
        // Decoded text and a replacement string are valid, and matches end between characters.
        Err(error) => {
            Err(ToolError::new(ToolErrorType::ExecutionError, format!("edited text is not valid: {error}")).into())
        }
    }
}

/// Finds what to replace, or says why it cannot be decided.
fn locate(path: &Path, text: &[u8], params: &Params) -> Result<Matches, ToolFailure> {
    let Some(found) = matching::find(text, &params.old_string) else {
        return Err(not_found(path, text, &params.old_string));
    };
    if params.replace_all || found.count == 1 {
        return Ok(found);
    }
    let count = found.count;
    let matches = matching::positions(text, &found.locations);
    let mut details = json!({ "matches": matches, "count": count });
    if count > MAX_LOCATIONS {
        details["truncated"] = true.into();
    }
    Err(ToolFailure::new(
        format!("old_string matches {count} locations. Include more context or set replace_all=true."),
        ToolError::new(ToolErrorType::ValidationError, "old_string is not unique")
            .with_code("MATCH_NOT_UNIQUE")
            .with_details(details),
    ))
}

fn not_found(path: &Path, text: &[u8], needle: &str) -> ToolFailure {
    let mut model = format!(
        "String not found in {}. Read the file again and provide an exact match with surrounding context.",
        path.display()
    );
    let near = matching::nearest(text, needle);
    if matching::normalized_twin(text, needle) {
        model.push_str(
            "\n\nThe file holds this text in another Unicode normalization (composed and decomposed characters look \
             alike). Copy it from the output of Read.",
        );
    } else if !needle.is_ascii() && std::str::from_utf8(text).is_err() {
        model.push_str("\n\nThe file is not valid UTF-8; only its ASCII text can be matched.");
    }
    if !near.is_empty() {
        model.push_str("\n\nClosest lines:");
        for line in &near {
            model.push_str(&format!("\n{:>6}→{}", line.line, line.text));
        }
    }
    let details = json!({ "searchStringLength": utf16_len(needle), "nearest": near });
    let error = ToolError::new(ToolErrorType::ExecutionError, "No match for old_string found")
        .with_code("MATCH_NOT_FOUND")
        .with_details(details);
    ToolFailure::new(model, error)
}

/// An edit that was done.
struct Change<'a> {
    old: &'a [u8],
    new: &'a Edited,
    found: &'a Matches,
    utf16: Option<Utf16>,
    written: &'a Written,
}

fn render(path: &Path, params: &Params, caller: &Caller, change: &Change<'_>) -> ToolSuccess {
    let &Change { old, new, found, utf16, written } = change;
    let (old_text, new_text) = (String::from_utf8_lossy(old), String::from_utf8_lossy(&new.bytes));
    let (original_size, new_size) = (utf16_len(&old_text), utf16_len(&new_text));
    let replacements = found.ranges.len();
    let name = base_name(path);
    let plural = if replacements == 1 { "match" } else { "matches" };
    let mut success = ToolSuccess::new("").with_metadata(json!({
        "file_path": path.to_string_lossy(),
        "matches_found": replacements,
        "replacements_made": replacements,
        "replace_all": params.replace_all,
        "old_string_length": utf16_len(&params.old_string),
        "new_string_length": utf16_len(&params.new_string),
        "original_size": original_size,
        "new_size": new_size,
        "size_diff": new_size as i64 - original_size as i64,
        "last_modified": clock::iso(written.stat.modified()),
        "summary": format!("Replaced {replacements} {plural} in {name}"),
        "kind": "edit",
    }));
    let metadata = &mut success.metadata;
    caller.add_to(metadata);
    if found.strategy != Strategy::Exact {
        metadata.insert("match_strategy".into(), found.strategy.name().into());
    }
    if let Some(order) = utf16 {
        metadata.insert("encoding".into(), order.name().into());
    }
    if let Some(range) = found.ranges.first() {
        let line = matching::positions(old, &[range.start])[0].line;
        let snippet = diff::snippet(old, &new.bytes, range.start, range.end, new.first_end, line);
        if let Some(snippet) = snippet {
            metadata.insert("diff_snippet".into(), snippet.into());
        }
    }
    // Borrowed means that nothing had to be replaced: the text is what the file holds.
    let exact = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
    let shown = exact(&old_text) && exact(&new_text);
    add_contents(metadata, shown.then_some(&*old_text), shown.then_some(&*new_text));
    let note = add_effects(metadata, written);
    let mut model = json!({
        "file_path": path.to_string_lossy(),
        "replacements": replacements,
        "total_matches": replacements,
    });
    if let Some(note) = note {
        model["note"] = note.into();
    }
    success.model = ModelContent::json(&model);
    success
}
