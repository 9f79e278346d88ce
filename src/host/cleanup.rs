//! Fail-closed bookkeeping of work that ignored its cancellation.
//!
//! JavaScript cannot preempt a callback, so a cancelled callback may go on. Until it settles, new tool work and closing
//! are refused: nobody may believe that the Session is quiet while its tools still act.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::cancel::CancelToken;
use super::runtime::Tasks;

/// Names of what is still cleaning up.
#[derive(Debug, Default, Clone)]
pub struct CleanupGate {
    pending: Arc<Mutex<Vec<Arc<str>>>>,
    settled: Arc<Notify>,
}

/// Keeps one entry in the gate until dropped.
#[derive(Debug)]
struct Pending {
    gate: CleanupGate,
    name: Arc<str>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut pending = self.gate.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = pending.iter().position(|name| Arc::ptr_eq(name, &self.name)) {
            pending.swap_remove(at);
        }
        drop(pending);
        self.gate.settled.notify_waiters();
    }
}

impl CleanupGate {
    /// What is still cleaning up.
    pub fn pending(&self) -> Vec<Arc<str>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resolves when nothing is cleaning up any more.
    pub async fn drained(&self) {
        loop {
            let settled = self.settled.notified();
            if self.pending().is_empty() {
                return;
            }
            settled.await;
        }
    }

    /// Keeps `rest` going in the background and the gate shut until it ends.
    pub fn finish_in_background(&self, name: &str, tasks: &Tasks, rest: impl Future<Output = ()> + Send + 'static) {
        let name: Arc<str> = name.into();
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&name));
        let guard = Pending { gate: self.clone(), name };
        tasks.spawn(async move {
            rest.await;
            drop(guard);
        });
    }

    /// Waits for a callback of the application unless the request is cancelled first. A callback that goes on after
    /// the cancellation keeps the gate shut. `None` means cancelled.
    pub async fn race<T: Send + 'static>(
        &self,
        name: &str,
        tasks: &Tasks,
        cancel: &CancelToken,
        mut callback: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            answer = &mut callback => return Some(answer),
            () = cancel.cancelled() => {}
        }
        // A callback that stops at once on its signal leaves no trace; one poll lets it say so.
        tokio::select! {
            biased;
            _ = &mut callback => {}
            () = std::future::ready(()) => {
                self.finish_in_background(name, tasks, async move { drop(callback.await) });
            }
        }
        None
    }
}
