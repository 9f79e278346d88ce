//! One tool call from the model's text to its result, as stages that carry proof:
//! resolve → validate → permit → schedule → invoke → settle.
//!
//! Each stage consumes the value of the one before, so that a call cannot run without having been validated and
//! permitted. A stage that refuses a call gives its result; settling still runs. The pipeline knows no tool by name.

mod artifacts;
mod catalog;
mod direct;
mod invoke;
mod lifecycle;
mod limiter;
mod middleware;
mod permit;
mod quarantine;
mod refusal;
mod released;
mod resolve;
mod schedule;
mod settle;
mod tool_hooks;
mod trace;
mod validate;

#[cfg(test)]
mod boundary_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::contract::{
    Arguments, ContextSnapshot, ExecutionLease, PermissionMode, PrepareContext, ToolKind, ToolOutcome, ToolYield,
    YieldSink,
};
use crate::hooks::Hooks;
use crate::host::{CancelToken, CleanupGate, EnvSnapshot, Tasks};
use crate::model::{MessageId, SessionId, ToolCall};
use crate::permissions::{ConfirmationPort, PermissionPort, Rules, SessionRules};
use crate::registry::{ExposurePolicy, ToolRegistry};

pub use artifacts::{ArtifactOptions, Artifacts};
pub use direct::run_direct;
pub use lifecycle::{
    InvocationLifecycle, PermissionResolution, QuestionEnd, ScheduledCall, SettledCall, StartedCall, ToolLifecycle,
};
pub use limiter::{Limits, ToolLimiter};
pub use middleware::{CoreCall, CoreRequest, CoreStep, MiddlewareCall, ToolMiddleware};

use trace::{observed, stage_span};

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
    /// Fires when a new instruction takes over; calls that may be interrupted then stop.
    pub steer: CancelToken,
}

impl CallContext {
    /// What a tool knows of the call before it runs.
    fn preparing(&self) -> PrepareContext {
        PrepareContext {
            session_id: Some(self.session_id.clone()),
            snapshot: Arc::clone(&self.snapshot),
            permission_mode: self.mode,
            cancel: self.cancel.clone(),
        }
    }
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

impl CallReport {
    /// A call a stage ended before its tool ran.
    fn refused(refusal: refusal::Refusal, input: String) -> Self {
        let refusal::Refusal { outcome, exit_loop } = refusal;
        Self { outcome: *outcome, input, duration: Duration::ZERO, exit_loop }
    }
}

/// Runs tool calls of one Session.
pub struct Pipeline {
    registry: Arc<ToolRegistry>,
    config: PipelineConfig,
    permission: Option<Arc<dyn PermissionPort>>,
    confirmation: Option<Arc<dyn ConfirmationPort>>,
    hooks: Arc<Hooks>,
    rules: Rules,
    session_rules: SessionRules,
    /// Turns of looking at where paths lead.
    locating: Semaphore,
    limiter: Arc<ToolLimiter>,
    cleanup: CleanupGate,
    artifacts: Artifacts,
    tasks: Tasks,
    middleware: Option<Arc<dyn ToolMiddleware>>,
    lifecycle: Option<Arc<dyn ToolLifecycle>>,
    lease: Option<Arc<dyn ExecutionLease>>,
    quarantine: quarantine::Quarantine,
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
            rules: Rules::default(),
            session_rules: SessionRules::default(),
            locating: Semaphore::new(1),
            cleanup,
            artifacts: Artifacts::default(),
            tasks: Tasks::new(),
            middleware: None,
            lifecycle: None,
            lease: None,
            quarantine: quarantine::Quarantine::default(),
        }
    }

    /// With the application's lists of rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// With the application's hooks; they should share [`Pipeline::cleanup`].
    #[must_use]
    pub fn with_hooks(mut self, hooks: Arc<Hooks>) -> Self {
        self.hooks = hooks;
        self
    }

    /// With a place for results that are too large.
    #[must_use]
    pub fn with_artifacts(mut self, artifacts: Artifacts) -> Self {
        self.artifacts = artifacts;
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
        self.run_observed(call, cx, yields, None).await
    }

    /// The same for a call that [`Pipeline::scheduled`] gave an observer.
    pub async fn run_observed(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        yields: Arc<dyn YieldSink>,
        invocation: Option<Arc<dyn InvocationLifecycle>>,
    ) -> CallReport {
        let span = stage_span!(ERROR, "call", self, call, self.kind_of(call));
        observed(span, self.whole(call, cx, yields, invocation.as_ref())).await
    }

    async fn whole(
        &self,
        call: &ToolCall,
        cx: &CallContext,
        yields: Arc<dyn YieldSink>,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> CallReport {
        if let Some(middleware) = &self.middleware
            && let Some(arguments) = self.arguments_of(call)
        {
            return match self.admit(cx).await {
                Ok(()) => {
                    let around = self.within_middleware(&**middleware, call, arguments, cx, yields, invocation);
                    Box::pin(around).await
                }
                Err(refusal) => self.ended(Err(refusal), call, cx).await,
            };
        }
        // What is no invocation has nothing to be wrapped.
        self.core(call, None, cx, yields, invocation).await
    }

    /// All stages of a call. `arguments` replace those of the model.
    async fn core(
        &self,
        call: &ToolCall,
        arguments: Option<Arguments>,
        cx: &CallContext,
        yields: Arc<dyn YieldSink>,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> CallReport {
        let ended = self.stages(call, arguments, cx, yields, invocation).await;
        self.ended(ended, call, cx).await
    }

    /// What every call goes through at its end, however it came to it.
    async fn ended(
        &self,
        ended: Result<CallReport, refusal::Refusal>,
        call: &ToolCall,
        cx: &CallContext,
    ) -> CallReport {
        let mut report = ended.unwrap_or_else(|refusal| CallReport::refused(refusal, call.arguments.clone()));
        self.note_end(&report.outcome);
        let settle = stage_span!(DEBUG, "settle", self, call, self.kind_of(call));
        observed(settle, self.settle(call, cx, &mut report)).await;
        self.after_tool(call, cx, &mut report).await;
        report
    }

    /// Each stage in a span of its own. The kind is the tool's until the input says what this call is.
    async fn stages(
        &self,
        call: &ToolCall,
        arguments: Option<Arguments>,
        cx: &CallContext,
        yields: Arc<dyn YieldSink>,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> Result<CallReport, refusal::Refusal> {
        self.admit(cx).await?;
        let span = stage_span!(DEBUG, "resolve", self, call, self.kind_of(call));
        let resolved = observed(span, async { self.resolve(call, cx) }).await?;
        let span = stage_span!(DEBUG, "validate", self, call, self.kind_of(call));
        let validated = observed(span, self.validate(resolved, arguments, cx)).await?;
        let kind = Some(validated.prepared.behavior.kind);
        let span = stage_span!(DEBUG, "permit", self, call, kind);
        let (permitted, effects) = observed(span, self.permit(validated, cx, invocation)).await?;
        let kind = Some(permitted.prepared.behavior.kind);
        let span = stage_span!(DEBUG, "schedule", self, call, kind);
        let scheduled = observed(span, self.schedule(permitted, cx)).await?;
        self.may_act(cx).await?;
        self.execution_started(&scheduled.prepared, cx, invocation).await?;
        for effect in effects {
            let item = ToolYield::Effect { effect };
            yields.admit(&item).map_err(|error| refusal::Refusal::denied(error.message))?;
            yields.emit(item).await;
        }
        // Waiting for whoever reads the effects may have taken until the request was cancelled.
        if cx.cancel.is_cancelled() {
            return Err(refusal::Refusal::cancelled(&cx.cancel));
        }
        let span = stage_span!(DEBUG, "invoke", self, call, kind);
        let report = observed(span, self.invoke(scheduled, cx, yields)).await;
        // A result of work that somebody else has taken over must not be believed.
        self.may_act(cx).await?;
        Ok(report)
    }

    /// Nothing terminal happened, the lease is held, and nothing that was cancelled still acts.
    async fn admit(&self, cx: &CallContext) -> Result<(), refusal::Refusal> {
        self.may_act(cx).await?;
        refusal::Refusal::unless_quiet(&self.cleanup)
    }

    /// Main name of a call's tool; what the model said where there is none.
    fn name_of<'a>(&'a self, call: &'a ToolCall) -> &'a str {
        self.registry.get(&call.name).map_or(call.name.as_str(), |tool| &tool.spec().name)
    }

    /// Kind of a call's tool.
    fn kind_of(&self, call: &ToolCall) -> Option<ToolKind> {
        self.registry.get(&call.name).map(|tool| tool.spec().behavior.kind)
    }
}
