use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;
use crate::agent::{FrameText, MARK_LENGTH, Take};
use crate::contract::{
    AnyTool, Arguments, Behavior, BoxFuture, PrepareContext, Prepared, SourceInfo, Subject, ToolContext, ToolFailure,
    ToolKind, ToolOutcome, ToolSpec, ToolSuccess,
};
use crate::providers::Script;
use crate::schema::Schema;

/// A tool that holds until it is let go or told to stop.
struct Hold {
    spec: ToolSpec,
    began: Arc<Notify>,
    let_go: Arc<Notify>,
    hears: bool,
}

impl AnyTool for Hold {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn prepare<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a PrepareContext,
    ) -> BoxFuture<'a, std::result::Result<Prepared, ToolFailure>> {
        let behavior = self.spec.behavior;
        Box::pin(async move { Ok(Prepared { arguments, behavior, subject: Subject::default() }) })
    }
    fn execute(&self, _: Arguments, cx: ToolContext) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            self.began.notify_one();
            if self.hears {
                cx.cancel.run_until(self.let_go.notified()).await;
            } else {
                self.let_go.notified().await;
            }
            ToolOutcome::Success(ToolSuccess::new("held"))
        })
    }
}

struct Stage {
    session: Arc<Session>,
    script: Arc<Script>,
    began: Arc<Notify>,
    let_go: Arc<Notify>,
}

impl Stage {
    fn new(turns: Value) -> Self {
        Self::with(turns, true)
    }

    fn with(turns: Value, hears: bool) -> Self {
        let script = Script::parse(&json!({ "turns": turns }).to_string()).unwrap();
        let (began, let_go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let schema = Schema::compile(r#"{"type":"object"}"#).unwrap();
        let spec = ToolSpec::new("Hold", "holds", schema, Behavior::of(ToolKind::ReadOnly));
        let tool = Hold { spec, began: Arc::clone(&began), let_go: Arc::clone(&let_go), hears };
        let config = SessionConfig::parse(r#"{"model":"m"}"#).unwrap();
        let parts = config
            .into_parts(
                SessionId::generate(),
                script.model(),
                vec![(Arc::new(tool), SourceInfo::custom())],
                Ports::default(),
                Conversation::default(),
            )
            .unwrap();
        Self { session: Arc::new(Session::new(parts)), script, began, let_go }
    }

    fn send(&self, text: &str) -> Result<Submission> {
        self.session.send(Content::Text(text.into()), SendOptions::default(), EnvSnapshot::default())
    }

    /// Starts the pending request.
    fn stream(&self) -> Result<Reader> {
        let ready = Arc::new(Notify::new());
        let wake = Arc::clone(&ready);
        let events = Arc::new(EventQueue::new(move || wake.notify_one()));
        self.session.start(true, Arc::clone(&events))?;
        Ok(Reader { events, ready })
    }

    async fn ask(&self, text: &str) -> Vec<String> {
        self.send(text).unwrap();
        self.stream().unwrap().rest().await
    }
}

/// Reads the events of a request: deltas as `content …`, others by their type.
struct Reader {
    events: Arc<EventQueue>,
    ready: Arc<Notify>,
}

impl Reader {
    async fn rest(&self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            match self.events.take() {
                Take::Frame(frame) => read(&frame, &mut all),
                Take::Empty => self.ready.notified().await,
                Take::Ended => return all,
            }
        }
    }
}

fn read(frame: &crate::agent::Frame, all: &mut Vec<String>) {
    let units: Vec<u16> = match &frame.text {
        FrameText::Narrow(bytes) => bytes.iter().map(|&byte| u16::from(byte)).collect(),
        FrameText::Wide(units) => units.clone(),
    };
    let mut at = 0;
    for mark in &frame.marks {
        let end = at + (mark & MARK_LENGTH) as usize;
        let text = String::from_utf16(&units[at..end]).unwrap();
        at = end;
        all.push(match mark >> 30 {
            0 => format!("content {text}"),
            1 => format!("thinking {text}"),
            _ => serde_json::from_str::<Value>(&text).unwrap()["type"].as_str().unwrap().to_owned(),
        });
    }
}

fn code<T: std::fmt::Debug>(outcome: Result<T>) -> ErrorCode {
    outcome.unwrap_err().code
}

const CALL: &str = r#"{"toolCalls":[{"name":"Hold"}]}"#;

fn calls() -> Value {
    serde_json::from_str(CALL).unwrap()
}

#[tokio::test]
async fn a_request_runs_from_its_input_to_its_result_and_the_session_is_idle_before_the_stream_ends() {
    let stage = Stage::new(json!([{"thinking": "hm", "text": ["a", "b"]}, "second"]));
    let events = stage.ask("one").await;
    assert_eq!(events, ["turn_start", "thinking hm", "content a", "content b", "turn_end", "usage", "result"]);
    assert_eq!(stage.ask("two").await[1], "content second");
    let roles: Vec<_> = stage.session.conversation().snapshot().iter().map(|message| message.role).collect();
    use crate::model::Role::{Assistant, User};
    assert_eq!(roles, [User, Assistant, User, Assistant]);
}

#[tokio::test]
async fn inputs_are_refused_with_their_code_in_every_state() {
    let stage = Stage::new(json!([calls(), "x"]));
    let options = |expected: Option<RequestId>| SendOptions { expected, ..SendOptions::default() };
    let send = |options| stage.session.send(Content::Text("x".into()), options, EnvSnapshot::default());
    assert_eq!(code(stage.stream().map(|_| ())), ErrorCode::SessionNoPendingMessage);
    assert_eq!(code(send(options(Some(RequestId::generate())))), ErrorCode::SessionRequestMismatch);
    let pending = stage.send("one").unwrap();
    assert_eq!(stage.session.pending_input().unwrap().submission, pending);
    assert_eq!(code(stage.send("two")), ErrorCode::SessionSteeringUnavailable);
    let reader = stage.stream().unwrap();
    stage.began.notified().await;
    assert_eq!(code(stage.stream().map(|_| ())), ErrorCode::SessionNoPendingMessage);
    assert_eq!(code(send(options(None))), ErrorCode::SessionSteeringUnavailable);
    assert_eq!(code(send(options(Some(RequestId::generate())))), ErrorCode::SessionRequestMismatch);
    let with_turns = SendOptions { max_turns: Some(1), ..SendOptions::default() };
    assert_eq!(code(send(with_turns)), ErrorCode::SessionInputOptionsUnsupported);
    stage.let_go.notify_one();
    reader.rest().await;
    stage.session.close().await.unwrap();
    assert_eq!(code(stage.send("late")), ErrorCode::SessionClosed);
    assert_eq!(code(stage.stream().map(|_| ())), ErrorCode::SessionClosed);
}

#[tokio::test]
async fn an_abort_works_in_every_state_and_the_next_request_is_one_a_provider_accepts() {
    let stage = Stage::new(json!([calls(), "after"]));
    assert!(stage.session.abort().is_none(), "idle: nothing to wait for");
    stage.send("dropped").unwrap();
    assert!(stage.session.abort().is_none(), "pending: the input is forgotten");
    assert!(stage.session.pending_input().is_none());
    stage.send("one").unwrap();
    let reader = stage.stream().unwrap();
    stage.began.notified().await;
    stage.session.abort().unwrap().cancelled().await;
    let events = reader.rest().await;
    assert_eq!(events, ["turn_start", "tool_use", "tool_result"], "no terminal event after an abort");
    assert!(stage.session.abort().is_none());
    assert_eq!(stage.ask("two").await[1], "content after");
    assert_eq!(stage.script.len(), 2, "the script checked both requests and found no orphan");
}

#[tokio::test]
async fn a_second_abort_waits_for_the_same_end() {
    // Deaf for a moment, so that the request is still stopping when the second abort comes.
    let stage = Stage::with(json!([calls()]), false);
    stage.send("x").unwrap();
    let reader = stage.stream().unwrap();
    stage.began.notified().await;
    let (first, second) = (stage.session.abort().unwrap(), stage.session.abort().unwrap());
    stage.let_go.notify_one();
    tokio::join!(first.cancelled(), second.cancelled());
    reader.rest().await;
    assert!(stage.session.abort().is_none());
}

#[tokio::test(start_paused = true)]
async fn whoever_aborts_waits_for_what_ignores_its_signal_as_long_as_one_may_clean_up_and_no_longer() {
    let stage = Stage::new(json!([]));
    assert!(stage.session.settled(None).is_none(), "quiet");
    let (callback, tasks) = (Arc::new(Notify::new()), Tasks::new());
    let deaf = Arc::clone(&callback);
    let cleanup = stage.session.pipeline().cleanup();
    cleanup.finish_in_background("a callback", &tasks, async move { deaf.notified().await });
    let began = tokio::time::Instant::now();
    // The request itself took two seconds of the grace.
    let ended = CancelToken::new();
    let end = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        ended.cancel(CancelReason::Gone);
    };
    tokio::join!(stage.session.settled(Some(ended.clone())).expect("a request is under way"), end);
    assert_eq!(began.elapsed().as_secs(), CLEANUP_GRACE.as_secs());
    let settled = stage.session.settled(None).expect("the callback goes on");
    callback.notify_one();
    settled.await;
    assert_eq!(began.elapsed().as_secs(), CLEANUP_GRACE.as_secs());
    assert!(stage.session.settled(None).is_none(), "quiet");
}

#[tokio::test]
async fn an_abort_names_its_request_and_leaves_the_next_one_alone() {
    let stage = Stage::new(json!(["x", calls(), "y"]));
    let old = stage.send("one").unwrap();
    stage.stream().unwrap().rest().await;
    stage.send("two").unwrap();
    let reader = stage.stream().unwrap();
    stage.began.notified().await;
    assert!(stage.session.abort_request(&old.request_id).is_none());
    stage.let_go.notify_one();
    assert_eq!(reader.rest().await.last().map(String::as_str), Some("result"));
}

#[tokio::test]
async fn closing_works_in_every_state_and_twice() {
    for (name, begin) in [("idle", 0), ("pending", 1), ("running", 2), ("stopping", 3)] {
        let stage = Stage::new(json!([calls()]));
        let mut reader = None;
        if begin >= 1 {
            stage.send("x").unwrap();
        }
        if begin >= 2 {
            reader = Some(stage.stream().unwrap());
            stage.began.notified().await;
        }
        if begin >= 3 {
            stage.session.abort();
        }
        let (one, two) = tokio::join!(stage.session.close(), stage.session.close());
        assert_eq!((one, two), (Ok(()), Ok(())), "{name}");
        assert!(stage.session.is_closed(), "{name}");
        if let Some(reader) = reader {
            let events = reader.rest().await;
            assert!(!events.iter().any(|event| event == "result" || event == "error"), "{name}: {events:?}");
        }
        assert_eq!(code(stage.send("late")), ErrorCode::SessionClosed, "{name}");
    }
}

#[tokio::test]
async fn closing_at_once_is_refused_while_something_is_under_way() {
    let stage = Stage::new(json!([calls()]));
    stage.send("x").unwrap();
    let reader = stage.stream().unwrap();
    stage.began.notified().await;
    assert!(!stage.session.close_now());
    stage.session.abort().unwrap().cancelled().await;
    reader.rest().await;
    assert!(stage.session.close_now());
    assert!(stage.session.close_now(), "closing a closed Session is nothing");
}

#[tokio::test]
async fn no_event_is_lost_to_a_slow_consumer() {
    let deltas: Vec<String> = (0..9_000).map(|n| format!("{n} é,")).collect();
    let stage = Stage::new(json!([{ "text": deltas }]));
    stage.send("x").unwrap();
    let reader = stage.stream().unwrap();
    let mut all = Vec::new();
    loop {
        tokio::task::yield_now().await;
        match reader.events.take() {
            Take::Frame(frame) => read(&frame, &mut all),
            Take::Empty => reader.ready.notified().await,
            Take::Ended => break,
        }
    }
    let seen: Vec<&str> = all.iter().filter_map(|event| event.strip_prefix("content ")).collect();
    assert_eq!(seen, deltas);
    assert_eq!(all.last().map(String::as_str), Some("result"));
}

#[tokio::test]
async fn wherever_a_request_is_aborted_the_history_stays_one_a_provider_accepts() {
    for after in 0..12 {
        let turn = json!({"text": ["a", "b"], "toolCalls": [{"name": "Hold"}, {"name": "Hold"}, {"name": "Nope"}]});
        let stage = Stage::new(json!([turn, turn, "x", "after"]));
        stage.send("one").unwrap();
        let reader = stage.stream().unwrap();
        let mut seen = Vec::new();
        while seen.len() < after {
            match reader.events.take() {
                Take::Frame(frame) => read(&frame, &mut seen),
                Take::Empty => {
                    let wait = tokio::time::timeout(Duration::from_millis(20), reader.ready.notified());
                    if wait.await.is_err() {
                        stage.let_go.notify_one();
                    }
                }
                Take::Ended => break,
            }
        }
        if let Some(ended) = stage.session.abort() {
            ended.cancelled().await;
        }
        reader.rest().await;
        // A script that meets a broken conversation fails the request; one that has turns left goes on.
        stage.let_go.notify_waiters();
        stage.send("two").unwrap();
        let reader = stage.stream().unwrap();
        let stop = async {
            loop {
                stage.let_go.notify_one();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let events = tokio::select! {
            events = reader.rest() => events,
            () = stop => unreachable!(),
        };
        assert_eq!(events.last().map(String::as_str), Some("result"), "aborted after {after}: {events:?}");
    }
}

#[tokio::test]
async fn a_session_nobody_holds_cancels_what_it_started() {
    let stage = Stage::new(json!([calls()]));
    stage.send("x").unwrap();
    let reader = stage.stream().unwrap();
    stage.began.notified().await;
    let Stage { session, script: _script, began: _began, let_go: _let_go } = stage;
    session.root.cancel(CancelReason::Gone);
    drop(session);
    let events = reader.rest().await;
    assert!(!events.iter().any(|event| event == "result"));
}

#[tokio::test]
async fn settings_change_for_later_requests_and_a_bad_change_changes_nothing() {
    let stage = Stage::new(json!(["a", "b"]));
    stage.ask("one").await;
    assert_eq!(code(stage.session.change(r#"{"maxTurns":0,"model":"other"}"#)), ErrorCode::ConfigError);
    assert_eq!(code(stage.session.change(r#"{"colour":"red"}"#)), ErrorCode::ConfigError);
    stage.session.change(r#"{"model":"next","permissionMode":"plan"}"#).unwrap();
    stage.ask("two").await;
    let model = |n| serde_json::from_str::<Value>(&stage.script.request(n).unwrap()).unwrap()["model"].clone();
    assert_eq!((model(0), model(1)), (json!("m"), json!("next")));
    assert_eq!(stage.session.mode(), PermissionMode::Plan);
}
