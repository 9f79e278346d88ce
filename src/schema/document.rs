//! JSON text as a flat list of nodes that point into it: enough to validate, at a fraction of the cost of a tree.
//!
//! This is a second representation for the validator, which asks it the same questions as a tree. It serves the common
//! case, text that matches. What is unusual (a key twice, an object of many members) is left to the tree, and so is
//! everything that has to be explained.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use jsonschema::json::{Array, Json, Node as JsonNode, NodeIdentity, Object};
use jsonschema::types::JsonType;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Members are found one after the other, so an object with more is for the tree.
const MAX_MEMBERS: usize = 32;

/// A document that borrows its text.
#[derive(Default)]
pub(super) struct Document<'t> {
    nodes: Vec<Piece<'t>>,
    /// Strings with escapes, which do not stand in the text as they are.
    escaped: Vec<Box<str>>,
}

enum Piece<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'t str),
    Escaped(usize),
    /// So many items follow, and end before the node `end`.
    Array {
        len: usize,
        end: usize,
    },
    /// So many pairs of a string and a value follow, and end before the node `end`.
    Object {
        len: usize,
        end: usize,
    },
}

/// A member of an object as it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// Where the key stands, without its quotes.
    pub key: Range<usize>,
    /// Where the value stands, without its quotes, if it is a string without escapes.
    pub text: Option<Range<usize>>,
}

impl<'t> Document<'t> {
    /// Reads text; `None` when it is no JSON, or nothing for this representation.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        // A node for every ten bytes is what arguments come to.
        let mut document = Self { nodes: Vec::with_capacity(16 + text.len() / 10), escaped: Vec::new() };
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Reader(&mut document).deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some(document)
    }

    /// The whole document.
    pub(super) fn root(&self) -> Node<'_> {
        Node::At { document: self, at: 0 }
    }

    /// The members of the document, which is an object; `None` when it is none, or a key does not stand in `text` as it
    /// is. `text` is what was read.
    pub(super) fn members(&self, text: &str) -> Option<Vec<Member>> {
        let Some(Piece::Object { len, .. }) = self.nodes.first() else { return None };
        let place = |found: &str| {
            let start = found.as_ptr() as usize - text.as_ptr() as usize;
            start..start + found.len()
        };
        let mut members = Vec::with_capacity(*len);
        let mut at = 1;
        for _ in 0..*len {
            let Piece::Text(key) = &self.nodes[at] else { return None };
            let value = match &self.nodes[at + 1] {
                Piece::Text(value) => Some(place(value)),
                _ => None,
            };
            members.push(Member { key: place(key), text: value });
            at = self.end(at + 1);
        }
        Some(members)
    }

    /// The node behind the one at `at` and all that is in it.
    fn end(&self, at: usize) -> usize {
        match &self.nodes[at] {
            Piece::Array { end, .. } | Piece::Object { end, .. } => *end,
            _ => at + 1,
        }
    }

    fn string(&self, at: usize) -> Option<&str> {
        match &self.nodes[at] {
            Piece::Text(text) => Some(text),
            Piece::Escaped(index) => Some(&self.escaped[*index]),
            _ => None,
        }
    }

    fn value(&self, at: usize) -> Value {
        match &self.nodes[at] {
            Piece::Null => Value::Null,
            Piece::Bool(flag) => Value::Bool(*flag),
            Piece::Number(number) => Value::Number(number.clone()),
            Piece::Text(_) | Piece::Escaped(_) => Value::String(self.string(at).unwrap_or_default().to_owned()),
            Piece::Array { len, .. } => Value::Array(self.items(at, *len).map(|item| self.value(item)).collect()),
            Piece::Object { len, .. } => {
                let mut map = Map::with_capacity(*len);
                for key in self.pairs(at, *len) {
                    map.insert(self.string(key).unwrap_or_default().to_owned(), self.value(key + 1));
                }
                Value::Object(map)
            }
        }
    }

    fn items(&self, at: usize, len: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = at + 1;
        (0..len).map(move |_| {
            let item = next;
            next = self.end(item);
            item
        })
    }

    /// The nodes of the keys.
    fn pairs(&self, at: usize, len: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = at + 1;
        (0..len).map(move |_| {
            let key = next;
            next = self.end(key + 1);
            key
        })
    }
}

/// Appends what it is given to a document.
struct Reader<'d, 't>(&'d mut Document<'t>);

impl<'t> DeserializeSeed<'t> for Reader<'_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Reader<'_, '_> {
    fn close(&mut self, at: usize, len: usize) {
        let next = self.0.nodes.len();
        if let Piece::Array { len: count, end } | Piece::Object { len: count, end } = &mut self.0.nodes[at] {
            (*count, *end) = (len, next);
        }
    }

    /// Whether the last node is the key of an earlier member of the object at `at`.
    fn is_repeated(&self, at: usize, len: usize) -> bool {
        let key = self.0.string(self.0.nodes.len() - 1);
        self.0.pairs(at, len).any(|earlier| self.0.string(earlier) == key)
    }
}

impl<'t> Visitor<'t> for Reader<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.nodes.push(Piece::Null);
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.nodes.push(Piece::Bool(value));
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.nodes.push(Piece::Number(value.into()));
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.nodes.push(Piece::Number(value.into()));
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        self.0.nodes.push(Piece::Number(number));
        Ok(())
    }

    fn visit_borrowed_str<E: Error>(self, value: &'t str) -> Result<(), E> {
        self.0.nodes.push(Piece::Text(value));
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.0.nodes.push(Piece::Escaped(self.0.escaped.len()));
        self.0.escaped.push(value.into());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut items: A) -> Result<(), A::Error> {
        let at = self.0.nodes.len();
        self.0.nodes.push(Piece::Array { len: 0, end: 0 });
        let mut len = 0;
        while items.next_element_seed(Reader(self.0))?.is_some() {
            len += 1;
        }
        self.close(at, len);
        Ok(())
    }

    fn visit_map<A: MapAccess<'t>>(mut self, mut members: A) -> Result<(), A::Error> {
        let at = self.0.nodes.len();
        self.0.nodes.push(Piece::Object { len: 0, end: 0 });
        let mut len = 0;
        while members.next_key_seed(Reader(self.0))?.is_some() {
            if len >= MAX_MEMBERS || self.is_repeated(at, len) {
                return Err(A::Error::custom("not for this representation"));
            }
            members.next_value_seed(Reader(self.0))?;
            len += 1;
        }
        self.close(at, len);
        Ok(())
    }
}

/// The representation.
pub(super) struct Flat;

impl Json for Flat {
    type Node<'a> = Node<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = ();

    const KEYS_PER_LOOKUP: usize = 1;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Node<'_>) -> T) -> T {
        f(Node::Name(string))
    }
}

/// One value of a document, or the name of a member.
#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    At { document: &'a Document<'a>, at: usize },
    Name(&'a str),
}

impl<'a> Node<'a> {
    fn piece(self) -> Option<&'a Piece<'a>> {
        match self {
            Self::At { document, at } => document.nodes.get(at),
            Self::Name(_) => None,
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::At { document, at } => document.string(at),
            Self::Name(name) => Some(name),
        }
    }
}

impl<'a> JsonNode<'a, Flat> for Node<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = Number;

    fn as_object(&self) -> Option<Members<'a>> {
        match (self, self.piece()) {
            (Self::At { document, at }, Some(Piece::Object { len, .. })) => {
                Some(Members { document, next: at + 1, left: *len })
            }
            _ => None,
        }
    }

    fn as_array(&self) -> Option<Items<'a>> {
        match (self, self.piece()) {
            (Self::At { document, at }, Some(Piece::Array { len, .. })) => {
                Some(Items { document, next: at + 1, left: *len })
            }
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.text().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<Number> {
        match self.piece() {
            Some(Piece::Number(number)) => Some(number.clone()),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self.piece() {
            Some(Piece::Bool(flag)) => Some(*flag),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self.piece(), Some(Piece::Null))
    }

    fn json_type(&self) -> JsonType {
        match self.piece() {
            Some(Piece::Null) => JsonType::Null,
            Some(Piece::Bool(_)) => JsonType::Boolean,
            Some(Piece::Number(_)) => JsonType::Number,
            Some(Piece::Array { .. }) => JsonType::Array,
            Some(Piece::Object { .. }) => JsonType::Object,
            Some(Piece::Text(_) | Piece::Escaped(_)) | None => JsonType::String,
        }
    }

    fn string_length_within(&self, min: u64, max: u64) -> Option<bool> {
        let text = self.text()?;
        // A code point takes one to four bytes, so most lengths need no counting.
        let most = text.len() as u64;
        let fewest = most.div_ceil(4);
        if most < min || fewest > max {
            return Some(false);
        }
        Some((min <= fewest && most <= max) || (min..=max).contains(&(text.chars().count() as u64)))
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self.text(), expected) {
            (Some(text), expected) => expected.as_str() == Some(text),
            (None, Value::String(_)) => false,
            (None, expected) => jsonschema::json::cmp::equal(&self.to_value(), expected),
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self {
            Self::At { document, at } => document.value(*at),
            Self::Name(name) => Value::String((*name).to_owned()),
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        match self {
            Self::At { document, at } => {
                Some(NodeIdentity::tagged(std::ptr::from_ref(*document) as usize, u32::try_from(*at).ok()?))
            }
            Self::Name(_) => None,
        }
    }
}

/// The members of an object.
pub(super) struct Members<'a> {
    document: &'a Document<'a>,
    next: usize,
    left: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (key, at) = (self.next, self.next + 1);
        self.next = self.document.end(at);
        Some((self.document.string(key)?, Node::At { document: self.document, at }))
    }
}

impl<'a> Object<'a, Flat> for Members<'a> {
    type Node = Node<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.left
    }

    fn get(&self, key: &Box<str>) -> Option<Node<'a>> {
        self.members().find(|(name, _)| *name == &**key).map(|(_, node)| node)
    }

    fn members(&self) -> Members<'a> {
        Members { ..*self }
    }
}

/// The items of an array.
pub(super) struct Items<'a> {
    document: &'a Document<'a>,
    next: usize,
    left: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = self.document.end(at);
        Some(Node::At { document: self.document, at })
    }
}

impl<'a> Array<'a, Flat> for Items<'a> {
    type Node = Node<'a>;
    type ElementsIter = Items<'a>;

    fn len(&self) -> usize {
        self.left
    }

    fn elements(&self) -> Items<'a> {
        Items { ..*self }
    }
}

#[cfg(test)]
mod tests;
