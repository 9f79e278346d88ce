//! Reading one model answer into the stream of its request.

use super::events::EventQueue;
use crate::error::Result;
use crate::providers::{Advance, ModelSink, ModelStream, advance_eagerly};

/// A consumer is woken once this many events wait for it, even while more are at hand: it works on them meanwhile.
const EAGER_EVENTS: usize = 64;

/// Reads the answer to its end.
///
/// # Errors
/// Those of [`ModelStream::advance`].
pub(super) async fn read(stream: &mut dyn ModelStream, sink: &mut dyn ModelSink, events: &EventQueue) -> Result<()> {
    loop {
        // The consumer is woken before this waits for the network.
        match advance_eagerly(stream, sink, || events.flush()).await? {
            Advance::More if events.len() < EAGER_EVENTS => {}
            Advance::More => events.flush(),
            Advance::Paused => events.room().await,
            Advance::Done => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::poll;
    use tokio::sync::mpsc;

    use super::*;
    use crate::agent::events::{Take, TextKind};
    use crate::agent::sink::TurnSink;
    use crate::contract::BoxFuture;

    /// A stream whose pieces come through a channel without room, as those of a connection do.
    struct Piecewise(mpsc::Receiver<&'static str>);

    impl ModelStream for Piecewise {
        fn advance<'a>(&'a mut self, sink: &'a mut dyn ModelSink) -> BoxFuture<'a, Result<Advance>> {
            Box::pin(async move {
                let Some(text) = self.0.recv().await else { return Ok(Advance::Done) };
                sink.text(text);
                Ok(Advance::More)
            })
        }
    }

    fn queue() -> (Arc<EventQueue>, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&wakes);
        let ready = move || {
            counter.fetch_add(1, Ordering::SeqCst);
        };
        (Arc::new(EventQueue::new(ready)), wakes)
    }

    fn taken(events: &EventQueue) -> usize {
        match events.take() {
            Take::Frame(frame) => frame.marks.len(),
            Take::Empty | Take::Ended => 0,
        }
    }

    #[tokio::test]
    async fn pieces_that_are_at_hand_wake_the_consumer_once() {
        let (events, wakes) = queue();
        assert_eq!(events.take(), Take::Empty);
        let (send, pieces) = mpsc::channel(1);
        let connection = async {
            for _ in 0..20 {
                send.send("x").await.expect("the reader is there");
            }
            // Nothing more comes, and the connection stays open.
            std::future::pending::<()>().await;
        };
        let mut stream = Piecewise(pieces);
        let mut sink = TurnSink::new(&events, false);
        let consumer = async {
            while wakes.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            taken(&events)
        };
        tokio::select! {
            // In the order of a runtime: what woke last runs first.
            biased;
            () = connection => panic!("the connection is open"),
            _ = read(&mut stream, &mut sink, &events) => panic!("the connection is open"),
            taken = consumer => assert_eq!(taken, 20),
        }
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_consumer_is_woken_before_a_long_run_of_pieces_ends() {
        let (events, wakes) = queue();
        assert_eq!(events.take(), Take::Empty);
        let (send, pieces) = mpsc::channel(10 * EAGER_EVENTS);
        for _ in 0..EAGER_EVENTS {
            send.try_send("x").expect("room");
        }
        let mut stream = Piecewise(pieces);
        let mut sink = TurnSink::new(&events, false);
        let mut reading = pin!(read(&mut stream, &mut sink, &events));
        assert!(poll!(reading.as_mut()).is_pending(), "it gives the connection its turn");
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
        assert_eq!(taken(&events), EAGER_EVENTS);
        events.push_text(TextKind::Content, "more");
        drop(send);
        reading.await.expect("the answer ends");
    }
}
