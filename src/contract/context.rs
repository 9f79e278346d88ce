//! What a call knows about the world it runs in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::catalog::ToolServices;
use super::result::{ToolError, ToolErrorType};
use super::yields::{ToolYield, YieldSink};
use crate::host::{CancelToken, EnvSnapshot};
use crate::model::{MessageId, SessionId, ToolUseId};

/// What may run without a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Reading runs; writing and executing ask.
    #[default]
    Default,
    /// Reading and writing run; executing asks.
    AutoEdit,
    /// Everything but destructive calls runs.
    Yolo,
    /// Only reading runs.
    Plan,
}

/// Directories a context may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilesystemCapability {
    /// Authorised roots.
    pub roots: Vec<PathBuf>,
    /// Working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

/// An immutable picture of the runtime context, taken when a request is accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextSnapshot {
    /// The Session.
    pub session_id: String,
    /// The turn or request it was taken for.
    pub turn_id: String,
    /// The merged runtime context, as given.
    pub context: Value,
    /// Authorised roots.
    pub filesystem_roots: Vec<PathBuf>,
    /// Working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Runtime environment variables for child processes.
    pub environment: BTreeMap<String, String>,
}

/// What is known while arguments are prepared, before permissions were asked.
#[derive(Debug, Clone)]
pub struct PrepareContext {
    /// The Session, unless the tool is called directly without one.
    pub session_id: Option<SessionId>,
    /// Roots, working directory and environment.
    pub snapshot: Arc<ContextSnapshot>,
    /// Mode the call will be judged in.
    pub permission_mode: PermissionMode,
    /// Fires when the call is cancelled.
    pub cancel: CancelToken,
}

/// What a running call may use.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub call_id: ToolUseId,
    /// The Session, unless the tool is called directly without one.
    pub session_id: Option<SessionId>,
    /// The assistant message that made the call.
    pub message_id: Option<MessageId>,
    /// Roots, working directory and environment.
    pub snapshot: Arc<ContextSnapshot>,
    /// Mode the call was permitted in.
    pub permission_mode: PermissionMode,
    /// Fires when the call is cancelled or its deadline passes. Tools must stop and clean up.
    pub cancel: CancelToken,
    /// Environment of the host process.
    pub host_env: EnvSnapshot,
    /// Session services.
    pub services: ToolServices,
    /// Where yields go.
    pub yields: Arc<dyn YieldSink>,
}

impl ToolContext {
    /// Reports a yield; waits while the consumer is behind.
    pub async fn emit(&self, item: ToolYield) {
        self.yields.emit(item).await;
    }

    /// Runs blocking work (files, search, hashing) on the blocking pool.
    ///
    /// The work gets the call's token and must look at it between steps; the caller waits for it to stop, so nothing
    /// it started outlives the call.
    ///
    /// # Errors
    /// The work panicked; the panic is contained and named.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CancelToken) -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        blocking(&self.cancel, work).await
    }
}

impl PrepareContext {
    /// Runs blocking work on the blocking pool; see [`ToolContext::blocking`].
    ///
    /// # Errors
    /// The work panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CancelToken) -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        blocking(&self.cancel, work).await
    }
}

async fn blocking<T: Send + 'static>(
    cancel: &CancelToken,
    work: impl FnOnce(&CancelToken) -> T + Send + 'static,
) -> Result<T, ToolError> {
    let token = cancel.clone();
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(|| work(&token))).await.map_err(|failure| {
        ToolError::new(ToolErrorType::ExecutionError, format!("internal failure in the tool: {failure}"))
            .with_code("INTERNAL")
    })
}
