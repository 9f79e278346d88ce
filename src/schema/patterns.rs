//! Patterns with look-around or back-references: the only ones whose matching can take longer than their text is long.
//!
//! The validator gives up on a match after a while, but a value holds any number of texts, and it then validates again
//! under each outcome the match may have had. So these patterns are matched here: a validation has [`MATCHING`] for all of
//! them together, and what comes after that matches nothing and is reported.

use std::cell::Cell;
use std::time::Duration;

use jsonschema::{Draft, Keyword, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{SchemaError, explain};

/// How long one validation may match.
const MATCHING: Duration = Duration::from_secs(1);
/// Steps back of one match.
const STEPS_BACK: usize = 200_000;

thread_local! {
    static MEASURE: Cell<Measure> = const { Cell::new(Measure::Free) };
}

/// The time of the validation on this thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// Nobody measures.
    Free,
    /// It ends then.
    Until(Instant),
    /// It has ended.
    Over,
}

/// Whether a schema has such a pattern.
///
/// # Errors
/// One stands where the validator would match it by itself.
pub(super) fn step_back(schema: &Value) -> Result<bool, SchemaError> {
    match schema {
        Value::Object(keywords) => {
            let names = keywords.get("patternProperties").and_then(Value::as_object);
            if let Some(name) = names.into_iter().flat_map(Map::keys).find(|name| steps_back(name)) {
                return Err(SchemaError(format!(
                    "patternProperties {name:?} is no regular expression that is matched in linear time; write it \
                     without look-around and back-references"
                )));
            }
            let own = keywords.get("pattern").and_then(Value::as_str).is_some_and(steps_back);
            keywords.values().try_fold(own, |found, value| Ok(step_back(value)? || found))
        }
        Value::Array(items) => items.iter().try_fold(false, |found, value| Ok(step_back(value)? || found)),
        _ => Ok(false),
    }
}

/// Whether matching may take longer than the text is long.
fn steps_back(pattern: &str) -> bool {
    // Most patterns are plainly none of these, which saves compiling them once more.
    (pattern.contains("(?") || pattern.contains('\\')) && regex::Regex::new(pattern).is_err()
}

/// The keyword `pattern` of a schema that has such patterns.
///
/// # Errors
/// The pattern is none.
pub(super) fn keyword<'a>(pattern: &Value, draft: Draft) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let matcher = jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(STEPS_BACK))
        .offline()
        .build(&json!({ "pattern": pattern }))?;
    Ok(Box::new(Measured { matcher }))
}

struct Measured {
    matcher: Validator,
}

impl<'i> Keyword<'i> for Measured {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if value.is_string() && is_over() {
            return Err(ValidationError::custom("must match a pattern that was given up"));
        }
        self.matcher.validate(value).map_err(|error| ValidationError::custom(explain::message(&error)))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        !value.is_string() || (!is_over() && self.matcher.is_valid(value))
    }
}

fn is_over() -> bool {
    match MEASURE.get() {
        Measure::Free => false,
        Measure::Over => true,
        Measure::Until(end) => {
            let over = Instant::now() >= end;
            if over {
                MEASURE.set(Measure::Over);
            }
            over
        }
    }
}

/// Runs a validation within its time; `None` when that was too short.
pub(super) fn measured<T>(validate: impl FnOnce() -> T) -> Option<T> {
    struct Free;
    impl Drop for Free {
        fn drop(&mut self) {
            MEASURE.set(Measure::Free);
        }
    }
    MEASURE.set(Measure::Until(Instant::now() + MATCHING));
    let free = Free;
    let answer = validate();
    let over = MEASURE.get() == Measure::Over;
    drop(free);
    (!over).then_some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_step_back_are_told_from_those_that_do_not() {
        for (pattern, expected) in [
            (r"^[a-z]+$", false),
            (r"^\d{4}-\d{2}$", false),
            (r"(?i)^(?:a|b)\.ts$", false),
            (r"^(a+)+$", false),
            (r"^(?!x)", true),
            (r"(?<=a)b", true),
            (r"^(a+)\1$", true),
        ] {
            assert_eq!(steps_back(pattern), expected, "{pattern}");
            assert_eq!(step_back(&json!({ "items": [{ "pattern": pattern }] })), Ok(expected), "{pattern}");
            let named = step_back(&json!({ "not": { "patternProperties": { pattern: {} } } }));
            assert_eq!(named.is_err(), expected, "{pattern}");
        }
    }
}
