//! Approvals people gave for the rest of a Session.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Signatures approved with scope `session`. Exact signatures only: an approval of one command never covers another.
#[derive(Debug, Default)]
pub struct Approvals {
    signatures: Mutex<HashSet<String>>,
}

impl Approvals {
    /// Whether this exact signature was approved.
    pub fn contains(&self, signature: &str) -> bool {
        self.signatures.lock().unwrap_or_else(PoisonError::into_inner).contains(signature)
    }

    /// Remembers an approval.
    pub fn add(&self, signature: &str) {
        self.signatures.lock().unwrap_or_else(PoisonError::into_inner).insert(signature.to_owned());
    }
}
