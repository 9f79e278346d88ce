//! The paths in the arguments of a tool that does not say itself what it touches.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::contract::Input;

/// Values of parameters that name paths by convention: `path`, `file`, `directory`, `*_path`, `*Path`, and the arrays
/// `paths` and `files`; at any depth, in the order they stand, each once.
pub fn argument_paths(arguments: &Input) -> Vec<String> {
    // Most inputs name no path, which their text tells. An escaped key could hide one from this look.
    let plain = |text: &str| !text.contains('\\') && !KEY_ENDS.iter().any(|end| text.contains(end));
    if arguments.unread().is_some_and(plain) {
        return Vec::new();
    }
    let mut found = Found::default();
    found.look_into(arguments);
    found.paths
}

/// How the keys end that [`Found`] looks for.
const KEY_ENDS: [&str; 6] = ["path\"", "Path\"", "file\"", "directory\"", "paths\"", "files\""];

#[derive(Default)]
struct Found {
    paths: Vec<String>,
    known: HashSet<String>,
}

impl Found {
    // The depth of arguments is bounded by the parser.
    fn look_into(&mut self, object: &Map<String, Value>) {
        for (key, value) in object {
            match value {
                Value::String(path) if names_a_path(key) => self.add(path),
                Value::Object(nested) => self.look_into(nested),
                Value::Array(items) => self.look_through(items, matches!(key.as_str(), "paths" | "files")),
                _ => {}
            }
        }
    }

    fn look_through(&mut self, items: &[Value], are_paths: bool) {
        for item in items {
            match item {
                Value::String(path) if are_paths => self.add(path),
                Value::Object(nested) => self.look_into(nested),
                Value::Array(nested) => self.look_through(nested, are_paths),
                _ => {}
            }
        }
    }

    fn add(&mut self, path: &str) {
        let path = path.trim();
        if !path.is_empty() && self.known.insert(path.to_owned()) {
            self.paths.push(path.to_owned());
        }
    }
}

fn names_a_path(key: &str) -> bool {
    matches!(key, "path" | "file" | "directory") || key.ends_with("_path") || key.ends_with("Path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_by_the_names_of_their_parameters_at_any_depth() {
        let arguments = serde_json::json!({
            "note": "/not/a/path", "outPath": " /w/b ", "file_path": "/w/a", "path": "/w/a", "empty_path": " ",
            "paths": ["/w/c", 5, {"file": "/w/d"}, ["/w/e"]], "list": ["/no"], "filepath": "/no",
            "move": {"from": {"path": "/w/f"}, "to": {"directory": "/w/g", "path": 7}},
            "edits": [{"file_path": "/w/h"}, [{"files": ["/w/i"]}]],
        });
        let found = argument_paths(&arguments.as_object().unwrap().clone().into());
        assert_eq!(found, ["/w/b", "/w/a", "/w/c", "/w/d", "/w/e", "/w/f", "/w/g", "/w/h", "/w/i"]);
    }

    #[test]
    fn a_key_cannot_hide_behind_its_spelling() {
        let schema = crate::schema::Schema::compile(r#"{"type":"object"}"#).unwrap();
        for (text, expected) in [
            (r#"{"path":"/w/a"}"#, vec!["/w/a"]),
            (r#"{"p\u0061th":"/w/a"}"#, vec!["/w/a"]),
            (r#"{"deep":{"list":[{"\u0066iles":["/w/a"]}]}}"#, vec!["/w/a"]),
            (r#"{ "file_path" : "/w/a" }"#, vec!["/w/a"]),
            (r#"{"n":1,"text":"a path"}"#, vec![]),
        ] {
            let input = match schema.matches(text) {
                Some(matched) => Input::matched(text, matched),
                None => serde_json::from_str::<Map<String, Value>>(text).unwrap().into(),
            };
            assert_eq!(argument_paths(&input), expected, "{text}");
        }
    }
}
