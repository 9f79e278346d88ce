//! Trees and calls for the tests of this family.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::contract::{
    AnyTool, Arguments, ContextSnapshot, PermissionMode, PrepareContext, ToolContext, ToolError, ToolErrorType,
    ToolOutcome, ToolYield, YieldSink,
};
use crate::host::{CancelToken, EnvSnapshot};
use crate::model::ToolUseId;

/// A temporary tree; its root is canonical.
pub(super) struct Tree {
    _dir: tempfile::TempDir,
    pub(super) root: PathBuf,
}

/// A tree of these files.
pub(super) fn tree(files: &[(&str, &str)]) -> Tree {
    let dir = tempfile::tempdir().expect("temporary directory");
    let root = dir.path().canonicalize().expect("canonical");
    let tree = Tree { _dir: dir, root };
    for (path, content) in files {
        tree.put(path, content.as_bytes());
    }
    tree
}

impl Tree {
    pub(super) fn put(&self, path: &str, content: &[u8]) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("directories");
        std::fs::write(path, content).expect("written");
    }

    pub(super) fn context(&self) -> ToolContext {
        context(&[&self.root], Some(&self.root))
    }

    /// Prepares and executes a call as the pipeline does.
    pub(super) async fn call(&self, tool: &dyn AnyTool, arguments: Value) -> ToolOutcome {
        call(tool, arguments, self.context()).await
    }
}

#[derive(Debug, Default)]
pub(super) struct Yields(pub(super) Mutex<Vec<ToolYield>>);

impl YieldSink for Yields {
    fn emit(&self, item: ToolYield) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.lock().expect("lock").push(item);
        Box::pin(std::future::ready(()))
    }
}

pub(super) fn context(roots: &[&Path], cwd: Option<&Path>) -> ToolContext {
    let snapshot = ContextSnapshot {
        filesystem_roots: roots.iter().map(|root| root.to_path_buf()).collect(),
        cwd: cwd.map(Path::to_path_buf),
        ..ContextSnapshot::default()
    };
    ToolContext {
        call_id: ToolUseId::new("call_1"),
        session_id: None,
        message_id: None,
        snapshot: Arc::new(snapshot),
        permission_mode: PermissionMode::Yolo,
        cancel: CancelToken::new(),
        host_env: EnvSnapshot::default(),
        services: Default::default(),
        yields: Arc::new(Yields::default()),
    }
}

pub(super) async fn call(tool: &dyn AnyTool, arguments: Value, cx: ToolContext) -> ToolOutcome {
    let Value::Object(object) = arguments else { panic!("arguments are an object") };
    let prepare = PrepareContext {
        session_id: None,
        snapshot: Arc::clone(&cx.snapshot),
        permission_mode: cx.permission_mode,
        cancel: cx.cancel.clone(),
    };
    match tool.prepare(Arguments::from_object(object), &prepare).await {
        Ok(prepared) => tool.execute(prepared.arguments, cx).await,
        Err(failure) => ToolOutcome::Error(failure),
    }
}

/// Metadata of a success.
pub(super) fn metadata(outcome: &ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Success(success) => Value::Object(success.metadata.clone()),
        ToolOutcome::Error(failure) => panic!("failed: {:?}", failure.error),
    }
}

/// Class and text for the model of a failure.
pub(super) fn failure(outcome: &ToolOutcome) -> (ToolErrorType, String) {
    match outcome {
        ToolOutcome::Error(failure) => (failure.error.kind, failure.model.as_text().to_owned()),
        ToolOutcome::Success(success) => panic!("succeeded: {}", success.model.as_text()),
    }
}

/// The model's JSON of a success.
pub(super) fn model_json(outcome: &ToolOutcome) -> Value {
    metadata(outcome);
    serde_json::from_str(outcome.model().as_text()).expect("JSON")
}

/// The whole error, for tests of messages.
pub(super) fn error(outcome: &ToolOutcome) -> ToolError {
    outcome.error().cloned().unwrap_or_else(|| panic!("succeeded: {}", json!(outcome.model())))
}
