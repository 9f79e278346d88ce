//! The three tools through the erased trait, as the pipeline calls them: prepare, then execute.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::*;
use crate::contract::{
    Arguments, ContextSnapshot, PermissionMode, PrepareContext, Prepared, ToolErrorType, ToolFailure, ToolOutcome,
    ToolSuccess, ToolYield, YieldSink,
};
use crate::host::{CancelReason, CancelToken, EnvSnapshot};
use crate::model::ToolUseId;

mod contract;
mod edit;
mod read;
mod safety;
mod write;

#[derive(Default)]
struct Collected(Mutex<Vec<ToolYield>>);

impl YieldSink for Collected {
    fn emit(&self, item: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.lock().unwrap().push(item);
        Box::pin(std::future::ready(()))
    }
}

/// A directory that is the one root, and a Session of its own.
struct World {
    _dir: TempDir,
    base: PathBuf,
    root: PathBuf,
    session: Option<SessionId>,
    message: Option<MessageId>,
    cancel: CancelToken,
    yields: Arc<Collected>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("root");
        fs::create_dir(&root).unwrap();
        Self {
            _dir: dir,
            base,
            root,
            session: Some(SessionId::generate()),
            message: None,
            cancel: CancelToken::new(),
            yields: Arc::default(),
        }
    }

    fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let world = Self::new();
        fs::write(world.root.join(name), content).unwrap();
        world
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).to_str().unwrap().to_owned()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.root.join(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.root).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn snapshot(&self) -> Arc<ContextSnapshot> {
        let roots = vec![self.root.clone()];
        Arc::new(ContextSnapshot { filesystem_roots: roots, cwd: Some(self.root.clone()), ..Default::default() })
    }

    async fn prepare(&self, tool: &str, arguments: Value) -> Result<Prepared, ToolFailure> {
        let cx = PrepareContext {
            session_id: self.session.clone(),
            snapshot: self.snapshot(),
            permission_mode: PermissionMode::default(),
            cancel: self.cancel.clone(),
        };
        let Value::Object(mut object) = arguments else { panic!("arguments must be an object") };
        let tool = find(tool);
        tool.spec().schema.check(&mut object).unwrap_or_else(|issues| panic!("{issues:?}"));
        tool.prepare(Arguments::from_object(object), &cx).await
    }

    async fn execute(&self, tool: &str, prepared: Prepared) -> ToolOutcome {
        let cx = ToolContext {
            call_id: ToolUseId::generate(),
            session_id: self.session.clone(),
            message_id: self.message.clone(),
            snapshot: self.snapshot(),
            permission_mode: PermissionMode::Yolo,
            cancel: self.cancel.clone(),
            host_env: EnvSnapshot::default(),
            services: Default::default(),
            yields: self.yields.clone(),
        };
        find(tool).execute(prepared.arguments, cx).await
    }

    async fn call(&self, tool: &str, mut arguments: Value) -> Result<ToolSuccess, ToolFailure> {
        fill_defaults(tool, &mut arguments);
        let prepared = self.prepare(tool, arguments).await?;
        match self.execute(tool, prepared).await {
            ToolOutcome::Success(success) => Ok(success),
            ToolOutcome::Error(failure) => Err(failure),
        }
    }

    async fn read(&self, name: &str) -> ToolSuccess {
        self.call("Read", json!({ "file_path": self.path(name) })).await.unwrap()
    }

    async fn edit(&self, name: &str, old: &str, new: &str) -> Result<ToolSuccess, ToolFailure> {
        self.call("Edit", json!({ "file_path": self.path(name), "old_string": old, "new_string": new })).await
    }

    async fn edit_all(&self, name: &str, old: &str, new: &str) -> Result<ToolSuccess, ToolFailure> {
        let arguments =
            json!({ "file_path": self.path(name), "old_string": old, "new_string": new, "replace_all": true });
        self.call("Edit", arguments).await
    }

    async fn write(&self, name: &str, content: &str) -> Result<ToolSuccess, ToolFailure> {
        self.call("Write", json!({ "file_path": self.path(name), "content": content })).await
    }
}

/// Fills what the schema declares as default, as validation does before a call.
fn fill_defaults(tool: &str, arguments: &mut Value) {
    let spec = find(tool);
    let properties = spec.spec().schema.value()["properties"].as_object().unwrap().clone();
    let object: &mut Map<String, Value> = arguments.as_object_mut().unwrap();
    for (name, property) in properties {
        if let Some(default) = property.get("default") {
            object.entry(name).or_insert_with(|| default.clone());
        }
    }
}

fn find(name: &str) -> Arc<dyn AnyTool> {
    tools().into_iter().find(|tool| &*tool.spec().name == name).unwrap()
}

fn model(success: &ToolSuccess) -> Value {
    serde_json::from_str(success.model.as_text()).unwrap()
}

fn refused<T: std::fmt::Debug>(result: Result<T, ToolFailure>, kind: ToolErrorType) -> ToolFailure {
    let failure = result.unwrap_err();
    assert_eq!(failure.error.kind, kind, "{failure:?}");
    failure
}

/// Sets the modification time back, as `utimes` does.
fn set_modified(path: &Path, time: std::time::SystemTime) {
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}
