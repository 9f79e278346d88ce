//! Yields of a call whose own token lets go of them: its deadline holds also while nobody reads its events.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::contract::{ToolYield, YieldSink};
use crate::host::CancelToken;

/// A sink that holds a tool up for no longer than until its call is cancelled, so that it can clean up. What it says
/// afterwards is handed on while there is room for it.
pub(super) struct Released {
    inner: Arc<dyn YieldSink>,
    cancel: CancelToken,
    /// The call is cancelled and there was no room.
    full: AtomicBool,
}

impl Released {
    pub(super) fn new(inner: Arc<dyn YieldSink>, cancel: CancelToken) -> Self {
        Self { inner, cancel, full: AtomicBool::new(false) }
    }
}

impl YieldSink for Released {
    fn emit(&self, item: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        if self.full.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(()));
        }
        let said = self.inner.emit(item);
        Box::pin(async move {
            tokio::select! {
                biased;
                () = said => {}
                () = self.cancel.cancelled() => self.full.store(true, Ordering::Relaxed),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;
    use crate::host::CancelReason;

    /// A sink with room for some yields, which counts them.
    struct Room(Semaphore, Semaphore);

    impl YieldSink for Room {
        fn emit(&self, _: ToolYield) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            self.1.add_permits(1);
            Box::pin(async move {
                if let Ok(place) = self.0.acquire().await {
                    place.forget();
                }
            })
        }
    }

    #[tokio::test]
    async fn a_cancelled_call_is_let_go_of_and_says_what_there_is_room_for() {
        let room = Arc::new(Room(Semaphore::new(1), Semaphore::new(0)));
        let cancel = CancelToken::new();
        let yields = Released::new(room.clone(), cancel.clone());
        yields.emit(ToolYield::message("taken")).await;
        let held_up = yields.emit(ToolYield::message("held up"));
        tokio::pin!(held_up);
        assert!(futures_util::poll!(&mut held_up).is_pending());
        cancel.cancel(CancelReason::Deadline);
        held_up.await;
        for _ in 0..100 {
            yields.emit(ToolYield::message("late")).await;
        }
        assert_eq!(room.1.available_permits(), 2);

        let yields = Released::new(room.clone(), cancel);
        room.0.add_permits(1);
        yields.emit(ToolYield::message("cleaning up")).await;
        assert_eq!(room.1.available_permits(), 3);
    }
}
