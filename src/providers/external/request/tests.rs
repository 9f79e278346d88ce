use serde_json::{Value, json};

use super::*;
use crate::model::{Content, Role, ToolCall};

fn request(messages: &[&Arc<Message>], tools: &Arc<ToolDeclarations>) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        messages: messages.iter().map(|message| Arc::clone(message)).collect(),
        tools: Arc::clone(tools),
        temperature: Some(0.5),
        max_output_tokens: None,
        output_format: None,
        provider_options: None,
    }
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(Content::Text(text.into())))
}

fn tools(name: &str) -> Arc<ToolDeclarations> {
    let schema = r#"{"type":"object"}"#.into();
    Arc::new(ToolDeclarations::new(vec![ToolDeclaration {
        name: name.into(),
        description: "d".into(),
        schema,
        strict: None,
    }]))
}

#[test]
fn only_what_is_new_is_told() {
    let (told, system, a, b, c) = (Told::default(), Arc::new(Message::system("s")), user("a"), user("b"), user("c"));
    let (one, two) = (tools("One"), tools("Two"));
    let tell =
        |request: &ModelRequest| -> Value { told.tell(request, |text| serde_json::from_str(&text).unwrap()).unwrap() };
    let shape = |outline: &Value| {
        let contents = outline["messages"].as_array().unwrap().iter().map(|message| message["content"].clone());
        json!([
            outline["kept"],
            contents.collect::<Vec<_>>(),
            outline.get("tools").map(|tools| tools[0]["name"].clone())
        ])
    };
    for (messages, tools, expected) in [
        (vec![&system, &a], &one, json!([0, ["s", "a"], "One"])),
        (vec![&system, &a, &b], &one, json!([2, ["b"], null])),
        (vec![&system, &a, &b], &two, json!([3, [], "Two"])),
        (vec![&system, &c], &two, json!([1, ["c"], null])),
        (vec![&system, &a, &b], &two, json!([1, ["a", "b"], null])),
    ] {
        assert_eq!(shape(&tell(&request(&messages, tools))), expected);
    }
    let first = Told::default().tell(&request(&[], &one), |text| text).unwrap();
    assert_eq!(
        first,
        r#"{"model":"m","kept":0,"messages":[],"tools":[{"name":"One","description":"d","parameters":{"type":"object"}}]}"#
    );
}

#[test]
fn what_was_not_changed_is_the_same_value() {
    let (a, b, one) = (user("a"), user("b"), tools("One"));
    let same = changed(request(&[&a, &b], &one), "{}").unwrap();
    assert!(Arc::ptr_eq(&same.messages[1], &b) && Arc::ptr_eq(&same.tools, &one));
    let message = json!({"role": "assistant", "content": "said", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "T", "arguments": "{}"}}]});
    let tool = json!({"name": "Two", "description": "x", "parameters": {"type": "object"}, "strict": true});
    let changes = json!({"messages": [1, message, 0], "tools": [tool]}).to_string();
    let other = changed(request(&[&a, &b], &one), &changes).unwrap();
    assert!(Arc::ptr_eq(&other.messages[0], &b) && Arc::ptr_eq(&other.messages[2], &a));
    assert_eq!(other.messages[1].role, Role::Assistant);
    assert_eq!(other.messages[1].tool_calls, [ToolCall { id: "c".into(), name: "T".into(), arguments: "{}".into() }]);
    assert_eq!((&*other.tools.list[0].name, other.tools.list[0].strict), ("Two", Some(true)));
    assert_eq!(other.temperature, Some(0.5));
}

#[test]
fn changes_that_make_no_request_are_refused_by_name() {
    let (a, one) = (user("a"), tools("One"));
    for (changes, expected) in [
        (json!({"messages": "x"}), "invalid type"),
        (json!({"messages": [7]}), "messages[0]"),
        (json!({"messages": [0, {"content": "x"}]}), "messages[1]: missing field `role`"),
        (json!({"messages": [{"role": "robot", "content": "x"}]}), "unknown variant `robot`"),
        (json!({"tools": [{"name": "", "parameters": {}}]}), "tools[0] needs a name"),
        (json!({"tools": [{"name": "T", "parameters": true}]}), "tools[0] needs a name"),
        (json!({"tools": [{"name": "T"}]}), "missing field `parameters`"),
    ] {
        let error = changed(request(&[&a], &one), &changes.to_string()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        assert!(error.message.contains(expected), "{error}");
    }
}
