use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::ErrorCode;
use crate::model::{Content, ContentPart, ImageUrl, Message, ModelUsage, ToolCall};
use crate::providers::model::{FinishReason, ToolDeclaration, ToolDeclarations};

/// Writes down what a stream delivers; neighbouring text is joined, because pieces are no promise.
#[derive(Default)]
struct Recorder {
    events: Vec<Value>,
    /// Says that it is full on every other question.
    toggles: Option<std::cell::Cell<bool>>,
}

impl Recorder {
    fn joined(&mut self, kind: &str, delta: &str) {
        assert!(!delta.is_empty(), "empty deltas are not delivered");
        if let Some(Value::String(text)) = self.events.last_mut().and_then(|last| last.get_mut(kind)) {
            text.push_str(delta);
        } else {
            self.events.push(json!({ kind: delta }));
        }
    }
}

impl ModelSink for Recorder {
    fn text(&mut self, delta: &str) {
        self.joined("text", delta);
    }
    fn thinking(&mut self, delta: &str) {
        self.joined("thinking", delta);
    }
    fn tool_call(&mut self, call: ToolCall) {
        self.events.push(json!({"call": [call.id, call.name, call.arguments]}));
    }
    fn usage(&mut self, usage: ModelUsage) {
        self.events.push(json!({"usage": [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens]}));
    }
    fn finish(&mut self, reason: FinishReason) {
        self.events.push(json!({"finish": format!("{reason:?}")}));
    }
    fn is_full(&self) -> bool {
        self.toggles.as_ref().is_some_and(|full| full.replace(!full.get()))
    }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new(ToolDeclarations::default()),
        temperature: None,
        max_output_tokens: None,
        output_format: None,
        provider_options: None,
    }
}

type Outcome = std::result::Result<Vec<Value>, Failure>;

fn replay_all(pieces: &[&[u8]], toggles: bool) -> (Vec<Value>, Option<Failure>) {
    let mut sink = Recorder { toggles: toggles.then(Default::default), ..Recorder::default() };
    let mut stream = ChatStream::new();
    for piece in pieces {
        stream.push(Bytes::copy_from_slice(piece));
        loop {
            match stream.read(&mut sink) {
                Ok(Advance::Paused) => {}
                Ok(Advance::More) => break,
                Ok(Advance::Done) => return (sink.events, None),
                Err(failure) => return (sink.events, Some(failure)),
            }
        }
    }
    let failure = stream.end(&mut sink).err();
    (sink.events, failure)
}

fn replay(pieces: &[&[u8]], toggles: bool) -> Outcome {
    let (events, failure) = replay_all(pieces, toggles);
    failure.map_or(Ok(events), Err)
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/sse/{name}", env!("CARGO_MANIFEST_DIR"))).expect(name)
}

fn frames(deltas: &[Value], finish: Option<&str>) -> String {
    let mut body = String::new();
    for delta in deltas {
        body.push_str(&format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]})));
    }
    if let Some(reason) = finish {
        body.push_str(&format!(
            "data: {}\n\n",
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        ));
    }
    body
}

fn call(delta: Value) -> Value {
    json!({"tool_calls": [delta]})
}

fn recorded() -> BTreeMap<&'static str, Vec<Value>> {
    let usage = json!({"usage": [5, 7, 12]});
    let calls = json!({"finish": "ToolCalls"});
    BTreeMap::from([
        ("comments.txt", vec![json!({"text": "ab"}), usage.clone(), json!({"finish": "Stop"})]),
        (
            "openai-cut.txt",
            vec![
                json!({"text": "Привет, 世界 🌍 — done?"}),
                json!({"call": ["a", "Read", "{\"file_path\":\"/ü/名.txt\"}"]}),
                usage.clone(),
                calls.clone(),
            ],
        ),
        (
            "openai-dup-ids.txt",
            vec![
                json!({"call": ["x", "Read", "{\"file_path\":\"/a\"}"]}),
                json!({"call": ["call_1", "Read", "{\"file_path\":\"/b\"}"]}),
                json!({"call": ["call_2", "Read", "{\"file_path\":\"/c\"}"]}),
                usage.clone(),
                calls.clone(),
            ],
        ),
        (
            "openai-empty-args.txt",
            vec![
                json!({"call": ["a", "Now", "{}"]}),
                json!({"call": ["b", "NeedsPath", "{}"]}),
                usage.clone(),
                calls.clone(),
            ],
        ),
        (
            "openai-no-index.txt",
            vec![
                json!({"call": ["a", "Read", "{\"file_path\":\"/a\"}"]}),
                json!({"call": ["b", "Read", "{\"file_path\":\"/b\"}"]}),
                usage.clone(),
                calls.clone(),
            ],
        ),
        (
            "openai-same-index.txt",
            vec![
                json!({"call": ["a", "Read", "{\"file_path\":\"/a\"}"]}),
                json!({"call": ["b", "Read", "{\"file_path\":\"/b\"}"]}),
                usage,
                calls,
            ],
        ),
    ])
}

#[test]
fn recorded_streams_give_the_same_events_wherever_they_are_cut() {
    for (name, expected) in recorded() {
        let body = fixture(name);
        for toggles in [false, true] {
            assert_eq!(replay(&[&body], toggles), Ok(expected.clone()), "{name} whole");
            for size in [1, 2, 3, 7, 64] {
                let pieces: Vec<&[u8]> = body.chunks(size).collect();
                assert_eq!(replay(&pieces, toggles), Ok(expected.clone()), "{name} in pieces of {size}");
            }
        }
        for cut in 0..body.len() {
            assert_eq!(replay(&[&body[..cut], &body[cut..]], false), Ok(expected.clone()), "{name} cut at {cut}");
        }
    }
}

#[test]
fn a_stream_that_ends_early_delivers_no_call_and_is_an_error() {
    let body = String::from_utf8(fixture("openai-cut.txt")).expect("utf-8");
    let expected = recorded().remove("openai-cut.txt").expect("known");
    let ends: Vec<usize> = body.match_indices("\n\n").map(|(at, _)| at + 2).collect();
    let finish = body.find("\"finish_reason\":\"tool_calls\"").expect("has one");
    for end in (0..body.len()).filter(|at| body.is_char_boundary(*at)) {
        let (events, failure) = replay_all(&[&body.as_bytes()[..end]], false);
        let complete = ends.iter().any(|at| *at > finish && end + 2 >= *at);
        match failure {
            Some(failure) => {
                assert!(!complete, "cut at {end}");
                assert_eq!(failure.error.code, ErrorCode::ModelStreamError);
                assert!(failure.error.message.contains("ended early"), "{}", failure.error);
                assert!(events.iter().all(|event| event.get("call").is_none()), "cut at {end}: {events:?}");
            }
            None => {
                assert!(complete, "cut at {end}");
                assert_eq!(events.last(), expected.last());
            }
        }
    }
}

#[test]
fn servers_that_differ_are_understood() {
    let whole = |id: Value, arguments: Value| json!({"id": id, "function": {"name": "T", "arguments": arguments}});
    let rows: Vec<(&str, String, Value)> = vec![
        (
            "[DONE] without a finish_reason",
            frames(&[json!({"content": "a"})], None) + "data: [DONE]\n\n",
            json!([{"text": "a"}, {"finish": "Stop"}]),
        ),
        (
            "no [DONE] and no final blank line",
            frames(&[json!({"content": "a"})], Some("stop")).trim_end().to_owned(),
            json!([{"text": "a"}, {"finish": "Stop"}]),
        ),
        (
            "reasoning under both names, once",
            frames(
                &[
                    json!({"reasoning_content": "a", "reasoning": "a"}),
                    json!({"reasoning": "b"}),
                    json!({"reasoning_content": "", "content": null}),
                    json!({"content": "c"}),
                ],
                Some("stop"),
            ),
            json!([{"thinking": "ab"}, {"text": "c"}, {"finish": "Stop"}]),
        ),
        (
            "content in parts",
            frames(&[json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})], Some("stop")),
            json!([{"text": "ab"}, {"finish": "Stop"}]),
        ),
        (
            "interleaved pieces, name in pieces",
            frames(
                &[
                    call(json!({"index": 0, "id": "a", "function": {"name": "Re", "arguments": ""}})),
                    call(json!({"index": 1, "id": "b", "function": {"name": "Write"}})),
                    call(json!({"index": 0, "function": {"name": "ad", "arguments": "{\"x\""}})),
                    call(json!({"index": 1, "function": {"arguments": "{\"y\":"}})),
                    call(json!({"index": 0, "function": {"arguments": ":1}"}})),
                    call(json!({"index": 1, "function": {"arguments": "2}"}})),
                ],
                Some("tool_calls"),
            ),
            json!([{"call": ["a", "Read", "{\"x\":1}"]}, {"call": ["b", "Write", "{\"y\":2}"]}, {"finish": "ToolCalls"}]),
        ),
        (
            "id and name repeated in each delta",
            frames(
                &[
                    call(json!({"index": 0, "id": "a", "function": {"name": "Read", "arguments": "{"}})),
                    call(json!({"index": 0, "id": "a", "function": {"name": "Read", "arguments": "}"}})),
                    call(json!({"index": 0, "id": "a", "function": {"name": "Read", "arguments": ""}})),
                ],
                Some("tool_calls"),
            ),
            json!([{"call": ["a", "Read", "{}"]}, {"finish": "ToolCalls"}]),
        ),
        (
            "whole calls without index and id, arguments as an object",
            frames(&[call(whole(Value::Null, json!({"a": 1}))), call(whole(json!(""), json!("{\"a\":2}")))], Some("stop")),
            json!([{"call": ["call_0", "T", "{\"a\":1}"]}, {"call": ["call_1", "T", "{\"a\":2}"]}, {"finish": "ToolCalls"}]),
        ),
        (
            "a whole call with an id after one without",
            frames(&[call(whole(Value::Null, json!("{}"))), call(whole(json!("b"), json!("{}")))], Some("stop")),
            json!([{"call": ["call_0", "T", "{}"]}, {"call": ["b", "T", "{}"]}, {"finish": "ToolCalls"}]),
        ),
        (
            "calls announced but not made",
            frames(&[json!({"content": "x"})], Some("tool_calls")),
            json!([{"text": "x"}, {"finish": "Stop"}]),
        ),
        (
            "malformed arguments stay as they came",
            frames(&[call(whole(json!("a"), json!("{\"a\":")))], Some("tool_calls")),
            json!([{"call": ["a", "T", "{\"a\":"]}, {"finish": "ToolCalls"}]),
        ),
        (
            "a cut answer's calls are not delivered",
            frames(&[json!({"content": "x"}), call(whole(json!("a"), json!("{}")))], Some("length")),
            json!([{"text": "x"}, {"finish": "Length"}]),
        ),
        (
            "an unknown reason",
            frames(&[json!({"content": "x"})], Some("pause_turn")),
            json!([{"text": "x"}, {"finish": "Other(\"pause_turn\")"}]),
        ),
        (
            "a refusal",
            frames(&[json!({"refusal": "no"})], Some("stop")),
            json!([{"text": "no"}, {"finish": "Refusal"}]),
        ),
        (
            "usage beside the reason, empty choices, null error",
            "data: {\"choices\":[],\"error\":null}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n".to_owned(),
            json!([{"text": "x"}, {"usage": [1, 2, 3]}, {"finish": "Stop"}]),
        ),
    ];
    for (name, body, expected) in rows {
        assert_eq!(replay(&[body.as_bytes()], false).map(Value::from), Ok(expected.clone()), "{name}");
        let single: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
        assert_eq!(replay(&single, true).map(Value::from), Ok(expected), "{name} byte by byte");
    }
}

#[test]
fn broken_utf8_in_a_text_becomes_the_replacement_character() {
    let mut body =
        b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xFFb\"},\"finish_reason\":\"stop\"}]}\n\n".to_vec();
    body.extend_from_slice(b"data: [DONE]\n\n");
    assert_eq!(replay(&[&body], false), Ok(vec![json!({"text": "a\u{FFFD}b"}), json!({"finish": "Stop"})]));
}

#[test]
fn faults_in_the_stream_are_typed() {
    let rows = [
        ("data: {\"choices\":[{\"delta\":{\"content\":\"oops\n\n", ErrorCode::ModelProtocolError, "oops"),
        ("data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\"}}\n\n", ErrorCode::ModelStreamError, "busy"),
        ("data: {\"error\":\"plain\"}\n\n", ErrorCode::ModelStreamError, "plain"),
        ("data: {\"object\":\"error\",\"message\":\"odd\",\"code\":400}\n\n", ErrorCode::ModelStreamError, "odd"),
        ("event: error\ndata: {\"message\":\"named\"}\n\n", ErrorCode::ModelStreamError, "named"),
        ("data: [1]\n\n", ErrorCode::ModelProtocolError, "[1]"),
        ("", ErrorCode::ModelStreamError, "ended early"),
    ];
    for (body, code, part) in rows {
        let failure = replay(&[body.as_bytes()], false).expect_err(body);
        assert_eq!(failure.error.code, code, "{body}");
        assert!(failure.error.message.contains(part), "{body}: {}", failure.error);
        assert!(failure.error.message.len() < 600, "{body}");
    }
}

#[test]
fn ids_are_unique_in_an_answer_and_given_ones_are_kept() {
    let delta = |index: u32, id: &str| call(json!({"index": index, "id": id, "function": {"name": "T"}}));
    let body = frames(&[delta(0, "call_1"), delta(1, ""), delta(2, "call_1")], Some("tool_calls"));
    let (events, failure) = replay_all(&[body.as_bytes()], false);
    assert_eq!(failure, None);
    let ids: Vec<&Value> = events.iter().filter_map(|event| event["call"].get(0)).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3"]);
}

#[test]
fn counts_of_another_form_do_not_cost_the_answer() {
    for usage in [json!({"prompt_tokens": -1}), json!({"prompt_tokens": "5"}), json!("many"), json!(null)] {
        let frame =
            json!({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": usage});
        let (events, failure) = replay_all(&[format!("data: {frame}\n\ndata: [DONE]\n\n").as_bytes()], false);
        assert_eq!(failure, None, "{usage}");
        assert_eq!(events, [json!({"text": "hi"}), json!({"finish": "Stop"})], "{usage}");
    }
}

#[test]
fn a_completion_without_a_stream_is_an_answer_too() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
        "content": "hi", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "T", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}});
    let mut sink = Recorder::default();
    let read = |body: &Value, sink: &mut Recorder| read_completion(body.to_string().as_bytes(), sink);
    assert_eq!(read(&body, &mut sink), Ok(Advance::Done));
    assert_eq!(
        Value::from(sink.events),
        json!([{"text": "hi"}, {"call": ["a", "T", "{}"]}, {"usage": [1, 1, 2]}, {"finish": "ToolCalls"}])
    );
    let failure = read(&json!({"hello": 1}), &mut Recorder::default()).expect_err("no completion");
    assert_eq!(failure.error.code, ErrorCode::ModelProtocolError);
}

fn dialect() -> Dialect {
    Dialect { kind: "openai-compatible".into(), id: "mine".into(), limit: "max_tokens" }
}

#[test]
fn a_name_no_server_takes_back_is_sent_in_a_form_it_does() {
    let openai = Dialect { kind: "openai".into(), ..dialect() };
    let long = "n".repeat(200);
    for (name, compatible, own) in [
        ("Read", "Read", "Read"),
        ("", "unnamed", "unnamed"),
        ("no such\ntool", "no_such_tool", "no_such_tool"),
        ("functions.Read", "functions.Read", "functions_Read"),
        ("été", "été", "_t_"),
        (&long, &long[..128], &long[..64]),
    ] {
        for (dialect, expected) in [(&dialect(), compatible), (&openai, own)] {
            let call = ToolCall { id: "a".into(), name: name.into(), arguments: "{}".into() };
            let messages = vec![Message::assistant("", None, vec![call]), Message::tool("a", name, "not found")];
            let body = request::body(&request(messages), dialect, None).expect("fine");
            let body: Value = serde_json::from_slice(&body).expect("json");
            assert_eq!(body["messages"][0]["tool_calls"][0]["function"]["name"], json!(expected), "{name:?}");
        }
    }
}

#[test]
fn the_body_is_what_the_protocol_wants() {
    let text_part = |text: &str, options| ContentPart::Text { text: text.into(), provider_options: options };
    let bad = |id: &str, arguments: &str| ToolCall { id: id.into(), name: "T".into(), arguments: arguments.into() };
    let mut request = request(vec![
        Message::system("s"),
        Message::user(Content::Parts(vec![
            text_part(
                "look \"here\"",
                Some(json!({"mine": {"cache_control": {"type": "ephemeral"}}, "other": {"x": 1}})),
            ),
            ContentPart::ImageUrl { image_url: ImageUrl { url: "data:image/png;base64,AA==".into() } },
        ])),
        Message::assistant(
            "",
            Some("secret thoughts".into()),
            vec![bad("a", "{\"x\":1}"), bad("b", "{\"x\""), bad("c", "5")],
        ),
        Message::tool("a", "T", "out"),
        Message::assistant("", None, vec![]),
    ]);
    request.temperature = Some(0.7);
    request.output_format = Some(Arc::from(
        serde_json::value::RawValue::from_string(r#"{"type":"json_schema","json_schema":{"name":"n"}}"#.into())
            .expect("json"),
    ));
    request.provider_options = Some(Arc::new(
        json!({"openai-compatible": {"seed": 1, "reasoningEffort": "low"}, "mine": {"seed": 2}, "anthropic": {"x": 1}}),
    ));
    request.tools = Arc::new(ToolDeclarations::new(vec![ToolDeclaration {
        name: "T".into(),
        description: "does\nthings".into(),
        schema: r#"{"type":"object", "zeta":1,"alpha":1.0}"#.into(),
        strict: Some(true),
    }]));
    let body = String::from_utf8(request::body(&request, &dialect(), Some(99)).expect("fine")).expect("utf-8");
    assert!(body.contains(r#""parameters":{"type":"object", "zeta":1,"alpha":1.0}"#), "the schema is sent unchanged");
    let tool_call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "T", "arguments": arguments}});
    let value: Value = serde_json::from_str(&body).expect("json");
    assert_eq!(
        value,
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": [
                    {"type": "text", "text": "look \"here\"", "cache_control": {"type": "ephemeral"}},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                ]},
                {"role": "assistant", "content": null,
                 "tool_calls": [tool_call("a", "{\"x\":1}"), tool_call("b", "{}"), tool_call("c", "{}")]},
                {"role": "tool", "tool_call_id": "a", "content": "out"},
                {"role": "assistant", "content": ""},
            ],
            "tools": [{"type": "function", "function": {"name": "T", "description": "does\nthings",
                "parameters": {"type": "object", "zeta": 1, "alpha": 1.0}, "strict": true}}],
            "temperature": 0.7,
            "max_tokens": 99,
            "response_format": {"type": "json_schema", "json_schema": {"name": "n"}},
            "seed": 2,
            "reasoning_effort": "low",
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
    assert_eq!(body.matches("\"seed\"").count(), 1, "no key is written twice");
}

#[test]
fn options_replace_our_fields_but_not_the_conversation() {
    let with = |options: Value| {
        let mut request = request(vec![]);
        request.temperature = Some(0.7);
        request.provider_options = Some(Arc::new(json!({ "mine": options })));
        request::body(&request, &dialect(), None)
    };
    let body = String::from_utf8(with(json!({"temperature": 0})).expect("fine")).expect("utf-8");
    assert_eq!(body.matches("temperature").count(), 1);
    assert!(body.contains("\"temperature\":0"), "{body}");
    for bad in [json!({"messages": []}), json!({"stream": false}), json!(5)] {
        assert_eq!(with(bad).expect_err("refused").code, ErrorCode::ConfigError);
    }
}

#[test]
fn results_without_their_call_are_not_sent() {
    let call = |id: &str| ToolCall { id: id.into(), name: "T".into(), arguments: "{}".into() };
    let request = request(vec![
        Message::tool("lost", "T", "x"),
        Message::assistant("", None, vec![call("a"), call("b")]),
        Message::tool("b", "T", "x"),
        Message::tool("other", "T", "x"),
        Message::tool("a", "T", "x"),
        Message::user(Content::Text("u".into())),
        Message::tool("a", "T", "x"),
    ]);
    let body: Value = serde_json::from_slice(&request::body(&request, &dialect(), None).expect("fine")).expect("json");
    let sent: Vec<&str> = body["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|message| message["tool_call_id"].as_str())
        .collect();
    assert_eq!(sent, ["b", "a"]);
}

#[test]
fn a_message_is_encoded_once() {
    let mut request = request(vec![Message::system("s")]);
    let first = request::body(&request, &dialect(), None).expect("fine");
    let before = request.messages[0].wire(|_| unreachable!("encoded by the first body")).as_ptr();
    request.messages.push(Arc::new(Message::user(Content::Text("u".into()))));
    let second = request::body(&request, &dialect(), None).expect("fine");
    assert!(second.len() > first.len());
    assert_eq!(request.messages[0].wire(|_| unreachable!("still encoded")).as_ptr(), before);
}

proptest! {
    #[test]
    fn no_stream_of_bytes_makes_the_parser_panic(
        parts in prop::collection::vec(
            "(data: |data:|\n\n|\r|\\[DONE\\]|\\{\"choices\":\\[\\{\"delta\":\\{\"content\":\"x\"\\}\\}\\]\\}|\\{|\\}|\"|,|null|tool_calls|[a-z:])", 0..40),
        size in 1usize..9,
    ) {
        let body = parts.concat();
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
        let whole = replay(&[body.as_bytes()], false);
        prop_assert_eq!(replay(&pieces, true), whole);
    }
}
