use proptest::prelude::*;
use serde_json::json;

use super::cache::Cache;
use super::*;

fn check(schema: Value, arguments: Value) -> Result<(bool, Value), Vec<(String, String)>> {
    let schema = Schema::compile(&schema.to_string()).expect("a usable schema");
    let Value::Object(mut map) = arguments else { panic!("arguments are an object") };
    match schema.check(&mut map) {
        Ok(filled) => Ok((filled, Value::Object(map))),
        Err(issues) => Err(issues.into_iter().map(|issue| (issue.field, issue.message)).collect()),
    }
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn every_kind_of_mistake_is_explained_in_the_documented_words() {
    let text = |field: &str, message: &str| vec![(field.to_owned(), message.to_owned())];
    let one = |schema: Value| object(json!({ "a": schema }));
    let rows = [
        (
            "missing keys of one object are one issue",
            json!({"type": "object", "required": ["file_path", "b"], "properties": {"n": {"type": "integer"}}}),
            json!({}),
            text("root", "must have required properties file_path, b"),
        ),
        ("type", one(json!({"type": "integer"})), json!({"a": "5"}), text("a", "must be integer, got string \"5\"")),
        ("fraction", one(json!({"type": "integer"})), json!({"a": 1.5}), text("a", "must be integer, got number 1.5")),
        ("null", one(json!({"type": "string"})), json!({"a": null}), text("a", "must be string, got null")),
        (
            "types",
            one(json!({"type": ["string", "null"]})),
            json!({"a": true}),
            text("a", "must be either null or string, got boolean true"),
        ),
        ("minimum", one(json!({"minimum": 0})), json!({"a": -1}), text("a", "must be >= 0, got number -1")),
        ("maximum", one(json!({"maximum": 9})), json!({"a": 10}), text("a", "must be <= 9, got number 10")),
        (
            "enum",
            one(json!({"enum": ["x", "y"]})),
            json!({"a": "z"}),
            text("a", "must be equal to one of the allowed values (\"x\", \"y\"), got string \"z\""),
        ),
        (
            "short",
            one(json!({"type": "string", "minLength": 1})),
            json!({"a": ""}),
            text("a", "must not have fewer than 1 characters, got string \"\""),
        ),
        (
            "format",
            one(json!({"type": "string", "format": "url"})),
            json!({"a": "notaurl"}),
            text("a", "must match format \"url\", got string \"notaurl\""),
        ),
        (
            "pattern",
            one(json!({"pattern": "^a$"})),
            json!({"a": "b"}),
            text("a", "must match pattern \"^a$\", got string \"b\""),
        ),
        (
            "extra",
            json!({"type": "object", "additionalProperties": false}),
            json!({"p": 1, "q": 2}),
            text("root", "must not have additional properties p, q"),
        ),
        (
            "index in the path",
            object(json!({"items": {"type": "array", "items": object(json!({"name": {"type": "string"}}))}})),
            json!({"items": [{"name": 1}]}),
            text("items.0.name", "must be string, got number 1"),
        ),
        (
            "keys with slashes and digits keep their text",
            object(json!({"a/b~c": object(json!({"007": {"type": "null"}}))})),
            json!({"a/b~c": {"007": 1}}),
            text("a/b~c.007", "must be null, got number 1"),
        ),
        (
            "tuple",
            object(
                json!({"t": {"type": "array", "items": [{"type": "string"}, {"type": "number"}], "additionalItems": false}}),
            ),
            json!({"t": ["a", "b"]}),
            text("t.1", "must be number, got string \"b\""),
        ),
        (
            "union without a best branch",
            json!({"type": "object", "anyOf": [{"required": ["url"]}, {"required": ["text"]}]}),
            json!({}),
            text("root", "must match a schema in anyOf, got object {}"),
        ),
        (
            "union of constants",
            one(json!({"anyOf": [{"const": "x"}, {"const": "y"}]})),
            json!({"a": "z"}),
            text("a", "must match a schema in anyOf (\"x\", \"y\"), got string \"z\""),
        ),
        (
            "union decided by type",
            one(json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]})),
            json!({"a": "z"}),
            text("a", "must not have fewer than 2 characters, got string \"z\""),
        ),
        (
            "union decided by a constant",
            one(json!({"oneOf": [
                {"type": "object", "properties": {"k": {"const": "p"}, "x": {"type": "string"}}, "required": ["k", "x"]},
                {"type": "object", "properties": {"k": {"const": "q"}, "y": {"type": "string"}}, "required": ["k", "y"]},
            ]})),
            json!({"a": {"k": "q"}}),
            text("a", "must have required properties y"),
        ),
        (
            "union decided by the keys given",
            one(json!({"anyOf": [
                {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
                {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            ]})),
            json!({"a": {"url": 5}}),
            text("a.url", "must be string, got number 5"),
        ),
    ];
    for (name, schema, arguments, expected) in rows {
        assert_eq!(check(schema, arguments), Err(expected), "{name}");
    }
}

#[test]
fn a_url_is_whatever_parses_with_a_scheme() {
    let schema = object(json!({"u": {"type": "string", "format": "url"}}));
    for good in ["https://a.b/c?d", "file:///x", "javascript:alert(1)", "HTTP://X"] {
        assert!(check(schema.clone(), json!({"u": good})).is_ok(), "{good}");
    }
    for bad in ["notaurl", "", "http://", "/path", "//host"] {
        assert!(check(schema.clone(), json!({"u": bad})).is_err(), "{bad}");
    }
}

#[test]
fn defaults_are_filled_where_a_key_is_missing() {
    let d = |value: Value| json!({"default": value});
    let rows = [
        ("none given", object(json!({"a": d(json!(1))})), json!({}), json!({"a": 1}), true),
        ("null is a value", object(json!({"a": d(json!(1))})), json!({"a": null}), json!({"a": null}), false),
        ("no default", object(json!({"a": {"type": "string"}})), json!({}), json!({}), false),
        (
            "nested",
            object(json!({"o": object(json!({"a": d(json!(1))}))})),
            json!({"o": {}}),
            json!({"o": {"a": 1}}),
            true,
        ),
        ("nested but absent", object(json!({"o": object(json!({"a": d(json!(1))}))})), json!({}), json!({}), false),
        (
            "into a default",
            object(json!({"o": {"type": "object", "default": {}, "properties": {"a": d(json!(1))}}})),
            json!({}),
            json!({"o": {"a": 1}}),
            true,
        ),
        (
            "items",
            object(json!({"l": {"items": object(json!({"a": d(json!([]))}))}})),
            json!({"l": [{}, {"a": 2}]}),
            json!({"l": [{"a": []}, {"a": 2}]}),
            true,
        ),
        (
            "tuple",
            object(json!({"l": {"items": [{}, object(json!({"a": d(json!(1))}))]}})),
            json!({"l": [{}, {}]}),
            json!({"l": [{}, {"a": 1}]}),
            true,
        ),
        (
            "allOf and references",
            json!({"type": "object", "allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": object(json!({"a": d(json!(1))}))}}),
            json!({}),
            json!({"a": 1}),
            true,
        ),
        (
            "a property called default is no default",
            object(json!({"default": {"type": "string"}})),
            json!({}),
            json!({}),
            false,
        ),
    ];
    for (name, schema, arguments, expected, filled) in rows {
        assert_eq!(check(schema, arguments), Ok((filled, expected)), "{name}");
    }
}

#[test]
fn a_required_field_with_a_default_may_be_left_out() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 3}}, "required": ["n"]});
    assert_eq!(check(schema, json!({})), Ok((true, json!({"n": 3}))));
}

#[test]
fn a_recursive_default_ends() {
    let schema = json!({"type": "object", "properties": {
        "l": {"$ref": "#", "default": {}}, "r": {"$ref": "#", "default": {}}}});
    let (filled, _) = check(schema, json!({})).expect("valid");
    assert!(filled);
}

#[test]
fn schemas_that_cannot_be_used_say_why() {
    let rows = [
        ("{", "schema is not JSON"),
        ("true", "must be a JSON Schema object, got boolean true"),
        (r#"{"type":"string"}"#, "must have type \"object\", got type \"string\""),
        (r##"{"$ref":"#/$defs/A","$defs":{"A":{"type":"array"}}}"##, "must have type \"object\", got type \"array\""),
        (r#"{"type":"object","properties":{"x":{"$ref":"https://schemas.invalid/x.json"}}}"#, "schemas.invalid"),
        (r##"{"type":"object","properties":{"x":{"$ref":"#/$defs/none"}}}"##, "a reference cannot be resolved"),
        (r#"{"type":"object","properties":{"s":{"type":"string","pattern":"("}}}"#, "properties/s/pattern"),
        (r#"{"type":"object","properties":{"s":{"type":"strung"}}}"#, "strung"),
    ];
    for (text, part) in rows {
        let error = Schema::compile(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn schemas_of_the_field_are_accepted() {
    for text in [
        r#"{"properties":{"a":{"type":"string"}},"required":["a"]}"#,
        r#"{"type":["object","null"]}"#,
        r##"{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"n":{"minimum":1}}}}}"##,
        r##"{"type":"object","properties":{"t":{"$ref":"#/$defs/T"}},"$defs":{"T":{"properties":{"k":{"items":{"$ref":"#/$defs/T"}}}}}}"##,
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"minimum":0,"exclusiveMinimum":true}}}"#,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"t":{"prefixItems":[{"type":"string"}]}}}"#,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}"#,
        r#"{"type":"object","properties":{"naïve key":{"type":"string"},"__proto__":{"type":"string"},"$ref":{"type":"string"}}}"#,
    ] {
        assert!(Schema::compile(text).is_ok(), "{text}: {:?}", Schema::compile(text));
    }
}

#[test]
fn a_pattern_made_for_catastrophic_backtracking_answers_at_once() {
    let long = format!("{}b", "a".repeat(50_000));
    let schema = object(json!({"s": {"type": "string", "pattern": "^(a+)+$"}}));
    let issues = check(schema, json!({"s": long})).expect_err("no match");
    assert!(issues[0].1.len() < 300, "{issues:?}");
}

#[test]
fn at_most_eight_issues_and_no_copy_of_a_huge_value() {
    let schema = Schema::compile(r#"{"type":"object","additionalProperties":{"type":"integer"}}"#).expect("usable");
    let mut map = Map::new();
    for at in 0..20 {
        map.insert(format!("k{at}"), Value::String("x".repeat(20_000)));
    }
    let issues = schema.check(&mut map).expect_err("no integers");
    assert_eq!(issues.len(), 8);
    assert_eq!(map.len(), 20);
    assert!(issues.iter().all(|issue| issue.value.as_str().is_some_and(|text| text.chars().count() < 100)));
}

#[test]
fn one_text_is_compiled_once() {
    let text = r#"{"type":"object","title":"compiled once"}"#;
    let first = Schema::compile(text).expect("usable");
    assert!(Arc::ptr_eq(&first, &Schema::compile(text).expect("usable")));
    assert_eq!(first.text(), text);
}

#[test]
fn the_cache_forgets_what_was_used_least_recently() {
    let schema = |n: u32| Arc::new(Schema::build(&format!(r#"{{"title":"{n}"}}"#)).expect("usable"));
    let [a, b, c] = [schema(1), schema(2), schema(3)];
    let mut cache = Cache::new(2);
    cache.insert(Arc::clone(&a));
    cache.insert(Arc::clone(&b));
    assert!(cache.get(a.text()).is_some());
    cache.insert(Arc::clone(&c));
    assert_eq!(cache.len(), 2);
    assert!(cache.get(b.text()).is_none());
    assert!(cache.get(a.text()).is_some_and(|kept| Arc::ptr_eq(&kept, &a)));
}

#[test]
fn issues_are_rendered_for_the_model_on_one_line() {
    let schema = json!({"type": "object", "required": ["file_path"], "properties": {"limit": {"type": "integer"}}});
    let schema = Schema::compile(&schema.to_string()).expect("usable");
    let mut map = Map::from_iter([("limit".to_owned(), json!("5"))]);
    let mut issues = schema.check(&mut map).expect_err("two mistakes");
    issues.sort_by(|a, b| a.field.cmp(&b.field));
    assert_eq!(
        render_issues("Read", &issues),
        "invalid arguments for Read: limit must be integer, got string \"5\"; must have required properties file_path"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c/~.0-9ü]{0,6}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec(("[a-d]|items|k", inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn checking_never_panics_and_says_yes_exactly_when_the_validator_does(value in any_json()) {
        let schema = Schema::compile(r##"{"type":"object","properties":{
            "a":{"type":"integer","minimum":0},"b":{"anyOf":[{"type":"string","minLength":2},{"$ref":"#"}]},
            "c":{"oneOf":[{"const":1},{"type":"array","items":{"$ref":"#"}}]},"d":{"enum":["x",null]},
            "items":{"type":"array","items":[{"type":"string"}],"uniqueItems":true},"k":{"not":{"type":"null"},"default":{}}
        },"required":["a"],"additionalProperties":false}"##).expect("usable");
        let mut map = match value { Value::Object(map) => map, other => Map::from_iter([("a".to_owned(), other)]) };
        let outcome = schema.check(&mut map);
        let valid = schema.validator.is_valid(&Value::Object(map));
        match outcome {
            Ok(_) => prop_assert!(valid),
            Err(issues) => {
                prop_assert!(!valid);
                prop_assert!(!issues.is_empty() && issues.len() <= 8);
            }
        }
    }
}

/// A recursive schema of objects in which `links` references lead from each level to the next.
fn recursive(links: usize) -> String {
    let mut definitions = Map::new();
    for at in 0..links {
        definitions.insert(format!("d{at}"), json!({ "$ref": format!("#/$defs/d{}", at + 1) }));
    }
    let node = json!({ "type": ["object", "null"], "properties": { "n": { "$ref": "#/$defs/d0" } } });
    definitions.insert(format!("d{links}"), node);
    json!({ "type": "object", "properties": { "n": { "$ref": "#/$defs/d0" } }, "$defs": definitions }).to_string()
}

/// Objects in objects, with `innermost` at the end.
fn nested(levels: usize, innermost: &Value) -> Map<String, Value> {
    let mut value = innermost.clone();
    for _ in 0..levels {
        value = json!({ "n": value });
    }
    value.as_object().unwrap().clone()
}

#[test]
fn the_deepest_values_and_the_longest_chains_fit_the_stack() {
    for links in [1, 5, 6, 7, 30, 60] {
        let schema = Schema::compile(&recursive(links)).unwrap();
        assert_eq!(schema.check(&mut nested(126, &Value::Null)), Ok(false), "{links}");
        assert_eq!(schema.check(&mut nested(126, &json!("x"))).unwrap_err().len(), 1, "{links}");
    }
    assert!(Schema::compile(&recursive(64)).unwrap_err().0.contains("chain of more than 64"));
}

#[test]
fn a_schema_that_refers_to_itself_for_the_same_value_ends() {
    let circle = r##"{"type":"object","allOf":[{"$ref":"#"}],"required":["a"]}"##;
    let schema = Schema::compile(circle).unwrap();
    assert_eq!(schema.check(&mut Map::from_iter([("a".to_owned(), Value::Null)])), Ok(false));
    assert_eq!(schema.check(&mut Map::new()).unwrap_err().len(), 1);
}

#[test]
fn a_large_schema_works_and_a_huge_or_deep_one_is_refused_by_its_limit() {
    let with = |count: usize| {
        let property = |at: usize| (format!("property_{at}"), json!({ "type": "integer", "default": at }));
        let properties: Map<String, Value> = (0..count).map(property).collect();
        json!({ "type": "object", "properties": properties }).to_string()
    };
    let megabyte = with(20_000);
    assert!(megabyte.len() > 1_000_000);
    let schema = Schema::compile(&megabyte).unwrap();
    assert!(schema.check(&mut Map::from_iter([("property_7".to_owned(), json!("x"))])).is_err());
    let huge = Schema::compile(&with(100_000)).unwrap_err().0;
    assert!(huge.contains("more than the limit of 4194304"), "{huge}");

    let mut deep = json!({ "type": "string" });
    for _ in 0..250 {
        deep = json!({ "type": "object", "properties": { "n": deep } });
    }
    let deep = Schema::compile(&deep.to_string()).unwrap_err().0;
    assert!(deep.contains("deeper than 127 levels"), "{deep}");
}

#[test]
fn defaults_are_found_at_the_end_of_thousands_of_references() {
    let length = 4_000;
    let link =
        |at: usize| (format!("d{at}"), json!({ "properties": { "n": { "$ref": format!("#/$defs/d{}", at + 1) } } }));
    let mut definitions: Map<String, Value> = (0..length).map(link).collect();
    definitions.insert(format!("d{length}"), json!({ "properties": { "x": { "default": 1 } } }));
    definitions.insert("near".to_owned(), json!({ "properties": { "x": { "default": 2 } } }));
    let properties = json!({ "n": { "$ref": "#/$defs/d0" }, "near": { "$ref": "#/$defs/near" } });
    let schema = json!({ "type": "object", "properties": properties, "$defs": definitions });
    let schema = Schema::compile(&schema.to_string()).unwrap();
    let mut arguments = Map::from_iter([("near".to_owned(), json!({})), ("n".to_owned(), json!({ "n": {} }))]);
    assert_eq!(schema.check(&mut arguments), Ok(true));
    assert_eq!(arguments["near"], json!({ "x": 2 }));
}

#[test]
fn text_is_read_as_javascript_reads_it() {
    let rows = [
        (r#"{"a":1,"b":2,"a":3}"#, json!({"a": 3, "b": 2})),
        (r#"{"__proto__":{"x":1},"constructor":null}"#, json!({"__proto__": {"x": 1}, "constructor": null})),
        (r#"[9007199254740993,-0,5.0,1e3]"#, json!([9_007_199_254_740_993_u64, -0.0, 5.0, 1000.0])),
        (r#""\ud83d\ude42 \u0000""#, json!("🙂 \u{0}")),
        // Keys with which serde_json hides values of its own from itself.
        (r#"{"$serde_json::private::RawValue":"5"}"#, json!({"$serde_json::private::RawValue": "5"})),
        (r#"{"$serde_json::private::Number":"5"}"#, json!({"$serde_json::private::Number": "5"})),
    ];
    for (text, value) in rows {
        assert_eq!(read(text).unwrap(), value, "{text}");
    }
    for text in ["1e400", "[1,]", "{a:1}", "'x'", "1 2", "NaN", "\u{feff}1", r#""\ud800""#, &"[".repeat(129)] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn schemas_and_values_that_would_take_for_ever_together_are_answered_at_once() {
    let nested = |levels: usize| (0..levels).fold(json!(5), |inner, _| json!({ "a": inner }));
    let n = |more: Value| {
        let mut branch = json!({ "properties": { "a": { "$ref": "#/$defs/n" } } });
        branch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        branch
    };
    let union = |keyword: &str, more: Value| {
        let branches = [n(more.clone()), n(more)];
        json!({ "type": "object", "properties": { "v": { "$ref": "#/$defs/n" } }, "$defs": { "n": { keyword: branches } } })
    };
    let defaults = json!({ "properties": { "a": { "$ref": "#/$defs/n" }, "b": { "default": 1 } } });
    let wide: Vec<Value> = (0..3000).map(|at| json!({ "required": [format!("k{at}")] })).collect();
    let items: Vec<Value> = (0..20_000).map(|at| json!({ "at": at })).collect();
    for (name, schema, value) in [
        ("anyOf", union("anyOf", json!({ "required": ["x"] })), json!({ "v": nested(100) })),
        ("oneOf", union("oneOf", json!({})), json!({ "v": nested(100) })),
        ("allOf", union("allOf", defaults), json!({ "v": nested(100) })),
        ("wide", object(json!({ "l": { "items": { "anyOf": wide } } })), json!({ "l": items })),
    ] {
        let started = tokio::time::Instant::now();
        let issues = check(schema, value).expect_err(name);
        assert_eq!(issues.len(), 1, "{name}: {issues:?}");
        assert!(issues[0].1.contains("send less at once"), "{name}: {issues:?}");
        assert!(started.elapsed().as_secs() < 10, "{name} took {:?}", started.elapsed());
    }
    // What merely is deep, or large, is judged as ever.
    let issues = check(union("anyOf", json!({ "required": ["x"] })), json!({ "v": nested(4) })).expect_err("no x");
    assert!(issues[0].1.contains("must match a schema in anyOf"), "{issues:?}");
    let many = json!({ "l": vec!["x"; 200_000] });
    let issues = check(object(json!({ "l": { "items": { "type": "integer" } } })), many).expect_err("no integers");
    assert_eq!(issues, [("l.0".to_owned(), "must be integer, got string \"x\"".to_owned())]);
}

#[test]
fn patterns_that_step_back_have_a_time_of_their_own_for_all_texts_together() {
    let schema = |pattern: &str| object(json!({ "l": { "items": { "type": "string", "pattern": pattern } } }));
    for pattern in [r"^(a|aa)+(?!x)\1$", r"^((?!x)a|aa)+$", r"(?<!x)(a|aa)+\1$"] {
        let texts: Vec<String> = (0..5000).map(|at| format!("{}b{at}", "a".repeat(40))).collect();
        let started = tokio::time::Instant::now();
        let issues = check(schema(pattern), json!({ "l": texts })).expect_err("no match");
        assert!(issues[0].1.contains("take too long to be matched"), "{pattern}: {issues:?}");
        assert!(started.elapsed().as_secs() < 10, "{pattern} took {:?}", started.elapsed());
    }
    // The time is that of one validation.
    let texts = vec!["abc"; 5000];
    assert!(check(schema("^(?!x)"), json!({ "l": texts })).is_ok());
    assert_eq!(
        check(schema("^(?!x)"), json!({ "l": ["xyz", 5] })).expect_err("no match"),
        [
            ("l.0".to_owned(), "must match pattern \"^(?!x)\", got string \"xyz\"".to_owned()),
            ("l.1".to_owned(), "must be string, got number 5".to_owned())
        ]
    );
}

#[test]
fn brackets_in_strings_do_not_make_a_text_look_shallow() {
    let union = json!({ "type": "object", "properties": { "v": { "$ref": "#/$defs/n" } }, "$defs": { "n": { "anyOf": [
        { "properties": { "a": { "$ref": "#/$defs/n" } } }, { "properties": { "a": { "$ref": "#/$defs/n" } } }
    ] } } });
    let schema = Schema::compile(&union.to_string()).unwrap();
    let deep = |inner: &str| format!("{{\"v\":{}{inner}{}}}", "{\"a\":".repeat(60), "}".repeat(60));
    assert!(schema.takes_text(r#"{"v":{"a":1}}"#));
    for inner in ["1", r#""}}}}}}}}}}}}}}}}}}}}}}""#, r#""\"}}}}}}""#] {
        let escaped = format!("{{\"x\":\"{}\",{}", "}".repeat(80), &deep(inner)[1..]);
        assert!(!schema.takes_text(&deep(inner)), "{inner}");
        assert!(!schema.takes_text(&escaped), "{inner}");
    }
}
