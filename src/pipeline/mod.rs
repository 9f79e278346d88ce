//! One tool call from the model's text to its result, as stages that carry proof:
//! resolve → validate → permit → schedule → invoke → settle.
//!
//! Each stage consumes the value of the one before, so that a call cannot run without having been validated and
//! permitted. A stage that refuses a call gives its result; settling still runs. The pipeline knows no tool by name.

mod artifacts;
mod catalog;
mod direct;
mod invoke;
mod limiter;
mod permit;
mod refusal;
mod resolve;
mod schedule;
mod settle;
mod tool_hooks;
mod validate;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::contract::{ContextSnapshot, PermissionMode, ToolOutcome, YieldSink};
use crate::hooks::Hooks;
use crate::host::{CancelToken, CleanupGate, EnvSnapshot, Tasks};
use crate::model::{MessageId, SessionId, ToolCall};
use crate::permissions::{Approvals, ConfirmationPort, PermissionPort};
use crate::registry::{ExposurePolicy, ToolRegistry};

pub use artifacts::Artifacts;
pub use direct::run_direct;
pub use limiter::{Limits, ToolLimiter};

/// How long a cancelled or timed-out call may clean up before the pipeline fails closed.
pub const CLEANUP_GRACE: Duration = Duration::from_secs(5);

/// What happens to a call that needs a confirmation nobody can give.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConfirmationFallback {
    /// Refused. The default.
    #[default]
    Deny,
    /// Allowed: the explicit opt-out of the application.
    Allow,
}

/// Settings of a pipeline.
#[derive(Debug, Clone)]
pub struct PipelineConfig {
    /// Bound of one invocation, from its start to its result.
    pub tool_timeout: Duration,
    /// Concurrency limits.
    pub limits: Limits,
    /// What happens without a confirmation handler.
    pub fallback: ConfirmationFallback,
    /// Longest result of a custom tool in bytes of JSON text.
    pub max_result_bytes: usize,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            tool_timeout: Duration::from_millis(600_000),
            limits: Limits::default(),
            fallback: ConfirmationFallback::Deny,
            max_result_bytes: 10 << 20,
        }
    }
}

/// What a call is run in.
#[derive(Clone)]
pub struct CallContext {
    /// The Session.
    pub session_id: SessionId,
    /// The assistant message that made the call.
    pub message_id: MessageId,
    /// Roots, working directory and environment.
    pub snapshot: Arc<ContextSnapshot>,
    /// Mode of the request.
    pub mode: PermissionMode,
    /// What is exposed in this turn.
    pub exposure: Arc<ExposurePolicy>,
    /// Environment of the host process.
    pub host_env: EnvSnapshot,
    /// The request's token.
    pub cancel: CancelToken,
}

/// The end of a call.
#[derive(Debug)]
pub struct CallReport {
    /// The result.
    pub outcome: ToolOutcome,
    /// JSON text of the input as it ran, or as it came where it never ran.
    pub input: String,
    /// Time the tool ran; zero where it never ran.
    pub duration: Duration,
    /// Whether the request ends after this turn.
    pub exit_loop: bool,
}

/// Runs tool calls of one Session.
pub struct Pipeline {
    registry: Arc<ToolRegistry>,
    config: PipelineConfig,
    permission: Option<Arc<dyn PermissionPort>>,
    confirmation: Option<Arc<dyn ConfirmationPort>>,
    hooks: Arc<Hooks>,
    approvals: Approvals,
    limiter: Arc<ToolLimiter>,
    cleanup: CleanupGate,
    artifacts: Artifacts,
    tasks: Tasks,
}

impl Pipeline {
    /// A pipeline over a registry.
    pub fn new(
        registry: Arc<ToolRegistry>,
        config: PipelineConfig,
        permission: Option<Arc<dyn PermissionPort>>,
        confirmation: Option<Arc<dyn ConfirmationPort>>,
    ) -> Self {
        let cleanup = CleanupGate::default();
        Self {
            limiter: Arc::new(ToolLimiter::new(config.limits)),
            registry,
            config,
            permission,
            confirmation,
            hooks: Arc::new(Hooks::none(SessionId::new(""))),
            approvals: Approvals::default(),
            cleanup,
            artifacts: Artifacts::default(),
            tasks: Tasks::new(),
        }
    }

    /// With the application's hooks; they should share [`Pipeline::cleanup`].
    #[must_use]
    pub fn with_hooks(mut self, hooks: Arc<Hooks>) -> Self {
        self.hooks = hooks;
        self
    }

    /// With slots and file locks that are shared with other pipelines, in place of its own.
    #[must_use]
    pub fn with_limiter(mut self, limiter: Arc<ToolLimiter>) -> Self {
        self.limiter = limiter;
        self
    }

    /// The tools.
    pub fn registry(&self) -> &Arc<ToolRegistry> {
        &self.registry
    }

    /// What is still cleaning up after it was cancelled.
    pub fn cleanup(&self) -> &CleanupGate {
        &self.cleanup
    }

    /// Results too large for the conversation.
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    /// Runs one call to its result. Never fails: every failure is a result for the model.
    pub async fn run(&self, call: &ToolCall, cx: &CallContext, yields: Arc<dyn YieldSink>) -> CallReport {
        let mut report = match self.stages(call, cx, yields).await {
            Ok(report) => report,
            Err(refusal) => CallReport {
                outcome: *refusal.outcome,
                input: call.arguments.clone(),
                duration: Duration::ZERO,
                exit_loop: refusal.exit_loop,
            },
        };
        self.settle(call, cx, &mut report).await;
        self.after_tool(call, cx, &mut report).await;
        report
    }

    async fn stages(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        yields: Arc<dyn YieldSink>,
    ) -> Result<CallReport, refusal::Refusal> {
        refusal::Refusal::unless_quiet(&self.cleanup)?;
        let resolved = self.resolve(call, cx)?;
        let validated = self.validate(resolved, cx).await?;
        let permitted = self.permit(validated, cx).await?;
        let scheduled = self.schedule(permitted, cx).await?;
        Ok(self.invoke(scheduled, cx, yields).await)
    }
}
