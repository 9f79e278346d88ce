//! `SessionOptions` as they arrive: parsed strictly, checked completely, turned into the parts of a Session.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::observed::Observed;
use super::settings::Settings;
use crate::agent::Conversation;
use crate::contract::{AnyTool, PermissionMode, SourceInfo};
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::{HookCounts, HookLimits, HookPort, Hooks};
use crate::host::log::Logging;
use crate::model::{Message, SessionId};
use crate::permissions::{ConfirmationPort, PermissionPort, RuleLists, Rules};
use crate::pipeline::{
    ArtifactOptions, Artifacts, CLEANUP_GRACE, ConfirmationFallback, Limits, Pipeline, PipelineConfig, ToolLifecycle,
    ToolLimiter, ToolMiddleware,
};
use crate::providers::Model;
use crate::providers::external::External;
use crate::registry::{RegistryBuilder, SourcePolicy, ToolFilter};
use crate::{context, tools};

/// Largest timeout JavaScript timers can hold.
const MAX_TIMEOUT_MS: f64 = 2_147_483_647.0;

/// The service every Session offers: its own tools that are not declared.
const DISCOVERABLE_CATALOG: &str = "discoverableCatalog";

/// Which tools a Session has by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// None.
    #[default]
    Server,
    /// The built-in tools.
    Local,
}

/// The plain data of `SessionOptions`; callbacks and the provider travel apart.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionConfig {
    /// Profile of the entry point.
    #[serde(default)]
    pub profile: Profile,
    /// Model name.
    #[serde(default)]
    pub model: String,
    /// Sampling temperature; 0.7 unless given.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Limit of answer tokens.
    #[serde(default)]
    pub max_output_tokens: Option<f64>,
    /// Context window; 128000 unless given.
    #[serde(default)]
    pub max_context_tokens: Option<f64>,
    /// Options keyed by provider.
    #[serde(default)]
    pub provider_options: Option<Value>,
    /// Only these tools.
    #[serde(default)]
    pub allowed_tools: Option<Vec<String>>,
    /// Never these tools.
    #[serde(default)]
    pub disallowed_tools: Option<Vec<String>>,
    /// Which sources are shown.
    #[serde(default)]
    pub tool_source_policy: Option<SourcePolicy>,
    /// Permission mode.
    #[serde(default)]
    pub permission_mode: Option<PermissionMode>,
    /// Rules that hold whatever handler there is.
    #[serde(default)]
    pub permissions: Option<RuleLists>,
    /// `deny` unless given.
    #[serde(default)]
    pub confirmation_fallback: Option<String>,
    /// System prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Turn limit of a request; 200 unless given.
    #[serde(default)]
    pub max_turns: Option<f64>,
    /// Bound of one tool call; 600000 unless given.
    #[serde(default)]
    pub tool_timeout_ms: Option<f64>,
    /// Concurrency limits.
    #[serde(default)]
    pub tool_concurrency: Option<ConcurrencyConfig>,
    /// Longest result of a custom tool.
    #[serde(default)]
    pub max_tool_result_bytes: Option<f64>,
    /// Where long results are kept.
    #[serde(default)]
    pub artifacts: Option<Value>,
    /// Default runtime context.
    #[serde(default)]
    pub default_context: Option<Value>,
    /// Structured output.
    #[serde(default)]
    pub output_format: Option<Box<RawValue>>,
    /// Callbacks of each hook event.
    #[serde(default)]
    pub hooks: HookCounts,
    /// Deadline of all callbacks of an event; 600000 unless given.
    #[serde(default)]
    pub hook_timeout_ms: Option<f64>,
    /// Deadline of the callbacks of `SessionEnd`; 3000 unless given.
    #[serde(default)]
    pub session_end_hook_timeout_ms: Option<f64>,
    /// Services the Session offers to tools that declare them.
    #[serde(default)]
    pub available_services: Vec<String>,
}

/// `toolConcurrency`, and what `createToolLimiter` takes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ConcurrencyConfig {
    /// Running readonly calls.
    pub readonly: Option<f64>,
    /// Running write calls.
    pub write: Option<f64>,
    /// Running execute calls.
    pub execute: Option<f64>,
    /// Waiting calls.
    pub queue: Option<f64>,
}

/// The application's callbacks, where it gave any.
#[derive(Clone, Default)]
pub struct Ports {
    /// Decides about calls.
    pub permission: Option<Arc<dyn PermissionPort>>,
    /// Asks a person.
    pub confirmation: Option<Arc<dyn ConfirmationPort>>,
    /// Hooks.
    pub hooks: Option<Arc<dyn HookPort>>,
    /// Middleware around tool calls.
    pub middleware: Option<Arc<dyn ToolMiddleware>>,
    /// Observer of durable boundaries of tool calls.
    pub lifecycle: Option<Arc<dyn ToolLifecycle>>,
    /// The log.
    pub log: Option<Logging>,
    /// Middleware around the model.
    pub model: Option<External>,
}

/// What a Session is made of.
pub struct SessionParts {
    /// Identifier.
    pub id: SessionId,
    /// Changeable settings.
    pub settings: Settings,
    /// Runs its tool calls.
    pub pipeline: Pipeline,
    /// The application's hooks.
    pub hooks: Arc<Hooks>,
    /// Answers.
    pub model: Arc<dyn Model>,
    /// History it starts with.
    pub conversation: Conversation,
    /// Span and log.
    pub observed: Observed,
}

impl SessionConfig {
    /// Parses the JSON text of the options.
    ///
    /// # Errors
    /// `CONFIG_ERROR` naming what is wrong.
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|error| Error::config(format!("session options: {error}")))
    }

    /// Builds the parts. Tools are registered through the filters; nothing is started.
    ///
    /// # Errors
    /// `CONFIG_ERROR` for a value that cannot be honoured, `TOOL_DEFINITION_ERROR` for a tool that cannot be registered.
    pub fn into_parts(
        self,
        id: SessionId,
        model: Arc<dyn Model>,
        custom: Vec<(Arc<dyn AnyTool>, SourceInfo)>,
        ports: Ports,
        conversation: Conversation,
    ) -> Result<SessionParts> {
        let observed = Observed::new(&id, ports.log)?;
        let _inside = observed.span().clone().entered();
        let name = self.model.trim();
        if name.is_empty() {
            return Err(Error::config("model must be a non-empty string"));
        }
        let model_name: Arc<str> = name.into();
        let timeout = positive("toolTimeoutMs", self.tool_timeout_ms, MAX_TIMEOUT_MS)?;
        let max_turns = positive("maxTurns", self.max_turns, f64::from(u32::MAX))?.unwrap_or(200);
        let max_context_tokens =
            positive("maxContextTokens", self.max_context_tokens, 9_007_199_254_740_991.0)?.unwrap_or(128_000);
        let max_output_tokens = positive("maxOutputTokens", self.max_output_tokens, 9_007_199_254_740_991.0)?;
        let max_result_bytes = positive("maxToolResultBytes", self.max_tool_result_bytes, MAX_TIMEOUT_MS)?;
        if let Some(temperature) = self.temperature
            && !(0.0..=2.0).contains(&temperature)
        {
            return Err(Error::config(format!("temperature must be between 0 and 2, got {temperature}")));
        }
        let fallback = match self.confirmation_fallback.as_deref() {
            None | Some("deny") => ConfirmationFallback::Deny,
            Some("allow") => ConfirmationFallback::Allow,
            Some(other) => {
                return Err(Error::config(format!(
                    "confirmationFallback must be \"deny\" or \"allow\", got \"{other}\""
                )));
            }
        };
        let rules = Rules::parse(&self.permissions.unwrap_or_default(), "permissions")?;
        let mut hook_limits = HookLimits::default();
        if let Some(ms) = positive("hookTimeoutMs", self.hook_timeout_ms, MAX_TIMEOUT_MS)? {
            hook_limits.event = Duration::from_millis(ms);
        }
        if let Some(ms) = positive("sessionEndHookTimeoutMs", self.session_end_hook_timeout_ms, MAX_TIMEOUT_MS)? {
            hook_limits.session_end = Duration::from_millis(ms);
        }
        let limits = self.tool_concurrency.unwrap_or_default().limits("toolConcurrency")?;
        let filter = ToolFilter {
            allowed: self.allowed_tools.map(|names| names.into_iter().collect()),
            disallowed: self.disallowed_tools.unwrap_or_default().into_iter().collect(),
        };
        let mut registry = RegistryBuilder::default();
        let mut services = self.available_services;
        services.push(DISCOVERABLE_CATALOG.to_owned());
        let builtin = match self.profile {
            Profile::Local => tools::builtin_tools(),
            Profile::Server => Vec::new(),
        };
        let sourced = builtin.into_iter().map(|tool| (tool, SourceInfo::builtin())).chain(custom);
        for (tool, source) in sourced {
            let spec = tool.spec();
            if let Some(missing) = spec.services.iter().find(|service| !services.contains(service)) {
                tracing::debug!(tool = %spec.name, service = %missing, "tool not registered: a declared service is missing");
                continue;
            }
            if filter.admits(spec) {
                registry
                    .register(tool, source)
                    .map_err(|error| Error::new(ErrorCode::ToolDefinitionError, error.to_string()))?;
            }
        }
        if let Some(options) = self.provider_options.as_ref().filter(|options| !options.is_object()) {
            return Err(Error::config(format!("providerOptions must be an object, got {options}")));
        }
        if let Some(format) = self.output_format.as_deref().filter(|format| !format.get().starts_with('{')) {
            return Err(Error::config(format!("outputFormat must be an object, got {}", format.get())));
        }
        let default_context = self.default_context.unwrap_or(Value::Null);
        // A malformed context fails here, not at the first request.
        observed.protect(&context::snapshot(id.as_str(), "", default_context.clone())?.environment);
        let config = PipelineConfig {
            tool_timeout: timeout.map_or(PipelineConfig::default().tool_timeout, Duration::from_millis),
            limits,
            fallback,
            max_result_bytes: max_result_bytes.map_or(PipelineConfig::default().max_result_bytes, |n| n as usize),
        };
        let mut pipeline =
            Pipeline::new(Arc::new(registry.build()), config, ports.permission, ports.confirmation).with_rules(rules);
        if let Some(middleware) = ports.middleware {
            pipeline = pipeline.with_middleware(middleware);
        }
        if let Some(lifecycle) = ports.lifecycle {
            pipeline = pipeline.with_lifecycle(lifecycle);
        }
        let artifacts = Artifacts::new(ArtifactOptions::parse(self.artifacts)?);
        let gate = pipeline.cleanup().clone();
        let model = match ports.model {
            Some(middleware) => middleware.model(Some(model), gate.clone(), CLEANUP_GRACE),
            None => model,
        };
        let hooks = Arc::new(Hooks::new(id.clone(), ports.hooks, self.hooks, hook_limits, gate));
        Ok(SessionParts {
            settings: Settings {
                model_name,
                system: self.system_prompt.filter(|text| !text.is_empty()).map(|text| Arc::new(Message::system(text))),
                temperature: Some(self.temperature.unwrap_or(0.7)),
                max_output_tokens,
                max_context_tokens,
                output_format: self.output_format.map(Arc::from),
                provider_options: self.provider_options.map(Arc::new),
                max_turns: max_turns as u32,
                mode: self.permission_mode.unwrap_or_default(),
                sources: self.tool_source_policy.unwrap_or_default(),
                default_context,
            },
            pipeline: pipeline.with_hooks(hooks.clone()).with_artifacts(artifacts),
            hooks,
            model,
            conversation,
            observed,
            id,
        })
    }
}

/// A positive integer up to `max`, or absent.
///
/// # Errors
/// `CONFIG_ERROR` naming the option and the value.
pub fn positive(name: &str, value: Option<f64>, max: f64) -> Result<Option<u64>> {
    match value {
        None => Ok(None),
        Some(value) if value.fract() == 0.0 && (1.0..=max).contains(&value) => Ok(Some(value as u64)),
        Some(value) => Err(Error::config(format!("{name} must be an integer from 1 to {max}, got {value}"))),
    }
}

impl ConcurrencyConfig {
    /// The limits, with defaults for what is not given. `option` is the name that messages use.
    fn limits(&self, option: &str) -> Result<Limits> {
        let mut limits = Limits::default();
        for (name, value, slot) in [
            ("readonly", self.readonly, &mut limits.readonly),
            ("write", self.write, &mut limits.write),
            ("execute", self.execute, &mut limits.execute),
            ("queue", self.queue, &mut limits.queue),
        ] {
            if let Some(n) = positive(&format!("{option}.{name}"), value, 100_000.0)? {
                *slot = n as usize;
            }
        }
        Ok(limits)
    }
}

/// A limiter for several Sessions from the JSON text of its limits.
///
/// # Errors
/// `CONFIG_ERROR` naming what is wrong.
pub fn shared_limiter(json: &str) -> Result<ToolLimiter> {
    let config: ConcurrencyConfig =
        serde_json::from_str(json).map_err(|error| Error::config(format!("limits of a tool limiter: {error}")))?;
    config.limits("limits").map(ToolLimiter::new)
}
