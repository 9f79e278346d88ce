//! Write: creates a file, or replaces the whole content of one that the Session has read.
//!
//! The content is stored as given: no line break, byte order mark or final newline is added. A file is never seen
//! half-written: the new content takes the place of the old in one step.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::arguments::{self, Encoding, authorize, invalid};
use super::operation::{self, Action, CHUNK, Opened, Problem, Written};
use super::place::Parents;
use super::records::{ContentHash, Fingerprint, hash};
use super::text::{Utf16, base_name, has_utf8_mark, utf16_len};
use super::{Caller, add_contents, add_effects, describe, is_sensitive};
use crate::contract::{
    Behavior, ModelContent, PrepareContext, Rewrites, SideEffect, Subject, Tool, ToolContext, ToolDescription,
    ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield,
};
use crate::host::{CancelToken, clock};
use crate::tools::constant_schema;
use crate::tools::paths::{Missing, Roots};

const NAME: &str = "Write";
/// Old content up to this size is kept in memory, to compare it and to put it back; larger content is only hashed.
const MAX_KEPT: u64 = 10 * 1024 * 1024;
/// Old content beyond this size is not hashed; the file's times have to do.
const MAX_HASHED: u64 = 256 * 1024 * 1024;
/// Texts of this length or more are not compared for `has_diff`.
const MAX_COMPARED: usize = 1_048_576;

const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","minLength":1,"description":"Absolute path of the file to write; it may not exist yet"},"content":{"type":"string","description":"The whole content of the file"},"encoding":{"type":"string","enum":["utf8","base64","binary"],"default":"utf8","description":"How content is given: utf8 text, base64, or binary (one character a byte)"},"create_directories":{"type":"boolean","default":true,"description":"Create missing parent directories"}},"required":["file_path","content","encoding","create_directories"]}"#;

/// Base64 as people write it: padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Arguments of Write.
#[derive(Debug, Deserialize)]
pub struct Params {
    file_path: String,
    content: String,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default = "yes")]
    create_directories: bool,
}

fn yes() -> bool {
    true
}

/// The tool.
#[derive(Debug)]
pub struct WriteTool {
    spec: ToolSpec,
}

impl WriteTool {
    /// The tool with its declaration.
    pub(super) fn new() -> Self {
        let behavior = Behavior::of(ToolKind::Write).with_side_effect(SideEffect::Idempotent);
        let mut spec = ToolSpec::new(NAME, description(), constant_schema(SCHEMA), behavior);
        describe(&mut spec, "File Write");
        spec.strict = Some(true);
        Self { spec }
    }
}

fn description() -> String {
    ToolDescription {
        short: "Writes a file.".to_owned(),
        long: Some(
            "Creates the file, or replaces its whole content. The content is stored exactly as given.".to_owned(),
        ),
        usage_notes: vec![
            "file_path must be an absolute path inside the authorized directories.".to_owned(),
            "Missing parent directories are created unless create_directories is false.".to_owned(),
            "Prefer Edit for changes to an existing file.".to_owned(),
        ],
        important: vec!["Use the Read tool on an existing file before you overwrite it.".to_owned()],
    }
    .render()
}

impl Tool for WriteTool {
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
        let rewrites = authorize(&params.file_path, Missing::Allow, cx).await?;
        decode(params)?;
        Ok(rewrites)
    }

    async fn execute(&self, params: Params, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        cx.emit(ToolYield::message("Starting file write...")).await;
        let (snapshot, caller) = (cx.snapshot.clone(), Caller::of(&cx));
        cx.blocking(move |cancel| {
            let roots = Roots::from_snapshot(&snapshot)?;
            let path = PathBuf::from(&params.file_path);
            let write = || write(&roots, &path, &params, &caller, cancel);
            operation::exclusively(&path, write).map_err(|problem| problem.into_failure(Action::Write, &path))
        })
        .await?
    }
}

/// The bytes to store.
fn decode(params: &Params) -> Result<Cow<'_, [u8]>, ToolFailure> {
    let content = &params.content;
    match params.encoding {
        Encoding::Utf8 => Ok(Cow::Borrowed(content.as_bytes())),
        Encoding::Base64 => {
            let compact: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            let decoded = BASE64.decode(compact);
            decoded.map(Cow::Owned).map_err(|error| bad_content(&format!("content is not base64: {error}"), content))
        }
        Encoding::Binary => {
            let bytes: Result<Vec<u8>, _> =
                content.chars().map(|c| u8::try_from(u32::from(c)).map_err(|_| c)).collect();
            bytes.map(Cow::Owned).map_err(|c| {
                bad_content(
                    &format!("binary content must hold characters up to U+00FF, not {c:?}; use base64"),
                    content,
                )
            })
        }
    }
}

fn bad_content(message: &str, content: &str) -> ToolFailure {
    let shown: String = content.chars().take(80).collect();
    invalid("content", message, &shown)
}

/// What was there before.
enum Before {
    Nothing,
    /// Content that is in memory.
    Known(Vec<u8>),
    /// Content that is too large to keep.
    Large,
}

fn write(
    roots: &Roots,
    path: &Path,
    params: &Params,
    caller: &Caller,
    cancel: &CancelToken,
) -> Result<ToolSuccess, Problem> {
    if cancel.is_cancelled() {
        return Err(Problem::Cancelled);
    }
    let content = decode(params)?;
    // Directories are made only for a file that does not exist, so never for a call that the guard refuses.
    let place = match operation::find(roots, path, Parents::Existing) {
        Err(Problem::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound && params.create_directories => {
            operation::find(roots, path, Parents::Create)?
        }
        other => other?,
    };
    let (before, written) = match operation::open(&place) {
        Err(Problem::Missing) => (Before::Nothing, operation::create(Action::Write, &place, &content, cancel)?),
        Err(problem) => return Err(problem),
        Ok(mut opened) => {
            let seen = operation::seen(Action::Write, caller.session(), path)?;
            let (before, hash) = examine(&mut opened, cancel)?;
            let now = Fingerprint { stat: opened.stat.clone(), hash };
            operation::check_fresh(Action::Write, &seen, &now)?;
            let old = match &before {
                Before::Known(bytes) => Some(&bytes[..]),
                _ => None,
            };
            let written = operation::replace(Action::Write, &place, &opened, old, &content, cancel)?;
            (before, written)
        }
    };
    operation::remember_written(caller.session(), path, &written, &content);
    Ok(render(path, params, caller, &before, &content, &written))
}

/// Hashes the old content, and keeps it where it is small.
fn examine(opened: &mut Opened, cancel: &CancelToken) -> Result<(Before, Option<ContentHash>), Problem> {
    if opened.stat.size <= MAX_KEPT {
        let bytes = opened.read_all(Vec::new(), MAX_KEPT, "remove it first", cancel)?;
        let hash = hash(&bytes);
        return Ok((Before::Known(bytes), Some(hash)));
    }
    if opened.stat.size > MAX_HASHED {
        return Ok((Before::Large, None));
    }
    let (mut sha, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        match opened.read_some(&mut chunk, cancel)? {
            0 => return Ok((Before::Large, Some(sha.finalize().into()))),
            read => sha.update(&chunk[..read]),
        }
    }
}

fn render(
    path: &Path,
    params: &Params,
    caller: &Caller,
    before: &Before,
    content: &[u8],
    written: &Written,
) -> ToolSuccess {
    let name = base_name(path);
    let text = (params.encoding == Encoding::Utf8).then_some(params.content.as_str());
    let old_text = match before {
        Before::Nothing => Some(""),
        Before::Known(bytes) => std::str::from_utf8(bytes).ok(),
        Before::Large => None,
    };
    let summary = match text {
        Some(text) => match memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1 {
            1 => format!("Wrote 1 line to {name}"),
            lines => format!("Wrote {lines} lines to {name}"),
        },
        None => format!("Wrote {} bytes to {name}", content.len()),
    };
    let comparable = |text: &str| text.len() < MAX_COMPARED || utf16_len(text) < MAX_COMPARED;
    let has_diff = match (text, old_text, before) {
        (Some(new), Some(old), Before::Known(_)) => new != old && comparable(new) && comparable(old),
        _ => false,
    };
    let modified = clock::iso(written.stat.modified());
    let mut success = ToolSuccess::new("").with_metadata(json!({
        "file_path": path.to_string_lossy(),
        "content_size": utf16_len(&params.content),
        "file_size": written.stat.size,
        "encoding": params.encoding.name(),
        "created_directories": params.create_directories,
        "last_modified": &modified,
        "has_diff": has_diff,
        "summary": summary,
        "kind": "edit",
    }));
    let metadata = &mut success.metadata;
    caller.add_to(metadata);
    if text.is_some() {
        add_contents(metadata, old_text, text);
    }
    let note = add_effects(metadata, written).or_else(|| lost_encoding(before, content));
    let mut model = json!({ "file_path": path.to_string_lossy(), "size": written.stat.size, "modified": modified });
    if let Some(note) = note {
        model["note"] = note.into();
    }
    success.model = ModelContent::json(&model);
    success
}

/// Says that the old file had an encoding mark that the new content has not.
fn lost_encoding(before: &Before, content: &[u8]) -> Option<&'static str> {
    let Before::Known(old) = before else { return None };
    if has_utf8_mark(old) && !has_utf8_mark(content) {
        return Some("the old content began with a UTF-8 byte order mark; the new content has none");
    }
    if Utf16::of(old).is_some() && Utf16::of(content).is_none() {
        return Some("the old content was UTF-16; the new content is stored as given");
    }
    None
}
