//! Read: the text of a file, whole or by lines, or its bytes as text.
//!
//! A whole file is given exactly as it is. With a range the file is streamed: only the lines that are shown are kept.
//! Nothing here waits for a FIFO, a device or a socket.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::arguments::{self, Encoding, authorize, integer};
use super::describe;
use super::operation::{self, Action, CHUNK, Opened, Problem};
use super::page::{MAX_LINE_CHARS, Page};
use super::place::{Parents, Stat};
use super::text::{self, Content, SNIFF};
use crate::contract::{
    Behavior, InterruptBehavior, Metadata, PrepareContext, Rewrites, SideEffect, Subject, Tool, ToolContext,
    ToolDescription, ToolFailure, ToolKind, ToolSpec, ToolSuccess, ToolYield,
};
use crate::host::{CancelToken, clock};
use crate::tools::constant_schema;
use crate::tools::paths::{Missing, Roots};

const NAME: &str = "Read";
/// Longest result in characters; the pipeline keeps longer ones as an artifact.
const MAX_RESULT_CHARS: usize = 500_000;
/// Largest result of a whole file; the pipeline takes no larger one.
const MAX_WHOLE: u64 = 10 * 1024 * 1024;
/// Bytes scanned to count the lines of a file once the wanted ones were found.
const MAX_COUNTED: u64 = 256 * 1024 * 1024;

const READ_A_PART: &str = "use offset and limit to read a part of it";

const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","minLength":1,"description":"Absolute path of the file to read"},"offset":{"type":"integer","minimum":0,"description":"First line to read, counted from 0"},"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"Number of lines to read"},"encoding":{"type":"string","enum":["utf8","base64","binary"],"default":"utf8","description":"How to give the content: utf8 text, base64, or binary (one character a byte)"}},"required":["file_path","encoding"]}"#;

/// Arguments of Read.
#[derive(Debug, Deserialize)]
pub struct Params {
    file_path: String,
    #[serde(default, deserialize_with = "integer")]
    offset: Option<u64>,
    #[serde(default, deserialize_with = "integer")]
    limit: Option<u64>,
    #[serde(default)]
    encoding: Encoding,
}

/// The tool.
#[derive(Debug)]
pub struct ReadTool {
    spec: ToolSpec,
}

impl ReadTool {
    /// The tool with its declaration.
    pub(super) fn new() -> Self {
        let behavior = Behavior::of(ToolKind::ReadOnly)
            .with_side_effect(SideEffect::Pure)
            .with_interrupt(InterruptBehavior::Cancel);
        let mut spec = ToolSpec::new(NAME, description(), constant_schema(SCHEMA), behavior);
        describe(&mut spec, "File Read");
        spec.max_result_chars = Some(MAX_RESULT_CHARS);
        Self { spec }
    }
}

fn description() -> String {
    ToolDescription {
        short: "Reads a file from the local filesystem.".to_owned(),
        long: Some("Gives the text of the file exactly as it is. With offset or limit, gives numbered lines.".to_owned()),
        usage_notes: vec![
            "file_path must be an absolute path inside the authorized directories.".to_owned(),
            "Use offset (the first line, counted from 0) and limit for large files; files above 10 MiB need them."
                .to_owned(),
            format!("In a range, each line is shown as number, arrow, text; lines above {MAX_LINE_CHARS} characters are cut."),
            "Images, PDFs and other binary files are given as base64.".to_owned(),
        ],
        important: vec!["Read a file before you edit or overwrite it.".to_owned()],
    }
    .render()
}

impl Tool for ReadTool {
    type Params = Params;

    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn subject(&self, params: &Params) -> Subject {
        arguments::subject(&params.file_path)
    }

    async fn prepare(&self, params: &Params, cx: &PrepareContext) -> Result<Rewrites, ToolFailure> {
        authorize(&params.file_path, Missing::Refuse, cx).await
    }

    async fn execute(&self, params: Params, cx: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        cx.emit(ToolYield::message("Starting file read...")).await;
        let (snapshot, session) = (cx.snapshot.clone(), cx.session_id.clone());
        cx.blocking(move |cancel| {
            let roots = Roots::from_snapshot(&snapshot)?;
            let path = PathBuf::from(&params.file_path);
            let session = session.as_ref().map(|session| session.as_str());
            read(&roots, &path, session, &params, cancel).map_err(|problem| problem.into_failure(Action::Read, &path))
        })
        .await?
    }
}

/// What was read.
struct Reading {
    model: String,
    hash: Option<[u8; 32]>,
    metadata: Metadata,
}

fn read(
    roots: &Roots,
    path: &Path,
    session: Option<&str>,
    params: &Params,
    cancel: &CancelToken,
) -> Result<ToolSuccess, Problem> {
    if cancel.is_cancelled() {
        return Err(Problem::Cancelled);
    }
    let place = operation::find(roots, path, Parents::Existing)?;
    let mut opened = operation::open(&place)?;
    let stat = opened.stat.clone();
    let extension = text::extension(path);

    let mut start = vec![0; SNIFF];
    let mut filled = 0;
    // A short read is no end: files of /proc give their content in pieces.
    while filled < start.len() {
        match opened.read_some(&mut start[filled..], cancel)? {
            0 => break,
            read => filled += read,
        }
    }
    start.truncate(filled);

    let content = if params.encoding == Encoding::Utf8 { text::sniff(&extension, &start) } else { Content::Binary };
    let range = (params.offset.is_some() || params.limit.is_some())
        .then(|| (params.offset.unwrap_or(0), params.limit.unwrap_or(u64::MAX)));
    let reading = match (content, range) {
        (Content::Text, Some(range)) => lines(&mut opened, start, range, cancel)?,
        (content, range) => whole(&mut opened, start, content, range, &extension, params.encoding, cancel)?,
    };
    operation::remember(session, path, &stat, reading.hash);
    // Other encodings can grow on the way to UTF-8.
    if reading.model.len() as u64 > MAX_WHOLE {
        return Err(Problem::TooLarge { size: reading.model.len() as u64, limit: MAX_WHOLE, advice: READ_A_PART });
    }
    Ok(render(reading, path, &extension, &stat))
}

/// Streams the file and keeps the lines of the range.
fn lines(
    opened: &mut Opened,
    start: Vec<u8>,
    (offset, limit): (u64, u64),
    cancel: &CancelToken,
) -> Result<Reading, Problem> {
    let mut page = Page::new(offset, limit);
    let mut hash = Sha256::new();
    let mut scanned = start.len() as u64;
    hash.update(&start);
    page.feed(&start);
    let mut chunk = vec![0; CHUNK];
    loop {
        if page.is_full() && scanned > MAX_COUNTED {
            let mut metadata = page.metadata(offset);
            metadata.insert("total_lines_unknown".into(), true.into());
            return Ok(Reading { model: page.text(None, rest_of_line(opened.stat.size)), hash: None, metadata });
        }
        let read = opened.read_some(&mut chunk, cancel)?;
        if read == 0 {
            break;
        }
        scanned += read as u64;
        hash.update(&chunk[..read]);
        page.feed(&chunk[..read]);
    }
    Ok(finish(page, offset, scanned, Some(hash.finalize().into())))
}

fn finish(mut page: Page, offset: u64, size: u64, hash: Option<[u8; 32]>) -> Reading {
    let total = page.finish();
    let mut metadata = page.metadata(offset);
    metadata.insert("encoding".into(), Encoding::Utf8.name().into());
    metadata.insert("total_lines".into(), total.into());
    let end = total.min(offset.saturating_add(page.lines()));
    metadata.insert("end_line".into(), end.into());
    Reading { model: page.text(Some(total), rest_of_line(size)), hash, metadata }
}

fn rest_of_line(size: u64) -> &'static str {
    match size {
        0..=MAX_WHOLE => "read the file without offset and limit",
        _ => "use Bash, for example head -c or cut -c",
    }
}

/// Reads the file to its end and gives it as text or bytes.
fn whole(
    opened: &mut Opened,
    start: Vec<u8>,
    content: Content,
    range: Option<(u64, u64)>,
    extension: &str,
    encoding: Encoding,
    cancel: &CancelToken,
) -> Result<Reading, Problem> {
    let advice = match content {
        Content::Text => READ_A_PART,
        _ => "use Bash to look at a part of it",
    };
    // What the bytes may become must fit: base64 takes four characters for three bytes, a character up to U+00FF two.
    let limit = match (content, encoding) {
        (Content::Binary, Encoding::Binary) => MAX_WHOLE / 2,
        (Content::Binary, _) => MAX_WHOLE / 4 * 3,
        _ => MAX_WHOLE,
    };
    let bytes = opened.read_all(start, limit, advice, cancel)?;
    let hash = Some(super::records::hash(&bytes));
    let mut metadata = Metadata::new();
    let model = match content {
        Content::Text => {
            metadata.insert("encoding".into(), Encoding::Utf8.name().into());
            String::from_utf8(bytes).unwrap_or_else(|error| {
                metadata.insert("encoding_lossy".into(), true.into());
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            })
        }
        Content::Utf16(order) => {
            let (text, lossy) = order.decode(&bytes);
            let mut reading = match range {
                Some((offset, limit)) => {
                    let mut page = Page::new(offset, limit);
                    page.feed(text.as_bytes());
                    finish(page, offset, opened.stat.size, hash)
                }
                None => Reading { model: text.into_owned(), hash, metadata },
            };
            reading.metadata.insert("encoding".into(), order.name().into());
            if lossy {
                reading.metadata.insert("encoding_lossy".into(), true.into());
            }
            return Ok(reading);
        }
        Content::Binary => {
            // Bytes that nobody asked to see as bytes are named binary; so are the extensions that always are.
            if encoding == Encoding::Utf8 || text::is_binary_extension(extension) {
                metadata.insert("is_binary".into(), true.into());
            }
            if range.is_some() {
                metadata.insert("range_ignored".into(), true.into());
            }
            let shown = if encoding == Encoding::Binary { Encoding::Binary } else { Encoding::Base64 };
            metadata.insert("encoding".into(), shown.name().into());
            if shown == Encoding::Binary { text::latin1(&bytes) } else { STANDARD.encode(&bytes) }
        }
    };
    Ok(Reading { model, hash, metadata })
}

fn render(reading: Reading, path: &Path, extension: &str, stat: &Stat) -> ToolSuccess {
    let name = text::base_name(path);
    let summary = match reading.metadata.get("lines_read").and_then(Value::as_u64) {
        Some(1) => format!("Read 1 line from {name}"),
        Some(lines) if lines > 0 => format!("Read {lines} lines from {name}"),
        _ => format!("Read {name}"),
    };
    let mut success = ToolSuccess::new(reading.model).with_metadata(json!({
        "file_path": path.to_string_lossy(),
        "file_size": stat.size,
        "file_type": extension,
        "last_modified": clock::iso(stat.modified()),
        "summary": summary,
    }));
    success.metadata.extend(reading.metadata);
    success
}
