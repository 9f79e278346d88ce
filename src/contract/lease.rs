//! The right to act for a Session that several hosts could run.

use super::tool::BoxFuture;
use crate::error::Error;

/// An execution lease. Whoever lost it must not act any more, because somebody else does.
///
/// Contract: `verify` is asked often (around every stage that matters), so it answers from memory where it can. A lease
/// that was lost stays lost.
pub trait ExecutionLease: Send + Sync {
    /// Whether the lease is still held.
    ///
    /// # Errors
    /// It was lost, or that cannot be ruled out.
    fn verify(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// The fencing token; grows with every new owner.
    fn fence(&self) -> u64;
}
