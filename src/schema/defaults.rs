//! Where a schema has defaults, found once at compile time. A schema without any has no plan and costs nothing.
//!
//! Followed are `properties`, both forms of `items`, `allOf` and references into the same document; not `anyOf` and
//! `oneOf`, whose branch is not known before the value is complete. Only missing keys are filled: `null` is a value.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// How many defaults one check may insert: a recursive schema with a default for its own recursion has no end.
const MAX_FILLED: usize = 4096;
/// How deep filling follows a value. JSON text nests at most 128 levels here, defaults can add more.
const MAX_DEPTH: usize = 160;

type NodeId = usize;

/// The parts of a schema that lead to a default.
#[derive(Debug)]
pub(super) struct Plan {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    properties: Vec<Property>,
    /// Nodes of tuple positions.
    tuple: Vec<Option<NodeId>>,
    /// Nodes of every other item.
    items: Vec<NodeId>,
}

#[derive(Debug)]
struct Property {
    name: String,
    default: Option<Value>,
    node: Option<NodeId>,
}

impl Plan {
    /// The plan of a schema, or `None` where it has no default that could be filled.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        if !mentions_default(schema) {
            return None;
        }
        let mut builder = Builder { root: schema, nodes: Vec::new(), known: HashMap::new(), open: Vec::new() };
        let root = builder.node(schema);
        // A list instead of recursion: references may lead further than the stack reaches.
        while let Some((id, schema)) = builder.open.pop() {
            builder.fill(id, schema);
        }
        let useful = builder.useful();
        if !useful.get(root).copied().unwrap_or(false) {
            return None;
        }
        let mut nodes = builder.nodes;
        let keep = |id: Option<NodeId>| id.filter(|id| useful[*id]);
        for node in &mut nodes {
            for property in &mut node.properties {
                property.node = keep(property.node);
            }
            node.properties.retain(|property| property.default.is_some() || property.node.is_some());
            for slot in &mut node.tuple {
                *slot = keep(*slot);
            }
            node.items.retain(|id| useful[*id]);
        }
        Some(Self { nodes })
    }

    /// Fills what is missing; true when something was.
    pub(super) fn fill(&self, arguments: &mut Map<String, Value>) -> bool {
        let mut budget = MAX_FILLED;
        self.fill_object(0, arguments, 0, &mut budget);
        budget < MAX_FILLED
    }

    fn fill_object(&self, id: NodeId, object: &mut Map<String, Value>, depth: usize, budget: &mut usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for property in &self.nodes[id].properties {
            if let Some(default) = &property.default
                && *budget > 0
                && !object.contains_key(&property.name)
            {
                object.insert(property.name.clone(), default.clone());
                *budget -= 1;
            }
            if let Some(child) = property.node
                && let Some(value) = object.get_mut(&property.name)
            {
                self.fill_value(child, value, depth + 1, budget);
            }
        }
    }

    fn fill_value(&self, id: NodeId, value: &mut Value, depth: usize, budget: &mut usize) {
        match value {
            Value::Object(object) => self.fill_object(id, object, depth, budget),
            Value::Array(items) if depth <= MAX_DEPTH => {
                let node = &self.nodes[id];
                for (at, item) in items.iter_mut().enumerate() {
                    if let Some(child) = node.tuple.get(at).copied().flatten() {
                        self.fill_value(child, item, depth + 1, budget);
                    }
                    if at >= node.tuple.len() {
                        for child in &node.items {
                            self.fill_value(*child, item, depth + 1, budget);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// A cheap first look: most schemas of tools have no default at all.
fn mentions_default(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| key == "default" || mentions_default(value)),
        Value::Array(items) => items.iter().any(mentions_default),
        _ => false,
    }
}

struct Builder<'a> {
    root: &'a Value,
    nodes: Vec<Node>,
    /// Nodes by the identity of their schema, which ends the recursion of recursive schemas.
    known: HashMap<*const Value, NodeId>,
    /// Nodes that are known and still empty.
    open: Vec<(NodeId, &'a Value)>,
}

impl<'a> Builder<'a> {
    fn node(&mut self, schema: &'a Value) -> NodeId {
        if let Some(id) = self.known.get(&std::ptr::from_ref(schema)) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.known.insert(std::ptr::from_ref(schema), id);
        self.open.push((id, schema));
        id
    }

    fn fill(&mut self, id: NodeId, schema: &'a Value) {
        // Everything that describes the same value: the schema, what it refers to, and the members of its `allOf`.
        let mut same_value = Vec::new();
        self.collect(schema, &mut same_value);
        let mut node = Node::default();
        for part in same_value {
            self.properties(part, &mut node);
            self.items(part, &mut node);
        }
        self.nodes[id] = node;
    }

    fn collect(&self, schema: &'a Value, into: &mut Vec<&'a Map<String, Value>>) {
        let Value::Object(keywords) = schema else { return };
        if into.iter().any(|seen| std::ptr::eq(*seen, keywords)) {
            return;
        }
        into.push(keywords);
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str).and_then(|r| super::local(self.root, r)) {
            self.collect(target, into);
        }
        for part in keywords.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.collect(part, into);
        }
    }

    fn properties(&mut self, keywords: &'a Map<String, Value>, node: &mut Node) {
        for (name, schema) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut parts = Vec::new();
            self.collect(schema, &mut parts);
            let default = parts.iter().find_map(|part| part.get("default")).cloned();
            let child = Some(self.node(schema));
            node.properties.push(Property { name: name.clone(), default, node: child });
        }
    }

    fn items(&mut self, keywords: &'a Map<String, Value>, node: &mut Node) {
        match keywords.get("items") {
            Some(Value::Array(positions)) => {
                node.tuple = positions.iter().map(|schema| Some(self.node(schema))).collect();
                if let Some(rest @ Value::Object(_)) = keywords.get("additionalItems") {
                    node.items.push(self.node(rest));
                }
            }
            Some(schema @ Value::Object(_)) => {
                let child = self.node(schema);
                node.items.push(child);
            }
            _ => {}
        }
    }

    /// Which nodes have a default at or below them, followed from the defaults upwards: nodes may refer to each other in
    /// circles.
    fn useful(&self) -> Vec<bool> {
        let mut parents: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate() {
            let children = node.properties.iter().filter_map(|p| p.node).chain(node.items.iter().copied());
            for child in children.chain(node.tuple.iter().copied().flatten()) {
                parents[child].push(id);
            }
        }
        let mut useful: Vec<bool> =
            self.nodes.iter().map(|node| node.properties.iter().any(|p| p.default.is_some())).collect();
        let mut open: Vec<NodeId> = (0..useful.len()).filter(|id| useful[*id]).collect();
        while let Some(id) = open.pop() {
            for &parent in &parents[id] {
                if !std::mem::replace(&mut useful[parent], true) {
                    open.push(parent);
                }
            }
        }
        useful
    }
}
