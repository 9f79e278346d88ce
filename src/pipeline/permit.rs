//! Stage 3: the call is allowed, and its input is final.
//!
//! Order: the tool itself, plan mode, path safety, rules that deny, `PermissionRequest` hooks, the application's handler (or the mode
//! table where there is none), and, where somebody asks, a confirmation. Whatever rewrites the input, the first three
//! judge again. Every doubt ends in a refusal with type `permission_denied`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::invoke::contained;
use super::lifecycle::{InvocationLifecycle, PermissionResolution, QuestionEnd};
use super::refusal::Refusal;
use super::validate::Validated;
use super::{CallContext, ConfirmationFallback, Pipeline};
use crate::contract::{Behavior, PermissionMode, Prepared, ToolEffect, ToolKind, ToolVerdict};
use crate::error::Result as SdkResult;
use crate::model::PermissionRequestId;
use crate::permissions::{
    Answer, Barriers, Confirmation, ConfirmationRequest, ConfirmationScope, Known, Listed, Outcome, PermissionDecision,
    PermissionRequest, PermissionUpdates, Place, ToolMeta, Verdict, as_stated, decide, decide_by_mode, denial,
    forbidden_paths, locate, locate_now, question, sensitive_paths,
};
use crate::registry::Registered;

/// Longest wait for calls before this one to find out where their paths lead.
const LONGEST_TURN: Duration = Duration::from_millis(100);

/// A call that may run.
pub(super) struct Permitted {
    pub tool: Registered,
    pub call_id: String,
    pub prepared: Prepared,
}

/// A call that nothing refuses so far, with what is known of it.
struct Case {
    request: PermissionRequest,
    known: Known,
}

/// What an answer that allows wants changed besides.
#[derive(Default)]
struct Wishes {
    input: Option<Map<String, Value>>,
    updates: Option<PermissionUpdates>,
    effects: Vec<ToolEffect>,
}

impl Pipeline {
    /// Gives the call with the effects of whoever allowed it.
    pub(super) async fn permit(
        &self,
        call: Validated,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> Result<(Permitted, Vec<ToolEffect>), Refusal> {
        let Validated { tool, call_id, prepared } = call;
        let (mut prepared, own) = match tool.tool.judges_itself() {
            true => Box::pin(self.own_permission(&tool, prepared, cx)).await?,
            false => (prepared, None),
        };
        let mut case = self.case(&tool, &prepared, cx).await?;
        let changes = self.hooks_permit(&case.request, cx).await?;
        if !changes.is_empty() {
            prepared = Box::pin(self.rewrite(&tool, prepared, changes, cx)).await?;
            case = self.case(&tool, &prepared, cx).await?;
        }
        let mut answer = self.ask(&case, cx).await?;
        let wishes = Wishes::taken_from(&mut answer)
            .map_err(|why| Refusal::denied(format!("the permission handler failed: {why}")))?;
        let settled = async {
            if let Some(update) = wishes.input {
                prepared = Box::pin(self.rewrite(&tool, prepared, update, cx)).await?;
                // What a call does depends on its input, so a rewrite may have left what was judged.
                case = Box::pin(self.case(&tool, &prepared, cx)).await?;
            }
            case.known.tool = own;
            self.carry_out(&case, answer, cx, invocation).await.map(|()| prepared)
        }
        .await;
        // After the decision, whatever it is: rules that were learned with this call are for later ones.
        if let Some(updates) = wishes.updates {
            self.session_rules.apply(updates);
        }
        Ok((Permitted { prepared: settled?, tool, call_id }, wishes.effects))
    }

    /// Applies `PermissionUpdate[]` of a call that ended well. Later calls are judged by them.
    ///
    /// # Errors
    /// `CONFIG_ERROR`: one of them means nothing; none was applied.
    pub fn apply_permission_updates(&self, updates: &Value) -> SdkResult<()> {
        self.session_rules.apply(PermissionUpdates::parse(updates)?);
        Ok(())
    }

    /// Takes over the denials another pipeline has learned.
    pub fn inherit_denials(&self, parent: &Self) {
        self.session_rules.inherit_denials(&parent.session_rules);
    }

    /// What the tool itself says: a refusal, another input, or why a person should confirm the call. Its paths are judged
    /// afterwards, so it may change them.
    async fn own_permission(
        &self,
        tool: &Registered,
        prepared: Prepared,
        cx: &CallContext,
    ) -> Result<(Prepared, Option<String>), Refusal> {
        let prepare = cx.preparing();
        let (judge, arguments) = (Arc::clone(&tool.tool), prepared.arguments.clone());
        let work = Box::pin(contained(async move { judge.permission(&arguments, &prepare).await }));
        let verdict = match self.cleanup.race("a tool's permission check", &self.tasks, &cx.cancel, work).await {
            None => return Err(Refusal::cancelled(&cx.cancel)),
            Some(verdict) => verdict?,
        };
        let name = &tool.spec().name;
        match verdict {
            Err(error) => Err(Refusal::denied(format!("the permission check of {name} failed: {}", error.message))),
            Ok(ToolVerdict::Deny { message, interrupt }) => {
                let refusal = Refusal::denied(message);
                Err(if interrupt { refusal.ending_request() } else { refusal })
            }
            Ok(ToolVerdict::Ask { message }) => {
                Ok((prepared, Some(message.unwrap_or_else(|| format!("{name} asks for confirmation")))))
            }
            Ok(ToolVerdict::Allow { updated_input: None }) => Ok((prepared, None)),
            Ok(ToolVerdict::Allow { updated_input: Some(update) }) => {
                let mut arguments = prepared.arguments;
                arguments.merge(update);
                Ok((self.prepare(tool, arguments, cx).await?, None))
            }
        }
    }

    /// What is known of a call, unless something refuses it at once.
    async fn case(&self, tool: &Registered, prepared: &Prepared, cx: &CallContext) -> Result<Case, Refusal> {
        let places = self.places(prepared, cx).await?;
        let mut request = request(tool, prepared, places, cx);
        let standing = self.session_rules.standing(&request);
        request.session_approved = standing.approved || standing.allowed;
        let verdict = self.rules.judge(&request);
        let plan = match cx.mode {
            PermissionMode::Plan if !prepared.behavior.read_only => match decide_by_mode(&request, cx.mode) {
                PermissionDecision::Deny { message, .. } => Some(message),
                _ => None,
            },
            _ => None,
        };
        let rule = match verdict {
            Verdict::Deny(rule) => Some(denial(rule, "", &request)),
            _ => self.session_rules.denial(&request),
        };
        if let Some(message) = (Barriers { plan, path: forbidden_paths(&request), rule }).first() {
            return Err(Refusal::denied(message));
        }
        let listed = match verdict {
            Verdict::Allow { specific } => Listed::Allow { specific },
            Verdict::Ask(rule) => Listed::Ask(question(rule, &request)),
            Verdict::Deny(_) | Verdict::Silent => Listed::Nothing,
        };
        let sensitive = sensitive_paths(&request);
        let known = Known { listed, approved: standing.approved, allowed: standing.allowed, sensitive, tool: None };
        Ok(Case { request, known })
    }

    /// Where the paths of a call lead. Costs a look at the file system where somebody judges by it.
    async fn places(&self, prepared: &Prepared, cx: &CallContext) -> Result<Vec<Place>, Refusal> {
        let Some(_turn) = cx.cancel.run_until(self.turn()).await else { return Err(Refusal::cancelled(&cx.cancel)) };
        let subject = &prepared.subject;
        if subject.affected_paths.is_empty() {
            return Ok(Vec::new());
        }
        let judged = self.permission.is_some() || !self.rules.is_empty() || !self.session_rules.is_empty();
        if subject.canonical && !judged {
            return Ok(as_stated(subject));
        }
        // Most paths are at hand: a hop to another thread would cost more than all the rest of the call.
        if let Some(places) = locate_now(subject, &cx.snapshot) {
            return Ok(places);
        }
        let (subject, snapshot) = (subject.clone(), Arc::clone(&cx.snapshot));
        let prepare = cx.preparing();
        let located = Box::pin(prepare.blocking(move |_| locate(&subject, &snapshot)));
        match cx.cancel.run_until(located).await {
            Some(places) => Ok(places?),
            None => Err(Refusal::cancelled(&cx.cancel)),
        }
    }

    /// The turn of a call to look at its paths: calls do not overtake each other on their way to slots and files because
    /// only some of them have paths. A file system that hangs holds the others up for no longer than they would notice.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        match self.locating.try_acquire() {
            Ok(turn) => Some(turn),
            Err(_) => timeout(LONGEST_TURN, self.locating.acquire()).await.ok()?.ok(),
        }
    }

    /// The application's handler, or the mode table where there is none.
    async fn ask(&self, case: &Case, cx: &CallContext) -> Result<Answer, Refusal> {
        let Some(port) = &self.permission else {
            return Ok(Answer::Mode(decide_by_mode(&case.request, cx.mode)));
        };
        let (port, request, cancel) = (Arc::clone(port), case.request.clone(), cx.cancel.clone());
        let ask = Box::pin(async move { port.decide(&request, &cancel).await });
        match self.cleanup.race("a permission callback", &self.tasks, &cx.cancel, ask).await {
            None => Err(Refusal::cancelled(&cx.cancel)),
            Some(Err(error)) => Err(Refusal::denied(format!("the permission handler failed: {}", error.message))),
            Some(Ok(decision)) => Ok(Answer::Handler(decision)),
        }
    }

    /// Does what the decision about a call says, which may be to ask a person.
    async fn carry_out(
        &self,
        case: &Case,
        answer: Answer,
        cx: &CallContext,
        invocation: Option<&Arc<dyn InvocationLifecycle>>,
    ) -> Result<(), Refusal> {
        match decide(&case.known, answer) {
            Outcome::Run => {}
            Outcome::Deny { message, interrupt } => {
                let refusal = Refusal::denied(message);
                return Err(if interrupt { refusal.ending_request() } else { refusal });
            }
            Outcome::Confirm(reasons) => Box::pin(self.confirm(&case.request, &reasons, cx, invocation)).await?,
        }
        // Other calls may have taught the Session a denial while somebody thought about this one.
        match self.session_rules.denial(&case.request) {
            Some(message) => Err(Refusal::denied(message)),
            None => Ok(()),
        }
    }

    /// Merges a rewrite and validates it again. Paths were already judged, so they may not change.
    async fn rewrite(
        &self,
        tool: &Registered,
        prepared: Prepared,
        update: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Prepared, Refusal> {
        let mut arguments = prepared.arguments;
        arguments.merge(update);
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
        reasons: &str,
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
                    reasons.replace('\n', "; "),
                ))),
            };
        };
        let mut details = details(request, reasons);
        let id = self.permission_requested(&details, &request.input, cx, invocation).await?;
        if let Some(id) = &id {
            details.permission_request_id = PermissionRequestId::new(id.clone());
        }
        let (port, cancel) = (Arc::clone(port), cx.cancel.clone());
        let ask = Box::pin(async move { port.confirm(&details, &cancel).await });
        // Nobody is asked for a request that ended while the question was stored; its end is stored all the same.
        let answer = match cx.cancel.is_cancelled() {
            true => None,
            false => self.cleanup.race("a confirmation callback", &self.tasks, &cx.cancel, ask).await,
        };
        if let Some(permission_request_id) = id {
            let (decision, reason, scope) = match &answer {
                None => (QuestionEnd::Cancel, None, None),
                Some(Err(error)) => (QuestionEnd::Deny, Some(error.message.clone()), None),
                Some(Ok(Confirmation { approved: true, reason, scope, .. })) => {
                    (QuestionEnd::Allow, reason.clone(), Some(*scope))
                }
                Some(Ok(Confirmation { reason, .. })) => (QuestionEnd::Deny, reason.clone(), None),
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
            self.session_rules.approve(request);
        }
        Ok(())
    }
}

impl Wishes {
    /// # Errors
    /// Something of it means nothing; what is not understood must not allow anything.
    fn taken_from(answer: &mut Answer) -> Result<Self, String> {
        let (Answer::Mode(decision) | Answer::Handler(decision)) = answer;
        let PermissionDecision::Allow { updated_input, updated_permissions, effects } = decision else {
            return Ok(Self::default());
        };
        let updates = updated_permissions.take().map(|updates| PermissionUpdates::parse(&updates)).transpose();
        let effects: Vec<ToolEffect> = match effects.take() {
            Some(effects) => serde_json::from_value(effects).map_err(|error| format!("effects: {error}"))?,
            None => Vec::new(),
        };
        for effect in &effects {
            if let ToolEffect::PermissionUpdates { updates } = effect {
                PermissionUpdates::parse(updates).map_err(|error| format!("effects: {}", error.message))?;
            }
        }
        let updates = updates.map_err(|error| format!("updatedPermissions: {}", error.message))?;
        Ok(Self { input: updated_input.take(), updates, effects })
    }
}

fn request(tool: &Registered, prepared: &Prepared, paths: Vec<Place>, cx: &CallContext) -> PermissionRequest {
    let spec = tool.spec();
    let name = spec.name.to_string();
    let subject = &prepared.subject;
    let signature = match &subject.content {
        Some(content) => format!("{name}:{content}"),
        None => name.clone(),
    };
    let Behavior { kind, side_effect, read_only, concurrency_safe, destructive, .. } = prepared.behavior;
    PermissionRequest {
        input: prepared.arguments.object.clone(),
        permission_mode: Some(cx.mode),
        session_approved: false,
        affected_paths: subject.affected_paths.clone(),
        tool_kind: kind,
        tool_meta: ToolMeta {
            side_effect,
            is_read_only: read_only,
            is_concurrency_safe: concurrency_safe,
            is_destructive: destructive,
            signature: Some(signature),
            parts: subject.parts.iter().map(|part| format!("{name}:{part}")).collect(),
            aliases: spec.aliases.iter().map(|alias| alias.to_string()).collect(),
            paths,
            description: subject.description.clone(),
        },
        tool_name: name,
    }
}

fn details(request: &PermissionRequest, reasons: &str) -> ConfirmationRequest {
    let name = &request.tool_name;
    let action = match request.tool_kind {
        ToolKind::ReadOnly => "read",
        ToolKind::Write => "change files or state",
        ToolKind::Execute => "execute",
    };
    let subject = request.tool_meta.description.clone().unwrap_or_else(|| request.signature().to_owned());
    let mut risks = Vec::new();
    if request.tool_meta.is_destructive {
        risks.push("the operation is destructive and may not be undone".to_owned());
    }
    if let Some(risk) = sensitive_paths(request) {
        risks.push(risk);
    }
    ConfirmationRequest {
        r#type: "permission",
        permission_request_id: PermissionRequestId::generate(),
        kind: request.tool_kind,
        tool_name: name.clone(),
        args: request.input.clone(),
        title: format!("Confirm {name}"),
        message: format!("Allow {name} to {action}? {subject}\n{reasons}"),
        risks,
        affected_files: request.affected_paths.clone(),
    }
}
