//! Errors of the validator in the words of the documentation: the field, what was expected and what came.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::Location;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::Issue;

/// Name of the whole value in [`Issue::field`].
pub(super) const ROOT: &str = "root";
/// A model that made more mistakes than this at once is not helped by a longer list.
const MAX_ISSUES: usize = 8;
/// How many errors are read to find those; one object with many missing keys gives one error for each.
const MAX_ERRORS: usize = 64;
/// Length of the preview of a value, in characters.
const PREVIEW: usize = 80;
/// A larger offending value is reported by its preview only.
const MAX_VALUE: usize = 16 * 1024;
/// How many unions within unions are looked into.
const MAX_UNION_DEPTH: usize = 4;
/// How many names of missing or unexpected properties one issue lists.
const MAX_NAMES: usize = 20;

/// Why `value` does not match.
pub(super) fn issues(validator: &Validator, value: &Value) -> Vec<Issue> {
    let mut found = Collector { root: value, entries: Vec::new() };
    for error in validator.iter_errors(value).take(MAX_ERRORS) {
        found.add(&error, 0);
    }
    found.finish()
}

/// The first reason why `value` does not match, and no other: the validator makes all errors before it gives one.
pub(super) fn first(validator: &Validator, value: &Value) -> Vec<Issue> {
    let mut found = Collector { root: value, entries: Vec::new() };
    if let Err(error) = validator.validate(value) {
        found.add(&error, 0);
    }
    found.finish()
}

/// Something about the value as a whole.
pub(super) fn of_the_whole(message: impl Into<String>) -> Issue {
    Issue { field: ROOT.to_owned(), message: message.into(), value: Value::Null }
}

/// Why a schema cannot be compiled.
pub(super) fn build_error(error: &ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
    let text = match error.kind() {
        ValidationErrorKind::Referencing(reason) => format!("a reference cannot be resolved: {reason}"),
        _ => message(error),
    };
    format!("not a usable JSON Schema{place}: {}", shorten(&text, 4 * PREVIEW))
}

/// A value for people: its type and a bounded preview.
pub(super) fn describe(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(flag) => return format!("boolean {flag}"),
        Value::Number(number) => return format!("number {number}"),
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("{kind} {}", preview(value))
}

struct Collector<'a> {
    root: &'a Value,
    entries: Vec<Entry>,
}

struct Entry {
    field: String,
    body: Body,
    value: Value,
}

enum Body {
    /// Names of missing properties; further ones of the same object join it.
    Missing(Vec<String>),
    Text(String),
}

impl Collector<'_> {
    fn add(&mut self, error: &ValidationError<'_>, depth: usize) {
        if depth < MAX_UNION_DEPTH
            && let ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } =
                error.kind()
            && let Some(branch) = best_branch(context, error.instance_path())
        {
            for inner in branch.iter().take(MAX_ERRORS) {
                self.add(inner, depth + 1);
            }
            return;
        }
        let field = field_of(error.instance_path());
        if let ValidationErrorKind::Required { property } = error.kind() {
            let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
            for entry in &mut self.entries {
                if let (true, Body::Missing(names)) = (entry.field == field, &mut entry.body) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                    return;
                }
            }
            self.push(field, Body::Missing(vec![name]), error.instance());
        } else if let Some(names) = self.unexpected(error) {
            let value = self.root.pointer(error.instance_path().as_str()).unwrap_or(self.root);
            self.push(field, Body::Text(format!("must not have additional properties {}", list(&names))), value);
        } else {
            let text = message(error);
            let known = |entry: &Entry| entry.field == field && matches!(&entry.body, Body::Text(t) if *t == text);
            if !self.entries.iter().any(known) {
                self.push(field, Body::Text(text), error.instance());
            }
        }
    }

    /// The validator reports `additionalProperties: false` beside no `properties` as a false schema without names.
    fn unexpected(&self, error: &ValidationError<'_>) -> Option<Vec<String>> {
        if !matches!(error.kind(), ValidationErrorKind::FalseSchema)
            || !error.schema_path().as_str().ends_with("/additionalProperties")
        {
            return None;
        }
        let object = self.root.pointer(error.instance_path().as_str())?.as_object()?;
        Some(object.keys().take(MAX_NAMES + 1).cloned().collect())
    }

    fn push(&mut self, field: String, body: Body, value: &Value) {
        if self.entries.len() < MAX_ISSUES {
            self.entries.push(Entry { field, body, value: bounded(value) });
        }
    }

    fn finish(self) -> Vec<Issue> {
        let issue = |entry: Entry| {
            let message = match entry.body {
                Body::Missing(names) => format!("must have required properties {}", list(&names)),
                Body::Text(text) => text,
            };
            Issue { field: entry.field, message, value: entry.value }
        };
        self.entries.into_iter().map(issue).collect()
    }
}

/// The one branch of a union that the value was plainly meant for: of the right type, with the right constant in its
/// discriminating property and, where that does not decide, with nothing missing. No branch when several qualify.
fn best_branch<'a, 'e>(
    branches: &'a [Vec<ValidationError<'e>>],
    union: &Location,
) -> Option<&'a [ValidationError<'e>]> {
    let depth = union.segments().count();
    let only = |may_lack_keys: bool| {
        let mut candidates = branches.iter().filter(|errors| is_meant(errors, depth, may_lack_keys));
        (candidates.next(), candidates.next())
    };
    match only(false) {
        (Some(branch), None) => Some(branch),
        (Some(_), Some(_)) => None,
        (None, _) => match only(true) {
            (Some(branch), None) => Some(branch),
            _ => None,
        },
    }
}

fn is_meant(errors: &[ValidationError<'_>], depth: usize, may_lack_keys: bool) -> bool {
    errors.iter().all(|error| {
        let below = error.instance_path().segments().count().saturating_sub(depth);
        match error.kind() {
            ValidationErrorKind::Type { .. } | ValidationErrorKind::FalseSchema | ValidationErrorKind::Enum { .. } => {
                below > 0
            }
            ValidationErrorKind::Constant { .. } => below > 1,
            ValidationErrorKind::Required { .. } => may_lack_keys || below > 0,
            _ => true,
        }
    })
}

pub(super) fn message(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let value: &Value = error.instance();
    let got = || format!(", got {}", describe(value));
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(name) } => format!("must be {name}{}", got()),
        Kind::Type { kind: TypeKind::Multiple(names) } => {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            format!("must be either {}{}", names.join(" or "), got())
        }
        Kind::Minimum { limit } => format!("must be >= {limit}{}", got()),
        Kind::Maximum { limit } => format!("must be <= {limit}{}", got()),
        Kind::ExclusiveMinimum { limit } => format!("must be > {limit}{}", got()),
        Kind::ExclusiveMaximum { limit } => format!("must be < {limit}{}", got()),
        Kind::MultipleOf { multiple_of } => format!("must be multiple of {multiple_of}{}", got()),
        Kind::Enum { options } => {
            format!("must be equal to one of the allowed values {}{}", options_of(options), got())
        }
        Kind::Constant { expected_value } => format!("must be equal to constant {}{}", preview(expected_value), got()),
        Kind::MinLength { limit } => format!("must not have fewer than {limit} characters{}", got()),
        Kind::MaxLength { limit } => format!("must not have more than {limit} characters{}", got()),
        Kind::MinItems { limit } => format!("must not have fewer than {limit} items, got {}", count(value)),
        Kind::MaxItems { limit } => format!("must not have more than {limit} items, got {}", count(value)),
        Kind::AdditionalItems { limit } => format!("must not have more than {limit} items, got {}", count(value)),
        Kind::MinProperties { limit } => format!("must not have fewer than {limit} properties, got {}", count(value)),
        Kind::MaxProperties { limit } => format!("must not have more than {limit} properties, got {}", count(value)),
        Kind::UniqueItems => "must not have duplicate items".to_owned(),
        Kind::Contains => "must contain at least 1 valid item".to_owned(),
        Kind::Format { format } => format!("must match format \"{format}\"{}", got()),
        Kind::Pattern { pattern } => format!("must match pattern \"{}\"{}", shorten(pattern, 2 * PREVIEW), got()),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "must match a pattern that gave up on this value".to_owned()
        }
        Kind::AdditionalProperties { unexpected } => {
            format!("must not have additional properties {}", list(unexpected))
        }
        Kind::UnevaluatedProperties { unexpected } => {
            format!("must not have unevaluated properties {}", list(unexpected))
        }
        Kind::UnevaluatedItems { .. } => "must not have unevaluated items".to_owned(),
        Kind::PropertyNames { error } => format!("property name {} is invalid", preview(error.instance())),
        Kind::AnyOf { context } => format!("must match a schema in anyOf{}{}", constants(context), got()),
        Kind::OneOfNotValid { context } => {
            format!("must match exactly one schema in oneOf{}{}", constants(context), got())
        }
        Kind::OneOfMultipleValid { .. } => {
            format!("must match exactly one schema in oneOf, but matches several{}", got())
        }
        Kind::Not { .. } => format!("must not be valid{}", got()),
        Kind::FalseSchema => "is not allowed".to_owned(),
        // Of our own keywords, whose words are ours already.
        Kind::Custom { message, .. } => message.clone(),
        Kind::Required { property } => format!("must have required properties {property}"),
        Kind::ContentEncoding { .. } | Kind::ContentMediaType { .. } | Kind::FromUtf8 { .. } | Kind::Referencing(_) => {
            shorten(&error.masked_with("value").to_string(), 2 * PREVIEW)
        }
    }
}

/// For a union of constants, its constants: that is how TypeBox writes a union of literals.
fn constants(branches: &[Vec<ValidationError<'_>>]) -> String {
    let mut names = Vec::new();
    for branch in branches {
        match branch.as_slice() {
            [only] => match only.kind() {
                ValidationErrorKind::Constant { expected_value } => names.push(preview(expected_value)),
                _ => return String::new(),
            },
            _ => return String::new(),
        }
    }
    if names.is_empty() { String::new() } else { format!(" ({})", list(&names)) }
}

fn options_of(options: &Value) -> String {
    match options {
        Value::Array(options) => {
            let options: Vec<String> = options.iter().take(MAX_NAMES + 1).map(preview).collect();
            format!("({})", list(&options))
        }
        other => preview(other),
    }
}

fn list(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| shorten(name, PREVIEW)).collect();
    let more = if names.len() > MAX_NAMES { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    }
}

/// Dotted path of a JSON pointer.
fn field_of(path: &Location) -> String {
    if path.is_empty() {
        return ROOT.to_owned();
    }
    let parts: Vec<String> =
        path.as_str().split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    parts.join(".")
}

/// JSON text of a value, cut after [`PREVIEW`] characters. Only as much as is shown is written.
fn preview(value: &Value) -> String {
    let mut writer = Bounded { bytes: Vec::new(), limit: 4 * PREVIEW + 4 };
    let complete = serde_json::to_writer(&mut writer, value).is_ok();
    let text = String::from_utf8_lossy(&writer.bytes);
    if complete { shorten(&text, PREVIEW) } else { cut(&text, PREVIEW) }
}

fn shorten(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() { text.to_owned() } else { cut(text, limit) }
}

fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).chain(['…']).collect()
}

/// The value itself where it is small; a 50 MB argument is not copied into every error about it.
fn bounded(value: &Value) -> Value {
    let mut writer = Bounded { bytes: Vec::new(), limit: MAX_VALUE };
    if serde_json::to_writer(&mut writer, value).is_ok() { value.clone() } else { Value::String(preview(value)) }
}

/// A writer that refuses to grow beyond its limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        let room = self.limit.saturating_sub(self.bytes.len());
        if room == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::WriteZero));
        }
        let taken = piece.len().min(room);
        self.bytes.extend_from_slice(&piece[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
