//! Stage 3: the call is allowed, and its input is final.
//!
//! Order: plan mode, path safety, the application's handler (or the mode table where there is none), and, where
//! somebody asks, a confirmation. Every doubt ends in a refusal with type `permission_denied`.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::lifecycle::{InvocationLifecycle, PermissionResolution, Verdict};
use super::refusal::Refusal;
use super::validate::Validated;
use super::{CallContext, ConfirmationFallback, Pipeline};
use crate::contract::{Behavior, PermissionMode, Prepared, ToolKind};
use crate::permissions::{
    Confirmation, ConfirmationRequest, ConfirmationScope, PermissionDecision, PermissionRequest, Sensitivity, ToolMeta,
    decide_by_mode, decide_by_path_safety, sensitivity,
};
use crate::registry::Registered;

/// A call that may run.
pub(super) struct Permitted {
    pub tool: Registered,
    pub call_id: String,
    pub prepared: Prepared,
}

impl Pipeline {
    pub(super) async fn permit(
        &self,
        call: Validated,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> Result<Permitted, Refusal> {
        let Validated { tool, call_id, mut prepared } = call;
        let mut request = self.request(&tool, &prepared, cx);
        if cx.mode == PermissionMode::Plan && !prepared.behavior.read_only {
            return Err(refuse(decide_by_mode(&request, cx.mode)));
        }
        if let PermissionDecision::Deny { message, .. } = decide_by_path_safety(&outside_roots(&request, cx), &[]) {
            return Err(Refusal::denied(message));
        }
        let changes = self.hooks_permit(&request, cx).await?;
        if !changes.is_empty() {
            prepared = self.rewrite(&tool, prepared, changes, cx).await?;
            request = self.request(&tool, &prepared, cx);
            if cx.mode == PermissionMode::Plan && !prepared.behavior.read_only {
                return Err(refuse(decide_by_mode(&request, cx.mode)));
            }
        }
        let decision = match &self.permission {
            None => with_sensitive_files(decide_by_mode(&request, cx.mode), &request),
            Some(port) => {
                let (port, request, cancel) = (Arc::clone(port), request.clone(), cx.cancel.clone());
                let ask = Box::pin(async move { port.decide(&request, &cancel).await });
                match self.cleanup.race("a permission callback", &self.tasks, &cx.cancel, ask).await {
                    None => return Err(Refusal::cancelled(&cx.cancel)),
                    Some(Err(error)) => {
                        return Err(Refusal::denied(format!("the permission handler failed: {}", error.message)));
                    }
                    Some(Ok(decision)) => decision,
                }
            }
        };
        match decision {
            PermissionDecision::Deny { .. } => Err(refuse(decision)),
            PermissionDecision::Allow { updated_input, updated_permissions, .. } => {
                if let Some(updates) = updated_permissions
                    && let Err(error) = self.approvals.update(&updates)
                {
                    return Err(Refusal::denied(format!("the permission handler failed: updatedPermissions: {error}")));
                }
                if let Some(update) = updated_input {
                    prepared = self.rewrite(&tool, prepared, update, cx).await?;
                    // What a call does depends on its input, so a rewrite may have left the mode's bounds.
                    let rewritten = self.request(&tool, &prepared, cx);
                    if cx.mode == PermissionMode::Plan && !prepared.behavior.read_only {
                        return Err(refuse(decide_by_mode(&rewritten, cx.mode)));
                    }
                }
                Ok(Permitted { tool, call_id, prepared })
            }
            PermissionDecision::Ask { .. } if request.session_approved => Ok(Permitted { tool, call_id, prepared }),
            PermissionDecision::Ask { message } => {
                self.confirm(&request, message.as_deref(), cx, invocation).await?;
                Ok(Permitted { tool, call_id, prepared })
            }
        }
    }

    fn request(&self, tool: &Registered, prepared: &Prepared, cx: &CallContext) -> PermissionRequest {
        let name = tool.spec().name.to_string();
        let signature = match &prepared.subject.content {
            Some(content) => format!("{name}:{content}"),
            None => name.clone(),
        };
        let Behavior { kind, side_effect, read_only, concurrency_safe, destructive, .. } = prepared.behavior;
        let parts = prepared.subject.parts.iter().map(|part| format!("{name}:{part}")).collect();
        let session_approved = self.approvals.contains(&name, &signature);
        PermissionRequest {
            tool_name: name,
            input: prepared.arguments.object.clone(),
            permission_mode: Some(cx.mode),
            session_approved,
            affected_paths: prepared.subject.affected_paths.clone(),
            tool_kind: kind,
            tool_meta: ToolMeta {
                side_effect,
                is_read_only: read_only,
                is_concurrency_safe: concurrency_safe,
                is_destructive: destructive,
                signature: Some(signature),
                parts,
                description: prepared.subject.description.clone(),
            },
        }
    }

    /// Merges a handler's rewrite and validates it again. Paths were already judged, so they may not change.
    async fn rewrite(
        &self,
        tool: &Registered,
        prepared: Prepared,
        update: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Prepared, Refusal> {
        let mut arguments = prepared.arguments;
        for (key, value) in update {
            arguments.set(&key, value);
        }
        let again = self.prepare(tool, arguments, cx).await?;
        if again.subject.affected_paths != prepared.subject.affected_paths {
            return Err(Refusal::denied(
                "permission handlers cannot change file system paths after they were authorized; deny the call and let \
                 the model make another one",
            ));
        }
        Ok(again)
    }

    async fn confirm(
        &self,
        request: &PermissionRequest,
        reason: Option<&str>,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> Result<(), Refusal> {
        let name = &request.tool_name;
        let Some(port) = &self.confirmation else {
            return match self.config.fallback {
                ConfirmationFallback::Allow => Ok(()),
                ConfirmationFallback::Deny => Err(Refusal::denied(format!(
                    "{name} needs a confirmation ({}) and this Session has no confirmationHandler; to allow it, set \
                     confirmationHandler or permissionHandler, choose another permissionMode, or set \
                     confirmationFallback to \"allow\"",
                    reason.unwrap_or("user confirmation required"),
                ))),
            };
        };
        let mut details = details(request, reason);
        let id = self.permission_requested(&details, &request.input, cx, invocation).await?;
        details.permission_request_id.clone_from(&id);
        let (port, cancel) = (Arc::clone(port), cx.cancel.clone());
        let ask = Box::pin(async move { port.confirm(&details, &cancel).await });
        let answer = self.cleanup.race("a confirmation callback", &self.tasks, &cx.cancel, ask).await;
        if let Some(permission_request_id) = id {
            let (decision, reason, scope) = match &answer {
                None => (Verdict::Cancel, None, None),
                Some(Err(error)) => (Verdict::Deny, Some(error.message.clone()), None),
                Some(Ok(Confirmation { approved: true, reason, scope, .. })) => {
                    (Verdict::Allow, reason.clone(), Some(*scope))
                }
                Some(Ok(Confirmation { reason, .. })) => (Verdict::Deny, reason.clone(), None),
            };
            let resolution = PermissionResolution { permission_request_id, decision, reason, scope };
            let stored = self.permission_resolved(resolution, cx, invocation).await;
            // A cancellation stays one; that it could not be stored is told with it.
            if let Err(refusal) = stored {
                return Err(if answer.is_none() { Refusal::cancelled(&cx.cancel).and(refusal) } else { refusal });
            }
        }
        let answer = match answer {
            None => return Err(Refusal::cancelled(&cx.cancel)),
            Some(Err(error)) => {
                return Err(Refusal::denied(format!("the confirmation handler failed: {}", error.message)));
            }
            Some(Ok(answer)) => answer,
        };
        let Confirmation { approved, reason, scope, feedback } = answer;
        if !approved {
            let mut why = reason.unwrap_or_else(|| "no reason given".to_owned());
            if let Some(feedback) = feedback.filter(|text| !text.is_empty()) {
                why = format!("{why} ({feedback})");
            }
            return Err(Refusal::denied(format!("User rejected execution: {why}")).ending_request());
        }
        if scope == ConfirmationScope::Session {
            self.approvals.add(request.signature());
        }
        Ok(())
    }
}

fn refuse(decision: PermissionDecision) -> Refusal {
    match decision {
        PermissionDecision::Deny { message, interrupt } => {
            let refusal = Refusal::denied(message);
            if interrupt { refusal.ending_request() } else { refusal }
        }
        _ => Refusal::denied("permission denied"),
    }
}

/// System directories are judged only outside of what the application authorised: a root such as `/root/app` or
/// `/dev/shm/work` was chosen on purpose.
fn outside_roots(request: &PermissionRequest, cx: &CallContext) -> PermissionRequest {
    let inside = |path: &String| {
        cx.snapshot.filesystem_roots.iter().any(|root| Path::new(path).starts_with(root))
            && !Path::new(path).components().any(|part| part == std::path::Component::ParentDir)
    };
    let mut judged = request.clone();
    judged.affected_paths.retain(|path| !inside(path) && sensitivity(path) != Some(Sensitivity::High));
    judged
}

/// Without a handler of the application, keys and credentials are never touched silently, whatever the mode.
fn with_sensitive_files(decision: PermissionDecision, request: &PermissionRequest) -> PermissionDecision {
    let sensitive = request.affected_paths.iter().find(|path| sensitivity(path) == Some(Sensitivity::High));
    match (decision, sensitive) {
        (PermissionDecision::Allow { .. }, Some(path)) if !request.session_approved => {
            PermissionDecision::ask(format!("{path} holds keys or credentials"))
        }
        (decision, _) => decision,
    }
}

fn details(request: &PermissionRequest, reason: Option<&str>) -> ConfirmationRequest {
    let name = &request.tool_name;
    let action = match request.tool_kind {
        ToolKind::ReadOnly => "read",
        ToolKind::Write => "change files or state",
        ToolKind::Execute => "execute",
    };
    let subject = request.tool_meta.description.clone().unwrap_or_else(|| request.signature().to_owned());
    let mut message = format!("Allow {name} to {action}? {subject}");
    if let Some(reason) = reason {
        message.push('\n');
        message.push_str(reason);
    }
    let mut risks = Vec::new();
    if request.tool_meta.is_destructive {
        risks.push("the operation is destructive and may not be undone".to_owned());
    }
    ConfirmationRequest {
        r#type: "permission",
        permission_request_id: None,
        kind: request.tool_kind,
        tool_name: name.clone(),
        args: request.input.clone(),
        title: format!("Confirm {name}"),
        message,
        risks,
        affected_files: request.affected_paths.clone(),
    }
}
