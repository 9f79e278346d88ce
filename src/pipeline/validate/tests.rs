use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::super::{CallReport, PipelineConfig};
use super::*;
use crate::contract::{
    Behavior, BoxFuture, PermissionMode, PrepareContext, Rewrites, SourceInfo, Subject, Tool, ToolContext, ToolKind,
    ToolSpec, ToolSuccess, ToolYield, YieldSink,
};
use crate::error::Result as SdkResult;
use crate::hooks::{HookCounts, HookLimits, HookOutput, HookPort, Hooks};
use crate::host::{CancelToken, CleanupGate, EnvSnapshot};
use crate::model::{MessageId, SessionId, ToolCall};
use crate::permissions::{PermissionDecision, PermissionPort, PermissionRequest};
use crate::registry::{ExposurePolicy, RegistryBuilder};

thread_local! {
    static PARSED: Cell<usize> = const { Cell::new(0) };
    static PREPARED: Cell<usize> = const { Cell::new(0) };
}

#[derive(Deserialize)]
struct Params {
    #[serde(deserialize_with = "counted")]
    n: u32,
    #[serde(default)]
    todos: Vec<String>,
}

fn counted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    PARSED.set(PARSED.get() + 1);
    u32::deserialize(deserializer)
}

/// Answers with what it was given.
struct Echo(ToolSpec);

impl Tool for Echo {
    type Params = Params;

    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn subject(&self, params: &Params) -> Subject {
        Subject { content: Some(params.n.to_string()), ..Subject::default() }
    }

    async fn prepare(&self, _: &Params, _: &PrepareContext) -> Result<Rewrites, ToolFailure> {
        PREPARED.set(PREPARED.get() + 1);
        Ok(Rewrites::new())
    }

    async fn execute(&self, params: Params, _: ToolContext) -> Result<ToolSuccess, ToolFailure> {
        Ok(ToolSuccess::new(format!("{} {:?}", params.n, params.todos)))
    }
}

struct Silent;

impl YieldSink for Silent {
    fn emit(&self, _: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// Sets `n`, as a hook or as the handler.
struct Sets(u32);

impl Sets {
    fn input(&self) -> Option<Map<String, Value>> {
        Some(Map::from_iter([("n".to_owned(), json!(self.0))]))
    }
}

impl HookPort for Sets {
    fn run<'a>(
        &'a self,
        _: HookEvent,
        _: usize,
        _: &'a str,
        _: &'a CancelToken,
    ) -> BoxFuture<'a, SdkResult<HookOutput>> {
        let output = HookOutput { modified_input: self.input(), ..HookOutput::default() };
        Box::pin(std::future::ready(Ok(output)))
    }
}

impl PermissionPort for Sets {
    fn decide<'a>(
        &'a self,
        _: &'a PermissionRequest,
        _: &'a CancelToken,
    ) -> BoxFuture<'a, SdkResult<PermissionDecision>> {
        let decision =
            PermissionDecision::Allow { updated_input: self.input(), updated_permissions: None, effects: None };
        Box::pin(std::future::ready(Ok(decision)))
    }
}

/// Runs one call of a tool with this schema. The report, and how often its input was validated, prepared and parsed.
async fn run(schema: &str, hooks: &[HookEvent], handler: bool, arguments: &str) -> (CallReport, [usize; 3]) {
    let schema = Schema::compile(schema).unwrap();
    let spec = ToolSpec::new("Echo", "answers", Arc::clone(&schema), Behavior::of(ToolKind::Execute));
    let mut builder = RegistryBuilder::default();
    builder.register(Arc::new(Echo(spec)), SourceInfo::custom()).unwrap();
    let permission = handler.then(|| Arc::new(Sets(9)) as Arc<dyn PermissionPort>);
    let counts: HookCounts = hooks.iter().map(|event| (*event, 1)).collect();
    let port = Some(Arc::new(Sets(7)) as Arc<dyn HookPort>);
    let hooks = Hooks::new(SessionId::new("s"), port, counts, HookLimits::default(), CleanupGate::default());
    let pipeline = Pipeline::new(Arc::new(builder.build()), PipelineConfig::default(), permission, None)
        .with_hooks(Arc::new(hooks));
    let mode = PermissionMode::Yolo;
    let cx = CallContext {
        session_id: SessionId::new("s"),
        message_id: MessageId::generate(),
        snapshot: Arc::default(),
        mode,
        exposure: Arc::new(ExposurePolicy { mode, ..ExposurePolicy::default() }),
        host_env: EnvSnapshot::default(),
        cancel: CancelToken::new(),
        steer: CancelToken::new(),
    };
    let count = || [schema.validations.load(Ordering::Relaxed), PREPARED.get(), PARSED.get()];
    let before = count();
    let call = ToolCall { id: "call".into(), name: "Echo".into(), arguments: arguments.into() };
    let report = pipeline.run(&call, &cx, Arc::new(Silent)).await;
    let after = count();
    (report, std::array::from_fn(|at| after[at] - before[at]))
}

fn said(report: &CallReport) -> &str {
    report.outcome.model().as_text()
}

#[tokio::test]
async fn an_input_is_validated_prepared_and_parsed_once_and_once_more_for_each_rewrite() {
    use HookEvent::{PermissionRequest, PreToolUse};
    let plain = r#"{"type":"object","title":"counted","properties":{"n":{"type":"integer"}}}"#;
    let filled = r#"{"type":"object","title":"counted","properties":{"n":{"type":"integer"},"d":{"default":1}}}"#;
    for schema in [plain, filled] {
        for (hooks, handler, times, n) in [
            (&[][..], false, 1, 1),
            // Before anything was validated.
            (&[PreToolUse][..], false, 1, 7),
            (&[PermissionRequest][..], false, 2, 7),
            (&[][..], true, 2, 9),
            (&[PreToolUse, PermissionRequest][..], false, 2, 7),
            (&[PreToolUse, PermissionRequest][..], true, 3, 9),
        ] {
            let (report, counts) = run(schema, hooks, handler, r#"{"n":1}"#).await;
            assert_eq!(said(&report), format!("{n} []"));
            assert_eq!(counts, [times; 3], "{schema} {hooks:?} {handler}");
        }
    }
    let (report, counts) = run(plain, &[], false, r#"{"n":"1"}"#).await;
    assert!(report.outcome.is_error());
    assert_eq!(counts[1..], [0, 0], "what does not match is neither prepared nor parsed");
}

#[tokio::test]
async fn a_list_of_todos_that_came_as_text_is_read_where_a_list_is_wanted() {
    let wants = |todos: &str| format!(r#"{{"type":"object","properties":{{"todos":{todos}}}}}"#);
    let list = wants(r#"{"type":"array","items":{"type":"string"}}"#);
    for (schema, todos, expected) in [
        (&list, r#""[\"a\",\"b\"]""#, Some(r#"["a", "b"]"#)),
        (&list, r#"" [] ""#, Some("[]")),
        (&list, r#"["a"]"#, Some(r#"["a"]"#)),
        // What does not become a list stays what it is, and is refused as that.
        (&list, r#""[1]""#, None),
        (&list, r#""[\"a\"""#, None),
        (&list, r#""{}""#, None),
        (&list, r#""5""#, None),
        (&list, r#""""#, None),
        // Text may be meant where text is allowed.
        (&wants(r#"{"type":["array","string"]}"#), r#""[]""#, None),
        (&wants(r#"{"type":"string"}"#), r#""[]""#, None),
        (&wants("{}"), r#""[]""#, None),
    ] {
        // With a hook the object is made before it is validated, without one only where the text does not match.
        for (hooks, n) in [(&[][..], 1), (&[HookEvent::PreToolUse][..], 7)] {
            let (report, _) = run(schema, hooks, false, &format!(r#"{{"n":1,"todos":{todos}}}"#)).await;
            match expected {
                Some(list) => {
                    assert_eq!(said(&report), format!("{n} {list}"), "{todos}");
                    assert!(serde_json::from_str::<Value>(&report.input).unwrap()["todos"].is_array());
                }
                None => assert!(report.outcome.is_error(), "{schema} {todos}: {}", said(&report)),
            }
        }
    }
    let other = r#"{"type":"object","properties":{"paths":{"type":"array"}}}"#;
    let (report, _) = run(other, &[], false, r#"{"n":1,"paths":"[]"}"#).await;
    assert_eq!(said(&report), "invalid arguments for Echo: paths must be array, got string \"[]\"");
}

#[tokio::test]
async fn unusual_text_runs_as_what_it_says_or_not_at_all() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    for (text, expected) in [
        (r#"{"n":"x","n":2}"#, Some("2 []")),
        (r#"{"n":2,"n":"x"}"#, None),
        (r#"{"n":1,"\u006e":2}"#, Some("2 []")),
        (r#"{"n":{"$serde_json::private::RawValue":"5"}}"#, None),
        (r#"{"n":1e400}"#, None),
        (r#"{"n":5.0}"#, Some("5 []")),
        (r#"{"n":-0}"#, Some("0 []")),
        (r#"{"n":5.5}"#, None),
    ] {
        let (report, _) = run(schema, &[], false, text).await;
        match expected {
            Some(answer) => assert_eq!(said(&report), answer, "{text}"),
            None => assert!(report.outcome.is_error(), "{text}: {}", said(&report)),
        }
    }
}
