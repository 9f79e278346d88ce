//! The state of a Session as a pure table: `(state, input) → (state, effect)`, or a refusal that changes nothing.

use crate::model::RequestId;

/// Where a Session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing to do.
    Idle,
    /// An input was accepted; `stream` starts it.
    Pending(RequestId),
    /// A request is in flight.
    Running(RequestId),
    /// The request in flight was cancelled and cleans up.
    Stopping(RequestId),
    /// `close` waits for the request in flight, or releases what the Session holds.
    Closing(Option<RequestId>),
    /// Over.
    Closed,
}

/// What happens to a Session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// An input arrived.
    Send {
        /// Id the request gets if it is accepted.
        request: RequestId,
        /// `expectedRequestId`.
        expected: Option<RequestId>,
        /// Whether options were given that only a new request can take.
        has_request_options: bool,
    },
    /// The caller wants the events.
    Stream,
    /// The caller cancels what is under way.
    Abort,
    /// The caller cancels one request: its signal fired, or its stream was left.
    AbortRequest(RequestId),
    /// The driver of the request has ended.
    Ended(RequestId),
    /// The caller closes the Session.
    Close,
    /// Everything was released.
    CloseDone,
    /// Something could not be released; the Session stays open.
    CloseFailed,
}

/// What the Session has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Keep the input for `stream`.
    Accept,
    /// Start the driver.
    Start,
    /// Cancel the driver.
    Cancel,
    /// Forget the input that was not started.
    DropPending,
    /// Release what the Session holds.
    Release,
}

/// Why an input is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Closed, or closing.
    Closed,
    /// `stream` without an accepted input.
    NothingPending,
    /// `stream` while a stream is open.
    AlreadyStreaming,
    /// `expectedRequestId` names another request.
    Mismatch,
    /// Options that only a new request can take.
    OptionsUnsupported,
    /// A request is under way.
    Busy,
}

/// The table.
///
/// # Errors
/// The input is refused and the state stays.
pub fn step(state: &State, input: &Input) -> Result<(State, Effect), Refused> {
    use Effect::{Accept, Cancel, DropPending, None as Nothing, Release, Start};
    use State::{Closed, Closing, Idle, Pending, Running, Stopping};
    Ok(match (state, input) {
        (Closed | Closing(_), Input::Send { .. } | Input::Stream) => return Err(Refused::Closed),

        (Idle, Input::Send { expected: Some(_), .. }) => return Err(Refused::Mismatch),
        (Idle, Input::Send { request, expected: None, .. }) => (Pending(request.clone()), Accept),
        (Pending(active) | Running(active) | Stopping(active), Input::Send { expected, has_request_options, .. }) => {
            return Err(match expected {
                _ if *has_request_options => Refused::OptionsUnsupported,
                Some(expected) if expected != active => Refused::Mismatch,
                _ => Refused::Busy,
            });
        }

        (Pending(request), Input::Stream) => (Running(request.clone()), Start),
        (Idle, Input::Stream) => return Err(Refused::NothingPending),
        (Running(_) | Stopping(_), Input::Stream) => return Err(Refused::AlreadyStreaming),

        (Pending(_), Input::Abort) => (Idle, DropPending),
        (Pending(request), Input::AbortRequest(one)) if request == one => (Idle, DropPending),
        (Running(request), Input::Abort) => (Stopping(request.clone()), Cancel),
        (Running(request), Input::AbortRequest(one)) if request == one => (Stopping(request.clone()), Cancel),

        (Running(request) | Stopping(request), Input::Ended(one)) if request == one => (Idle, Nothing),
        (Closing(Some(request)), Input::Ended(one)) if request == one => (Closing(None), Nothing),

        (Idle, Input::Close) => (Closing(None), Release),
        (Pending(_), Input::Close) => (Closing(None), DropPending),
        (Running(request) | Stopping(request), Input::Close) => (Closing(Some(request.clone())), Cancel),
        (Closing(_), Input::CloseDone) => (Closed, Nothing),
        (Closing(None), Input::CloseFailed) => (Idle, Nothing),
        (Closing(Some(request)), Input::CloseFailed) => (Stopping(request.clone()), Nothing),

        // Everything else is late or repeated and changes nothing.
        (state, _) => (state.clone(), Nothing),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Vec<Input> {
        let (a, b) = (RequestId::new("a"), RequestId::new("b"));
        let send = |request: &RequestId, expected: Option<&RequestId>, has_request_options| Input::Send {
            request: request.clone(),
            expected: expected.cloned(),
            has_request_options,
        };
        vec![
            send(&a, None, false),
            send(&b, Some(&a), false),
            send(&b, None, true),
            Input::Stream,
            Input::Abort,
            Input::AbortRequest(a.clone()),
            Input::AbortRequest(b.clone()),
            Input::Ended(a),
            Input::Ended(b),
            Input::Close,
            Input::CloseDone,
            Input::CloseFailed,
        ]
    }

    /// Every sequence of inputs up to a depth, from idle.
    #[test]
    fn every_interleaving_keeps_the_invariants() {
        let mut frontier = vec![(State::Idle, 0_u32, 0_u32)];
        let mut seen = std::collections::HashSet::new();
        for _ in 0..8 {
            let mut next = Vec::new();
            for (state, started, dropped) in frontier {
                for input in inputs() {
                    let Ok((after, effect)) = step(&state, &input) else { continue };
                    let started = started + u32::from(effect == Effect::Start);
                    let dropped = dropped + u32::from(effect == Effect::DropPending);
                    match (&state, &after) {
                        (State::Closed, after) => assert_eq!(after, &State::Closed, "closed is final: {input:?}"),
                        (State::Idle, State::Running(_)) => panic!("a request ran without having been accepted"),
                        (State::Running(x) | State::Stopping(x), State::Pending(y)) => panic!("{x} was lost for {y}"),
                        (State::Stopping(_), State::Running(_)) => panic!("a cancelled request came back"),
                        _ => {}
                    }
                    if effect == Effect::Cancel {
                        assert!(matches!(state, State::Running(_) | State::Stopping(_)), "{state:?}");
                    }
                    if seen.insert((format!("{after:?}"), started.min(3), dropped.min(3))) {
                        next.push((after, started, dropped));
                    }
                }
            }
            frontier = next;
        }
        assert!(seen.len() > 20, "the walk reached {} states", seen.len());
    }

    #[test]
    fn refusals_name_their_reason_and_change_nothing() {
        let active = RequestId::new("a");
        let send = |expected: Option<&str>, has_request_options| Input::Send {
            request: RequestId::new("new"),
            expected: expected.map(RequestId::new),
            has_request_options,
        };
        for (state, input, reason) in [
            (State::Idle, send(Some("a"), false), Refused::Mismatch),
            (State::Idle, Input::Stream, Refused::NothingPending),
            (State::Running(active.clone()), send(None, false), Refused::Busy),
            (State::Running(active.clone()), send(Some("a"), false), Refused::Busy),
            (State::Running(active.clone()), send(Some("b"), false), Refused::Mismatch),
            (State::Pending(active.clone()), send(None, true), Refused::OptionsUnsupported),
            (State::Running(active), Input::Stream, Refused::AlreadyStreaming),
            (State::Closed, send(None, false), Refused::Closed),
            (State::Closing(None), Input::Stream, Refused::Closed),
        ] {
            assert_eq!(step(&state, &input), Err(reason), "{state:?} {input:?}");
        }
    }
}
