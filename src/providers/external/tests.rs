use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::*;
use crate::model::{Content, Message, ModelUsage, ToolCall};
use crate::providers::Script;
use crate::providers::model::{FinishReason, ToolDeclarations};

const GRACE: Duration = Duration::from_secs(5);

/// Operations of code that waits, as the facade keeps them.
#[derive(Default)]
struct Operations {
    open: Mutex<HashMap<u32, oneshot::Sender<Pulled>>>,
    last: AtomicU32,
}

impl Operations {
    fn begin(&self) -> (u32, oneshot::Receiver<Pulled>) {
        let operation = self.last.fetch_add(1, Ordering::Relaxed);
        let (send, receive) = oneshot::channel();
        self.open.lock().unwrap().insert(operation, send);
        (operation, receive)
    }
}

impl Completions for Operations {
    fn pulled(&self, operation: u32, pulled: Pulled) {
        assert_ne!(pulled, Pulled::Wait);
        let _ = self.open.lock().unwrap().remove(&operation).expect("completed once").send(pulled);
    }
    fn room(&self, operation: u32) {
        let _ = self.open.lock().unwrap().remove(&operation).expect("completed once").send(Pulled::End);
    }
}

/// What code of the application can do in one call.
#[derive(Clone)]
struct Call {
    number: u32,
    request: Value,
    cancel: CancelToken,
    operations: Arc<Operations>,
    exchanges: Arc<Exchanges>,
}

impl Call {
    fn ask(&self, changes: &Value) {
        self.exchanges.start(self.number, &changes.to_string(), &Handle::current()).unwrap();
    }

    async fn pull(&self) -> Pulled {
        let (operation, later) = self.operations.begin();
        match self.exchanges.pull(self.number, operation) {
            Pulled::Wait => later.await.unwrap(),
            pulled => pulled,
        }
    }

    async fn push(&self, batch: &str) -> Pushed {
        let (operation, later) = self.operations.begin();
        let pushed = self.exchanges.push(self.number, operation, batch.to_owned());
        if pushed == Pushed::Full {
            later.await.unwrap();
        }
        pushed
    }

    /// What middleware that changes nothing does.
    async fn pass(&self) -> Result<Outcome> {
        self.ask(&json!({}));
        loop {
            match self.pull().await {
                Pulled::Chunks(batch) => drop(self.push(&batch).await),
                Pulled::End => return Ok(Outcome::Complete),
                Pulled::Failed(_) => return Ok(Outcome::ModelFailed),
                Pulled::Wait => unreachable!(),
            }
        }
    }
}

type Code = Box<dyn Fn(Call) -> BoxFuture<'static, Result<Outcome>> + Send + Sync>;

struct Port {
    code: Code,
    tasks: Tasks,
    operations: Arc<Operations>,
    exchanges: OnceLock<Arc<Exchanges>>,
}

impl ModelPort for Port {
    fn answer(&self, number: u32, request: String, cancel: CancelToken) -> BoxFuture<'static, Result<Outcome>> {
        // Code of the application runs by itself, whoever waits for it.
        let running = self.tasks.spawn((self.code)(Call {
            number,
            request: serde_json::from_str(&request).unwrap(),
            cancel,
            operations: Arc::clone(&self.operations),
            exchanges: Arc::clone(self.exchanges.get().unwrap()),
        }));
        Box::pin(async move { running.await.unwrap() })
    }
}

/// What a sink was told; full when its bound is reached.
#[derive(Default)]
struct Said(Vec<String>);

impl ModelSink for Said {
    fn text(&mut self, delta: &str) {
        self.0.push(delta.to_owned());
    }
    fn thinking(&mut self, delta: &str) {
        self.0.push(format!("({delta})"));
    }
    fn tool_call(&mut self, call: ToolCall) {
        self.0.push(format!("{} {}", call.name, call.arguments));
    }
    fn usage(&mut self, usage: ModelUsage) {
        self.0.push(format!("{} tokens", usage.total_tokens));
    }
    fn finish(&mut self, reason: FinishReason) {
        self.0.push(reason.as_str().to_owned());
    }
    fn is_full(&self) -> bool {
        false
    }
}

struct Stage {
    model: Arc<dyn Model>,
    script: Arc<Script>,
    operations: Arc<Operations>,
    gate: CleanupGate,
    cancel: CancelToken,
}

impl Stage {
    fn new<F>(turns: Value, code: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Outcome>> + Send + 'static,
    {
        let operations = Arc::new(Operations::default());
        let exchanges = Arc::new(Exchanges::new(operations.clone()));
        let code: Code = Box::new(move |call| Box::pin(code(call)));
        let port =
            Arc::new(Port { code, tasks: Tasks::new(), operations: operations.clone(), exchanges: OnceLock::new() });
        let _ = port.exchanges.set(exchanges.clone());
        let options = ExternalOptions {
            name: "model middleware",
            code: ErrorCode::ModelMiddlewareFailed,
            silence: Duration::from_millis(1000),
        };
        let script = Script::parse(&json!({"turns": turns, "retry": {"initialDelayMs": 1}}).to_string()).unwrap();
        let gate = CleanupGate::default();
        let model = External { port, exchanges, options }.model(Some(script.model()), gate.clone(), GRACE);
        Self { model, script, operations, gate, cancel: CancelToken::new() }
    }

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".into(),
            messages: vec![Arc::new(Message::user(Content::Text("hi".into())))],
            tools: Arc::new(ToolDeclarations::default()),
            temperature: None,
            max_output_tokens: None,
            output_format: None,
            provider_options: None,
        }
    }

    async fn open(&self) -> Box<dyn ModelStream> {
        self.model.stream(Self::request(), &self.cancel).await.unwrap()
    }

    /// Reads an answer as the agent loop does.
    async fn read(&self) -> (Vec<String>, Result<()>) {
        let (mut stream, mut said) = (self.open().await, Said::default());
        let outcome = loop {
            match stream.advance(&mut said).await {
                Ok(Advance::Done) => break Ok(()),
                Ok(Advance::More | Advance::Paused) => {}
                Err(error) => break Err(error),
            }
        };
        stream.close().await;
        (said.0, outcome)
    }

    /// Nobody waits for anything.
    fn is_quiet(&self) -> bool {
        self.gate.pending().is_empty()
    }
}

#[tokio::test]
async fn what_passes_through_is_what_the_model_said() {
    let turn = json!({"thinking": "hm", "text": ["a", "b"], "toolCalls": [{"name": "T"}], "usage": {"inputTokens": 1, "outputTokens": 2}});
    let stage = Stage::new(json!([turn]), |call| async move { call.pass().await });
    assert_eq!(stage.read().await.0, ["(hm)", "a", "b", "T {}", "3 tokens", "tool_calls"]);
    assert!(stage.is_quiet());
}

#[tokio::test]
async fn code_may_answer_in_place_of_the_model_and_the_model_is_not_asked() {
    let stage = Stage::new(json!([]), |call| async move {
        assert_eq!(call.request["model"], "m");
        assert_eq!(call.request["messages"][0]["content"], "hi");
        call.push(r#"[{"content":"from"},{"content":" memory"}]"#).await;
        Ok(Outcome::Complete)
    });
    let (said, outcome) = stage.read().await;
    assert_eq!((said, outcome), (vec!["from".to_owned(), " memory".to_owned()], Ok(())));
    assert!(stage.script.is_empty());
}

#[tokio::test]
async fn a_changed_request_is_what_the_model_is_asked_once() {
    let stage = Stage::new(json!(["one", "two"]), |call| async move {
        call.ask(&json!({"messages": [{"role": "system", "content": "be brief"}, 0]}));
        let again = call.exchanges.start(call.number, "{}", &Handle::current());
        assert_eq!(again.unwrap_err().code, ErrorCode::Internal);
        while let Pulled::Chunks(batch) = call.pull().await {
            call.push(&batch).await;
        }
        Ok(Outcome::Complete)
    });
    assert_eq!(stage.read().await.0[0], "one");
    assert_eq!(stage.script.len(), 1);
    let asked: Value = serde_json::from_str(&stage.script.request(0).unwrap()).unwrap();
    let contents: Vec<&Value> =
        asked["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, [&json!("be brief"), &json!("hi")]);
}

#[tokio::test]
async fn a_failure_of_the_model_comes_back_as_it_was_after_what_was_delivered() {
    let fault = json!({"fault": {"kind": "http", "status": 401, "message": "no such key"}});
    let stage = Stage::new(json!([fault]), |call| async move {
        call.push(r#"[{"content":"before"}]"#).await;
        call.pass().await
    });
    let (said, outcome) = stage.read().await;
    let error = outcome.unwrap_err();
    assert_eq!(said, ["before"]);
    assert_eq!((error.code, error.status), (ErrorCode::ModelHttpError, Some(401)));
}

#[tokio::test(start_paused = true)]
async fn retries_stay_below_and_are_not_seen() {
    let fault = json!({"fault": {"kind": "http", "status": 503}});
    let stage = Stage::new(json!([fault, fault, "third"]), |call| async move { call.pass().await });
    assert_eq!(stage.read().await.0[0], "third");
    assert_eq!(stage.script.len(), 3);
}

#[tokio::test]
async fn errors_of_the_code_and_wrong_forms_have_one_code_and_are_named() {
    let thrown = Stage::new(json!([]), |_| async { Err(Error::new(ErrorCode::HostGone, "gone")) });
    assert_eq!(thrown.read().await.1.unwrap_err().code, ErrorCode::HostGone);
    let malformed = Stage::new(json!([]), |call| async move {
        call.push(r#"[{"content":"fine"},{"content":5}]"#).await;
        call.cancel.cancelled().await;
        Ok(Outcome::Complete)
    });
    let (said, outcome) = malformed.read().await;
    let error = outcome.unwrap_err();
    assert_eq!((said, error.code), (vec!["fine".to_owned()], ErrorCode::ModelMiddlewareFailed));
    assert!(error.message.contains("chunk 2 is malformed"), "{error}");
    assert!(malformed.is_quiet(), "it heard its signal");
    let refused = Stage::new(json!(["x"]), |call| async move {
        call.ask(&json!({"messages": [{"role": "robot"}]}));
        assert!(matches!(call.pull().await, Pulled::Failed(error) if error.code == ErrorCode::InvalidRequest));
        Ok(Outcome::ModelFailed)
    });
    assert_eq!(refused.read().await.1.unwrap_err().code, ErrorCode::InvalidRequest);
}

#[tokio::test]
async fn a_cancelled_call_ends_everything_it_started() {
    let began = Arc::new(Notify::new());
    let signal = Arc::clone(&began);
    let stage = Stage::new(json!([{"text": ["a"], "fault": {"kind": "hang", "after": 1}}]), move |call| {
        let began = Arc::clone(&signal);
        async move {
            call.ask(&json!({}));
            assert!(matches!(call.pull().await, Pulled::Chunks(_)));
            began.notify_one();
            // The model is silent; the cancellation answers in its place, and the code was told before.
            let Pulled::Failed(error) = call.pull().await else { panic!("the model said something") };
            assert_eq!(error.code, ErrorCode::Abort);
            assert!(call.cancel.is_cancelled());
            assert_eq!(call.push("[]").await, Pushed::Over);
            assert!(matches!(call.pull().await, Pulled::Failed(_)));
            Ok(Outcome::Complete)
        }
    });
    let (outcome, ()) = tokio::join!(stage.read(), async {
        began.notified().await;
        stage.cancel.cancel(CancelReason::Abort);
    });
    assert_eq!(outcome.1.unwrap_err().code, ErrorCode::Abort);
    assert!(stage.is_quiet() && stage.operations.open.lock().unwrap().len() <= 2, "only answered operations are left");
}

#[tokio::test(start_paused = true)]
async fn code_that_ignores_its_signal_keeps_the_gate_shut_after_the_grace() {
    for close in [true, false] {
        let let_go = Arc::new(Notify::new());
        let released = Arc::clone(&let_go);
        let stage = Stage::new(json!([]), move |_| {
            let let_go = Arc::clone(&released);
            async move {
                let_go.notified().await;
                Ok(Outcome::Complete)
            }
        });
        let (mut stream, mut said) = (stage.open().await, Said::default());
        stage.cancel.cancel(CancelReason::Abort);
        assert_eq!(stream.advance(&mut said).await.unwrap_err().code, ErrorCode::Abort);
        let before = Instant::now();
        if close {
            stream.close().await;
            assert_eq!(before.elapsed(), GRACE);
        }
        drop(stream);
        assert_eq!(stage.gate.pending(), ["model middleware".into()]);
        let_go.notify_one();
        stage.gate.drained().await;
    }
}

#[tokio::test(start_paused = true)]
async fn silence_of_the_code_is_bounded_and_that_of_the_model_is_its_own() {
    let silent = Stage::new(json!([]), |call| async move {
        call.push(r#"[{"content":"a"}]"#).await;
        tokio::time::sleep(Duration::from_millis(900)).await;
        call.push(r#"[{"content":"b"}]"#).await;
        call.cancel.cancelled().await;
        Ok(Outcome::Complete)
    });
    let before = Instant::now();
    let (said, outcome) = silent.read().await;
    assert_eq!((said.len(), outcome.unwrap_err().code), (2, ErrorCode::ModelStreamIdleTimeout));
    assert_eq!(before.elapsed(), Duration::from_millis(1900));
    let slow = Stage::new(json!([{"text": "late", "delayMs": 60_000}]), |call| async move { call.pass().await });
    assert_eq!(slow.read().await.0[0], "late");
}

#[tokio::test]
async fn a_writer_waits_for_its_reader_and_a_model_for_its() {
    let pushed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&pushed);
    let stage = Stage::new(json!([{"text": vec!["x".repeat(100); 5000]}]), move |call| {
        let pushed = Arc::clone(&count);
        async move {
            call.ask(&json!({}));
            // The model is not read yet, and waits.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            let mut most = 0;
            while let Pulled::Chunks(batch) = call.pull().await {
                most = most.max(batch.len());
                pushed.fetch_add(1, Ordering::Relaxed);
                call.push(&batch).await;
            }
            assert!(most <= 66_000, "{most} bytes were waiting");
            Ok(Outcome::Complete)
        }
    });
    let (mut stream, mut said) = (stage.open().await, Said::default());
    for _ in 0..300 {
        tokio::task::yield_now().await;
        let _ = poll!(stream.advance(&mut Full));
    }
    let ahead = pushed.load(Ordering::Relaxed);
    assert!((1..=2).contains(&ahead), "{ahead} batches were pushed to nobody");
    while stream.advance(&mut said).await.unwrap() != Advance::Done {}
    stream.close().await;
    assert_eq!(said.0.iter().filter(|text| text.starts_with('x')).count(), 5000);
    assert!(pushed.load(Ordering::Relaxed) > 4);
}

/// A sink whose consumer is behind.
struct Full;

impl ModelSink for Full {
    fn text(&mut self, _: &str) {}
    fn thinking(&mut self, _: &str) {}
    fn tool_call(&mut self, _: ToolCall) {}
    fn usage(&mut self, _: ModelUsage) {}
    fn finish(&mut self, _: FinishReason) {}
    fn is_full(&self) -> bool {
        true
    }
}
