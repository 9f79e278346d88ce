use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::*;
use crate::contract::BoxFuture;
use crate::error::{ErrorCode, Result};
use crate::host::{CancelReason, CancelToken, CleanupGate};
use crate::model::SessionId;

/// Callbacks with verbs: answer, hang, or hang until told to stop.
enum Callback {
    Answer(Value),
    Hang,
    StopsWhenTold,
}

struct Callbacks {
    list: Vec<Callback>,
    seen: Mutex<Vec<(usize, Value)>>,
}

impl HookPort for Callbacks {
    fn run<'a>(
        &'a self,
        _: HookEvent,
        index: usize,
        input: &'a str,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<HookOutput>> {
        Box::pin(async move {
            self.seen.lock().unwrap().push((index, serde_json::from_str(input).unwrap()));
            match &self.list[index] {
                Callback::Answer(value) => Ok(serde_json::from_value(value.clone()).unwrap()),
                Callback::Hang => std::future::pending().await,
                Callback::StopsWhenTold => {
                    cancel.cancelled().await;
                    Ok(HookOutput::default())
                }
            }
        })
    }
}

fn hooks(event: HookEvent, list: Vec<Callback>) -> (Hooks, Arc<Callbacks>, CleanupGate) {
    let counts = HookCounts::from([(event, list.len())]);
    let port = Arc::new(Callbacks { list, seen: Mutex::default() });
    let gate = CleanupGate::default();
    let limits = HookLimits { event: Duration::from_secs(10), session_end: Duration::from_secs(3) };
    (Hooks::new(SessionId::new("s"), Some(port.clone()), counts, limits, gate.clone()), port, gate)
}

fn outputs(list: &[Value]) -> Vec<HookOutput> {
    list.iter().map(|value| serde_json::from_value(value.clone()).unwrap()).collect()
}

#[tokio::test]
async fn callbacks_run_in_order_with_the_same_input_also_after_a_skip() {
    let go = || Callback::Answer(json!({"action": "continue", "modifiedInput": {"a": 2}}));
    let (hooks, port, _) =
        hooks(HookEvent::PreToolUse, vec![go(), Callback::Answer(json!({"action": "skip", "reason": "no"})), go()]);
    let fields = Map::from_iter([("toolInput".to_owned(), json!({"a": 1}))]);
    let answers = hooks.run(HookEvent::PreToolUse, fields, &CancelToken::new()).await.unwrap();
    let input = json!({"event": "PreToolUse", "sessionId": "s", "toolInput": {"a": 1}});
    assert_eq!(*port.seen.lock().unwrap(), [(0, input.clone()), (1, input.clone()), (2, input)]);
    assert_eq!(stop_of(&answers), Some(Stop::Skip(Some("no".into()))));
    assert!(hooks.run(HookEvent::PostToolUse, Map::new(), &CancelToken::new()).await.unwrap().is_empty());
}

#[test]
fn answers_count_up_to_the_first_that_stops() {
    let list = outputs(&[
        json!({"action": "continue", "modifiedInput": {"a": 1, "b": 1}, "modifiedOutput": "first"}),
        json!({"action": "abort", "modifiedInput": {"b": 2}, "modifiedOutput": "second", "reason": "why"}),
        json!({"action": "skip", "modifiedInput": {"b": 3}, "modifiedOutput": "third"}),
    ]);
    assert_eq!(Value::Object(merged_input(&list)), json!({"a": 1, "b": 2}));
    assert_eq!(merged_output(&list), Some(json!("second")));
    assert_eq!(stop_of(&list), Some(Stop::Abort(Some("why".into()))));
    assert_eq!(stop_of(&list[..1]), None);
    assert_eq!(merged_output(&outputs(&[json!({"action": "continue"})])), None);
}

#[tokio::test(start_paused = true)]
async fn one_deadline_covers_all_callbacks_and_what_goes_on_keeps_the_gate_shut() {
    let (hooks, _, gate) = hooks(HookEvent::PreToolUse, vec![Callback::Hang]);
    let failure = hooks.run(HookEvent::PreToolUse, Map::new(), &CancelToken::new()).await.unwrap_err();
    let HookFailure::Failed(error) = failure else { panic!("{failure:?}") };
    assert_eq!(error.code, ErrorCode::HookTimeout);
    assert_eq!(gate.pending().len(), 1);
    let refused = hooks.run(HookEvent::PreToolUse, Map::new(), &CancelToken::new()).await.unwrap_err();
    assert!(matches!(refused, HookFailure::Failed(error) if error.code == ErrorCode::SessionBusy));
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_stops_when_told_leaves_nothing_behind() {
    let (hooks, _, gate) = hooks(HookEvent::PreToolUse, vec![Callback::StopsWhenTold]);
    let cancel = CancelToken::new();
    cancel.cancel(CancelReason::Abort);
    let failure = hooks.run(HookEvent::PreToolUse, Map::new(), &cancel).await;
    assert!(matches!(failure, Err(HookFailure::Cancelled) | Ok(_)), "{failure:?}");
    gate.drained().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_is_announced_once_and_an_abort_is_an_error() {
    let (hooks, port, _) =
        hooks(HookEvent::SessionEnd, vec![Callback::Answer(json!({"action": "abort", "reason": "not yet"}))]);
    assert!(hooks.has_end());
    assert_eq!(hooks.end("other").await.unwrap_err().code, ErrorCode::HookAborted);
    assert_eq!(hooks.end("other").await, Ok(()));
    assert_eq!(port.seen.lock().unwrap().len(), 1);
    assert_eq!(port.seen.lock().unwrap()[0].1["reason"], "other");
}
