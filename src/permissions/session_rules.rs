//! What a Session learns about permissions while it runs: rules that handlers and tools add, and what people approved.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::call::Call;
use super::request::PermissionRequest;
use super::rule::Rule;
use super::rules::{allowing, denial, touching};
use crate::error::{Error, Result};

#[cfg(test)]
mod tests;

/// Rules that allow, and approvals, a Session remembers at most; more are not remembered. What denies always is.
const MOST: usize = 10_000;

/// `PermissionUpdate[]`, parsed: every rule of it means something.
#[derive(Debug)]
pub struct PermissionUpdates(Vec<Update>);

#[derive(Debug)]
enum Update {
    Add { rules: Vec<Learned>, deny: bool },
    Remove(Vec<RuleValue>),
}

/// `PermissionRuleValue`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleValue {
    tool_name: String,
    #[serde(default)]
    rule_content: Option<String>,
}

#[derive(Debug, Clone)]
struct Learned {
    value: RuleValue,
    rule: Rule,
}

/// `PermissionUpdate` as it arrives.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Given {
    AddRules { rules: Vec<RuleValue>, behavior: Behavior },
    RemoveRules { rules: Vec<RuleValue> },
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Behavior {
    Allow,
    Deny,
}

impl PermissionUpdates {
    /// Parses updates as a whole.
    ///
    /// # Errors
    /// `CONFIG_ERROR`: they are no list of updates, or one of their rules means nothing.
    pub fn parse(updates: &Value) -> Result<Self> {
        let given = Vec::<Given>::deserialize(updates)
            .map_err(|error| Error::config(format!("these are no permission updates: {error}")))?;
        let learn = |value: RuleValue| {
            let rule = Rule::from_parts(&value.tool_name, value.rule_content.as_deref())
                .map_err(|error| Error::config(format!("permission updates: {error}")))?;
            Ok(Learned { value, rule })
        };
        let parse = |update| {
            Ok(match update {
                Given::AddRules { rules, behavior } => Update::Add {
                    rules: rules.into_iter().map(learn).collect::<Result<_>>()?,
                    deny: behavior == Behavior::Deny,
                },
                Given::RemoveRules { rules } => Update::Remove(rules),
            })
        };
        Ok(Self(given.into_iter().map(parse).collect::<Result<_>>()?))
    }
}

/// The rules and approvals of one Session.
#[derive(Debug, Default)]
pub struct SessionRules {
    learned: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    deny: Vec<Learned>,
    allow: Vec<Learned>,
    approvals: HashSet<Approval>,
}

/// A call somebody approved for the rest of the Session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Approval {
    tool: String,
    signature: String,
    /// Hash of the arguments, where the signature says nothing about them.
    arguments: Option<[u8; 32]>,
}

/// What a Session has learned about a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// A person approved exactly this for the Session.
    pub approved: bool,
    /// A rule was added that allows it.
    pub allowed: bool,
}

impl SessionRules {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        let state = self.lock();
        state.deny.is_empty() && state.allow.is_empty() && state.approvals.is_empty()
    }

    /// Why a rule of the Session refuses a call, if one does.
    pub fn denial(&self, request: &PermissionRequest) -> Option<String> {
        let state = self.lock();
        if state.deny.is_empty() {
            return None;
        }
        let rules = state.deny.iter().map(|learned| &learned.rule);
        touching(rules, &Call::of(request)).map(|rule| denial(rule, " of this Session", request))
    }

    /// Whether a call was approved, or is allowed by a rule. Rules that deny are not looked at here.
    pub fn standing(&self, request: &PermissionRequest) -> Standing {
        let state = self.lock();
        let approved = !state.approvals.is_empty() && state.approvals.contains(&Approval::of(request));
        let rules = state.allow.iter().map(|learned| &learned.rule);
        let allowed = !state.allow.is_empty() && allowing(rules, &Call::of(request)).is_some();
        Standing { approved, allowed }
    }

    /// Remembers a person's approval of a call.
    pub fn approve(&self, request: &PermissionRequest) {
        let mut state = self.lock();
        if state.approvals.len() < MOST {
            state.approvals.insert(Approval::of(request));
        }
    }

    /// Applies updates, in their order.
    ///
    /// Adding a rule that denies takes back an equal one that allows, and approvals of that signature; a rule that
    /// allows never takes back one that denies. Removing takes back both, and approvals.
    pub fn apply(&self, updates: PermissionUpdates) {
        let mut state = self.lock();
        for update in updates.0 {
            match update {
                Update::Add { rules, deny: true } => {
                    for learned in rules {
                        state.forget_allowed(&learned.value);
                        remember(&mut state.deny, learned);
                    }
                }
                Update::Add { rules, deny: false } => {
                    for learned in rules {
                        if state.allow.len() < MOST {
                            remember(&mut state.allow, learned);
                        }
                    }
                }
                Update::Remove(values) => {
                    for value in values {
                        state.deny.retain(|learned| learned.value != value);
                        state.forget_allowed(&value);
                    }
                }
            }
        }
    }

    /// Takes over what another Session denies: who continues from it may not do more.
    pub fn inherit_denials(&self, parent: &Self) {
        let denied = parent.lock().deny.clone();
        self.lock().deny = denied;
    }
}

impl State {
    fn forget_allowed(&mut self, value: &RuleValue) {
        self.allow.retain(|learned| learned.value != *value);
        self.approvals.retain(|approval| match &value.rule_content {
            None => approval.tool != value.tool_name,
            Some(content) => {
                let rest = approval.signature.strip_prefix(value.tool_name.as_str());
                rest.and_then(|rest| rest.strip_prefix(':')) != Some(content)
            }
        });
    }
}

fn remember(rules: &mut Vec<Learned>, learned: Learned) {
    if !rules.iter().any(|known| known.value == learned.value) {
        rules.push(learned);
    }
}

impl Approval {
    fn of(request: &PermissionRequest) -> Self {
        let signature = request.signature().to_owned();
        let arguments = (signature == request.tool_name).then(|| {
            let mut hash = Sha256::new();
            digest(&Value::Object(request.input.object().clone()), &mut hash);
            hash.finalize().into()
        });
        Self { tool: request.tool_name.clone(), signature, arguments }
    }
}

/// Hashes a value so that the order of keys does not count.
fn digest(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Array(items) => {
            hash.update(format!("[{}", items.len()));
            items.iter().for_each(|item| digest(item, hash));
        }
        Value::Object(fields) => {
            hash.update(format!("{{{}", fields.len()));
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| key.as_str());
            for (key, value) in fields {
                text(key, hash);
                digest(value, hash);
            }
        }
        Value::String(string) => text(string, hash),
        scalar => hash.update(format!("={scalar};")),
    }
}

fn text(text: &str, hash: &mut Sha256) {
    hash.update(format!("\"{}:", text.len()));
    hash.update(text);
}
