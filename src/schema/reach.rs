//! How far the validation of one value can lead, found before anything is compiled.
//!
//! `$ref`, `allOf`, `anyOf` and their like apply further schemas to the same value. A chain of them costs stack, a tree of
//! them costs time, and neither needs a large document: both come with schemas that somebody else wrote. Steps into a
//! part of the value are bounded by the value, which nests at most 127 levels.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::SchemaError;

/// Longest chain of schemas that are applied to one value.
const MAX_CHAIN: usize = 64;
/// Most schemas that are applied to one value, those met on several ways counted each time.
const MAX_STEPS: usize = 100_000;

/// Most schemas with an `$id`: each is a document of its own that references may start from.
const MAX_RESOURCES: usize = 256;

/// Keywords with schemas for the same value.
const SAME_VALUE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords with schemas for parts of the value.
const PARTS: &[&str] = &[
    "items",
    "additionalItems",
    "prefixItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
];
/// Keywords with a map of schemas for parts of the value.
const PART_MAPS: &[&str] = &["properties", "patternProperties"];
/// Keywords with a map of schemas for the same value.
const SAME_VALUE_MAPS: &[&str] = &["dependentSchemas", "dependencies"];
/// Keywords with a reference.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// The length of the longest chain of schemas that are applied to one value.
///
/// # Errors
/// A chain or a tree of schemas is beyond what any value should cost.
pub(super) fn longest_chain(root: &Value) -> Result<usize, SchemaError> {
    let mut survey = Survey::of(root);
    if survey.resources.len() > MAX_RESOURCES {
        return Err(SchemaError(format!("more than {MAX_RESOURCES} parts have an $id; leave some out")));
    }
    let mut seen = HashSet::new();
    let mut longest = 0;
    while let Some(schema) = survey.open.pop() {
        if seen.insert(std::ptr::from_ref(schema)) {
            longest = longest.max(survey.visit(schema, 0)?.chain);
        }
    }
    Ok(longest)
}

#[derive(Clone, Copy)]
struct Reach {
    chain: usize,
    steps: usize,
}

/// The schemas of a document, and which of them lead to which.
pub(super) struct Survey<'a> {
    root: &'a Value,
    /// Schemas by the last part of their `$id`, and by their anchors.
    named: HashMap<&'a str, Vec<&'a Value>>,
    /// The root, and the schemas with an `$id`.
    resources: Vec<&'a Value>,
    /// `None` while a schema is being visited: a circle ends there, as it does in the validator.
    known: HashMap<*const Value, Option<Reach>>,
    /// Schemas for parts of values, still to be visited.
    open: Vec<&'a Value>,
}

impl<'a> Survey<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        let (named, resources) = (HashMap::new(), vec![root]);
        let mut survey = Self { root, named, resources, known: HashMap::new(), open: vec![root] };
        survey.index(root);
        survey
    }

    fn index(&mut self, value: &'a Value) {
        match value {
            Value::Object(keywords) => {
                for key in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                    if let Some(name) = keywords.get(key).and_then(Value::as_str) {
                        self.named.entry(last_part(name)).or_default().push(value);
                    }
                }
                if keywords.get("$id").is_some_and(Value::is_string) {
                    self.resources.push(value);
                }
                keywords.values().for_each(|value| self.index(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.index(value)),
            _ => {}
        }
    }

    fn visit(&mut self, schema: &'a Value, depth: usize) -> Result<Reach, SchemaError> {
        let none = Reach { chain: 0, steps: 0 };
        let Value::Object(keywords) = schema else { return Ok(none) };
        let key = std::ptr::from_ref(schema);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.unwrap_or(none));
        }
        if depth > MAX_CHAIN {
            return Err(too_long());
        }
        self.known.insert(key, None);
        self.collect_parts(keywords);
        let mut reach = Reach { chain: 1, steps: 1 };
        for next in self.same_value(keywords) {
            let further = self.visit(next, depth + 1)?;
            reach.chain = reach.chain.max(further.chain + 1);
            reach.steps = reach.steps.saturating_add(further.steps);
        }
        if reach.chain > MAX_CHAIN {
            return Err(too_long());
        }
        if reach.steps > MAX_STEPS {
            return Err(SchemaError(format!(
                "more than {MAX_STEPS} schemas would be applied to one value by $ref, allOf, anyOf and the like; combine \
                 fewer of them"
            )));
        }
        self.known.insert(key, Some(reach));
        Ok(reach)
    }

    fn collect_parts(&mut self, keywords: &'a Map<String, Value>) {
        for value in PARTS.iter().filter_map(|name| keywords.get(*name)) {
            self.open.extend(schemas(value));
        }
        for map in PART_MAPS.iter().filter_map(|name| keywords.get(*name)?.as_object()) {
            self.open.extend(map.values());
        }
    }

    /// The schemas that are applied to the same value as one with these keywords.
    pub(super) fn same_value(&self, keywords: &'a Map<String, Value>) -> Vec<&'a Value> {
        let mut next: Vec<&Value> =
            SAME_VALUE.iter().filter_map(|name| keywords.get(*name)).flat_map(schemas).collect();
        for map in SAME_VALUE_MAPS.iter().filter_map(|name| keywords.get(*name)?.as_object()) {
            next.extend(map.values());
        }
        for target in REFERENCES.iter().filter_map(|name| keywords.get(*name)?.as_str()) {
            self.resolve(target, &mut next);
        }
        next
    }

    /// Every schema a reference may mean. Which of several with the same name it is does not matter for a bound.
    fn resolve(&self, target: &str, into: &mut Vec<&'a Value>) {
        let (place, fragment) = target.split_once('#').unwrap_or((target, ""));
        let bases = match self.named.get(last_part(place)) {
            _ if place.is_empty() => &self.resources,
            Some(named) => named,
            None => return,
        };
        if fragment.starts_with('/') {
            into.extend(bases.iter().filter_map(|base| base.pointer(fragment)));
        } else if !fragment.is_empty() {
            into.extend(self.named.get(fragment).into_iter().flatten());
        } else if place.is_empty() {
            into.push(self.root);
        } else {
            into.extend(bases);
        }
    }
}

fn too_long() -> SchemaError {
    SchemaError(format!(
        "a chain of more than {MAX_CHAIN} schemas is applied to one value by $ref, allOf, anyOf and the like; shorten it"
    ))
}

/// The schemas of a keyword that has one or a list.
pub(super) fn schemas(value: &Value) -> impl Iterator<Item = &Value> {
    let list = value.as_array();
    list.into_iter().flatten().chain(list.is_none().then_some(value))
}

fn last_part(name: &str) -> &str {
    let name = name.split('#').next().filter(|name| !name.is_empty()).unwrap_or(name);
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `length` definitions, each made from the place of the next.
    fn chain(length: usize, link: impl Fn(String) -> Value) -> Value {
        let mut definitions: Map<String, Value> =
            (0..length).map(|at| (format!("d{at}"), link(format!("#/$defs/d{}", at + 1)))).collect();
        definitions.insert(format!("d{length}"), json!({ "type": "string", "default": "x" }));
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
    }

    #[test]
    fn chains_are_followed_through_every_keyword_and_way_to_name_a_schema() {
        for (schema, expected) in [
            (json!({ "type": "object" }), 1),
            (json!({ "properties": { "a": { "type": "string" } } }), 1),
            (json!({ "allOf": [{ "anyOf": [{ "oneOf": [{}] }] }] }), 4),
            (json!({ "not": { "if": { "then": {} } } }), 4),
            (json!({ "dependentSchemas": { "a": { "not": {} } } }), 3),
            (chain(5, |next| json!({ "$ref": next })), 7),
            (chain(5, |next| json!({ "properties": { "n": { "$ref": next } } })), 2),
            (json!({ "$ref": "T", "$defs": { "T": { "$id": "T", "allOf": [{}] } } }), 3),
            (json!({ "$ref": "https://x.test/T", "$defs": { "t": { "$id": "https://x.test/T", "not": {} } } }), 3),
            (json!({ "$ref": "#name", "$defs": { "t": { "$anchor": "name", "not": {} } } }), 3),
            (json!({ "$dynamicRef": "#n", "$defs": { "t": { "$dynamicAnchor": "n", "not": {} } } }), 3),
            (json!({ "properties": { "n": { "$recursiveRef": "#" } } }), 2),
            (json!({ "$ref": "T#/$defs/u", "$defs": { "T": { "$id": "T", "$defs": { "u": { "not": {} } } } } }), 3),
            (json!({ "$ref": "https://elsewhere.test/x" }), 1),
            (json!({ "$ref": "#" }), 1),
            (
                json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
                3,
            ),
        ] {
            assert_eq!(longest_chain(&schema), Ok(expected), "{schema}");
        }
    }

    #[test]
    fn long_chains_and_large_trees_are_refused_at_once() {
        assert!(longest_chain(&chain(60, |next| json!({ "$ref": next }))).is_ok());
        for length in [64, 30_000] {
            let error = longest_chain(&chain(length, |next| json!({ "$ref": next }))).unwrap_err();
            assert!(error.0.contains("more than 64 schemas"), "{error}");
        }
        let tree = chain(40, |next| json!({ "anyOf": [{ "$ref": next }, { "$ref": next }] }));
        assert!(longest_chain(&tree).unwrap_err().0.contains("64"));
        let tree = chain(20, |next| json!({ "anyOf": [{ "$ref": next }, { "$ref": next }] }));
        assert!(longest_chain(&tree).unwrap_err().0.contains("more than 100000 schemas"));
        let parts = chain(30_000, |next| json!({ "properties": { "n": { "$ref": next } } }));
        assert_eq!(longest_chain(&parts), Ok(2), "what descends into the value is bounded by the value");
    }
}
