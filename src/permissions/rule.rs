//! One permission rule: parsed when it is given, compared with calls.

use super::call::{Call, Unit};
use super::pattern::{Content, Form};

/// Longest piece of a rule that its error shows, in characters.
const SHOWN: usize = 200;

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule:?} is no permission rule: {why}")]
pub struct RuleError {
    rule: String,
    why: String,
}

impl RuleError {
    fn new(rule: &str, why: impl Into<String>) -> Self {
        let mut shown = rule.to_owned();
        if let Some((end, _)) = rule.char_indices().nth(SHOWN) {
            shown.truncate(end);
            shown.push('…');
        }
        Self { rule: shown, why: why.into() }
    }
}

/// `*`, `Tool`, `Tool:content` or `Tool(content)`.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    name: Name,
    content: Option<Content>,
}

/// Which tools a rule is about.
#[derive(Debug, Clone)]
enum Name {
    Exactly(String),
    /// A trailing `*`; empty for every tool.
    Beginning(String),
}

impl Name {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (name, beginning) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.contains('*') {
            return Err("* may only stand at the end of a tool's name");
        }
        if name.chars().any(char::is_whitespace) {
            return Err("a tool's name has no spaces");
        }
        match (name.is_empty(), beginning) {
            (true, false) => Err("it names no tool"),
            (_, true) => Ok(Self::Beginning(name.to_owned())),
            (_, false) => Ok(Self::Exactly(name.to_owned())),
        }
    }

    fn covers(&self, name: &str) -> bool {
        match self {
            Self::Exactly(own) => own == name,
            Self::Beginning(own) => name.starts_with(own.as_str()),
        }
    }
}

impl Rule {
    /// Parses a rule as people write it.
    ///
    /// # Errors
    /// It is empty, its parentheses do not match, or its pattern is none.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let bad = |why: &str| RuleError::new(text, why);
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        let (name, content) = match text.find(['(', ':']) {
            None if text.contains(')') => return Err(bad("its parentheses do not match")),
            None => (text, None),
            Some(at) if text[at..].starts_with(':') => (&text[..at], Some((&text[at + 1..], Form::Signature))),
            Some(at) => match text[at + 1..].strip_suffix(')') {
                Some(content) => (&text[..at], Some((content.trim(), Form::Parenthesis))),
                None => return Err(bad("its parentheses do not match")),
            },
        };
        Self::of(text, name, content)
    }

    /// The rule of a `PermissionRuleValue`. Without content it is about every call of the tool.
    ///
    /// # Errors
    /// As [`Rule::parse`].
    pub fn from_parts(tool: &str, content: Option<&str>) -> Result<Self, RuleError> {
        match content {
            Some(content) => Self::of(&format!("{tool}({content})"), tool, Some((content, Form::Parenthesis))),
            None => Self::of(tool, tool, Some(("*", Form::Parenthesis))),
        }
    }

    fn of(text: &str, name: &str, content: Option<(&str, Form)>) -> Result<Self, RuleError> {
        let name = Name::parse(name).map_err(|why| RuleError::new(text, why))?;
        let content = content.map(|(content, form)| Content::parse(content, form)).transpose();
        let content = content.map_err(|why| RuleError::new(text, why))?;
        Ok(Self { text: text.to_owned(), name, content })
    }

    /// The rule as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a list that refuses or asks takes the rule to be about a call: under any name of the tool, any spelling
    /// of a path, and for any part.
    pub(super) fn touches(&self, call: &Call<'_>) -> bool {
        if !call.names().any(|name| self.name.covers(name)) {
            return self.is_signature(call.signature);
        }
        let Some(content) = &self.content else { return true };
        !content.is_specific()
            || call.contents().any(|text| match call.content_is_path() {
                true => content.covers_text(text),
                false => content.may_cover_text(text),
            })
            || call.spellings().any(|path| content.may_cover_path(path))
            || self.is_signature(call.signature)
    }

    /// Whether a list that allows takes the rule to cover a unit of a call.
    pub(super) fn covers(&self, call: &Call<'_>, unit: Unit<'_>) -> bool {
        let Some(content) = &self.content else {
            // Contract: in a list that allows, a bare name is a whole signature and no more.
            return match &self.name {
                Name::Exactly(name) => name == call.signature,
                Name::Beginning(_) => self.name.covers(call.name),
            };
        };
        self.name.covers(call.name)
            && (!content.is_specific()
                || match unit {
                    Unit::Tool => false,
                    Unit::Text(text) => content.covers_text(text),
                    Unit::Path(place) => place.names().any(|name| content.covers_path(name)),
                })
    }

    /// Whether the rule is exactly the call's signature, in either notation.
    pub(super) fn is_whole(&self, call: &Call<'_>) -> bool {
        self.text == call.signature
            || (self.name.covers(call.name)
                && call
                    .content
                    .is_some_and(|text| self.content.as_ref().is_some_and(|content| content.is_exactly(text))))
    }

    /// Whether it says more than which tool.
    pub(super) fn is_specific(&self) -> bool {
        self.content.as_ref().is_some_and(Content::is_specific)
    }

    /// Names of tools may hold colons and parentheses; then the text as a whole still is a signature or its beginning.
    fn is_signature(&self, signature: &str) -> bool {
        self.text == signature || self.text.strip_suffix('*').is_some_and(|prefix| signature.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_mean_nothing_are_refused_with_the_reason() {
        for (text, why) in [
            ("", "empty"),
            ("   ", "empty"),
            ("Read(", "parentheses"),
            ("Read(x", "parentheses"),
            ("Read(x) y", "parentheses"),
            ("Read)", "parentheses"),
            ("Read()", "content is empty"),
            ("Read( )", "content is empty"),
            ("Read:", "content is empty"),
            ("(x)", "no tool"),
            (":x", "no tool"),
            ("Read (x)", "no spaces"),
            ("mcp__*__read", "at the end"),
            ("Read([ab)", "no path pattern"),
            ("Read(~/.ssh/**)", "~ is not expanded"),
            ("Read(../lib/**)", "leads is not known"),
        ] {
            let error = Rule::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.starts_with(&format!("{:?} is no permission rule", text.trim())), "{error}");
        }
        for text in ["*", "Bash", "Bash:echo (a)", "Bash(echo (a))", "mcp__git__*", "Bash:[ -f x*", "*(**/.env)"] {
            assert_eq!(Rule::parse(text).unwrap().text(), text);
        }
        assert!(Rule::from_parts("", None).is_err());
        assert!(Rule::from_parts("Read", Some("[ab")).is_err());
    }
}
