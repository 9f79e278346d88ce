//! `RuntimeContextPatch`: a change of the runtime context.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::PatchScope;
use super::fields::{Field, MalformedEffect};
use crate::contract::FilesystemCapability;

/// A checked `RuntimeContextPatch`.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextPatch {
    /// How long it lasts.
    pub scope: PatchScope,
    /// Whether earlier patches are forgotten first.
    pub reset: bool,
    /// Fields that stand in the patch itself.
    pub direct: Map<String, Value>,
    /// Fields under `context`, which are stronger.
    pub context: Map<String, Value>,
    given: Value,
}

impl ContextPatch {
    /// Reads a patch.
    ///
    /// # Errors
    /// A field has another form; the text names it.
    pub fn read(given: Value) -> Result<Self, MalformedEffect> {
        let patch = Field::new("contextPatch", &given);
        let scope = patch.optional("scope")?.map_or(Ok(PatchScope::Session), |scope| PatchScope::read(&scope))?;
        let reset = patch.optional("reset")?.map_or(Ok(false), |reset| reset.flag())?;
        let context = match patch.optional("context")? {
            Some(context) => fields(&context)?,
            None => Map::new(),
        };
        let mut direct = fields(&patch)?;
        direct.retain(|name, _| !matches!(name.as_str(), "scope" | "reset" | "context"));
        Ok(Self { scope, reset, direct, context, given })
    }

    /// The patch as it was given.
    pub fn given(&self) -> &Value {
        &self.given
    }

    /// Whether it says what calls may touch or what child processes are given, and not only what is noted about them.
    pub fn changes_reach(&self) -> bool {
        [&self.direct, &self.context]
            .iter()
            .any(|fields| fields.keys().any(|name| matches!(name.as_str(), "capabilities" | "environment")))
    }
}

/// The fields of a `RuntimeContext` without those that say nothing.
fn fields(context: &Field<'_>) -> Result<Map<String, Value>, MalformedEffect> {
    for name in ["id", "metadata", "environment", "capabilities"] {
        let Some(field) = context.optional(name)? else { continue };
        match name {
            "id" => drop(field.text()?),
            "metadata" => drop(field.object()?),
            "environment" => drop(field.environment()?),
            _ => capabilities(&field)?,
        }
    }
    let present = context.object()?.iter().filter(|(_, value)| !value.is_null());
    Ok(present.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn capabilities(field: &Field<'_>) -> Result<(), MalformedEffect> {
    for name in field.object()?.keys() {
        if let Some(capability) = field.optional(name)? {
            capability.object()?;
        }
    }
    let Some(filesystem) = field.optional("filesystem")? else { return Ok(()) };
    if let Some(cwd) = filesystem.optional("cwd")? {
        cwd.words()?;
    }
    if let Some(roots) = filesystem.optional("roots")? {
        roots.texts()?;
    }
    FilesystemCapability::deserialize(filesystem.value).map_err(|error| filesystem.refused(&error.to_string()))?;
    Ok(())
}

impl Serialize for ContextPatch {
    /// As it was given.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.given.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContextPatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
