//! JSON Schema: compile once, fill defaults, validate, explain.
//!
//! This module is deliberately free of generics: the validator crate is instantiated here and nowhere else, which
//! keeps rebuilds of the rest of the crate short.
//!
//! Schemas are read as draft 2019-09, because TypeBox writes tuples in the array form of `items`; a schema that names
//! another draft in `$schema` gets that draft. Values are never coerced: `"5"` is not an integer.

mod cache;
mod cost;
mod defaults;
mod document;
mod explain;
mod patterns;
mod reach;
mod read;

use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, Validator};
use serde::Serialize;
use serde_json::{Map, Value};

use cost::{Costs, MAX_EXPLAINED, MAX_STEPS};
use defaults::Plan;
use document::{Document, Flat, Member};
pub use read::read;

/// Longest text of a schema in bytes; compiling one of this size takes a fraction of a second.
const MAX_BYTES: usize = 4 << 20;
/// Chains of schemas for one value up to this length need no more stack than every thread has, whatever the value.
const SHALLOW_CHAIN: usize = 8;
/// Stack for the others. Address space: only what is used becomes memory.
const DEEP_STACK: usize = 128 << 20;

/// One reason why arguments do not match.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Issue {
    /// Dotted path of the field, or `root` for the whole value.
    pub field: String,
    /// What was expected and what came.
    pub message: String,
    /// The offending value.
    pub value: Value,
}

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(pub String);

/// A compiled schema. The text is what the model is sent, unchanged; the validator is made from that same text.
pub struct Schema {
    text: Box<str>,
    validator: Validator,
    /// The same schema for [`Document`]s, made when the first one comes; `None` when that cannot be.
    flat: OnceLock<Option<Validator<Flat>>>,
    value: Value,
    defaults: Option<Plan>,
    /// Length of the longest chain of schemas that are applied to one value.
    chain: usize,
    costs: Costs,
    /// Whether matching its patterns has to be measured.
    steps_back: bool,
    /// How often something was validated.
    #[cfg(test)]
    pub(crate) validations: std::sync::atomic::AtomicUsize,
}

/// Text that matches a schema, and where in it the members of its object stand.
#[derive(Debug, Clone)]
pub struct Matched {
    members: Vec<Member>,
}

impl Matched {
    /// The keys of the object; `text` is what matched.
    pub fn keys<'t>(&'t self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.members.iter().filter_map(|member| text.get(member.key.clone()))
    }

    /// A member that is a string and stands in the text as it is. `None` says nothing about other members.
    pub fn text_of<'t>(&self, text: &'t str, key: &str) -> Option<&'t str> {
        let member = self.members.iter().find(|member| text.get(member.key.clone()) == Some(key))?;
        text.get(member.text.clone()?)
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Schema {
    /// Compiles a schema from its JSON text, or hands out the one compiled from the same text before.
    ///
    /// # Errors
    /// The text is not JSON, not a schema, refers to a remote document, or does not describe an object.
    pub fn compile(text: &str) -> Result<Arc<Self>, SchemaError> {
        if let Some(schema) = cache::get(text) {
            return Ok(schema);
        }
        // No lock is held here: two threads may compile the same text, and the first one's result is kept.
        let schema = Arc::new(Self::build(text)?);
        Ok(cache::insert(schema))
    }

    fn build(text: &str) -> Result<Self, SchemaError> {
        if text.len() > MAX_BYTES {
            return Err(SchemaError(format!("schema has {} bytes, more than the limit of {MAX_BYTES}", text.len())));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        require_object(&value)?;
        let chain = reach::longest_chain(&value)?;
        let (draft, steps_back) = (draft_of(&value), patterns::step_back(&value)?);
        let mut options =
            jsonschema::options().with_draft(draft).should_validate_formats(true).with_format("url", is_url).offline();
        if steps_back {
            options = options.with_keyword("pattern", move |_, pattern, _| patterns::keyword(pattern, draft));
        }
        let validator = options.build(&value).map_err(|error| SchemaError(explain::build_error(&error)))?;
        let defaults = Plan::of(&value);
        let costs = Costs::of(&value);
        Ok(Self {
            text: text.into(),
            validator,
            flat: OnceLock::new(),
            value,
            defaults,
            chain,
            costs,
            steps_back,
            #[cfg(test)]
            validations: std::sync::atomic::AtomicUsize::new(0),
        })
    }

    /// Validates the text of arguments without making a value of it. `None` when [`Schema::check`] has to decide: the
    /// text does not match, or is unusual, or may need defaults, or validating may take more stack or more steps than
    /// can be granted without a look at the value.
    pub fn matches(&self, text: &str) -> Option<Matched> {
        if !self.takes_text(text) {
            return None;
        }
        let validator = self.flat.get_or_init(|| {
            let options = jsonschema::options_for::<Flat>().with_draft(draft_of(&self.value));
            options.should_validate_formats(true).with_format("url", is_url).offline().build(&self.value).ok()
        });
        #[cfg(test)]
        self.count();
        let document = Document::read(text)?;
        let members = document.members(text)?;
        validator.as_ref()?.is_valid(document.root()).then_some(Matched { members })
    }

    fn takes_text(&self, text: &str) -> bool {
        let unmeasured = self.chain <= SHALLOW_CHAIN && !self.steps_back && self.costs.is_cheap_for(text);
        self.defaults.is_none() && unmeasured
    }

    #[cfg(test)]
    fn count(&self) {
        self.validations.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// The JSON text the schema was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The schema as a value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Fills defaults into `arguments` and validates them. `Ok(true)` means that a default was filled in.
    ///
    /// # Errors
    /// Every reason why the arguments do not match, at most a bounded number.
    pub fn check(&self, arguments: &mut Map<String, Value>) -> Result<bool, Vec<Issue>> {
        #[cfg(test)]
        self.count();
        let mut filled = false;
        let mut value = Value::Object(std::mem::take(arguments));
        let mut issues = Vec::new();
        if let Some(plan) = &self.defaults {
            // Filling follows the schemas as validating does.
            if self.costs.steps(&value) > MAX_STEPS {
                issues.push(too_much());
            } else if let Value::Object(map) = &mut value {
                filled = plan.fill(map);
            }
        }
        if issues.is_empty() {
            issues = self.issues(&value);
        }
        if let Value::Object(map) = value {
            *arguments = map;
        }
        if issues.is_empty() { Ok(filled) } else { Err(issues) }
    }
}

impl Schema {
    fn issues(&self, value: &Value) -> Vec<Issue> {
        let judge = || {
            if !self.steps_back {
                return self.judged(value);
            }
            patterns::measured(|| self.judged(value)).unwrap_or_else(|| {
                let why = "has texts that take too long to be matched with the patterns of the schema; send fewer, or \
                           shorter ones";
                vec![explain::of_the_whole(why)]
            })
        };
        if self.chain <= SHALLOW_CHAIN {
            return judge();
        }
        // The validator recurses once for each schema of a chain at each level of the value.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, judge);
            match thread.map(|thread| thread.join()) {
                Ok(Ok(issues)) => issues,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(error) => {
                    let why = format!("cannot be checked: no thread with enough stack can be started: {error}");
                    vec![explain::of_the_whole(why)]
                }
            }
        })
    }
}

impl Schema {
    fn judged(&self, value: &Value) -> Vec<Issue> {
        let steps = self.costs.steps(value);
        if steps > MAX_STEPS {
            return vec![too_much()];
        }
        // The yes/no answer is several times faster than collecting errors, and yes is the common case.
        if self.validator.is_valid(value) {
            Vec::new()
        } else if steps <= MAX_EXPLAINED {
            explain::issues(&self.validator, value)
        } else if self.costs.is_plain() {
            explain::first(&self.validator, value)
        } else {
            vec![explain::of_the_whole("does not match, and has too many parts to say which; send less at once")]
        }
    }
}

fn too_much() -> Issue {
    explain::of_the_whole(
        "is too large, or nested too deeply, to be checked against a schema with this many alternatives; send less at \
         once",
    )
}

/// Why a text is no schema that can be read.
fn unreadable(error: &serde_json::Error) -> SchemaError {
    let text = error.to_string();
    // The parser has no other way to tell.
    if text.starts_with("recursion limit") {
        return SchemaError("schema nests deeper than 127 levels; move parts of it into $defs".to_owned());
    }
    SchemaError(format!("schema is not JSON: {text}"))
}

/// The text the model is told about arguments that do not match, on one line.
pub fn render_issues(tool: &str, issues: &[Issue]) -> String {
    let mut text = format!("invalid arguments for {tool}: ");
    for (at, issue) in issues.iter().enumerate() {
        if at > 0 {
            text.push_str("; ");
        }
        if issue.field != explain::ROOT {
            text.push_str(&issue.field);
            text.push(' ');
        }
        text.push_str(&issue.message);
    }
    text
}

/// TypeBox and the wire know `url`, the drafts do not: any URL with a scheme that parses, `file:` included.
fn is_url(text: &str) -> bool {
    url::Url::parse(text).is_ok()
}

fn draft_of(schema: &Value) -> Draft {
    let named = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let named = named.trim_end_matches('#').trim_start_matches("https://").trim_start_matches("http://");
    match named {
        "json-schema.org/draft-04/schema" => Draft::Draft4,
        "json-schema.org/draft-06/schema" => Draft::Draft6,
        "json-schema.org/draft-07/schema" => Draft::Draft7,
        "json-schema.org/draft/2020-12/schema" => Draft::Draft202012,
        _ => Draft::Draft201909,
    }
}

/// Tool arguments are always an object, so a schema that cannot accept one is a mistake to report at definition time.
fn require_object(schema: &Value) -> Result<(), SchemaError> {
    let mut at = schema;
    // A root may be a chain of references into its own document; eight are more than anybody writes.
    for _ in 0..8 {
        let Value::Object(keywords) = at else {
            return Err(SchemaError(format!(
                "tool parameters must be a JSON Schema object, got {}",
                explain::describe(at)
            )));
        };
        match keywords.get("type") {
            Some(Value::String(name)) if name == "object" => return Ok(()),
            Some(Value::Array(names)) if names.iter().any(|name| name == "object") => return Ok(()),
            Some(other) => {
                return Err(SchemaError(format!("tool parameters must have type \"object\", got type {other}")));
            }
            None => {}
        }
        match keywords.get("$ref").and_then(Value::as_str).and_then(|target| local(schema, target)) {
            Some(target) => at = target,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// The target of a `#` or `#/…` reference within `root`.
fn local<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(pointer)
}

#[cfg(test)]
mod tests;
