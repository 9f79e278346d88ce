//! Where a model answer goes: text to the stream at once, the rest to the turn.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::events::{EventQueue, TextKind};
use crate::contract::{ToolEffect, ToolYield, YieldSink};
use crate::host::CancelToken;
use crate::model::{ModelUsage, SessionEvent, ToolCall};
use crate::providers::{FinishReason, ModelSink};

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
    effects: Mutex<Option<Vec<ToolEffect>>>,
}

impl CallYields {
    pub(super) fn new(events: Arc<EventQueue>, cancel: CancelToken, call: &ToolCall) -> Self {
        let effects = Mutex::new(Some(Vec::new()));
        Self { events, cancel, id: call.id.clone(), name: call.name.clone(), effects }
    }

    /// The end of the call. Gives what it wants changed, in the order of its yields.
    pub(super) fn close(&self) -> Vec<ToolEffect> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    fn publish(&self, item: ToolYield) {
        // Held until it is published, so that the end of the call comes before or after the whole of it.
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(effects) = effects.as_mut() else { return };
        let event = self.event(item, effects);
        // A cancelled tool must be able to clean up although nobody reads the events any more; what it still says then is
        // kept within the bounds of the queue.
        if !(self.cancel.is_cancelled() && self.events.is_full()) {
            self.events.push_event(&event);
        }
    }

    fn event(&self, item: ToolYield, effects: &mut Vec<ToolEffect>) -> SessionEvent {
        let (id, name) = (self.id.clone(), self.name.clone());
        match item {
            ToolYield::Progress(mut progress) => {
                progress.insert("kind".into(), Value::String("progress".into()));
                SessionEvent::ToolProgress { id, name, progress: Value::Object(progress) }
            }
            ToolYield::Message { content } => SessionEvent::ToolMessage { id, name, content },
            ToolYield::Effect { effect } => {
                effects.push(effect.clone());
                match effect {
                    ToolEffect::RuntimePatch { patch } => {
                        SessionEvent::ToolRuntimePatch { id, name, patch: patch.given().clone() }
                    }
                    ToolEffect::ContextPatch { patch } => {
                        SessionEvent::ToolContextPatch { id, name, patch: patch.given().clone() }
                    }
                    ToolEffect::NewMessages { messages } => SessionEvent::ToolNewMessages { id, name, messages },
                    ToolEffect::PermissionUpdates { updates } => {
                        SessionEvent::ToolPermissionUpdates { id, name, updates }
                    }
                }
            }
        }
    }
}

impl YieldSink for CallYields {
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
}
