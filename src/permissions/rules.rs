//! Allow, ask and deny lists matched on the permission signature.

use serde::Deserialize;

use super::request::{PermissionDecision, PermissionRequest};

/// `PermissionsConfig`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RuleLists {
    /// Runs without a question.
    pub allow: Vec<String>,
    /// Always asks.
    pub ask: Vec<String>,
    /// Never runs.
    pub deny: Vec<String>,
}

/// Whether one rule covers a signature: `*` covers all, a trailing `*` makes a prefix, anything else is exact.
/// `Tool(content)` is read as `Tool:content`, with `Tool(content:*)` as the prefix form.
pub fn rule_matches(rule: &str, signature: &str) -> bool {
    let rule = rule.trim();
    if let Some((tool, content)) = rule.strip_suffix(')').and_then(|open| open.split_once('(')) {
        let content = content.strip_suffix(":*").map_or_else(|| content.to_owned(), |prefix| format!("{prefix}*"));
        return matches_plain(&format!("{tool}:{content}"), signature);
    }
    matches_plain(rule, signature)
}

fn matches_plain(rule: &str, signature: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => signature.starts_with(prefix),
        None => rule == signature,
    }
}

/// Decides by the lists: deny before allow before ask; no match asks.
pub fn decide_by_rules(request: &PermissionRequest, lists: &RuleLists) -> PermissionDecision {
    let signature = request.signature();
    let any = |rules: &[String]| rules.iter().any(|rule| rule_matches(rule, signature));
    if any(&lists.deny) {
        PermissionDecision::deny(format!("denied by a permission rule for {signature}"))
    } else if any(&lists.allow) {
        PermissionDecision::allow()
    } else if any(&lists.ask) {
        PermissionDecision::ask(format!("a permission rule requires confirmation for {signature}"))
    } else {
        PermissionDecision::ask("no permission rule matches, so confirmation is required")
    }
}

#[cfg(test)]
mod tests {
    use super::rule_matches;

    #[test]
    fn rules_match_exactly_by_prefix_or_everything() {
        for (rule, signature, expected) in [
            ("*", "Bash:rm x", true),
            ("Bash", "Bash", true),
            ("Bash", "Bash:npm test", false),
            ("Bash:npm test", "Bash:npm test", true),
            ("Bash:npm test", "Bash:npm test -- x", false),
            ("Bash:npm test*", "Bash:npm test -- x", true),
            ("Bash(npm test)", "Bash:npm test", true),
            ("Bash(npm test:*)", "Bash:npm test -- x", true),
            ("Bash(npm test:*)", "Bash:npm run", false),
            ("Read(/repo/*)", "Read:/repo/a.ts", true),
        ] {
            assert_eq!(rule_matches(rule, signature), expected, "{rule} on {signature}");
        }
    }
}
