//! When to try again: a pure decision. The driver beside it does the waiting.

use std::time::Duration;

use serde_json::json;

use super::failure::{Class, Failure};
use crate::error::{Cause, Error, ErrorCode};

/// How many overload answers in a row end the request.
const MAX_OVERLOADED: u32 = 3;
/// An answer limit below this is not worth a retry.
const LEAST_ANSWER_TOKENS: u64 = 3000;
/// What is left free beside request and answer.
const CONTEXT_MARGIN: u64 = 1000;

/// How often and how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Further attempts after the first.
    pub max_retries: u32,
    /// Wait before the first retry.
    pub initial_delay: Duration,
    /// Longest wait that backing off leads to.
    pub max_delay: Duration,
    /// Factor from one wait to the next.
    pub backoff_multiplier: f64,
    /// Longest wait a provider may ask for; a longer one fails at once, because nobody waits for it.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            backoff_multiplier: 2.0,
            max_retry_after: Duration::from_secs(600),
        }
    }
}

/// What happened so far in one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Retries made.
    pub retries: u32,
    /// Overload answers in a row.
    pub overloaded: u32,
}

/// What to do about a failure.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Wait, then try again.
    Wait(Duration),
    /// Try again at once with this answer limit.
    LowerAnswerLimit(u64),
    /// Give up with this error.
    Fail(Error),
}

/// Decides about a failure before any output. `jitter` is a random number from 0 to 1.
pub fn decide(policy: &RetryPolicy, attempts: &mut Attempts, failure: Failure, jitter: f64) -> Decision {
    let Failure { error, class, retry_after, should_retry } = failure;
    attempts.overloaded = if class == Class::Overloaded { attempts.overloaded + 1 } else { 0 };
    if attempts.overloaded >= MAX_OVERLOADED {
        let message = format!("the model provider is overloaded ({} answers in a row)", attempts.overloaded);
        return Decision::Fail(cannot_retry(error, message));
    }
    if let Class::ContextOverflow(used, _, limit) = class {
        let left = limit.saturating_sub(used).saturating_sub(CONTEXT_MARGIN);
        if left < LEAST_ANSWER_TOKENS {
            let message = format!(
                "the conversation of {used} tokens leaves no room for an answer in the context of {limit}; shorten it"
            );
            let details = json!({"retryContext": {"maxTokensOverride": LEAST_ANSWER_TOKENS}});
            return Decision::Fail(cannot_retry(error, message).with_details(details));
        }
        return match count(policy, attempts) {
            true => Decision::LowerAnswerLimit(left),
            false => Decision::Fail(error),
        };
    }
    if !is_retryable(class, should_retry) {
        return Decision::Fail(error);
    }
    if let Some(asked) = retry_after.filter(|asked| *asked > policy.max_retry_after) {
        let (asked, most) = (asked.as_millis() as u64, policy.max_retry_after.as_millis() as u64);
        let mut error = error;
        error.message = format!(
            "{}; it asks to wait {asked} ms before a retry, more than retry.maxRetryAfterMs ({most})",
            error.message
        );
        return Decision::Fail(error.with_details(json!({"retryAfterMs": asked})));
    }
    if !count(policy, attempts) {
        return Decision::Fail(error);
    }
    Decision::Wait(backoff(policy, attempts.retries, jitter).max(retry_after.unwrap_or_default()))
}

fn is_retryable(class: Class, should_retry: Option<bool>) -> bool {
    let by_class = match class {
        Class::Status(status) => matches!(status, 408 | 409 | 429 | 500 | 502 | 503 | 504),
        Class::Overloaded | Class::Transient => true,
        Class::Permanent | Class::ContextOverflow(..) => false,
    };
    match should_retry {
        Some(true) => true,
        Some(false) => by_class && matches!(class, Class::Status(500..) | Class::Overloaded),
        None => by_class,
    }
}

fn count(policy: &RetryPolicy, attempts: &mut Attempts) -> bool {
    let allowed = attempts.retries < policy.max_retries;
    attempts.retries += u32::from(allowed);
    allowed
}

/// Wait before the n-th retry, from 1, varied by a fifth so that many clients do not come back at the same moment.
fn backoff(policy: &RetryPolicy, retry: u32, jitter: f64) -> Duration {
    let exponent = i32::try_from(retry.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = policy.initial_delay.as_secs_f64() * policy.backoff_multiplier.powi(exponent);
    let bounded = grown.min(policy.max_delay.as_secs_f64());
    Duration::from_secs_f64(bounded * (0.8 + 0.4 * jitter.clamp(0.0, 1.0)))
}

fn cannot_retry(error: Error, message: String) -> Error {
    let cause = Cause {
        name: "ModelError".to_owned(),
        message: error.message,
        code: Some(error.code.as_str().to_owned()),
        stack: None,
    };
    let mut outer = Error::new(ErrorCode::CannotRetry, message).with_cause(cause);
    outer.status = error.status;
    outer
}

#[cfg(test)]
mod tests;
