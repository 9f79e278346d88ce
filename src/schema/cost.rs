//! What validating one value may cost, found before the validator is asked.
//!
//! The validator follows every branch of a union to the end of the value, and describes what is wrong with each of them.
//! Where two branches lead into the same part of the value, both double with every level. A schema of a few lines and a
//! value of a few hundred bytes then take longer than anybody waits and more memory than there is. The cost of a pair of
//! schema and value is the sum of the costs of the pairs it leads to; each pair is looked at once, so that the cost is
//! known soon however large it is.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::reach::{Survey, schemas};

/// Most steps of one validation: a moment of work.
pub(super) const MAX_STEPS: u64 = 10_000_000;
/// Most steps of a validation that ends in a description of everything that is wrong, each a piece of text.
pub(super) const MAX_EXPLAINED: u64 = 50_000;
/// Most pairs of schema and object or array that are looked at to find the cost.
const MAX_PAIRS: usize = 1_000_000;

type NodeId = usize;

/// The schemas of a document as far as they cost something.
#[derive(Debug)]
pub(super) struct Costs {
    nodes: Vec<Node>,
    /// How many schemas one schema leads to for a part of its value, at most.
    growth: u64,
    /// The most a schema costs by itself.
    weight: u64,
}

#[derive(Debug, Default)]
struct Node {
    /// Steps of its own keywords.
    weight: u64,
    /// Steps for a value without parts, further schemas for the same value included.
    scalar: u64,
    same: Vec<NodeId>,
    properties: HashMap<String, NodeId>,
    /// Schemas that may be applied to every property.
    any_property: Vec<NodeId>,
    /// Steps for the name of a property.
    name: u64,
    /// Schemas of the first items.
    tuple: Vec<NodeId>,
    /// Schemas that may be applied to every item.
    any_item: Vec<NodeId>,
}

/// The pairs that were looked at, with what they cost.
struct Sum<'a> {
    nodes: &'a [Node],
    known: HashMap<(NodeId, *const Value), u64>,
}

impl Costs {
    pub(super) fn of(root: &Value) -> Self {
        Builder::default().build(root)
    }

    /// Whether no alternative and no reference leads to a part of a value twice, so that errors come one by one.
    pub(super) fn is_plain(&self) -> bool {
        self.growth <= 1
    }

    /// Whether validating the value of a text is cheap, which its length and depth tell without making the value.
    pub(super) fn is_cheap_for(&self, text: &str) -> bool {
        let depth = if self.is_plain() { 0 } else { depth_of(text) };
        let branches = self.growth.saturating_pow(depth);
        self.weight.saturating_mul(text.len() as u64).saturating_mul(branches) <= MAX_STEPS
    }

    /// A bound of the steps of a validation, `u64::MAX` where there is none worth naming. Exact only where it is large.
    pub(super) fn steps(&self, value: &Value) -> u64 {
        let mut count = 0;
        let depth = measure(value, &mut count);
        let rough = self.weight.saturating_mul(count).saturating_mul(self.growth.saturating_pow(depth));
        if rough <= MAX_EXPLAINED {
            return rough;
        }
        Sum { nodes: &self.nodes, known: HashMap::new() }.of(0, value).unwrap_or(u64::MAX)
    }
}

/// How deep the brackets of a JSON text nest; those in strings do not count.
fn depth_of(text: &str) -> u32 {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_u32, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Depth and number of all parts.
fn measure(value: &Value, count: &mut u64) -> u32 {
    *count += 1;
    let deepest = match value {
        Value::Object(fields) => fields.values().map(|part| measure(part, count)).max(),
        Value::Array(items) => items.iter().map(|part| measure(part, count)).max(),
        _ => None,
    };
    deepest.map_or(1, |below| below + 1)
}

impl Sum<'_> {
    /// `None` when finding out is itself too much.
    fn of(&mut self, id: NodeId, value: &Value) -> Option<u64> {
        let node = &self.nodes[id];
        if !matches!(value, Value::Object(_) | Value::Array(_)) {
            return Some(node.scalar);
        }
        let pair = (id, std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&pair) {
            return Some(*known);
        }
        if self.known.len() >= MAX_PAIRS {
            return None;
        }
        // A circle for the same value ends here, as it does in the validator.
        self.known.insert(pair, 0);
        let mut sum = node.weight;
        for next in &node.same {
            sum = sum.saturating_add(self.of(*next, value)?);
        }
        match value {
            Value::Object(fields) => {
                for (name, part) in fields {
                    sum = sum.saturating_add(node.name);
                    for next in node.properties.get(name).into_iter().chain(&node.any_property) {
                        sum = sum.saturating_add(self.of(*next, part)?);
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    for next in node.tuple.get(at).into_iter().chain(&node.any_item) {
                        sum = sum.saturating_add(self.of(*next, item)?);
                    }
                }
            }
            _ => {}
        }
        self.known.insert(pair, sum);
        Some(sum)
    }
}

#[derive(Default)]
struct Builder<'a> {
    nodes: Vec<Node>,
    known: HashMap<*const Value, NodeId>,
    open: Vec<(NodeId, &'a Value)>,
    /// Schemas of names of properties, for those that have one.
    names: Vec<(NodeId, NodeId)>,
}

impl<'a> Builder<'a> {
    fn build(mut self, root: &'a Value) -> Costs {
        let survey = Survey::of(root);
        self.node(root);
        // A list instead of recursion: schemas may lead further than the stack reaches.
        while let Some((id, schema)) = self.open.pop() {
            if let Value::Object(keywords) = schema {
                self.fill(id, keywords, &survey);
            }
        }
        self.find_scalars();
        for (id, name) in std::mem::take(&mut self.names) {
            self.nodes[id].name = self.nodes[name].scalar;
        }
        let fan = |node: &Node| {
            let properties = node.any_property.len() + usize::from(!node.properties.is_empty());
            let items = node.any_item.len() + usize::from(!node.tuple.is_empty());
            properties.max(items).max(1) as u64
        };
        let reach = self.nodes.iter().map(|node| self.reach(node)).max().unwrap_or(1);
        let growth = self.nodes.iter().map(fan).max().unwrap_or(1).saturating_mul(reach);
        let weight = self.nodes.iter().map(|node| node.weight + node.name).max().unwrap_or(1);
        Costs { nodes: self.nodes, growth, weight }
    }

    /// How many schemas a schema applies to its value, itself included: at most its steps.
    fn reach(&self, node: &Node) -> u64 {
        if node.same.is_empty() { 1 } else { node.scalar.max(2) }
    }

    fn node(&mut self, schema: &'a Value) -> NodeId {
        let key = std::ptr::from_ref(schema);
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(Node { weight: 1, scalar: 1, ..Node::default() });
        self.known.insert(key, id);
        self.open.push((id, schema));
        id
    }

    fn fill(&mut self, id: NodeId, keywords: &'a Map<String, Value>, survey: &Survey<'a>) {
        let mut node = Node::default();
        // Each constant of an `enum` may have to be compared.
        node.weight = 1 + keywords.get("enum").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        node.same = survey.same_value(keywords).into_iter().map(|schema| self.node(schema)).collect();
        let object = |name: &str| keywords.get(name).and_then(Value::as_object);
        for (name, schema) in object("properties").into_iter().flatten() {
            node.properties.insert(name.clone(), self.node(schema));
        }
        for schema in object("patternProperties").into_iter().flat_map(Map::values) {
            node.any_property.push(self.node(schema));
        }
        for name in ["additionalProperties", "unevaluatedProperties"] {
            node.any_property.extend(keywords.get(name).filter(|schema| schema.is_object()).map(|s| self.node(s)));
        }
        if let Some(schema) = keywords.get("propertyNames") {
            let schema = self.node(schema);
            self.names.push((id, schema));
        }
        for name in ["items", "prefixItems"] {
            let Some(value) = keywords.get(name) else { continue };
            let list: Vec<NodeId> = schemas(value).map(|schema| self.node(schema)).collect();
            if value.is_array() { node.tuple = list } else { node.any_item.extend(list) }
        }
        for name in ["additionalItems", "contains", "unevaluatedItems"] {
            node.any_item.extend(keywords.get(name).filter(|schema| schema.is_object()).map(|s| self.node(s)));
        }
        self.nodes[id] = node;
    }

    /// Chains for one value are short and trees of them bounded: `reach` has seen to that.
    fn find_scalars(&mut self) {
        let mut done = vec![None; self.nodes.len()];
        for id in 0..self.nodes.len() {
            self.scalar(id, &mut done);
        }
        for (node, scalar) in self.nodes.iter_mut().zip(done) {
            node.scalar = scalar.unwrap_or(1);
        }
    }

    fn scalar(&self, id: NodeId, done: &mut Vec<Option<u64>>) -> u64 {
        if let Some(known) = done[id] {
            return known;
        }
        done[id] = Some(0);
        let node = &self.nodes[id];
        let sum = node.same.iter().fold(node.weight, |sum, next| sum.saturating_add(self.scalar(*next, done)));
        done[id] = Some(sum);
        sum
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn steps(schema: &Value, value: &Value) -> u64 {
        Costs::of(schema).steps(value)
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(5), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn branches_that_lead_into_the_same_part_double_with_each_level_and_others_do_not() {
        let branches = |part: &str, other: &str| {
            let n = |name: &str| json!({ "properties": { name: { "$ref": "#/$defs/n" } } });
            json!({ "$ref": "#/$defs/n", "$defs": { "n": { "anyOf": [n(part), n(other)] } } })
        };
        assert!(steps(&branches("a", "a"), &nested(100)) >= 1 << 60);
        assert!(steps(&branches("a", "b"), &nested(100)) < 1000);
        assert!(steps(&branches("a", "a"), &nested(5)) < MAX_EXPLAINED);
        let chain: Map<String, Value> = (0..60)
            .map(|at| {
                let next = json!({ "properties": { "a": { "$ref": format!("#/$defs/d{}", at + 1) } } });
                (format!("d{at}"), json!({ "anyOf": [next, next] }))
            })
            .collect();
        let chain = json!({ "$ref": "#/$defs/d0", "$defs": chain });
        assert!(steps(&chain, &nested(60)) >= 1 << 50, "without any recursion");
    }

    #[test]
    fn what_is_wide_is_multiplied() {
        let numbers = |count: usize| json!({ "l": (0..count).collect::<Vec<_>>() });
        let of = |items: Value| json!({ "properties": { "l": { "items": items } } });
        let alternatives: Vec<Value> = (0..2000).map(|at| json!({ "const": at })).collect();
        assert!(steps(&of(json!({ "anyOf": alternatives })), &numbers(10_000)) > MAX_STEPS);
        assert!(steps(&of(json!({ "enum": (0..2000).collect::<Vec<_>>() })), &numbers(10_000)) > MAX_STEPS);
        assert!(
            steps(&of(json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] })), &numbers(100_000)) < MAX_STEPS
        );
        let names = json!({ "propertyNames": { "anyOf": alternatives } });
        let fields: Map<String, Value> = (0..10_000).map(|at| (at.to_string(), json!(1))).collect();
        assert!(steps(&names, &Value::Object(fields.clone())) > MAX_STEPS);
        let patterns: Map<String, Value> = (0..2000).map(|at| (at.to_string(), json!({}))).collect();
        assert!(steps(&json!({ "patternProperties": patterns }), &Value::Object(fields)) > MAX_STEPS);
        let plain = Costs::of(&json!({ "properties": { "l": { "items": { "type": "object" } } } }));
        assert!(plain.is_plain());
        assert!(plain.steps(&numbers(100_000)) < MAX_STEPS);
    }
}
