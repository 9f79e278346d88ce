//! Effects of a tool on its Session, as types that can only hold what was checked.
//!
//! A patch is read completely before it exists: one that is malformed fails the call that yielded it, with a message
//! that names the field. The value as it was given is kept beside what was read, since that is what events show.

mod context_patch;
mod fields;
mod runtime_patch;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::model::Message;

pub use context_patch::ContextPatch;
pub use fields::MalformedEffect;
pub use runtime_patch::{ModelOverride, PromptHook, RuntimePatch, SkillInfo, ToolDiscovery, ToolPolicy, ToolSelector};

use fields::Field;

/// How long a patch lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchScope {
    /// Until the request ends.
    Turn,
    /// Until the Session ends.
    Session,
}

impl PatchScope {
    fn read(field: &Field<'_>) -> Result<Self, MalformedEffect> {
        match field.text()? {
            "turn" => Ok(Self::Turn),
            "session" => Ok(Self::Session),
            _ => Err(field.expected("\"turn\" or \"session\"")),
        }
    }
}

/// An effect on the Session, applied by the Session for calls that end in success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ToolEffect {
    /// Tool policy, discovery, model, prompt, environment or hooks.
    RuntimePatch {
        /// The patch.
        patch: Box<RuntimePatch>,
    },
    /// Runtime context.
    ContextPatch {
        /// The patch.
        patch: ContextPatch,
    },
    /// Messages to append after the turn's tool results.
    NewMessages {
        /// `ModelMessage[]`.
        #[serde(deserialize_with = "messages")]
        messages: Value,
    },
    /// Permission rules to add or remove.
    PermissionUpdates {
        /// `PermissionUpdate[]`.
        #[serde(deserialize_with = "permission_updates")]
        updates: Value,
    },
}

fn messages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    checked(deserializer, "newMessages.messages", |list| {
        for message in list.items()? {
            message.object()?;
            Message::deserialize(message.value).map_err(|error| message.refused(&error.to_string()))?;
        }
        Ok(())
    })
}

fn permission_updates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    checked(deserializer, "permissionUpdates.updates", |list| {
        for update in list.items()? {
            let kind = update.required("type")?;
            match kind.text()? {
                "removeRules" => {}
                "addRules" => {
                    let behavior = update.required("behavior")?;
                    if !matches!(behavior.text()?, "allow" | "deny") {
                        return Err(behavior.expected("\"allow\" or \"deny\""));
                    }
                }
                _ => return Err(kind.expected("\"addRules\" or \"removeRules\"")),
            }
            for rule in update.required("rules")?.items()? {
                rule.required("toolName")?.words()?;
                rule.optional("ruleContent")?.map(|content| content.text().map(drop)).transpose()?;
            }
        }
        Ok(())
    })
}

/// The value as it is, once `check` has found nothing wrong with it.
fn checked<'de, D: Deserializer<'de>>(
    deserializer: D,
    path: &str,
    check: impl FnOnce(&Field<'_>) -> Result<(), MalformedEffect>,
) -> Result<Value, D::Error> {
    let value = Value::deserialize(deserializer)?;
    check(&Field::new(path, &value)).map_err(serde::de::Error::custom)?;
    Ok(value)
}
