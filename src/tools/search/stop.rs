//! Stopping a search that runs on several threads.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::contract::{ToolContext, ToolError};

/// A flag the threads of one search look at for every entry and every block they read. It stands in for the call's
/// token, whose state is behind a lock that many threads would fight for.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether the search must end.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sets the flag when the call's future is dropped, so that no thread goes on for nobody.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// What became of blocking work.
#[derive(Debug)]
pub(super) enum Ended<T> {
    /// It ran to its end.
    Done(T),
    /// The call was cancelled; what the work had found so far is not trusted.
    Aborted,
}

/// Runs blocking work and sets its flag when the call is cancelled; the work is waited for either way.
///
/// # Errors
/// The work panicked.
pub(super) async fn run<T: Send + 'static>(
    cx: &ToolContext,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<Ended<T>, ToolError> {
    if cx.cancel.is_cancelled() {
        return Ok(Ended::Aborted);
    }
    let stop = Stop::default();
    let guard = StopOnDrop(stop.clone());
    let mut work = pin!(cx.blocking(move |_| work(&stop)));
    tokio::select! {
        biased;
        done = &mut work => done.map(Ended::Done),
        () = cx.cancel.cancelled() => {
            guard.0.set();
            work.await.map(|_| Ended::Aborted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::CancelReason;
    use crate::tools::search::testing::tree;
    use tokio::sync::oneshot;

    /// Work that runs until it is stopped, and says when it began and when it ended.
    fn endless() -> (impl FnOnce(&Stop) + Send + 'static, oneshot::Receiver<()>, oneshot::Receiver<()>) {
        let ((begin, begun), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let work = move |stop: &Stop| {
            let _ = begin.send(());
            while !stop.is_set() {
                std::thread::yield_now();
            }
            let _ = end.send(());
        };
        (work, begun, ended)
    }

    #[tokio::test]
    async fn cancelling_stops_the_work_and_waits_for_it() {
        let cx = tree(&[]).context();
        let (work, begun, mut ended) = endless();
        let cancel = async {
            begun.await.expect("begun");
            cx.cancel.cancel(CancelReason::Abort);
        };
        let (result, ()) = tokio::join!(run(&cx, work), cancel);
        assert!(matches!(result, Ok(Ended::Aborted)));
        assert_eq!(ended.try_recv(), Ok(()));
    }

    #[tokio::test]
    async fn dropping_the_call_stops_the_work() {
        let cx = tree(&[]).context();
        let (work, begun, ended) = endless();
        let mut call = Box::pin(run(&cx, work));
        tokio::select! {
            _ = &mut call => panic!("ended by itself"),
            begun = begun => begun.expect("begun"),
        }
        drop(call);
        ended.await.expect("ended");
    }
}
