//! What a tool is: its specification, behaviour, context, yields and result. The pipeline, the registry and the
//! permissions know tools only through this module; built-in tools and JavaScript tools implement the same trait.

mod behavior;
mod catalog;
mod context;
mod effects;
mod input;
mod lease;
mod result;
mod spec;
mod tool;
mod yields;

pub use behavior::{Behavior, InterruptBehavior, SideEffect, ToolKind};
pub use catalog::{CatalogEntry, ToolCatalog, ToolServices, one_line};
pub use context::{ContextSnapshot, FilesystemCapability, PermissionMode, PrepareContext, ToolContext};
pub use effects::{
    ContextPatch, MalformedEffect, ModelOverride, PatchScope, PromptHook, RuntimePatch, SkillInfo, ToolDiscovery,
    ToolEffect, ToolPolicy, ToolSelector,
};
pub use input::Input;
pub use lease::ExecutionLease;
pub use result::{Display, Metadata, ModelContent, ToolError, ToolErrorType, ToolFailure, ToolOutcome, ToolSuccess};
pub use spec::{Exposure, ExposureMode, SourceInfo, SourceKind, ToolDescription, ToolSpec, TrustLevel};
pub use tool::{AnyTool, Arguments, BoxFuture, Prepared, Rewrites, Subject, Tool, ToolVerdict};
pub use yields::{ToolYield, YieldSink};
