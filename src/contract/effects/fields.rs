//! Reading the fields of a patch, with errors that say which field is wrong and what would be right.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Longest piece of a wrong value that is shown.
const SHOWN_CHARS: usize = 60;

/// A patch that cannot be applied; the text names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedEffect(pub(super) String);

type Read<T> = Result<T, MalformedEffect>;

/// A value with the path that leads to it.
pub(super) struct Field<'a> {
    pub path: String,
    pub value: &'a Value,
}

impl<'a> Field<'a> {
    pub fn new(path: impl Into<String>, value: &'a Value) -> Self {
        Self { path: path.into(), value }
    }

    /// Wrong in a way that `why` describes.
    pub fn refused(&self, why: &str) -> MalformedEffect {
        MalformedEffect(format!("{}: {why}", self.path))
    }

    /// Wrong because something else was expected.
    pub fn expected(&self, what: &str) -> MalformedEffect {
        let mut shown = self.value.to_string();
        if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS) {
            shown.truncate(end);
            shown.push('…');
        }
        MalformedEffect(format!("{} must be {what}, got {shown}", self.path))
    }

    pub fn object(&self) -> Read<&'a Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.expected("an object"))
    }

    /// A field of this object; `null` counts as missing.
    pub fn optional(&self, name: &str) -> Read<Option<Field<'a>>> {
        let value = self.object()?.get(name).filter(|value| !value.is_null());
        Ok(value.map(|value| Field::new(format!("{}.{name}", self.path), value)))
    }

    pub fn required(&self, name: &str) -> Read<Field<'a>> {
        self.optional(name)?.ok_or_else(|| MalformedEffect(format!("{}.{name} is missing", self.path)))
    }

    /// Refuses fields of other names: a misspelt one would be a limit that is not applied.
    pub fn only(&self, names: &[&str]) -> Read<()> {
        match self.object()?.keys().find(|key| !names.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(MalformedEffect(format!(
                "{}.{key} is no field of it; the fields are {}",
                self.path,
                names.join(", ")
            ))),
        }
    }

    pub fn items(&self) -> Read<impl Iterator<Item = Field<'a>> + use<'a>> {
        let path = self.path.clone();
        let items = self.value.as_array().ok_or_else(|| self.expected("an array"))?;
        Ok(items.iter().enumerate().map(move |(at, value)| Field::new(format!("{path}[{at}]"), value)))
    }

    pub fn text(&self) -> Read<&'a str> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    /// Text that says something.
    pub fn words(&self) -> Read<&'a str> {
        match self.text()? {
            text if text.trim().is_empty() => Err(self.expected("a non-empty string")),
            text => Ok(text),
        }
    }

    pub fn texts(&self) -> Read<Vec<String>> {
        self.items()?.map(|item| item.words().map(str::to_owned)).collect()
    }

    pub fn flag(&self) -> Read<bool> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    /// Environment variables: what no process could be given is refused here and not when one starts.
    pub fn environment(&self) -> Read<BTreeMap<String, String>> {
        let mut variables = BTreeMap::new();
        for (name, value) in self.object()? {
            let field = Field::new(format!("{}.{name}", self.path), value);
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(field.refused("names of variables are not empty and hold neither \"=\" nor NUL"));
            }
            let text = field.text()?;
            if text.contains('\0') {
                return Err(field.refused("values of variables hold no NUL"));
            }
            variables.insert(name.clone(), text.to_owned());
        }
        Ok(variables)
    }
}
