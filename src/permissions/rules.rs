//! Allow, ask and deny lists: one engine for handlers, the options of a Session and the rules it learns.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::call::Call;
use super::request::{PermissionDecision, PermissionRequest};
use super::rule::Rule;
use crate::error::{Error, Result};

#[cfg(test)]
mod tests;

/// `PermissionsConfig`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct RuleLists {
    /// Runs without a question.
    pub allow: Vec<String>,
    /// Always asks.
    pub ask: Vec<String>,
    /// Never runs.
    pub deny: Vec<String>,
}

/// An array would do for a struct of defaults, and mean no rules at all.
impl TryFrom<Map<String, Value>> for RuleLists {
    type Error = serde_json::Error;

    fn try_from(fields: Map<String, Value>) -> std::result::Result<Self, Self::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct Fields {
            allow: Vec<String>,
            ask: Vec<String>,
            deny: Vec<String>,
        }
        let Fields { allow, ask, deny } = serde_json::from_value(Value::Object(fields))?;
        Ok(Self { allow, ask, deny })
    }
}

/// Parsed lists.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
}

/// What lists say about a call.
#[derive(Debug, Clone, Copy)]
pub enum Verdict<'a> {
    /// A rule refuses it.
    Deny(&'a Rule),
    /// Rules allow it. `specific`: by more than the name of its tool.
    Allow {
        /// Whether they name what the call is about.
        specific: bool,
    },
    /// A rule wants it confirmed.
    Ask(&'a Rule),
    /// No rule is about it.
    Silent,
}

impl Rules {
    /// Parses lists; `what` names the option they come from.
    ///
    /// # Errors
    /// `CONFIG_ERROR` naming the first rule that means nothing, and its place.
    pub fn parse(lists: &RuleLists, what: &str) -> Result<Self> {
        let parse = |list: &str, rules: &[String]| -> Result<Vec<Rule>> {
            let numbered = rules.iter().enumerate();
            let parsed = numbered.map(|(at, rule)| {
                Rule::parse(rule).map_err(|error| Error::config(format!("{what}{list}[{at}]: {error}")))
            });
            parsed.collect()
        };
        Ok(Self {
            allow: parse(".allow", &lists.allow)?,
            ask: parse(".ask", &lists.ask)?,
            deny: parse(".deny", &lists.deny)?,
        })
    }

    /// Parses rules that only allow, such as `explicitAllowRules`.
    ///
    /// # Errors
    /// As [`Rules::parse`].
    pub fn allowing(rules: &[String], what: &str) -> Result<Self> {
        let parse = |(at, rule): (usize, &String)| {
            Rule::parse(rule).map_err(|error| Error::config(format!("{what}[{at}]: {error}")))
        };
        Ok(Self { allow: rules.iter().enumerate().map(parse).collect::<Result<_>>()?, ..Self::default() })
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty()
    }

    /// The first list that is about the call: deny, allow, ask.
    ///
    /// A call of several parts, such as `a && b`, is denied or asked about for each of them. It is allowed by rules that
    /// cover all of them together, or by one that is exactly its signature; a prefix of the whole says nothing about
    /// the rest.
    pub fn judge(&self, request: &PermissionRequest) -> Verdict<'_> {
        if self.is_empty() {
            return Verdict::Silent;
        }
        let call = Call::of(request);
        if let Some(rule) = touching(self.deny.iter(), &call) {
            Verdict::Deny(rule)
        } else if let Some(specific) = allowing(self.allow.iter(), &call) {
            Verdict::Allow { specific }
        } else if let Some(rule) = touching(self.ask.iter(), &call) {
            Verdict::Ask(rule)
        } else {
            Verdict::Silent
        }
    }
}

/// The first rule that is about the call, for lists that refuse or ask.
pub(super) fn touching<'a>(mut rules: impl Iterator<Item = &'a Rule>, call: &Call<'_>) -> Option<&'a Rule> {
    rules.find(|rule| rule.touches(call))
}

/// Whether rules allow the whole call, and if so, whether they name what it is about.
pub(super) fn allowing<'a>(rules: impl Iterator<Item = &'a Rule> + Clone, call: &Call<'_>) -> Option<bool> {
    if rules.clone().any(|rule| rule.is_whole(call)) {
        return Some(call.content.is_some());
    }
    let mut specific = true;
    for unit in call.units() {
        let mut covering = rules.clone().filter(|rule| rule.covers(call, unit)).peekable();
        covering.peek()?;
        specific &= covering.any(Rule::is_specific);
    }
    Some(specific)
}

/// Why a rule refuses a call. `origin` says where the rule stands.
pub fn denial(rule: &Rule, origin: &str, request: &PermissionRequest) -> String {
    format!("denied by the permission rule \"{}\"{origin} for {}", rule.text(), request.signature())
}

/// Why a rule asks.
pub fn question(rule: &Rule, request: &PermissionRequest) -> String {
    format!("the permission rule \"{}\" requires confirmation for {}", rule.text(), request.signature())
}

/// Decides by the lists alone: a call that no rule is about asks.
pub fn decide_by_rules(request: &PermissionRequest, rules: &Rules) -> PermissionDecision {
    match rules.judge(request) {
        Verdict::Deny(rule) => PermissionDecision::deny(denial(rule, "", request)),
        Verdict::Allow { .. } => PermissionDecision::allow(),
        Verdict::Ask(rule) => PermissionDecision::ask(question(rule, request)),
        Verdict::Silent => PermissionDecision::ask("no permission rule matches, so confirmation is required"),
    }
}
