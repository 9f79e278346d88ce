//! The built-in tools.

pub mod paths;
pub mod shell;
