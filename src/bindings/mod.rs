//! The only place that knows N-API. Decode, call the core, encode: no decisions here.
//!
//! Every function is synchronous. What takes time answers later through the mailbox of its Session ([`mailbox`]), so
//! that no native future ever outlives its environment. All functions contain panics.

mod call_context;
mod direct;
mod env;
mod error;
mod js_around;
mod js_model;
mod js_ports;
mod js_tool;
mod limiter;
mod mailbox;
mod policy;
mod script;
mod session;

/// The addon's own allocator: a call is made of many small pieces that one thread allocates and another frees, where the
/// system's allocators are slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
