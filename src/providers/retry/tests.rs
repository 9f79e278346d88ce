use super::*;

const MIDDLE: f64 = 0.5;

fn status(status: u16) -> Failure {
    Failure::http(status, "no")
}

fn decide_first(failure: Failure) -> Decision {
    decide(&RetryPolicy::default(), &mut Attempts::default(), failure, MIDDLE)
}

fn is_retried(failure: Failure) -> bool {
    !matches!(decide_first(failure), Decision::Fail(_))
}

#[test]
fn the_retryable_statuses_are_exactly_the_documented_ones() {
    let retried: Vec<u16> = (400..600).filter(|code| is_retried(status(*code))).collect();
    assert_eq!(retried, [408, 409, 429, 500, 502, 503, 504, 529]);
}

#[test]
fn the_word_of_the_provider_counts() {
    let with = |code, word| Failure { should_retry: Some(word), ..status(code) };
    assert!(is_retried(with(400, true)));
    assert!(!is_retried(with(429, false)));
    assert!(is_retried(with(500, false)));
    assert!(!is_retried(with(501, false)));
}

#[test]
fn waits_double_up_to_the_limit_and_vary_by_a_fifth() {
    let policy = RetryPolicy { max_retries: 9, ..RetryPolicy::default() };
    let waits = |jitter: f64| -> Vec<u128> {
        let mut attempts = Attempts::default();
        (0..7)
            .map(|_| match decide(&policy, &mut attempts, status(500), jitter) {
                Decision::Wait(wait) => wait.as_millis(),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(waits(0.5), [1000, 2000, 4000, 8000, 16000, 30000, 30000]);
    assert_eq!(waits(0.0)[0], 800);
    assert_eq!(waits(1.0)[0], 1200);
}

#[test]
fn three_retries_follow_the_first_attempt() {
    let mut attempts = Attempts::default();
    let mut retries = 0;
    let error = loop {
        match decide(&RetryPolicy::default(), &mut attempts, status(500), MIDDLE) {
            Decision::Fail(error) => break error,
            _ => retries += 1,
        }
    };
    assert_eq!((retries, error.code, error.status), (3, ErrorCode::ModelHttpError, Some(500)));
}

#[test]
fn a_retry_after_prolongs_the_wait_up_to_a_limit() {
    let asking = |seconds| Failure { retry_after: Some(Duration::from_secs(seconds)), ..status(429) };
    assert_eq!(decide_first(asking(7)), Decision::Wait(Duration::from_secs(7)));
    assert_eq!(decide_first(asking(0)), Decision::Wait(Duration::from_secs(1)));
    let Decision::Fail(error) = decide_first(asking(601)) else { panic!("too long a wait") };
    assert_eq!((error.code, error.status), (ErrorCode::ModelHttpError, Some(429)));
    assert!(error.message.contains("601000 ms") && error.message.contains("maxRetryAfterMs"), "{error}");
}

#[test]
fn three_overload_answers_in_a_row_end_the_request() {
    let policy = RetryPolicy { max_retries: 9, ..RetryPolicy::default() };
    let mut attempts = Attempts::default();
    let mut next = |failure| decide(&policy, &mut attempts, failure, MIDDLE);
    assert!(matches!(next(status(529)), Decision::Wait(_)));
    assert!(matches!(next(status(529)), Decision::Wait(_)));
    assert!(matches!(next(status(500)), Decision::Wait(_)), "another failure starts the count again");
    assert!(matches!(next(Failure::in_stream(&json!({"type": "overloaded_error"}))), Decision::Wait(_)));
    assert!(matches!(next(status(529)), Decision::Wait(_)));
    let Decision::Fail(error) = next(status(529)) else { panic!("the third in a row") };
    assert_eq!((error.code, error.status), (ErrorCode::CannotRetry, Some(529)));
}

#[test]
fn an_answer_limit_that_does_not_fit_is_lowered_or_given_up() {
    let overflow = |used: u64| {
        Failure::http(400, &format!("input length and `max_tokens` exceed context limit: {used} + 8192 > 200000"))
    };
    assert_eq!(decide_first(overflow(195_000)), Decision::LowerAnswerLimit(4000));
    assert_eq!(decide_first(overflow(196_000)), Decision::LowerAnswerLimit(3000));
    let Decision::Fail(error) = decide_first(overflow(196_001)) else { panic!("no room") };
    assert_eq!(error.code, ErrorCode::CannotRetry);
    assert_eq!(error.details.as_deref(), Some(&json!({"retryContext": {"maxTokensOverride": 3000}})));
}

#[test]
fn failures_without_a_status_are_judged_by_their_words() {
    let rows = [
        ("read ECONNRESET", true),
        ("socket hang up", true),
        ("Rate limit reached", true),
        ("Service Unavailable", true),
        ("unauthorized", false),
        ("something odd", false),
    ];
    for (text, retried) in rows {
        assert_eq!(is_retried(Failure::in_stream(&json!({"message": text}))), retried, "{text}");
    }
    assert!(is_retried(Failure::in_stream(&json!({"type": "server_error", "message": "x"}))));
    assert!(!is_retried(Failure::in_stream(&json!({"type": "invalid_request_error", "message": "x"}))));
    assert!(is_retried(Failure::in_stream(&json!({"code": 503, "message": "x"}))));
    assert!(!is_retried(Failure::in_stream(&json!("plain text"))));
}
