//! The file tools: Read, Edit and Write.
//!
//! `operation` is the one owner of file access. It opens files without following links, remembers what each Session
//! has read, refuses to change what it has not seen, and replaces files atomically. The tools decide what to read and
//! what to write; they never touch the file system themselves.

use std::sync::{Arc, LazyLock};

use self::operation::Written;
use crate::contract::{AnyTool, Metadata, ToolContext, ToolSpec};
use crate::model::{MessageId, SessionId};

mod arguments;
mod diff;
mod edit;
mod matching;
mod operation;
mod page;
mod place;
mod read;
mod records;
mod sensitive;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use edit::EditTool;
pub use read::ReadTool;
pub use sensitive::{holds_secrets, is_sensitive};
pub use write::WriteTool;

/// Read, Edit and Write, in this order. They are built once in a process and shared.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    static TOOLS: LazyLock<Vec<Arc<dyn AnyTool>>> =
        LazyLock::new(|| vec![Arc::new(ReadTool::new()), Arc::new(EditTool::new()), Arc::new(WriteTool::new())]);
    TOOLS.clone()
}

/// Forgets what a Session has read; call it when the Session is closed.
pub fn forget_session(session: &str) {
    records::records().forget(session);
}

/// What the three declarations have in common.
fn describe(spec: &mut ToolSpec, display_name: &str) {
    spec.display_name = Some(display_name.to_owned());
    spec.group = Some("filesystem".to_owned());
}

/// Longest text that goes into `oldContent` and `newContent`. Both cross to JavaScript and into every event; beyond
/// this size they cost more than anybody gains from them.
const MAX_CONTENT: usize = 256 * 1024;

/// Adds the texts before and after, or says that they were left out (they are too long, or no text).
fn add_contents(metadata: &mut Metadata, old: Option<&str>, new: Option<&str>) {
    let fits = |text: &Option<&str>| text.is_some_and(|text| text.len() <= MAX_CONTENT);
    if fits(&old) && fits(&new) {
        metadata.insert("oldContent".into(), old.into());
        metadata.insert("newContent".into(), new.into());
    } else {
        metadata.insert("content_omitted".into(), true.into());
    }
}

/// What a replacement has to say for itself: facts for programs, and a note for the model where it should know.
fn add_effects(metadata: &mut Metadata, written: &Written) -> Option<&'static str> {
    if written.in_place {
        metadata.insert("written_in_place".into(), true.into());
    }
    if written.ownership_changed {
        metadata.insert("ownership_changed".into(), true.into());
        return Some("the owner of the file could not be kept; it now belongs to the user this process runs as");
    }
    None
}

/// Who asked for a change.
struct Caller {
    session: Option<SessionId>,
    message: Option<MessageId>,
}

impl Caller {
    fn of(cx: &ToolContext) -> Self {
        Self { session: cx.session_id.clone(), message: cx.message_id.clone() }
    }

    fn session(&self) -> Option<&str> {
        self.session.as_ref().map(SessionId::as_str)
    }

    fn add_to(&self, metadata: &mut Metadata) {
        metadata.insert("snapshot_created".into(), false.into());
        if let Some(session) = self.session() {
            metadata.insert("session_id".into(), session.into());
        }
        if let Some(message) = &self.message {
            metadata.insert("message_id".into(), message.as_str().into());
        }
    }
}
