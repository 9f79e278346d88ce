//! Approvals people gave for the rest of a Session.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::Value;

/// What was approved with scope `session`. Exact signatures only: an approval of one command never covers another. A
/// permission handler may also approve all calls of a tool.
#[derive(Debug, Default)]
pub struct Approvals {
    approved: Mutex<Approved>,
}

#[derive(Debug, Default)]
struct Approved {
    signatures: HashSet<String>,
    tools: HashSet<String>,
}

impl Approvals {
    fn lock(&self) -> MutexGuard<'_, Approved> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this exact signature, or its tool as a whole, was approved.
    pub fn contains(&self, tool: &str, signature: &str) -> bool {
        let approved = self.lock();
        approved.signatures.contains(signature) || approved.tools.contains(tool)
    }

    /// Remembers an approval.
    pub fn add(&self, signature: &str) {
        self.lock().signatures.insert(signature.to_owned());
    }

    /// Applies `PermissionUpdate[]` of a permission handler: allowing rules are approvals, denying and removed rules
    /// take them back. A rule without content is about all calls of its tool.
    ///
    /// # Errors
    /// It is no list of updates; nothing was changed.
    pub fn update(&self, updates: &Value) -> Result<(), serde_json::Error> {
        let updates = Vec::<Update>::deserialize(updates)?;
        let mut approved = self.lock();
        for update in updates {
            let (rules, allow) = match update {
                Update::AddRules { rules, behavior } => (rules, matches!(behavior, RuleBehavior::Allow)),
                Update::RemoveRules { rules } => (rules, false),
            };
            for rule in rules {
                approved.apply(rule, allow);
            }
        }
        Ok(())
    }
}

impl Approved {
    fn apply(&mut self, Rule { tool_name, rule_content }: Rule, allow: bool) {
        match (rule_content, allow) {
            (Some(content), true) => drop(self.signatures.insert(format!("{tool_name}:{content}"))),
            (Some(content), false) => drop(self.signatures.remove(&format!("{tool_name}:{content}"))),
            (None, true) => drop(self.tools.insert(tool_name)),
            (None, false) => {
                self.tools.remove(&tool_name);
                let of_tool = |signature: &str| {
                    signature.strip_prefix(&tool_name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
                };
                self.signatures.retain(|signature| !of_tool(signature));
            }
        }
    }
}

/// `PermissionUpdate`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Update {
    AddRules { rules: Vec<Rule>, behavior: RuleBehavior },
    RemoveRules { rules: Vec<Rule> },
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleBehavior {
    Allow,
    Deny,
}

/// `PermissionRuleValue`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    tool_name: String,
    #[serde(default)]
    rule_content: Option<String>,
}
