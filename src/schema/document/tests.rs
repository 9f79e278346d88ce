use jsonschema::json::conformance;
use proptest::prelude::*;
use serde_json::json;

use super::super::{Schema, read};
use super::*;

#[test]
fn the_validator_may_rely_on_this_representation() {
    let text = conformance::document().to_string();
    conformance::assert_conformance::<Flat>(&Document::read(&text).unwrap().root());
    // The same with a string that does not stand in the text as it is.
    let escaped = text.replace('é', "\\u00e9");
    assert_ne!(escaped, text);
    conformance::assert_conformance::<Flat>(&Document::read(&escaped).unwrap().root());
}

#[test]
fn what_is_unusual_is_left_to_the_tree() {
    let schema = Schema::compile(r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#).unwrap();
    let members = |n: usize| Value::Object((0..n).map(|at| (format!("k{at}"), json!(at))).collect()).to_string();
    for (text, matches) in [
        (r#"{"a":1}"#, true),
        (r#" { "a" : 1 } "#, true),
        (r#"{"a":5.0}"#, true),
        (r#"{"a":-0}"#, true),
        (r#"{"b":{"a":"x"}}"#, true),
        (r#"{"a":"1"}"#, false),
        (r#"{"a":1e400}"#, false),
        (r#"{"a":1} {}"#, false),
        (r#"{"a":1"#, false),
        ("[]", false),
        ("5", false),
        ("", false),
        // The last value of a key counts, which a list of members does not know.
        (r#"{"a":"1","a":1}"#, false),
        (r#"{"b":{"c":1,"\u0063":1}}"#, false),
        // A key that does not stand in the text as it is.
        (r#"{"\u0061":1}"#, false),
        (&members(MAX_MEMBERS), true),
        (&members(MAX_MEMBERS + 1), false),
        (&("[".repeat(200) + &"]".repeat(200)), false),
    ] {
        assert_eq!(schema.matches(text).is_some(), matches, "{text}");
    }
    let filled = Schema::compile(r#"{"type":"object","properties":{"a":{"default":1}}}"#).unwrap();
    assert!(filled.matches("{}").is_none(), "defaults are filled into a tree");
}

#[test]
fn members_are_found_where_they_stand() {
    let schema = Schema::compile(r#"{"type":"object"}"#).unwrap();
    let text = r#"{ "file_path":"/w/ä", "n": 5, "deep": {"file_path": "no"}, "escaped": "a\n" }"#;
    let matched = schema.matches(text).unwrap();
    assert_eq!(matched.keys(text).collect::<Vec<_>>(), ["file_path", "n", "deep", "escaped"]);
    let found = ["file_path", "n", "deep", "escaped", "missing"].map(|key| matched.text_of(text, key));
    assert_eq!(found, [Some("/w/ä"), None, None, None, None]);
}

/// Schemas that ask a representation everything they can.
const SCHEMAS: &[&str] = &[
    r#"{"type":"object","properties":{"a":{"type":"integer","minimum":0},"b":{"type":"string","maxLength":2}}}"#,
    r#"{"type":"object","required":["a"],"additionalProperties":{"type":["string","null","boolean"]}}"#,
    r#"{"type":"object","properties":{"a":{"enum":[1,"x",null,{"b":[1]},[true]]}},"minProperties":1,"maxProperties":2}"#,
    r#"{"type":"object","properties":{"a":{"const":{"b":1.0}}},"propertyNames":{"pattern":"^[ab]$"}}"#,
    r#"{"type":"object","patternProperties":{"^a":{"type":"array","items":{"type":"number"},"uniqueItems":true}}}"#,
    r#"{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},{"type":"number"}],
        "additionalItems":false},"b":{"contains":{"type":"number"},"maxContains":1}}}"#,
    r##"{"type":"object","properties":{"a":{"$ref":"#"},"b":{"multipleOf":0.5}},"unevaluatedProperties":false}"##,
    r#"{"type":"object","anyOf":[{"required":["a"]},{"properties":{"b":{"not":{"type":"string"}}},"required":["b"]}]}"#,
    r#"{"type":"object","oneOf":[{"properties":{"a":{"type":"number"}}},{"properties":{"a":{"minLength":2}}}]}"#,
    r#"{"type":"object","if":{"required":["a"]},"then":{"dependentRequired":{"a":["b"]}},"else":{"maxProperties":0}}"#,
    r#"{"type":"object","properties":{"a":{"format":"date"},"b":{"type":"string","pattern":"^\\p{L}*$"}}}"#,
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop_oneof![Just(0.5), Just(1.0), Just(-0.0), Just(1e21), any::<f64>()].prop_map(Value::from),
        "[abé\u{0}\"🙂]{0,3}".prop_map(Value::from),
        Just(Value::from("2024-02-29")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let object = prop::collection::btree_map("[abc]", inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Both representations say the same about every schema, and the document is the value that the text says.
    #[test]
    fn a_document_and_a_tree_are_judged_alike(value in json_value(), pretty in any::<bool>()) {
        let value = json!({ "a": value, "b": value });
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let document = Document::read(&text).unwrap();
        prop_assert_eq!(document.root().to_value().into_owned(), read(&text).unwrap());
        for schema in SCHEMAS {
            let schema = Schema::compile(schema).unwrap();
            for text in [text.clone(), value["a"].to_string()] {
                let Ok(Value::Object(mut object)) = read(&text) else { continue };
                let judged = schema.check(&mut object).is_ok();
                let expected = judged && schema.takes_text(&text);
                prop_assert_eq!(schema.matches(&text).is_some(), expected, "{} and {}", schema.text(), text);
            }
        }
    }
}
