//! `RuntimePatch`: a change of tool policy, discovery, model, prompt, environment or hooks.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::PatchScope;
use super::fields::{Field, MalformedEffect};

/// A checked `RuntimePatch`.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimePatch {
    /// How long it lasts.
    pub scope: PatchScope,
    /// The Skill behind it.
    pub skill: Option<SkillInfo>,
    /// Which tools are shown.
    pub tool_policy: Option<ToolPolicy>,
    /// Tools to declare.
    pub discovery: Option<ToolDiscovery>,
    /// Model to go on with.
    pub model: Option<ModelOverride>,
    /// Text for the system prompt.
    pub system_prompt_append: Option<String>,
    /// Environment variables to add.
    pub environment: BTreeMap<String, String>,
    /// Texts for messages of the user.
    pub hooks: Vec<PromptHook>,
    given: Value,
}

/// `RuntimePatch.skill`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillInfo {
    /// Identifier.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Directory it lives in.
    pub base_path: String,
}

/// `RuntimePatch.toolPolicy`. No allow list is no limit, an empty one hides every tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    /// Only these, where given.
    pub allow: Option<Vec<ToolSelector>>,
    /// Never these.
    pub deny: Vec<ToolSelector>,
}

/// A tool by its name, or by `Name(…)`, which stands for the tool as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSelector {
    name: String,
}

impl ToolSelector {
    /// Reads a selector; `None` when there is no name, or a bracket that does not close.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let name = match text.split_once('(') {
            None => text,
            Some((name, rest)) if rest.ends_with(')') => name.trim_end(),
            Some(_) => return None,
        };
        let usable = !name.is_empty() && !name.contains(')');
        usable.then(|| Self { name: name.to_owned() })
    }

    /// Whether it stands for the tool of this name.
    pub fn selects(&self, name: &str) -> bool {
        self.name == name
    }
}

/// `RuntimePatch.toolDiscovery`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolDiscovery {
    /// Names of tools to declare from the next turn on.
    pub discover: Vec<String>,
    /// Whether earlier ones are forgotten first.
    pub reset: bool,
}

/// `RuntimePatch.modelOverride`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOverride {
    /// Id of a configured model.
    pub model_id: String,
    /// How hard it shall think.
    pub effort: Option<String>,
}

/// `RuntimeHookRegistration`: a text that follows what the user says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptHook {
    /// The text.
    pub value: String,
    /// Whether it is used for one message only.
    pub once: bool,
}

impl RuntimePatch {
    /// The patch that declares tools for the rest of the Session.
    pub fn discovering(names: &[&str]) -> Self {
        Self {
            scope: PatchScope::Session,
            skill: None,
            tool_policy: None,
            discovery: Some(ToolDiscovery {
                discover: names.iter().map(|name| (*name).to_owned()).collect(),
                reset: false,
            }),
            model: None,
            system_prompt_append: None,
            environment: BTreeMap::new(),
            hooks: Vec::new(),
            given: json!({ "scope": "session", "source": "tool", "toolDiscovery": { "discover": names } }),
        }
    }

    /// The patch as it was given.
    pub fn given(&self) -> &Value {
        &self.given
    }

    /// Reads a patch.
    ///
    /// # Errors
    /// A field is missing, unknown or has another form; the text names it.
    pub fn read(given: Value) -> Result<Self, MalformedEffect> {
        let patch = Field::new("runtimePatch", &given);
        patch.only(&[
            "scope",
            "source",
            "skill",
            "toolPolicy",
            "toolDiscovery",
            "modelOverride",
            "systemPromptAppend",
            "environment",
            "hooks",
        ])?;
        let scope = PatchScope::read(&patch.required("scope")?)?;
        let source = patch.required("source")?;
        if !matches!(source.text()?, "skill" | "tool" | "system") {
            return Err(source.expected("\"skill\", \"tool\" or \"system\""));
        }
        let read = Self {
            scope,
            skill: patch.optional("skill")?.as_ref().map(skill).transpose()?,
            tool_policy: patch.optional("toolPolicy")?.as_ref().map(tool_policy).transpose()?,
            discovery: patch.optional("toolDiscovery")?.as_ref().map(discovery).transpose()?,
            model: patch.optional("modelOverride")?.as_ref().map(model_override).transpose()?,
            system_prompt_append: match patch.optional("systemPromptAppend")? {
                Some(text) => Some(text.text()?.to_owned()).filter(|text| !text.trim().is_empty()),
                None => None,
            },
            environment: match patch.optional("environment")? {
                Some(environment) => environment.environment()?,
                None => BTreeMap::new(),
            },
            hooks: match patch.optional("hooks")? {
                Some(hooks) => hooks.items()?.map(|item| hook(&item)).collect::<Result<_, _>>()?,
                None => Vec::new(),
            },
            given: Value::Null,
        };
        Ok(Self { given, ..read })
    }
}

fn skill(field: &Field<'_>) -> Result<SkillInfo, MalformedEffect> {
    Ok(SkillInfo {
        id: field.required("id")?.words()?.to_owned(),
        name: field.required("name")?.words()?.to_owned(),
        base_path: field.required("basePath")?.text()?.to_owned(),
    })
}

fn tool_policy(field: &Field<'_>) -> Result<ToolPolicy, MalformedEffect> {
    field.only(&["allow", "deny"])?;
    let selectors = |name: &str| -> Result<Option<Vec<ToolSelector>>, MalformedEffect> {
        let Some(list) = field.optional(name)? else { return Ok(None) };
        let read = |item: Field<'_>| {
            ToolSelector::parse(item.text()?).ok_or_else(|| item.expected("the name of a tool, or Name(…)"))
        };
        list.items()?.map(read).collect::<Result<_, _>>().map(Some)
    };
    Ok(ToolPolicy { allow: selectors("allow")?, deny: selectors("deny")?.unwrap_or_default() })
}

fn discovery(field: &Field<'_>) -> Result<ToolDiscovery, MalformedEffect> {
    field.only(&["discover", "reset"])?;
    Ok(ToolDiscovery {
        discover: field.optional("discover")?.map_or_else(|| Ok(Vec::new()), |names| names.texts())?,
        reset: field.optional("reset")?.map_or(Ok(false), |reset| reset.flag())?,
    })
}

fn model_override(field: &Field<'_>) -> Result<ModelOverride, MalformedEffect> {
    let effort = field.optional("effort")?;
    Ok(ModelOverride {
        model_id: field.required("modelId")?.words()?.trim().to_owned(),
        effort: effort.map(|effort| effort.text().map(str::to_owned)).transpose()?,
    })
}

fn hook(field: &Field<'_>) -> Result<PromptHook, MalformedEffect> {
    let kind = field.required("type")?;
    if kind.text()? != "append_prompt" {
        return Err(kind.expected("\"append_prompt\""));
    }
    let event = field.required("event")?;
    if event.text()? != "UserPromptSubmit" {
        return Err(event.expected("\"UserPromptSubmit\", the only event with a prompt to append to"));
    }
    Ok(PromptHook {
        value: field.required("value")?.words()?.to_owned(),
        once: field.optional("once")?.map_or(Ok(false), |once| once.flag())?,
    })
}

impl Serialize for RuntimePatch {
    /// As it was given.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.given.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RuntimePatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
