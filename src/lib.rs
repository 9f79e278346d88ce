//! The native core of `@blade-ai/agent-sdk`.
//!
//! Modules are listed in reading order; an arrow of dependency points only upwards in this list
//! (`tests/layering.rs` enforces it). Everything but `bindings` is plain Rust that knows nothing of Node.

pub mod error;
pub mod model;

pub mod host;
pub mod schema;

pub mod contract;

pub mod context;
pub mod hooks;
pub mod permissions;
pub mod providers;
pub mod registry;

pub mod pipeline;
pub mod tools;

pub mod agent;
pub mod session;

#[cfg(feature = "node-api")]
#[cfg_attr(test, allow(dead_code, reason = "`#[napi]` registers nothing in a test build; `expect` fails on a module"))]
pub mod bindings;
