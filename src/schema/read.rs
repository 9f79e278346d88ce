//! JSON text of a model as a value.
//!
//! `serde_json::Value` would do, but for two things: it takes an object with a private key of its own for the text of
//! another value, so that what is validated would not be what the text says; and it grows every object from nothing.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Room of an object before it has to grow; most objects of arguments have fewer members.
const MEMBERS: usize = 8;

/// The value that `text` says. Of a key that is there twice the last value counts, as in JavaScript.
///
/// # Errors
/// The text is not JSON, nests deeper than 128 levels, or has a number beyond double precision.
pub fn read(text: &str) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

struct Seed;

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Seed)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Some(first) = members.next_key::<String>()? else { return Ok(Value::Object(Map::new())) };
        let mut object = Map::with_capacity(MEMBERS);
        object.insert(first, members.next_value_seed(Seed)?);
        while let Some(key) = members.next_key::<String>()? {
            object.insert(key, members.next_value_seed(Seed)?);
        }
        Ok(Value::Object(object))
    }
}
