//! Where a model answer goes: text to the stream at once, the rest to the turn.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::events::{EventQueue, TextKind};
use crate::contract::{ToolEffect, ToolYield, YieldSink};
use crate::error::{Error, ErrorCode, Result};
use crate::host::CancelToken;
use crate::model::{ModelUsage, SessionEvent, ToolCall};
use crate::permissions::PermissionUpdates;
use crate::providers::{FinishReason, ModelSink};

/// Effects one call may have. They are kept until the call has ended, whoever reads the events.
const MAX_EFFECTS: usize = 1000;
/// Size of all effects of one call together, in bytes of JSON text.
const MAX_EFFECT_BYTES: usize = 10 << 20;

/// Collects one answer and publishes its text while it comes.
pub(super) struct TurnSink<'a> {
    events: &'a EventQueue,
    include_thinking: bool,
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<ToolCall>,
    pub usage: Option<ModelUsage>,
    pub finish: Option<FinishReason>,
}

impl<'a> TurnSink<'a> {
    pub(super) fn new(events: &'a EventQueue, include_thinking: bool) -> Self {
        Self {
            events,
            include_thinking,
            text: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            usage: None,
            finish: None,
        }
    }
}

impl ModelSink for TurnSink<'_> {
    fn text(&mut self, delta: &str) {
        self.text.push_str(delta);
        self.events.push_text(TextKind::Content, delta);
    }

    fn thinking(&mut self, delta: &str) {
        self.reasoning.push_str(delta);
        if self.include_thinking {
            self.events.push_text(TextKind::Thinking, delta);
        }
    }

    fn tool_call(&mut self, call: ToolCall) {
        self.calls.push(call);
    }

    fn usage(&mut self, usage: ModelUsage) {
        self.usage = Some(usage);
    }

    fn finish(&mut self, reason: FinishReason) {
        self.finish = Some(reason);
    }

    fn is_full(&self) -> bool {
        self.events.is_full()
    }
}

/// Publishes the yields of one call and keeps its effects for the end of the turn.
///
/// Invariant: nothing is published of a call that has ended. A tool that ignored its signal may go on after its result.
pub(super) struct CallYields {
    events: Arc<EventQueue>,
    cancel: CancelToken,
    id: String,
    name: String,
    /// `None` once the call has ended.
    effects: Mutex<Option<Kept>>,
}

/// The effects of one call, within their bounds.
#[derive(Default)]
struct Kept {
    effects: Vec<ToolEffect>,
    bytes: usize,
}

impl Kept {
    fn has_room(&self, bytes: usize) -> bool {
        self.effects.len() < MAX_EFFECTS && bytes <= MAX_EFFECT_BYTES - self.bytes
    }

    /// Keeps an effect for the end of the turn, if it has room.
    fn keep(&mut self, effect: &ToolEffect) -> bool {
        let bytes = size_of(effect);
        let has_room = self.has_room(bytes);
        if has_room {
            self.bytes += bytes;
            self.effects.push(effect.clone());
        }
        has_room
    }
}

/// Bytes of the JSON text of an effect.
fn size_of(effect: &ToolEffect) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
            self.0 += piece.len();
            Ok(piece.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written has no size worth keeping.
    serde_json::to_writer(&mut count, effect).map_or(usize::MAX, |()| count.0)
}

impl CallYields {
    pub(super) fn new(events: Arc<EventQueue>, cancel: CancelToken, call: &ToolCall) -> Self {
        let effects = Mutex::new(Some(Kept::default()));
        Self { events, cancel, id: call.id.clone(), name: call.name.clone(), effects }
    }

    /// The end of the call. Gives what it wants changed, in the order of its yields.
    pub(super) fn close(&self) -> Vec<ToolEffect> {
        self.lock().take().unwrap_or_default().effects
    }

    fn lock(&self) -> MutexGuard<'_, Option<Kept>> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, item: ToolYield) {
        // Held until it is published, so that the end of the call comes before or after the whole of it.
        let mut kept = self.lock();
        let Some(kept) = kept.as_mut() else { return };
        // An effect that has no room is as if it had not been yielded: whoever could be told was told by
        // [`YieldSink::admit`], and its call has failed.
        if let ToolYield::Effect { effect } = &item
            && !kept.keep(effect)
        {
            return;
        }
        let event = self.event(item);
        // A cancelled tool must be able to clean up although nobody reads the events any more; what it still says then is
        // kept within the bounds of the queue.
        if !(self.cancel.is_cancelled() && self.events.is_full()) {
            self.events.push_event(&event);
        }
    }

    fn event(&self, item: ToolYield) -> SessionEvent {
        let (id, name) = (self.id.clone(), self.name.clone());
        match item {
            ToolYield::Progress(mut progress) => {
                progress.insert("kind".into(), Value::String("progress".into()));
                SessionEvent::ToolProgress { id, name, progress: Value::Object(progress) }
            }
            ToolYield::Message { content } => SessionEvent::ToolMessage { id, name, content },
            ToolYield::Effect { effect } => match effect {
                ToolEffect::RuntimePatch { patch } => {
                    SessionEvent::ToolRuntimePatch { id, name, patch: patch.given().clone() }
                }
                ToolEffect::ContextPatch { patch } => {
                    SessionEvent::ToolContextPatch { id, name, patch: patch.given().clone() }
                }
                ToolEffect::NewMessages { messages } => SessionEvent::ToolNewMessages { id, name, messages },
                ToolEffect::PermissionUpdates { updates } => SessionEvent::ToolPermissionUpdates { id, name, updates },
            },
        }
    }
}

impl YieldSink for CallYields {
    fn admit(&self, item: &ToolYield) -> Result<()> {
        let ToolYield::Effect { effect } = item else { return Ok(()) };
        if let ToolEffect::PermissionUpdates { updates } = effect {
            // Said to the tool while it can still be: a denial that is not understood must not be lost in silence.
            PermissionUpdates::parse(updates)?;
        }
        if self.lock().as_ref().is_none_or(|kept| kept.has_room(size_of(effect))) {
            return Ok(());
        }
        let message = format!(
            "the tool yielded what it may not: a call has at most {MAX_EFFECTS} effects of {MAX_EFFECT_BYTES} bytes \
             together"
        );
        Err(Error::new(ErrorCode::InvalidToolYield, message))
    }

    fn emit(&self, item: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.publish(item);
        Box::pin(async move {
            self.cancel.run_until(self.events.room()).await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::Take;
    use super::*;
    use crate::host::CancelReason;

    #[tokio::test]
    async fn a_cancelled_call_is_neither_held_up_nor_unbounded_when_nobody_reads() {
        let events = Arc::new(EventQueue::new(|| {}));
        let cancel = CancelToken::new();
        let call = ToolCall { id: "call_1".into(), name: "T".into(), arguments: "{}".into() };
        let yields = CallYields::new(events.clone(), cancel.clone(), &call);
        while !events.is_full() {
            // The yield that fills the queue is held up itself.
            let _ = futures_util::poll!(yields.emit(ToolYield::message("x".repeat(1000))));
        }
        let held_up = yields.emit(ToolYield::message("one more"));
        tokio::pin!(held_up);
        assert!(futures_util::poll!(&mut held_up).is_pending());
        cancel.cancel(CancelReason::Abort);
        held_up.await;

        let count = || {
            let mut count = 0;
            while let Take::Frame(frame) = events.take() {
                count += frame.marks.len();
            }
            count
        };
        let kept = count();
        while !events.is_full() {
            yields.emit(ToolYield::message("x".repeat(1000))).await;
        }
        for _ in 0..1000 {
            yields.emit(ToolYield::message("late")).await;
        }
        assert!(count() <= kept, "what a cancelled call still yields is bounded");
    }

    #[tokio::test]
    async fn what_a_call_says_after_its_end_has_no_place() {
        let events = Arc::new(EventQueue::new(|| {}));
        let call = ToolCall { id: "call_1".into(), name: "T".into(), arguments: "{}".into() };
        let yields = CallYields::new(events.clone(), CancelToken::new(), &call);
        let effect = || ToolYield::Effect { effect: ToolEffect::NewMessages { messages: serde_json::json!([]) } };
        yields.emit(effect()).await;
        assert_eq!(yields.close().len(), 1);
        assert!(matches!(events.take(), Take::Frame(frame) if frame.marks.len() == 1));
        yields.emit(effect()).await;
        yields.emit(ToolYield::message("late")).await;
        assert!(!matches!(events.take(), Take::Frame(_)), "nothing was published");
        assert!(yields.close().is_empty(), "nothing will be applied");
    }

    #[tokio::test]
    async fn the_effects_of_a_call_are_bounded_in_number_and_size() {
        let effect = |text: &str| {
            let message =
                serde_json::json!({ "type": "newMessages", "messages": [{ "role": "user", "content": text }] });
            ToolYield::Effect { effect: serde_json::from_value(message).unwrap() }
        };
        for (text, most) in [("x".to_owned(), MAX_EFFECTS), ("x".repeat(1 << 20), 9)] {
            let events = Arc::new(EventQueue::new(|| {}));
            let call = ToolCall { id: "call_1".into(), name: "T".into(), arguments: "{}".into() };
            let yields = CallYields::new(events.clone(), CancelToken::new(), &call);
            let mut admitted = 0;
            for _ in 0..most + 5 {
                let item = effect(&text);
                admitted += usize::from(yields.admit(&item).is_ok());
                // Nobody reads, which holds up the yielder and nothing else.
                let _ = futures_util::poll!(yields.emit(item));
            }
            let refused = yields.admit(&effect(&text)).unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidToolYield);
            assert!(yields.admit(&ToolYield::message("still said")).is_ok());
            assert_eq!((admitted, yields.close().len()), (most, most));
        }
    }
}
