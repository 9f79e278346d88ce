use super::super::tests::request;
use super::*;
use crate::host::CancelReason;

#[derive(Default)]
struct Recorder {
    events: Vec<String>,
    /// Full after so many events, until emptied.
    room: Option<usize>,
}

impl ModelSink for Recorder {
    fn text(&mut self, delta: &str) {
        self.events.push(format!("text {delta}"));
    }
    fn thinking(&mut self, delta: &str) {
        self.events.push(format!("thinking {delta}"));
    }
    fn tool_call(&mut self, call: ToolCall) {
        self.events.push(format!("call {} {} {}", call.id, call.name, call.arguments));
    }
    fn usage(&mut self, usage: ModelUsage) {
        self.events.push(format!("usage {}+{}", usage.prompt_tokens, usage.completion_tokens));
    }
    fn finish(&mut self, reason: FinishReason) {
        self.events.push(format!("finish {reason:?}"));
    }
    fn is_full(&self) -> bool {
        self.room.is_some_and(|room| self.events.len() >= room)
    }
}

async fn drive(script: &Arc<Script>, request: ModelRequest) -> (Vec<String>, Result<()>) {
    let mut sink = Recorder::default();
    let cancel = CancelToken::new();
    let outcome = async {
        let mut stream = script.model().stream(request, &cancel).await?;
        while stream.advance(&mut sink).await? != Advance::Done {}
        Ok(())
    }
    .await;
    (sink.events, outcome)
}

fn script(json: Value) -> Arc<Script> {
    Script::parse(&json.to_string()).expect("a script")
}

#[tokio::test]
async fn turns_are_played_in_order_with_deterministic_ids_and_counts() {
    let script = script(json!({"turns": [
        {"thinking": "hm", "text": ["a", "b"], "toolCalls": [{"name": "T", "input": {"x": 1}}, {"id": "own", "name": "U", "input": "{bad"}]},
        "done",
        {"text": "x", "usage": {"inputTokens": 3, "outputTokens": 4}, "finishReason": "length"},
        {"usage": false, "toolCalls": [{"name": "V"}]},
    ]}));
    let mut answers = Vec::new();
    for _ in 0..4 {
        let (events, outcome) = drive(&script, request()).await;
        assert_eq!(outcome, Ok(()));
        answers.push(events);
    }
    assert_eq!(
        answers,
        [
            vec![
                "thinking hm",
                "text a",
                "text b",
                "call call_1 T {\"x\":1}",
                "call own U {bad",
                "usage 1+5",
                "finish ToolCalls"
            ],
            vec!["text done", "usage 1+1", "finish Stop"],
            vec!["text x", "usage 3+4", "finish Length"],
            vec!["call call_2 V {}", "finish ToolCalls"],
        ]
    );
    assert_eq!((script.len(), script.turns_left()), (4, Some(0)));
}

#[tokio::test]
async fn running_past_the_end_names_the_number_of_turns() {
    let script = script(json!({"turns": ["only"]}));
    assert_eq!(drive(&script, request()).await.1, Ok(()));
    let error = drive(&script, request()).await.1.expect_err("past the end");
    assert_eq!(error.code, ErrorCode::InvalidRequest);
    assert!(error.message.contains("1 turn,") && error.message.contains("call 2"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn faults_go_through_the_retry_layer() {
    let rows = [
        (json!({"fault": {"kind": "http", "status": 500}}), vec!["text ok", "usage 1+1", "finish Stop"], None),
        (
            json!({"fault": {"kind": "http", "status": 429, "retryAfterMs": 90_000}}),
            vec!["text ok", "usage 1+1", "finish Stop"],
            None,
        ),
        (json!({"fault": {"kind": "disconnect"}}), vec!["text ok", "usage 1+1", "finish Stop"], None),
        (json!({"fault": {"kind": "http", "status": 401, "message": "who"}}), vec![], Some(ErrorCode::ModelHttpError)),
        (
            json!({"text": ["a", "b"], "fault": {"kind": "disconnect", "after": 1}}),
            vec!["text a"],
            Some(ErrorCode::ModelStreamError),
        ),
        (
            json!({"text": "a", "fault": {"kind": "error", "message": "odd", "after": 1}}),
            vec!["text a"],
            Some(ErrorCode::ModelStreamError),
        ),
        (json!({"fault": {"kind": "malformed"}}), vec![], Some(ErrorCode::ModelProtocolError)),
        (
            json!({"text": "a", "fault": {"kind": "hang", "after": 1}}),
            vec!["text a"],
            Some(ErrorCode::ModelStreamIdleTimeout),
        ),
    ];
    for (turn, events, code) in rows {
        let script = script(json!({"turns": [turn.clone(), "ok"]}));
        let (got, outcome) = drive(&script, request()).await;
        assert_eq!(got, events, "{turn}");
        assert_eq!(outcome.err().map(|error| error.code), code, "{turn}");
    }
}

#[tokio::test(start_paused = true)]
async fn waits_are_those_of_the_policy() {
    let start = tokio::time::Instant::now();
    let fault = |after: Option<u64>| json!({"fault": {"kind": "http", "status": 503, "retryAfterMs": after}});
    let script = script(json!({"turns": [fault(None), fault(Some(5000)), "ok"]}));
    assert_eq!(drive(&script, request()).await.1, Ok(()));
    let waited = start.elapsed().as_millis();
    assert!((5800..6300).contains(&waited), "{waited}");
    let impatient =
        Script::parse(&json!({"turns": [fault(None), fault(None), "ok"], "retry": {"initialDelayMs": 0}}).to_string());
    let start = tokio::time::Instant::now();
    assert_eq!(drive(&impatient.expect("a script"), request()).await.1, Ok(()));
    assert!(start.elapsed().as_millis() < 10);
}

#[tokio::test(start_paused = true)]
async fn cancelling_during_a_wait_or_a_hang_ends_it_at_once() {
    let long_wait = json!({"fault": {"kind": "http", "status": 429, "retryAfterMs": 500_000}});
    for turn in [long_wait, json!({"delayMs": 500_000}), json!({"fault": {"kind": "hang"}})] {
        let script = script(json!({"turns": [turn.clone(), "ok"]}));
        let cancel = CancelToken::new();
        let start = tokio::time::Instant::now();
        let work = async {
            let mut stream = script.model().stream(request(), &cancel).await?;
            let mut sink = Recorder::default();
            while stream.advance(&mut sink).await? != Advance::Done {}
            Ok::<(), Error>(())
        };
        let cancelling = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            cancel.cancel(CancelReason::Abort);
        };
        let (outcome, ()) = tokio::join!(work, cancelling);
        assert_eq!(outcome.expect_err("cancelled").code, ErrorCode::Abort, "{turn}");
        assert_eq!(start.elapsed().as_secs(), 2, "{turn}");
    }
}

#[tokio::test]
async fn a_cancelled_request_is_not_sent() {
    let script = script(json!({"turns": ["a"]}));
    let cancel = CancelToken::new();
    cancel.cancel(CancelReason::Close);
    let error = script.model().stream(request(), &cancel).await.err().expect("cancelled");
    assert_eq!((error.code, script.len()), (ErrorCode::Abort, 0));
    assert!(error.message.contains("closing"), "{error}");
}

#[tokio::test]
async fn a_full_sink_pauses_the_stream_between_events() {
    let script = script(json!({"turns": [{"text": ["a", "b", "c"], "usage": false}]}));
    let mut stream = script.model().stream(request(), &CancelToken::new()).await.expect("accepted");
    let mut sink = Recorder { room: Some(2), ..Recorder::default() };
    assert_eq!(stream.advance(&mut sink).await, Ok(Advance::Paused));
    assert_eq!(sink.events, ["text a", "text b"]);
    assert_eq!(stream.advance(&mut sink).await, Ok(Advance::Paused));
    sink.room = None;
    assert_eq!(stream.advance(&mut sink).await, Ok(Advance::Done));
    assert_eq!(sink.events, ["text a", "text b", "text c", "finish Stop"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_step_loses_neither_a_wait_nor_a_connection() {
    let script = script(
        json!({"turns": [{"fault": {"kind": "error", "message": "socket hang up"}}, {"text": "ok", "usage": false}]}),
    );
    let mut stream = script.model().stream(request(), &CancelToken::new()).await.expect("accepted");
    let mut sink = Recorder::default();
    let mut dropped = 0;
    loop {
        match tokio::time::timeout(Duration::from_millis(100), stream.advance(&mut sink)).await {
            Err(_) => dropped += 1,
            Ok(step) => {
                if step.expect("fine") == Advance::Done {
                    break;
                }
            }
        }
    }
    assert!((7..=12).contains(&dropped), "the wait of a second goes on: {dropped}");
    assert_eq!((sink.events, script.len()), (vec!["text ok".to_owned(), "finish Stop".to_owned()], 2));
}

#[tokio::test]
async fn every_request_is_checked_and_in_the_journal() {
    let script = script(json!({"turns": ["a", "b"]}));
    let mut bad = request();
    bad.messages.push(Arc::new(Message::tool("x", "T", "out")));
    let error = drive(&script, bad).await.1.expect_err("an orphan");
    assert_eq!(error.code, ErrorCode::InvalidRequest);
    assert!(error.message.contains("\"x\""), "{error}");
    let good = ModelRequest { temperature: Some(0.5), ..request() };
    assert_eq!(drive(&script, good).await.1, Ok(()));
    assert_eq!(script.len(), 2);
    let entry: Value = serde_json::from_str(&script.request(1).expect("two requests")).expect("json");
    assert_eq!((&entry["model"], &entry["temperature"], &entry["tools"]), (&json!("m"), &json!(0.5), &json!([])));
    assert_eq!(entry["messages"][0]["content"], json!("hi"));
    assert_eq!(script.request(2), None);
}

#[tokio::test]
async fn a_function_answers_from_the_request() {
    struct Echo;
    impl ScriptSource for Echo {
        fn next(&self, request_json: String) -> BoxFuture<'_, Result<String>> {
            Box::pin(async move {
                let request: Value = serde_json::from_str(&request_json).expect("json");
                match request["model"].as_str() {
                    Some("m") => Ok(json!({"text": request["messages"][0]["content"], "usage": false}).to_string()),
                    Some("wrong") => Ok(json!({"txt": 1}).to_string()),
                    _ => Err(Error::new(ErrorCode::HostGone, "gone")),
                }
            })
        }
    }
    let script = Script::from_source(Arc::new(Echo), "{}").expect("a script");
    assert_eq!(drive(&script, request()).await, (vec!["text hi".to_owned(), "finish Stop".to_owned()], Ok(())));
    let of = |model: &str| ModelRequest { model: model.into(), ..request() };
    let wrong = drive(&script, of("wrong")).await.1.expect_err("an unknown field");
    assert!(wrong.message.contains("script turn 2") && wrong.message.contains("txt"), "{wrong}");
    assert_eq!(drive(&script, of("none")).await.1.expect_err("gone").code, ErrorCode::HostGone);
}

#[test]
fn mistakes_in_a_script_name_turn_and_field() {
    let turn = |turn: Value| json!({"turns": ["fine", turn]});
    let rows = [
        (json!({}), "needs `turns`"),
        (json!({"turn": []}), "turn"),
        (turn(json!(5)), "script turn 2: must be a text or an object"),
        (turn(json!({"tool_calls": []})), "script turn 2: unknown field `tool_calls`"),
        (turn(json!({"toolCalls": [{"input": {}}]})), "missing field `name`"),
        (turn(json!({"toolCalls": [{"name": "T", "input": 5}]})), "input must be an object or a text"),
        (turn(json!({"toolCalls": [{"name": "T", "args": {}}]})), "unknown field `args`"),
        (turn(json!({"text": 5})), "text must be a text or a list"),
        (turn(json!({"usage": true})), "usage"),
        (turn(json!({"fault": {"kind": "flood"}})), "fault: unknown variant `flood`"),
        (turn(json!({"fault": {"kind": "http", "status": 200}})), "status must be from 400"),
        (turn(json!({"fault": {"kind": "hang", "status": 1}})), "unknown field `status`"),
        (json!({"turns": [], "retry": {"maxRetries": 1.5}}), "retry.maxRetries"),
        (json!({"turns": [], "streamIdleTimeoutMs": 0}), "streamIdleTimeoutMs"),
    ];
    for (json, part) in rows {
        let error = Script::parse(&json.to_string()).expect_err(part);
        assert_eq!(error.code, ErrorCode::ConfigError, "{json}");
        assert!(error.message.contains(part), "{json}: {error}");
    }
}
