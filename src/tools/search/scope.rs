//! Where a search may look.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::walk::Warnings;
use crate::contract::{ContextSnapshot, PrepareContext, Rewrites, Subject, ToolError, ToolErrorType, ToolFailure};
use crate::tools::paths::{Missing, Roots};

/// The canonical path to search: `path`, relative to the working directory, or the working directory itself. Blocks.
///
/// # Errors
/// `permission_denied`: no roots, outside of them, or missing. `validation_error`: neither a path nor a working
/// directory.
pub(super) fn authorize(snapshot: &ContextSnapshot, path: Option<&str>) -> Result<PathBuf, ToolFailure> {
    if snapshot.filesystem_roots.is_empty() {
        return Err(ToolFailure::new(
            "No filesystem access in the current runtime context.",
            ToolError::new(ToolErrorType::PermissionDenied, "No filesystem access in current context"),
        ));
    }
    let roots = Roots::from_snapshot(snapshot)?;
    match (given(path), &snapshot.cwd) {
        (Some(path), _) => roots.resolve_relative(path, Missing::Refuse),
        (None, Some(cwd)) => match cwd.to_str() {
            Some(cwd) => roots.resolve(cwd, Missing::Refuse),
            None => roots.resolve_relative(".", Missing::Refuse),
        },
        (None, None) => Err(ToolFailure::new(
            "No search path provided and no filesystem working directory is available.",
            ToolError::new(ToolErrorType::ValidationError, "No search path available"),
        )),
    }
}

/// A path argument; models send an empty one where they mean none.
fn given(path: Option<&str>) -> Option<&str> {
    path.filter(|path| !path.is_empty())
}

/// What permissions judge a search by: the pattern, and the path where one was given.
pub(super) fn subject(pattern: &str, path: Option<&str>) -> Subject {
    Subject {
        content: Some(pattern.to_owned()),
        affected_paths: given(path).into_iter().map(str::to_owned).collect(),
        canonical: true,
        ..Subject::default()
    }
}

/// Checks the path before permissions are asked, and replaces it by its canonical form.
///
/// # Errors
/// As [`authorize`].
pub(super) async fn prepare(path: Option<&str>, cx: &PrepareContext) -> Result<Rewrites, ToolFailure> {
    let path = given(path).map(str::to_owned);
    let was_given = path.is_some();
    let snapshot = Arc::clone(&cx.snapshot);
    let canonical = cx.blocking(move |_| authorize(&snapshot, path.as_deref())).await??;
    // A canonical path that is not Unicode cannot stand in an argument; it is resolved again when the search starts.
    Ok(match canonical.to_str() {
        Some(canonical) if was_given => vec![("path", canonical.into())],
        _ => Rewrites::new(),
    })
}

/// The failure of a cancelled search.
pub(super) fn aborted(model: &str) -> ToolFailure {
    ToolFailure::new(model, ToolError::new(ToolErrorType::Interrupted, "Operation aborted"))
}

/// Says in the metadata what could not be read.
pub(super) fn note_warnings(metadata: &mut Value, warnings: &Warnings) {
    if warnings.count > 0 {
        metadata["partial"] = true.into();
        metadata["warning_count"] = warnings.count.into();
        metadata["warnings"] = warnings.texts.clone().into();
    }
}
