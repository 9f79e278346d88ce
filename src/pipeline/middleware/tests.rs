use super::*;
use crate::contract::ToolSuccess;

fn success(text: &str) -> ToolOutcome {
    ToolOutcome::Success(ToolSuccess::new(text))
}

fn error(kind: ToolErrorType) -> ToolOutcome {
    ToolOutcome::Error(ToolError::new(kind, "the core's").into())
}

fn shown(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Core => "core".into(),
        Verdict::Cancelled => "cancelled".into(),
        Verdict::Own(outcome) => outcome.model().as_text().to_owned(),
    }
}

#[test]
fn whose_result_counts() {
    use ToolErrorType::{ExecutionError, TimeoutError};
    let threw = || Err(Error::internal("oops"));
    let own = || Ok(success("own"));
    let broke = || Some("a rule".to_owned());
    let failed = "Tool middleware failed: oops";
    for (core, unfinished, answer, violation, cancelled, expected) in [
        // No core: the middleware answers, fails, or broke a rule whatever it says.
        (None, false, own(), None, false, "own"),
        (None, false, Ok(error(ExecutionError)), None, false, "the core's"),
        (None, false, threw(), None, false, failed),
        (None, false, own(), broke(), false, "Tool middleware failed: a rule"),
        (None, false, own(), None, true, "cancelled"),
        // A finished core: its success may be changed, its error may not become a success.
        (Some(success("core")), false, own(), None, false, "own"),
        (Some(success("core")), false, threw(), None, false, failed),
        (Some(success("core")), false, own(), broke(), false, "Tool middleware failed: a rule"),
        (Some(error(ExecutionError)), false, own(), None, false, "core"),
        (Some(error(ExecutionError)), false, Ok(error(ExecutionError)), None, false, "the core's"),
        (Some(error(ExecutionError)), false, threw(), None, false, "core"),
        (Some(error(TimeoutError)), false, Ok(error(ExecutionError)), None, false, "core"),
        // A core the middleware did not wait for, or whose request is over.
        (Some(success("core")), true, own(), None, false, "core"),
        (Some(success("core")), true, threw(), None, false, failed),
        (Some(error(ExecutionError)), true, threw(), None, false, "core"),
        (Some(success("core")), false, own(), None, true, "core"),
    ] {
        let verdict = decide(core.as_ref(), unfinished, answer, violation.clone(), cancelled);
        assert_eq!(shown(&verdict), expected, "{core:?} {unfinished} {violation:?} {cancelled}");
    }
}
