//! Limiters that several Sessions share.

use std::sync::Arc;

use napi::bindgen_prelude::External;
use napi_derive::napi;

use super::error::thrown;
use crate::pipeline::ToolLimiter;
use crate::session;

/// What the facade holds for a shared limiter. Sessions keep the limiter alive by themselves.
pub struct NativeLimiter {
    /// The limiter.
    pub limiter: Arc<ToolLimiter>,
}

/// Makes a limiter; `limits` is JSON text with any of `readonly`, `write`, `execute`, `queue`.
#[napi(catch_unwind)]
pub fn open_limiter(limits: String) -> napi::Result<External<NativeLimiter>> {
    let limiter = session::shared_limiter(&limits).map_err(|error| thrown(&error))?;
    Ok(External::new(NativeLimiter { limiter: Arc::new(limiter) }))
}
