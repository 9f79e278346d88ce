//! What comes next after a model answer. Pure: a table a test can enumerate.

use crate::error::{Error, ErrorCode};
use crate::providers::FinishReason;

/// The shape of an answer, as far as the decision needs it.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Whether there is any text.
    pub has_text: bool,
    /// Number of tool calls.
    pub calls: usize,
    /// Why the model stopped, where it said so.
    pub finish: Option<&'a FinishReason>,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Run the calls.
    Tools,
    /// The request is done.
    Finish,
    /// The request failed.
    Fail(Error),
}

/// Decides after an answer. Calls are run whatever the finish reason says, except when the provider withheld the
/// answer: some providers report `stop` beside calls.
pub fn after_answer(answer: Answer<'_>) -> Next {
    match answer.finish {
        Some(FinishReason::ContentFilter) if !answer.has_text || answer.calls > 0 => Next::Fail(withheld(
            "the provider's content filter stopped the answer; change the input or the provider's filter settings",
        )),
        Some(FinishReason::Refusal) if !answer.has_text => {
            Next::Fail(withheld("the model refused to answer; change the input"))
        }
        Some(FinishReason::Length) if !answer.has_text && answer.calls == 0 => Next::Fail(withheld(
            "the token limit was reached before any answer; raise maxOutputTokens or shorten the conversation",
        )),
        _ if answer.calls > 0 => Next::Tools,
        _ => Next::Finish,
    }
}

/// Decides after the tools of a turn.
pub fn after_tools(turn: u32, max_turns: u32) -> Result<(), Error> {
    if turn < max_turns {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::MaxTurnsExceeded,
        format!("the request reached its limit of {max_turns} turns; raise maxTurns or continue with another send"),
    ))
}

fn withheld(message: &str) -> Error {
    Error::new(ErrorCode::ModelAnswerIncomplete, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_follows_calls_text_and_finish_reason() {
        use FinishReason::{ContentFilter, Length, Other, Refusal, Stop, ToolCalls};
        for (name, has_text, calls, finish, expected) in [
            ("plain answer", true, 0, Some(Stop), "finish"),
            ("empty answer", false, 0, Some(Stop), "finish"),
            ("calls", false, 2, Some(ToolCalls), "tools"),
            ("calls beside a stop", true, 1, Some(Stop), "tools"),
            ("calls without a reason", false, 1, None, "tools"),
            ("unknown reason", true, 0, Some(Other("weird".into())), "finish"),
            ("cut text", true, 0, Some(Length), "finish"),
            ("cut before anything", false, 0, Some(Length), "fail"),
            ("filtered", false, 0, Some(ContentFilter), "fail"),
            ("filtered calls never run", true, 1, Some(ContentFilter), "fail"),
            ("filtered text stays", true, 0, Some(ContentFilter), "finish"),
            ("refused", false, 0, Some(Refusal), "fail"),
            ("refused with words", true, 0, Some(Refusal), "finish"),
        ] {
            let next = after_answer(Answer { has_text, calls, finish: finish.as_ref() });
            let got = match next {
                Next::Tools => "tools",
                Next::Finish => "finish",
                Next::Fail(_) => "fail",
            };
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn the_turn_limit_counts_model_calls() {
        assert!(after_tools(2, 3).is_ok());
        assert_eq!(after_tools(3, 3).unwrap_err().code, ErrorCode::MaxTurnsExceeded);
    }
}
