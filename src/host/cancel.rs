//! Cancellation as a tree of tokens with a reason: Session → request → tool call → process, socket, lock wait.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Why work was cancelled. The first reason of a token wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelReason {
    /// The caller aborted the request, left its stream or fired its signal.
    Abort,
    /// The Session is closing.
    Close,
    /// A deadline passed.
    Deadline,
    /// A new instruction of the caller takes over.
    Steered,
    /// The owner of the work is gone (its environment ended).
    Gone,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Abort => "the request was aborted",
            Self::Close => "the session is closing",
            Self::Deadline => "the deadline passed",
            Self::Steered => "Interrupted by a new instruction",
            Self::Gone => "the owner of the work is gone",
        })
    }
}

/// A node of the cancellation tree. Cloning shares the node; [`CancelToken::child`] makes a node below it.
#[derive(Debug, Clone)]
pub struct CancelToken {
    token: CancellationToken,
    reason: Arc<OnceLock<CancelReason>>,
    parent: Option<Arc<CancelToken>>,
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl CancelToken {
    /// A root token.
    pub fn new() -> Self {
        Self { token: CancellationToken::new(), reason: Arc::default(), parent: None }
    }

    /// A token that is cancelled with this one, and can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { token: self.token.child_token(), reason: Arc::default(), parent: Some(Arc::new(self.clone())) }
    }

    /// Cancels this node and everything below it.
    pub fn cancel(&self, reason: CancelReason) {
        // The reason is stored first, so that whoever sees the cancellation sees its reason too.
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// Whether this node or one above it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The reason, once cancelled: the nearest one on the way up.
    pub fn reason(&self) -> Option<CancelReason> {
        if !self.is_cancelled() {
            return None;
        }
        self.reason.get().cloned().or_else(|| self.parent.as_ref().and_then(|parent| parent.reason()))
    }

    /// Resolves when cancelled.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Runs `work` unless cancelled first; `None` means cancelled, and `work` is dropped.
    pub fn run_until<F: Future>(&self, work: F) -> impl Future<Output = Option<F::Output>> {
        RunUntil { cancelled: self.token.cancelled(), work }
    }
}

pin_project! {
    /// `CancellationToken::run_until_cancelled`, half its size: an `async fn` keeps room for what it is given besides what
    /// it awaits.
    struct RunUntil<'a, F> {
        #[pin]
        cancelled: WaitForCancellationFuture<'a>,
        #[pin]
        work: F,
    }
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.cancelled.poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => this.work.poll(cx).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_reports_the_reason_of_its_parent() {
        let root = CancelToken::new();
        let leaf = root.child().child();
        assert_eq!(leaf.reason(), None);
        root.cancel(CancelReason::Close);
        assert!(leaf.is_cancelled());
        assert_eq!(leaf.reason(), Some(CancelReason::Close));
    }

    #[test]
    fn cancelling_a_child_leaves_the_parent_alone_and_the_first_reason_wins() {
        let root = CancelToken::new();
        let leaf = root.child();
        leaf.cancel(CancelReason::Deadline);
        leaf.cancel(CancelReason::Abort);
        assert!(!root.is_cancelled());
        assert_eq!(leaf.reason(), Some(CancelReason::Deadline));
    }
}
