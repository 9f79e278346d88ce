//! A call as rules see it.

use std::borrow::Cow;

use super::places::{Place, normalized};
use super::request::PermissionRequest;
use crate::contract::ToolKind;

/// What has to be allowed for a call to be allowed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit<'a> {
    /// Nothing is known but the tool.
    Tool,
    /// A content, or a part of one.
    Text(&'a str),
    /// A path.
    Path(&'a Place),
}

/// Names, contents and paths of a call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Main name of the tool.
    pub name: &'a str,
    aliases: &'a [String],
    pub signature: &'a str,
    /// What follows the name in the signature.
    pub content: Option<&'a str>,
    parts: Vec<&'a str>,
    places: Cow<'a, [Place]>,
    /// Whether what is allowed is the paths: the content is one of them, or there is no content.
    by_path: bool,
}

impl<'a> Call<'a> {
    pub(super) fn of(request: &'a PermissionRequest) -> Self {
        let signature = request.signature();
        let name = match signature.strip_prefix(request.tool_name.as_str()) {
            Some(rest) if rest.is_empty() || rest.starts_with(':') => request.tool_name.as_str(),
            // A request that was made by hand; its signature is what rules match on.
            _ => signature.split_once(':').map_or(signature, |(name, _)| name),
        };
        let content_of = |text: &'a str| text.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
        let content = content_of(signature);
        let parts = request.tool_meta.parts.iter().map(|part| content_of(part).unwrap_or(part)).collect();
        let mut places: Cow<'a, [Place]> = Cow::Borrowed(&request.tool_meta.paths);
        if places.is_empty() && !request.affected_paths.is_empty() {
            places = request.affected_paths.iter().map(|path| Place::unresolved(path)).collect();
        }
        let by_path = match content {
            None => !places.is_empty(),
            Some(content) if !places.is_empty() => {
                request.affected_paths.iter().any(|path| path == content)
                    || places.iter().any(|place| place.resolved == normalized(content))
            }
            // Made by hand: what is not executed is taken for a path.
            Some(content) if request.tool_kind != ToolKind::Execute => {
                places = Cow::Owned(vec![Place::unresolved(content)]);
                true
            }
            Some(_) => false,
        };
        Self { name, aliases: &request.tool_meta.aliases, signature, content, parts, places, by_path }
    }

    /// All names of the tool.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.aliases.iter().map(String::as_str).chain([self.name])
    }

    /// The content and its parts.
    pub(super) fn contents(&self) -> impl Iterator<Item = &str> {
        self.content.into_iter().chain(self.parts.iter().copied())
    }

    /// Every spelling of every path.
    pub(super) fn spellings(&self) -> impl Iterator<Item = &str> {
        self.places.iter().flat_map(|place| place.names().chain(place.given.iter().map(String::as_str)))
    }

    /// Whether the call is more than its content says as a whole.
    pub(super) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Whether the content is one of the paths.
    pub(super) fn content_is_path(&self) -> bool {
        self.by_path && self.content.is_some()
    }

    /// What has to be allowed; never empty.
    pub(super) fn units(&self) -> Vec<Unit<'_>> {
        if self.has_parts() {
            self.parts.iter().map(|part| Unit::Text(part)).collect()
        } else if self.by_path {
            self.places.iter().map(Unit::Path).collect()
        } else {
            vec![self.content.map_or(Unit::Tool, Unit::Text)]
        }
    }
}
