//! The stream of one request: a bounded queue of packed frames between the loop and its consumer.
//!
//! Text deltas are appended to one text buffer per frame with their lengths beside it, so that twenty thousand of them
//! cost no objects on this side. Other events are JSON text in the same buffer. ASCII stays one byte a character; a
//! frame that meets anything wider is kept as UTF-16, which is what JavaScript strings are made of.
//!
//! Invariants: the producer waits once the queue is over its bounds, so at most the bounds plus one pushed event are
//! held; nothing is dropped while the consumer is open; the consumer is woken once for many events.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::model::SessionEvent;

/// A frame is closed once it holds this many UTF-16 units: slices of a string keep the whole string alive.
const FRAME_UNITS: usize = 16 * 1024;
/// A frame is closed once it holds this many events; the consumer's scratch array is sized for it.
pub const FRAME_EVENTS: usize = 1000;
/// The producer waits above this many queued UTF-16 units…
const MAX_UNITS: usize = 64 * 1024;
/// …or this many queued events.
const MAX_EVENTS: usize = 4 * FRAME_EVENTS;

/// Low bits of a mark hold the length in UTF-16 units, the two high bits the kind.
pub const MARK_LENGTH: u32 = (1 << 30) - 1;

/// Kind of a text delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Answer text.
    Content = 0,
    /// Reasoning.
    Thinking = 1,
}

const JSON_KIND: u32 = 2;

/// Text of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameText {
    /// ASCII, one byte a unit.
    Narrow(Vec<u8>),
    /// UTF-16.
    Wide(Vec<u16>),
}

impl FrameText {
    fn units(&self) -> usize {
        match self {
            Self::Narrow(bytes) => bytes.len(),
            Self::Wide(units) => units.len(),
        }
    }

    /// Appends text and returns its length in units.
    fn push(&mut self, text: &str) -> usize {
        if let Self::Narrow(bytes) = self {
            if text.is_ascii() {
                bytes.extend_from_slice(text.as_bytes());
                return text.len();
            }
            let widened = bytes.iter().map(|&byte| u16::from(byte)).collect();
            *self = Self::Wide(widened);
        }
        let Self::Wide(units) = self else { return 0 };
        let before = units.len();
        units.extend(text.encode_utf16());
        units.len() - before
    }
}

/// Events taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Their text, one after the other.
    pub text: FrameText,
    /// One mark an event: kind in the two high bits, length in the rest.
    pub marks: Vec<u32>,
}

impl Frame {
    fn new() -> Self {
        Self { text: FrameText::Narrow(Vec::new()), marks: Vec::new() }
    }

    fn is_closed(&self) -> bool {
        self.marks.len() >= FRAME_EVENTS || self.text.units() >= FRAME_UNITS
    }
}

/// What the consumer gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Take {
    /// Events.
    Frame(Frame),
    /// Nothing now; the ready callback will be called.
    Empty,
    /// Nothing any more.
    Ended,
}

#[derive(Default)]
struct State {
    frames: VecDeque<Frame>,
    units: usize,
    events: usize,
    ended: bool,
    closed: bool,
    waiting: bool,
}

/// The queue. One producer, one consumer.
pub struct EventQueue {
    state: Mutex<State>,
    room: Notify,
    ready: Box<dyn Fn() + Send + Sync>,
}

impl EventQueue {
    /// A queue that calls `ready` when a waiting consumer can take again. It is called without any lock held.
    pub fn new(ready: impl Fn() + Send + Sync + 'static) -> Self {
        Self { state: Mutex::default(), room: Notify::new(), ready: Box::new(ready) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a text delta. Does not wake the consumer: see [`EventQueue::flush`].
    pub fn push_text(&self, kind: TextKind, delta: &str) {
        self.push(kind as u32, delta);
    }

    /// Appends an event and wakes a waiting consumer.
    pub fn push_event(&self, event: &SessionEvent) {
        match serde_json::to_string(event) {
            Ok(json) => self.push(JSON_KIND, &json),
            Err(error) => tracing::error!(%error, "an event could not be encoded and is lost"),
        }
        self.flush();
    }

    fn push(&self, kind: u32, text: &str) {
        let mut state = self.lock();
        if state.closed || state.ended {
            return;
        }
        if state.frames.back().is_none_or(Frame::is_closed) {
            state.frames.push_back(Frame::new());
        }
        let Some(frame) = state.frames.back_mut() else { return };
        let units = frame.text.push(text);
        frame.marks.push((kind << 30) | (units as u32 & MARK_LENGTH));
        state.units += units;
        state.events += 1;
    }

    /// Wakes the consumer if it waits and there is something to take.
    pub fn flush(&self) {
        let wake = {
            let mut state = self.lock();
            let wake = state.waiting && (state.events > 0 || state.ended);
            state.waiting &= !wake;
            wake
        };
        if wake {
            (self.ready)();
        }
    }

    /// How many events wait to be taken.
    pub fn len(&self) -> usize {
        self.lock().events
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the producer should wait before it makes more.
    pub fn is_full(&self) -> bool {
        let state = self.lock();
        !state.closed && (state.units >= MAX_UNITS || state.events >= MAX_EVENTS)
    }

    /// Resolves when there is room.
    pub async fn room(&self) {
        loop {
            let room = self.room.notified();
            if !self.is_full() {
                return;
            }
            self.flush();
            room.await;
        }
    }

    /// No more events follow.
    pub fn end(&self) {
        self.lock().ended = true;
        self.flush();
    }

    /// The next frame. [`Take::Empty`] promises one call of the ready callback.
    pub fn take(&self) -> Take {
        let mut state = self.lock();
        match state.frames.pop_front() {
            Some(frame) => {
                state.units -= frame.text.units();
                state.events -= frame.marks.len();
                let room = state.units < MAX_UNITS && state.events < MAX_EVENTS;
                drop(state);
                if room {
                    self.room.notify_one();
                }
                Take::Frame(frame)
            }
            None if state.ended || state.closed => Take::Ended,
            None => {
                state.waiting = true;
                Take::Empty
            }
        }
    }

    /// The consumer is gone: what is queued is dropped and nothing more is kept.
    pub fn close(&self) {
        let mut state = self.lock();
        *state = State { closed: true, ended: true, ..State::default() };
        drop(state);
        self.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn queue() -> (EventQueue, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counter = wakes.clone();
        let ready = move || {
            counter.fetch_add(1, Ordering::SeqCst);
        };
        (EventQueue::new(ready), wakes)
    }

    fn texts(frame: &Frame) -> Vec<(u32, String)> {
        let units: Vec<u16> = match &frame.text {
            FrameText::Narrow(bytes) => bytes.iter().map(|&b| u16::from(b)).collect(),
            FrameText::Wide(units) => units.clone(),
        };
        let mut at = 0;
        frame
            .marks
            .iter()
            .map(|mark| {
                let end = at + (mark & MARK_LENGTH) as usize;
                let text = String::from_utf16(&units[at..end]).unwrap();
                at = end;
                (mark >> 30, text)
            })
            .collect()
    }

    #[test]
    fn deltas_and_events_come_out_in_order_whatever_their_width() {
        let (queue, _) = queue();
        queue.push_text(TextKind::Content, "ascii");
        queue.push_text(TextKind::Thinking, "héllo 世界 🙂");
        queue.push_event(&SessionEvent::TurnEnd { turn: 1 });
        let Take::Frame(frame) = queue.take() else { panic!("a frame") };
        assert_eq!(
            texts(&frame),
            [
                (0, "ascii".to_owned()),
                (1, "héllo 世界 🙂".to_owned()),
                (2, r#"{"type":"turn_end","turn":1}"#.to_owned())
            ]
        );
        assert_eq!(queue.take(), Take::Empty);
        queue.end();
        assert_eq!(queue.take(), Take::Ended);
    }

    #[test]
    fn a_waiting_consumer_is_woken_once_for_many_deltas() {
        let (queue, wakes) = queue();
        assert_eq!(queue.take(), Take::Empty);
        for _ in 0..50 {
            queue.push_text(TextKind::Content, "x");
        }
        assert_eq!(wakes.load(Ordering::SeqCst), 0, "deltas wait for the flush of their packet");
        queue.flush();
        queue.flush();
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
        queue.end();
        assert_eq!(wakes.load(Ordering::SeqCst), 1, "a consumer that is not waiting is not woken");
    }

    #[test]
    fn frames_are_bounded_in_text_and_in_events() {
        let (queue, _) = queue();
        for _ in 0..(FRAME_EVENTS + 1) {
            queue.push_text(TextKind::Content, "x");
        }
        let Take::Frame(first) = queue.take() else { panic!("a frame") };
        assert_eq!(first.marks.len(), FRAME_EVENTS);
        queue.push_text(TextKind::Content, &"y".repeat(FRAME_UNITS));
        queue.push_text(TextKind::Content, "z");
        let Take::Frame(second) = queue.take() else { panic!("a frame") };
        assert_eq!(second.marks.len(), 2);
        let Take::Frame(third) = queue.take() else { panic!("a frame") };
        assert_eq!(texts(&third), [(0, "z".to_owned())]);
    }

    #[tokio::test]
    async fn a_full_queue_makes_the_producer_wait_until_frames_are_taken() {
        let (queue, _) = queue();
        while !queue.is_full() {
            queue.push_text(TextKind::Content, &"x".repeat(1000));
        }
        let room = queue.room();
        tokio::pin!(room);
        assert!(futures_util::poll!(&mut room).is_pending());
        while let Take::Frame(_) = queue.take() {}
        room.await;
    }

    #[tokio::test]
    async fn closing_releases_the_producer_and_drops_what_it_still_makes() {
        let (queue, _) = queue();
        while !queue.is_full() {
            queue.push_text(TextKind::Content, &"x".repeat(1000));
        }
        queue.close();
        queue.room().await;
        queue.push_text(TextKind::Content, "late");
        assert_eq!(queue.take(), Take::Ended);
    }
}
