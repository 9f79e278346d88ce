//! The world outside, handed in: the async runtime, cancellation, clock and environment.

pub mod cancel;
pub mod cleanup;
pub mod clock;
pub mod env;
pub mod inline;
pub mod log;
pub mod real_path;
pub mod runtime;

pub use cancel::{CancelReason, CancelToken};
pub use cleanup::CleanupGate;
pub use env::EnvSnapshot;
pub use inline::InlineTask;
pub use runtime::Tasks;
