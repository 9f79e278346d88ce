//! The decision about a call inside of a Session, from everything that is known of it. Pure: callers ask, this decides.

use super::request::PermissionDecision;

/// Who wants a call confirmed, in the order reasons are shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The tool itself.
    Tool,
    /// A permission rule.
    Rule,
    /// A path the call touches.
    Path,
    /// A hook.
    Hook,
    /// The application's handler, or the mode table in its place.
    Handler,
}

/// Reasons to ask; the same one of the same source counts once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reasons(Vec<(Source, String)>);

impl Reasons {
    /// Adds a reason.
    pub fn add(&mut self, source: Source, reason: impl Into<String>) {
        let reason = (source, reason.into());
        if !self.0.contains(&reason) {
            self.0.push(reason);
        }
    }

    /// All of them, a line each, by source; `None` where there are none.
    pub fn text(mut self) -> Option<String> {
        self.0.sort_by_key(|(source, _)| *source);
        let lines: Vec<String> = self.0.into_iter().map(|(_, reason)| reason).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// What refuses a call before anybody is asked, each with its message.
#[derive(Debug, Clone, Default)]
pub struct Barriers {
    /// The mode is plan, and the call does more than read.
    pub plan: Option<String>,
    /// It touches what no call touches.
    pub path: Option<String>,
    /// A rule denies it.
    pub rule: Option<String>,
}

impl Barriers {
    /// The first one, in the documented order.
    pub fn first(self) -> Option<String> {
        self.plan.or(self.path).or(self.rule)
    }
}

/// What lists of the application say, as far as it is left to say once nothing denies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Listed {
    /// Rules allow it.
    Allow {
        /// By more than the name of the tool.
        specific: bool,
    },
    /// A rule wants it confirmed, for this reason.
    Ask(String),
    /// Nothing.
    #[default]
    Nothing,
}

/// What is known of a call that nothing refuses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The application's lists.
    pub listed: Listed,
    /// A person approved exactly this call for the Session.
    pub approved: bool,
    /// A rule of the Session allows it.
    pub allowed: bool,
    /// Why its paths should not be touched silently.
    pub sensitive: Option<String>,
    /// Why the tool itself wants it confirmed.
    pub tool: Option<String>,
}

/// Who answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The mode table: there is no handler.
    Mode(PermissionDecision),
    /// The application's handler.
    Handler(PermissionDecision),
}

/// What happens to the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It runs.
    Run,
    /// It does not.
    Deny {
        /// Why, for the model.
        message: String,
        /// The request ends after the turn.
        interrupt: bool,
    },
    /// Somebody has to confirm it, for these reasons.
    Confirm(String),
}

/// Decides.
///
/// - A denial of whoever answered is final.
/// - A tool that asks, and a rule that asks, are obeyed in every mode and whatever a handler allows, unless the Session
///   has an approval.
/// - What asks otherwise, the mode table or a handler, is settled by a rule that allows or by an approval.
/// - Sensitive paths ask where there is no handler. Only an approval of exactly this call, or a rule of the application
///   that names what it is about, settles that.
pub fn decide(known: &Known, answer: Answer) -> Outcome {
    let by_mode = matches!(answer, Answer::Mode(_));
    let (Answer::Mode(decision) | Answer::Handler(decision)) = answer;
    let approved = known.approved || known.allowed;
    let mut reasons = Reasons::default();
    match (&known.listed, decision) {
        (_, PermissionDecision::Deny { message, interrupt }) => return Outcome::Deny { message, interrupt },
        (Listed::Allow { .. }, PermissionDecision::Ask { .. }) => {}
        (_, PermissionDecision::Ask { message }) if !approved => {
            reasons.add(Source::Handler, message.unwrap_or_else(|| "user confirmation required".to_owned()));
        }
        (_, PermissionDecision::Ask { .. } | PermissionDecision::Allow { .. }) => {}
    }
    if let Listed::Ask(reason) = &known.listed
        && !approved
    {
        reasons.add(Source::Rule, reason);
    }
    if let Some(reason) = &known.tool
        && !approved
    {
        reasons.add(Source::Tool, reason);
    }
    if let Some(reason) = &known.sensitive
        && by_mode
        && !known.approved
        && known.listed != (Listed::Allow { specific: true })
    {
        reasons.add(Source::Path, reason);
    }
    reasons.text().map_or(Outcome::Run, Outcome::Confirm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(outcome: Outcome) -> String {
        match outcome {
            Outcome::Run => "run".into(),
            Outcome::Deny { message, .. } => format!("deny: {message}"),
            Outcome::Confirm(reasons) => reasons.replace('\n', "+"),
        }
    }

    #[test]
    fn every_combination_of_rules_approvals_paths_and_answers_is_decided() {
        let rule = |specific| Listed::Allow { specific };
        let ask = || Listed::Ask("rule".into());
        let approved = || Known { approved: true, ..Known::default() };
        let allowed = || Known { allowed: true, ..Known::default() };
        let key = || Some("key".to_owned());
        let [mode_allows, mode_asks] = [PermissionDecision::allow(), PermissionDecision::ask("mode")].map(Answer::Mode);
        let [allows, asks, denies] =
            [PermissionDecision::allow(), PermissionDecision::ask("handler"), PermissionDecision::deny("no")]
                .map(Answer::Handler);
        // Known → what happens when: the mode allows, the mode asks, the handler allows, asks, denies.
        for (known, expected) in [
            (Known::default(), ["run", "mode", "run", "handler", "deny: no"]),
            (Known { listed: rule(false), ..Known::default() }, ["run", "run", "run", "run", "deny: no"]),
            (Known { listed: rule(true), ..Known::default() }, ["run", "run", "run", "run", "deny: no"]),
            (Known { listed: ask(), ..Known::default() }, ["rule", "rule+mode", "rule", "rule+handler", "deny: no"]),
            (approved(), ["run", "run", "run", "run", "deny: no"]),
            (allowed(), ["run", "run", "run", "run", "deny: no"]),
            (Known { listed: ask(), ..approved() }, ["run", "run", "run", "run", "deny: no"]),
            (Known { listed: ask(), ..allowed() }, ["run", "run", "run", "run", "deny: no"]),
            (
                Known { tool: Some("tool".into()), ..Known::default() },
                ["tool", "tool+mode", "tool", "tool+handler", "deny: no"],
            ),
            (Known { tool: Some("tool".into()), ..approved() }, ["run", "run", "run", "run", "deny: no"]),
            (
                Known { tool: Some("tool".into()), listed: rule(true), ..Known::default() },
                ["tool", "tool", "tool", "tool", "deny: no"],
            ),
            (Known { sensitive: key(), ..Known::default() }, ["key", "key+mode", "run", "handler", "deny: no"]),
            (
                Known { sensitive: key(), listed: ask(), ..Known::default() },
                ["rule+key", "rule+key+mode", "rule", "rule+handler", "deny: no"],
            ),
            (
                Known { sensitive: key(), listed: rule(false), ..Known::default() },
                ["key", "key", "run", "run", "deny: no"],
            ),
            (
                Known { sensitive: key(), listed: rule(true), ..Known::default() },
                ["run", "run", "run", "run", "deny: no"],
            ),
            (Known { sensitive: key(), ..approved() }, ["run", "run", "run", "run", "deny: no"]),
            (Known { sensitive: key(), ..allowed() }, ["key", "key", "run", "run", "deny: no"]),
        ] {
            for (answer, expected) in [&mode_allows, &mode_asks, &allows, &asks, &denies].into_iter().zip(expected) {
                assert_eq!(shown(decide(&known, answer.clone())), expected, "{known:?} {answer:?}");
            }
        }
    }

    #[test]
    fn what_refuses_a_call_is_named_in_order() {
        let all = Barriers { plan: Some("plan".into()), path: Some("path".into()), rule: Some("rule".into()) };
        assert_eq!(all.clone().first().as_deref(), Some("plan"));
        assert_eq!(Barriers { plan: None, ..all.clone() }.first().as_deref(), Some("path"));
        assert_eq!(Barriers { plan: None, path: None, ..all }.first().as_deref(), Some("rule"));
        assert_eq!(Barriers::default().first(), None);
    }

    #[test]
    fn reasons_are_shown_by_source_and_each_once() {
        let mut reasons = Reasons::default();
        for (source, reason) in [
            (Source::Handler, "h"),
            (Source::Hook, "k"),
            (Source::Rule, "same"),
            (Source::Path, "same"),
            (Source::Rule, "same"),
            (Source::Rule, "r2"),
            (Source::Tool, "t"),
        ] {
            reasons.add(source, reason);
        }
        assert_eq!(reasons.text().as_deref(), Some("t\nsame\nr2\nsame\nk\nh"));
        assert_eq!(Reasons::default().text(), None);
    }
}
