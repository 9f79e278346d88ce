//! Providers over real sockets: a loopback server that answers with prepared bytes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::host::{CancelReason, CancelToken, Tasks};
use crate::model::{Content, Message, ModelUsage, ToolCall};

/// What the server does with one request.
#[derive(Clone)]
enum Reply {
    /// Writes this and closes.
    Bytes(String),
    /// Writes this and keeps the connection open and silent.
    Hang(String),
    /// Writes this and resets the connection.
    Reset(String),
}

#[derive(Default)]
struct Seen {
    requests: Vec<String>,
    /// Connections the client closed while the server was hanging.
    gone: usize,
}

struct Server {
    base: String,
    seen: Arc<Mutex<Seen>>,
    _tasks: Tasks,
}

impl Server {
    async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let tasks = Tasks::new();
        let (shared, spawner) = (Arc::clone(&seen), tasks.clone());
        tasks.spawn(async move {
            let mut replies = replies.into_iter();
            while let Ok((socket, _)) = listener.accept().await {
                // Past the end the server hangs up, which no test takes for an answer.
                let reply = replies.next().unwrap_or(Reply::Bytes(String::new()));
                spawner.spawn(serve(socket, reply, Arc::clone(&shared)));
            }
        });
        Self { base, seen, _tasks: tasks }
    }

    fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }

    fn config(&self) -> ProviderConfig {
        serde_json::from_value(json!({
            "type": "openai-compatible", "baseUrl": self.base, "apiKey": "sk-secret",
            "retry": {"initialDelayMs": 1, "maxDelayMs": 2},
        }))
        .expect("a configuration")
    }

    /// Waits until the client has closed a hanging connection.
    async fn gone(&self) {
        let closed = async {
            while self.seen.lock().unwrap_or_else(PoisonError::into_inner).gone == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), closed).await.expect("the client closed its connection");
    }
}

async fn serve(mut socket: TcpStream, reply: Reply, seen: Arc<Mutex<Seen>>) {
    let request = read_request(&mut socket).await;
    seen.lock().unwrap_or_else(PoisonError::into_inner).requests.push(request);
    let (Reply::Bytes(bytes) | Reply::Hang(bytes) | Reply::Reset(bytes)) = &reply;
    let _ = socket.write_all(bytes.as_bytes()).await;
    let _ = socket.flush().await;
    match reply {
        Reply::Bytes(_) => {
            let _ = socket.shutdown().await;
        }
        Reply::Hang(_) => {
            let mut rest = [0; 64];
            while matches!(socket.read(&mut rest).await, Ok(count) if count > 0) {}
            seen.lock().unwrap_or_else(PoisonError::into_inner).gone += 1;
        }
        Reply::Reset(_) => {
            // The client has read what was written before the connection breaks.
            tokio::time::sleep(Duration::from_millis(30)).await;
            let _ = socket.set_zero_linger();
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match socket.read(&mut piece).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&piece[..count]),
            _ => return text,
        }
    }
}

fn sse(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n{body}")
}

fn error(status: u16, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"))
}

fn delta(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

fn fine() -> Reply {
    Reply::Bytes(sse(&(delta("fine") + DONE)))
}

const DONE: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[derive(Default)]
struct Text {
    text: String,
    finish: Option<FinishReason>,
    calls: usize,
}

impl ModelSink for Text {
    fn text(&mut self, delta: &str) {
        self.text.push_str(delta);
    }
    fn thinking(&mut self, _: &str) {}
    fn tool_call(&mut self, _: ToolCall) {
        self.calls += 1;
    }
    fn usage(&mut self, _: ModelUsage) {}
    fn finish(&mut self, reason: FinishReason) {
        self.finish = Some(reason);
    }
    fn is_full(&self) -> bool {
        false
    }
}

pub(super) fn request() -> ModelRequest {
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

async fn drive(config: &ProviderConfig, cancel: &CancelToken, sink: &mut Text) -> Result<()> {
    let model = open(config)?;
    let mut stream = model.stream(request(), cancel).await?;
    while stream.advance(sink).await? != Advance::Done {}
    Ok(())
}

async fn ask(config: &ProviderConfig) -> (String, Result<()>) {
    let mut sink = Text::default();
    let outcome = drive(config, &CancelToken::new(), &mut sink).await;
    (sink.text, outcome)
}

#[tokio::test]
async fn an_answer_is_streamed_and_the_request_carries_key_and_headers() {
    let server = Server::start(vec![fine()]).await;
    let mut config = server.config();
    config.headers = Some([("X-Team".to_owned(), "blue".to_owned())].into());
    assert_eq!(ask(&config).await, ("fine".to_owned(), Ok(())));
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    let lower = request.to_lowercase();
    for line in ["authorization: bearer sk-secret", "x-team: blue", "content-type: application/json"] {
        assert!(lower.contains(&format!("\r\n{line}\r\n")), "{line}: {request}");
    }
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").expect("a body").1).expect("json");
    assert_eq!(body["messages"], json!([{"role": "user", "content": "hi"}]));
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_complete_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}/v1/", listener.local_addr().expect("an address"));
    let tasks = Tasks::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        loop {
            if read_request(&mut socket).await.is_empty() {
                return;
            }
            let body = delta("x") + DONE;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            let answer = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
            socket.write_all(answer.as_bytes()).await.expect("written");
        }
    });
    let config = ProviderConfig { base_url: Some(base), kind: "openai-compatible".into(), ..ProviderConfig::default() };
    for _ in 0..3 {
        // A second connection would never be accepted.
        let answer = tokio::time::timeout(Duration::from_secs(5), ask(&config)).await.expect("the same connection");
        assert_eq!(answer, ("x".to_owned(), Ok(())));
    }
}

#[tokio::test]
async fn transient_failures_are_retried_before_any_output() {
    let overloaded = "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    let rows = [
        ("500", error(500, "", "down")),
        ("429", error(429, "retry-after: 0\r\n", "slow")),
        ("overload in the stream", Reply::Bytes(sse(overloaded))),
        ("ended before output", Reply::Bytes(sse(": ping\n\n"))),
        ("reset before output", Reply::Reset(sse(": ping\n\n"))),
        ("no answer at all", Reply::Bytes(String::new())),
    ];
    for (name, first) in rows {
        let server = Server::start(vec![first, fine()]).await;
        assert_eq!(ask(&server.config()).await, ("fine".to_owned(), Ok(())), "{name}");
        assert_eq!(server.requests().len(), 2, "{name}");
    }
}

#[tokio::test]
async fn nothing_is_retried_after_output() {
    let half = delta("half ");
    let late = format!("{half}data: {}\n\n", json!({"error": {"type": "overloaded_error", "message": "busy"}}));
    let rows = [
        ("overload", Reply::Bytes(sse(&late)), "busy"),
        ("end", Reply::Bytes(sse(&half)), "ended early"),
        ("reset", Reply::Reset(sse(&half)), "connection"),
    ];
    for (name, reply, part) in rows {
        let server = Server::start(vec![reply, fine()]).await;
        let (text, outcome) = ask(&server.config()).await;
        let error = outcome.expect_err(name);
        assert_eq!((text.as_str(), error.code), ("half ", ErrorCode::ModelStreamError), "{name}");
        assert!(error.message.contains(part), "{name}: {error}");
        assert_eq!(server.requests().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn an_error_answer_keeps_status_and_words_but_not_the_key() {
    let rows = [
        (400, r#"{"error":{"message":"bad thing","type":"invalid_request_error"}}"#, "bad thing"),
        (401, r#"{"message":"who are you"}"#, "who are you"),
        (403, r#"[{"error":{"message":"in a list"}}]"#, "in a list"),
        (404, "<html>nothing here</html>", "nothing here"),
        (413, "", "no message"),
        (422, r#"{"detail":"odd"}"#, "odd"),
        (302, "", "not followed"),
    ];
    for (status, body, part) in rows {
        let server = Server::start(vec![error(status, "", body), fine()]).await;
        let failed = ask(&server.config()).await.1.expect_err(part);
        assert_eq!((failed.code, failed.status), (ErrorCode::ModelHttpError, Some(status)));
        assert!(failed.message.contains(part), "{failed}");
        assert!(!format!("{failed:?}").contains("sk-secret"));
        assert_eq!(server.requests().len(), 1, "{status} is not retried");
    }
    let server = Server::start(vec![error(500, "", "down"); 9]).await;
    let failed = ask(&server.config()).await.1.expect_err("down");
    assert_eq!((failed.status, server.requests().len()), (Some(500), 4));
}

#[tokio::test]
async fn answers_that_are_no_completion_are_protocol_errors() {
    let html = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>".to_owned();
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"hello\":1}".to_owned();
    for (reply, part) in [(html, "text/html"), (json, "hello"), (sse("data: {\"cho\n\n"), "{\"cho")] {
        let server = Server::start(vec![Reply::Bytes(reply)]).await;
        let failed = ask(&server.config()).await.1.expect_err(part);
        assert_eq!(failed.code, ErrorCode::ModelProtocolError);
        assert!(failed.message.contains(part), "{failed}");
    }
}

#[tokio::test]
async fn a_whole_completion_is_accepted() {
    let body = r#"{"choices":[{"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}]}"#;
    let reply = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{body}");
    let server = Server::start(vec![Reply::Bytes(reply)]).await;
    assert_eq!(ask(&server.config()).await, ("whole".to_owned(), Ok(())));
}

#[tokio::test]
async fn silence_ends_with_a_typed_timeout_and_is_not_retried() {
    let rows = [
        (json!({"streamIdleTimeoutMs": 60}), String::new(), ErrorCode::ModelStreamIdleTimeout, ""),
        (json!({"streamIdleTimeoutMs": 60}), sse(""), ErrorCode::ModelStreamIdleTimeout, ""),
        (json!({"streamIdleTimeoutMs": 60}), sse(&delta("a")), ErrorCode::ModelStreamIdleTimeout, "a"),
        (json!({"requestTimeoutMs": 60}), String::new(), ErrorCode::ModelRequestTimeout, ""),
    ];
    for (limits, bytes, code, text) in rows {
        let server = Server::start(vec![Reply::Hang(bytes), fine()]).await;
        let limits: ProviderConfig = serde_json::from_value(limits).expect("limits");
        let config = ProviderConfig {
            stream_idle_timeout_ms: limits.stream_idle_timeout_ms,
            request_timeout_ms: limits.request_timeout_ms,
            ..server.config()
        };
        let (got, outcome) = ask(&config).await;
        assert_eq!((got.as_str(), outcome.expect_err("silence").code), (text, code));
        assert_eq!(server.requests().len(), 1);
        server.gone().await;
    }
}

#[tokio::test]
async fn cancelling_ends_every_wait_and_closes_the_connection() {
    for bytes in [String::new(), sse(""), sse(&delta("a"))] {
        let server = Server::start(vec![Reply::Hang(bytes)]).await;
        let cancel = CancelToken::new();
        let (config, token) = (server.config(), cancel.clone());
        let canceller = async {
            while server.requests().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancel.cancel(CancelReason::Abort);
        };
        let mut sink = Text::default();
        let (outcome, ()) = tokio::join!(drive(&config, &token, &mut sink), canceller);
        assert_eq!(outcome.expect_err("cancelled").code, ErrorCode::Abort);
        server.gone().await;
    }
}

#[tokio::test]
async fn a_dropped_stream_closes_its_connection() {
    let server = Server::start(vec![Reply::Hang(sse(&delta("a")))]).await;
    let model = open(&server.config()).expect("opened");
    let stream = model.stream(request(), &CancelToken::new()).await.expect("accepted");
    drop(stream);
    server.gone().await;
}

#[tokio::test]
async fn a_refused_connection_and_an_unknown_host_say_what_to_check() {
    let port = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address").port();
    let at = |base: String| ProviderConfig {
        kind: "openai-compatible".into(),
        base_url: Some(base),
        retry: RetryConfig { max_retries: Some(1.0), initial_delay_ms: Some(0.0), ..RetryConfig::default() },
        ..ProviderConfig::default()
    };
    let refused = ask(&at(format!("http://user:pass@127.0.0.1:{port}/v1"))).await.1.expect_err("refused");
    assert_eq!(refused.code, ErrorCode::ModelConnectionError);
    assert!(refused.message.contains(&format!("http://127.0.0.1:{port}")), "{refused}");
    assert!(refused.message.to_lowercase().contains("refused"), "{refused}");
    assert!(!format!("{refused:?}").contains("pass"));
    let unknown = ask(&at("http://no-such-host.invalid/v1".into())).await.1.expect_err("unknown");
    assert_eq!(unknown.code, ErrorCode::ModelConnectionError);
    assert!(unknown.message.contains("no-such-host.invalid"), "{unknown}");
}

#[test]
fn configurations_are_checked_before_use() {
    let base = json!({"type": "openai-compatible"});
    let rows = [
        (json!({"type": ""}), "provider.type"),
        (json!({"streamIdleTimeoutMs": 0}), "streamIdleTimeoutMs"),
        (json!({"streamIdleTimeoutMs": -1}), "streamIdleTimeoutMs"),
        (json!({"requestTimeoutMs": 1.5}), "requestTimeoutMs"),
        (json!({"requestTimeoutMs": 2_147_483_648u64}), "requestTimeoutMs"),
        (json!({"baseUrl": "ftp://x"}), "ftp:"),
        (json!({"baseUrl": "not a url"}), "baseUrl"),
        (json!({"headers": {"bad name": "x"}}), "bad name"),
        (json!({"headers": {"x": "a\nb"}}), "headers.x"),
        (json!({"apiKey": "sk-\nsecret"}), "apiKey"),
        (json!({"retry": {"maxRetries": -1}}), "retry.maxRetries"),
        (json!({"retry": {"backoffMultiplier": 0.5}}), "retry.backoffMultiplier"),
    ];
    for (change, part) in rows {
        let mut value = base.clone();
        for (key, setting) in change.as_object().expect("an object") {
            value[key] = setting.clone();
        }
        let config: ProviderConfig = serde_json::from_value(value).expect("shaped");
        let refused = open(&config).err().expect(part);
        assert_eq!(refused.code, ErrorCode::ConfigError);
        assert!(refused.message.contains(part) && !refused.message.contains("secret"), "{refused}");
    }
}

#[test]
fn unknown_provider_types_are_named() {
    for (kind, part) in [("nope", "no adapter"), ("anthropic", "not available in this version")] {
        let config = ProviderConfig { kind: kind.into(), ..ProviderConfig::default() };
        let refused = open(&config).err().expect(kind);
        assert_eq!(refused.code, ErrorCode::ProviderAdapterNotFound);
        assert_eq!(refused.details.as_deref(), Some(&json!({"providerType": kind})));
        assert!(refused.message.contains(part) && refused.message.contains(kind), "{refused}");
    }
}

#[test]
fn debug_output_shows_no_secret() {
    let config: ProviderConfig = serde_json::from_value(json!({
        "type": "openai", "apiKey": "sk-secret", "baseUrl": "https://u:secret@h/v1?k=secret", "headers": {"x-key": "secret"},
    }))
    .expect("shaped");
    let text = format!("{config:?}");
    assert!(!text.contains("secret") && text.contains("x-key") && text.contains("https://h"), "{text}");
}
