//! A panic of ours is a typed error of one call or one request, never the end of the host process.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};

use blade_agent_sdk::agent::{Conversation, EventQueue, FrameText, Take};
use blade_agent_sdk::contract::{
    AnyTool, Arguments, Behavior, BoxFuture, PrepareContext, Prepared, SourceInfo, Subject, ToolContext, ToolFailure,
    ToolKind, ToolOutcome, ToolSpec,
};
use blade_agent_sdk::error::Result;
use blade_agent_sdk::host::{CancelToken, EnvSnapshot};
use blade_agent_sdk::model::{Content, SessionId};
use blade_agent_sdk::providers::scripted::Script;
use blade_agent_sdk::providers::{Model, ModelRequest, ModelStream};
use blade_agent_sdk::schema::Schema;
use blade_agent_sdk::session::{Ports, SendOptions, Session, SessionConfig};
use serde_json::Value;

/// Where a [`PanickingTool`] panics.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Prepare,
    Call,
    Await,
}

struct PanickingTool {
    spec: ToolSpec,
    at: At,
}

fn panicking_tool(at: At) -> Arc<dyn AnyTool> {
    let schema = Schema::compile(r#"{"type":"object"}"#).unwrap();
    Arc::new(PanickingTool { spec: ToolSpec::new("Boom", "panics", schema, Behavior::of(ToolKind::ReadOnly)), at })
}

impl AnyTool for PanickingTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a PrepareContext,
    ) -> BoxFuture<'a, std::result::Result<Prepared, ToolFailure>> {
        let (behavior, panics) = (self.spec.behavior, self.at == At::Prepare);
        Box::pin(async move {
            assert!(!panics, "the tool is broken");
            Ok(Prepared { arguments, behavior, subject: Subject::default() })
        })
    }

    fn execute(&self, _: Arguments, _: ToolContext) -> BoxFuture<'_, ToolOutcome> {
        assert!(self.at != At::Call, "the tool is broken");
        Box::pin(async {
            tokio::task::yield_now().await;
            panic!("the tool is broken")
        })
    }
}

struct PanickingModel;

impl Model for PanickingModel {
    fn stream<'a>(&'a self, _: ModelRequest, _: &'a CancelToken) -> BoxFuture<'a, Result<Box<dyn ModelStream>>> {
        Box::pin(async { panic!("the model is broken") })
    }
}

fn session(model: Arc<dyn Model>, tools: Vec<Arc<dyn AnyTool>>) -> Arc<Session> {
    let config = SessionConfig::parse(r#"{"profile":"server","model":"m","permissionMode":"yolo"}"#).unwrap();
    let tools = tools.into_iter().map(|tool| (tool, SourceInfo::custom())).collect();
    let parts =
        config.into_parts(SessionId::generate(), model, tools, Ports::default(), Conversation::default()).unwrap();
    Arc::new(Session::new(parts))
}

/// Runs one request and gives its events that are no text.
fn ask(session: &Arc<Session>) -> Vec<Value> {
    let (ready, woken) = mpsc::channel();
    let queue = Arc::new(EventQueue::new(move || {
        let _ = ready.send(());
    }));
    session.send(Content::Text("go".into()), SendOptions::default(), EnvSnapshot::default()).unwrap();
    session.start(false, queue.clone()).unwrap();
    let mut events = Vec::new();
    loop {
        match queue.take() {
            Take::Ended => return events,
            Take::Empty => woken.recv().unwrap(),
            Take::Frame(frame) => {
                let FrameText::Narrow(bytes) = frame.text else { panic!("the events are ASCII") };
                let mut at = 0;
                for mark in frame.marks {
                    let end = at + (mark & ((1 << 30) - 1)) as usize;
                    if mark >> 30 == 2 {
                        events.push(serde_json::from_slice(&bytes[at..end]).unwrap());
                    }
                    at = end;
                }
            }
        }
    }
}

fn last_of<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events.iter().rfind(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {events:?}"))
}

#[test]
fn a_panicking_tool_is_an_error_result_and_the_session_goes_on() {
    for at in [At::Prepare, At::Call, At::Await] {
        let script = Script::parse(r#"{"turns":[{"toolCalls":[{"name":"Boom"},{"name":"Boom"}]},"noticed","fine"]}"#);
        let session = session(script.unwrap().model(), vec![panicking_tool(at)]);
        let events = ask(&session);
        let results: Vec<_> = events.iter().filter(|event| event["type"] == "tool_result").collect();
        assert_eq!(results.len(), 2);
        for result in results {
            assert_eq!(result["isError"], true);
            assert!(
                result["output"]
                    .as_str()
                    .is_some_and(|text| text.contains("internal failure in the tool: the tool is broken")),
                "{result}"
            );
        }
        assert_eq!(last_of(&events, "result")["content"], "noticed");
        assert_eq!(last_of(&ask(&session), "result")["content"], "fine");
        assert!(session.close_now());
    }
}

#[test]
fn a_panic_of_the_driver_is_an_internal_error_of_its_request() {
    let session = session(Arc::new(PanickingModel), Vec::new());
    for _ in 0..2 {
        let events = ask(&session);
        assert_eq!(last_of(&events, "error")["code"], "INTERNAL");
    }
    assert!(session.close_now());
}

#[test]
fn every_function_javascript_can_call_contains_panics() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bindings");
    let mut functions = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        for (at, line) in source.lines().enumerate() {
            let Some(attribute) = line.trim().strip_prefix("#[napi") else { continue };
            functions += 1;
            // An `async fn` would outlive its environment; what takes time answers through the mailbox.
            let declared = source.lines().skip(at + 1).find(|line| line.contains("fn ")).unwrap_or_default();
            assert!(attribute.contains("catch_unwind"), "{}:{}: {line} lets panics through", path.display(), at + 1);
            assert!(!declared.contains("async fn"), "{}:{}: {declared} is async", path.display(), at + 1);
        }
    }
    assert!(functions > 20, "only {functions} functions were found");
}
