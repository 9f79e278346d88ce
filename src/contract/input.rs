//! The input of a call: JSON text, and the object that it says.
//!
//! Most calls run without anybody looking at the object: their text was validated where it stands, and the tool reads it
//! itself. So the object is made when somebody looks, once, and copies of an input share it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::schema::{self, Matched};

/// An object of arguments. It is used like the `Map` that it says.
#[derive(Clone, Default)]
pub struct Input(Arc<Parts>);

#[derive(Default)]
struct Parts {
    /// Text that equals the object; `None` after a change.
    text: Option<Box<str>>,
    matched: Option<Matched>,
    object: OnceLock<Map<String, Value>>,
}

impl Input {
    /// Text that matched, as it came.
    pub fn matched(text: &str, matched: Matched) -> Self {
        Self(Arc::new(Parts { text: Some(text.into()), matched: Some(matched), object: OnceLock::new() }))
    }

    /// An object with the text that says it.
    pub fn parsed(text: &str, object: Map<String, Value>) -> Self {
        Self(Arc::new(Parts { text: Some(text.into()), matched: None, object: object.into() }))
    }

    /// The text, if the object was neither changed nor made here.
    pub fn text(&self) -> Option<&str> {
        self.0.text.as_deref()
    }

    /// The text, if nobody has looked at the object yet and it has no key twice.
    pub fn unread(&self) -> Option<&str> {
        if self.0.matched.is_some() && self.0.object.get().is_none() { self.text() } else { None }
    }

    /// Sets one member.
    pub fn set(&mut self, key: &str, value: Value) {
        let mut object = self.take();
        object.insert(key.to_owned(), value);
        *self = object.into();
    }

    /// The object by itself.
    pub fn into_object(mut self) -> Map<String, Value> {
        self.take()
    }

    /// The object, copied only where others share it. What is left must be replaced or dropped.
    fn take(&mut self) -> Map<String, Value> {
        self.object();
        match Arc::get_mut(&mut self.0).and_then(|parts| parts.object.take()) {
            Some(object) => object,
            None => self.object().clone(),
        }
    }

    /// Whether a member has a key that `wanted` says yes to; looks at the text where that is enough.
    pub fn has_key(&self, mut wanted: impl FnMut(&str) -> bool) -> bool {
        match (&self.0.matched, self.unread()) {
            (Some(matched), Some(text)) => matched.keys(text).any(wanted),
            _ => self.object().keys().any(|key| wanted(key)),
        }
    }

    /// A member that is a string; looks at the text where that is enough.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        match (&self.0.matched, self.unread()) {
            (Some(matched), Some(text)) if !matched.keys(text).any(|one| one == key) => None,
            (Some(matched), Some(text)) => matched.text_of(text, key).or_else(|| self.object().get(key)?.as_str()),
            _ => self.object().get(key)?.as_str(),
        }
    }

    /// JSON text of the object.
    pub fn to_json(&self) -> String {
        match self.text() {
            Some(text) => text.to_owned(),
            None => serde_json::to_string(self.object()).unwrap_or_else(|_| "{}".to_owned()),
        }
    }

    /// The object.
    pub fn object(&self) -> &Map<String, Value> {
        self.0.object.get_or_init(|| match self.text().map(schema::read) {
            Some(Ok(Value::Object(object))) => object,
            // Text is kept only after it was read once, so this is not reached.
            other => {
                tracing::error!(?other, "the text of an input is no object; this is a bug of the package");
                Map::new()
            }
        })
    }
}

impl Deref for Input {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        self.object()
    }
}

impl From<Map<String, Value>> for Input {
    fn from(object: Map<String, Value>) -> Self {
        Self(Arc::new(Parts { object: object.into(), ..Parts::default() }))
    }
}

impl<'a> IntoIterator for &'a Input {
    type Item = (&'a String, &'a Value);
    type IntoIter = serde_json::map::Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.object().iter()
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object().fmt(f)
    }
}

impl PartialEq for Input {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.object() == other.object()
    }
}

impl Serialize for Input {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    fn matched(text: &str) -> Input {
        let schema = Schema::compile(r#"{"type":"object"}"#).unwrap();
        Input::matched(text, schema.matches(text).unwrap())
    }

    #[test]
    fn questions_about_keys_and_strings_need_no_object() {
        let input = matched(r#"{"path":"a","n":1,"escaped":"\n"}"#);
        assert!(input.has_key(|key| key == "n"));
        assert!(!input.has_key(|key| key == "m"));
        assert_eq!((input.text_of("path"), input.text_of("m")), (Some("a"), None));
        assert!(input.unread().is_some(), "nobody has looked yet");
        // These have to be looked up.
        assert_eq!((input.text_of("escaped"), input.text_of("n")), (Some("\n"), None));
        assert!(input.unread().is_none());
        assert_eq!((input.text_of("path"), input.text_of("m")), (Some("a"), None));
    }

    #[test]
    fn copies_share_the_object_until_one_changes_it() {
        let text = r#"{ "a": 1 }"#;
        let mut input = matched(text);
        let copy = input.clone();
        assert_eq!(copy.get("a"), Some(&json!(1)));
        assert!(std::ptr::eq(copy.object(), input.object()));
        assert_eq!(input.to_json(), text);
        input.set("a", json!(2));
        input.set("b", json!("x"));
        assert_eq!(input.to_json(), r#"{"a":2,"b":"x"}"#);
        assert_eq!((copy.to_json().as_str(), copy.len()), (text, 1));
        assert_ne!(input, copy);
        assert_eq!(input.clone().into_object(), *input);
        assert_eq!(copy, Input::from(Map::from_iter([("a".to_owned(), json!(1))])));
    }
}
