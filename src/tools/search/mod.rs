//! Search: Glob finds files by name, Grep by content. Both run in this process on the crates ripgrep is made of, in
//! parallel for large trees, and never follow a symbolic link out of the authorised roots.

mod glob;
mod grep;
mod pattern;
mod rules;
mod scope;
mod shown;
mod stop;
mod walk;

#[cfg(test)]
mod testing;

use std::sync::Arc;

pub use glob::GlobTool;
pub use grep::GrepTool;

use crate::contract::AnyTool;

/// The tools of this family, in registration order.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    vec![Arc::new(GlobTool), Arc::new(GrepTool)]
}
