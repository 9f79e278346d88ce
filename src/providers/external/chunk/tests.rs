use serde_json::{Value, json};

use super::*;

/// What a sink is told, in order.
#[derive(Default)]
struct Said(Vec<String>);

impl ModelSink for Said {
    fn text(&mut self, delta: &str) {
        self.0.push(format!("text {delta}"));
    }
    fn thinking(&mut self, delta: &str) {
        self.0.push(format!("thinking {delta}"));
    }
    fn tool_call(&mut self, call: ToolCall) {
        self.0.push(format!("call {} {} {}", call.id, call.name, call.arguments));
    }
    fn usage(&mut self, usage: ModelUsage) {
        self.0.push(format!("usage {} {}", usage.prompt_tokens, usage.completion_tokens));
    }
    fn finish(&mut self, reason: FinishReason) {
        self.0.push(format!("finish {}", reason.as_str()));
    }
    fn is_full(&self) -> bool {
        false
    }
}

fn said(batches: &[Value]) -> Result<Vec<String>, String> {
    let (mut reader, mut sink) = (ChunkReader::default(), Said::default());
    for batch in batches {
        reader.read(&batch.to_string(), &mut sink)?;
    }
    reader.finish(&mut sink)?;
    Ok(sink.0)
}

#[test]
fn chunks_become_what_a_sink_is_told() {
    let whole =
        |id: Value, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let piece = |index: u64, arguments: &str| json!({"index": index, "function": {"arguments": arguments}});
    let rows: Vec<(&str, Vec<Value>, Vec<&str>)> = vec![
        ("nothing", vec![json!([]), json!([{}])], vec![]),
        (
            "text and reasoning in order",
            vec![json!([{"reasoningContent": "hm"}, {"content": "a", "other": 1}]), json!([{"content": "b"}])],
            vec!["thinking hm", "text a", "text b"],
        ),
        ("absent and empty fields", vec![json!([{"content": "", "toolCalls": null, "usage": null}])], vec![]),
        (
            "whole calls with and without ids, after the text",
            vec![
                json!([{"toolCalls": [whole(json!("a"), "T"), whole(json!(null), "U")]}]),
                json!([{"toolCalls": [whole(json!(""), "V")]}, {"content": "late"}]),
            ],
            vec!["text late", "call a T {}", "call call_1 U {}", "call call_2 V {}"],
        ),
        (
            "pieces by index, in the order of their indexes",
            vec![json!([
                {"toolCalls": [{"index": 1, "id": "b", "function": {"name": "U", "arguments": ""}}]},
                {"toolCalls": [{"index": 0, "id": "a", "function": {"name": "T"}}, piece(1, "{\"y\":")]},
                {"toolCalls": [piece(0, "{\"x\":1}"), piece(1, "2}")]},
            ])],
            vec!["call a T {\"x\":1}", "call b U {\"y\":2}"],
        ),
        (
            "counts and reason, once",
            vec![json!([
                {"finishReason": "tool-calls", "usage": {"promptTokens": 1}},
                {"finishReason": "stop", "usage": {"promptTokens": 3, "completionTokens": 4}},
            ])],
            vec!["usage 3 4", "finish stop"],
        ),
        (
            "calls of a cut answer do not count",
            vec![json!([{"toolCalls": [piece(0, "{\"x")], "finishReason": "length"}])],
            vec!["finish length"],
        ),
    ];
    for (name, batches, expected) in rows {
        assert_eq!(said(&batches), Ok(expected.into_iter().map(str::to_owned).collect()), "{name}");
    }
}

#[test]
fn a_malformed_chunk_is_named() {
    for (chunk, expected) in [
        (json!({"content": 5}), "chunk 2 is malformed: invalid type: integer `5`, expected a string"),
        (json!("text"), "chunk 2 is malformed"),
        (json!({"toolCalls": {}}), "chunk 2 is malformed"),
        (json!({"usage": {"promptTokens": -1}}), "chunk 2 is malformed"),
        (json!({"toolCalls": [{"index": 0, "function": {"arguments": "{}"}}]}), "\"call_0\" of the answer has no"),
    ] {
        let error = said(&[json!([{"content": "fine"}, chunk])]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_is_written_reads_the_same() {
    let mut writer = ChunkWriter::default();
    assert_eq!(writer.take(), None);
    writer.thinking("hm");
    writer.text("\"quoted\"\n");
    for arguments in ["{}", "{\"a\":1}"] {
        writer.call(&ToolCall { id: "same".into(), name: "T".into(), arguments: arguments.into() });
    }
    writer.usage(&ModelUsage { prompt_tokens: 1, completion_tokens: 2, ..ModelUsage::default() });
    writer.reason(&FinishReason::ToolCalls);
    let batch: Value = serde_json::from_str(&writer.take().unwrap()).unwrap();
    assert_eq!(
        said(&[batch]).unwrap(),
        [
            "thinking hm",
            "text \"quoted\"\n",
            "call same T {}",
            "call call_1 T {\"a\":1}",
            "usage 1 2",
            "finish tool_calls"
        ]
    );
    assert_eq!((writer.len(), writer.take()), (0, None));
}
