//! The built-in tools, one directory a family. A tool sees only its contract: never the Session, the pipeline or the
//! registry. Each family has one owner of its capability.

pub mod file;
pub mod paths;
pub mod search;
pub mod shell;
pub mod system;

use std::sync::Arc;

use crate::contract::AnyTool;
use crate::schema::Schema;

/// Compiles the schema of a built-in tool, which is a constant of its file.
///
/// # Panics
/// The text is no schema. A test of this module compiles the schema of every built-in tool.
fn constant_schema(text: &str) -> Arc<Schema> {
    Schema::compile(text).unwrap_or_else(|error| unreachable!("built-in schema: {error}"))
}

/// Name of the built-in tool that starts programs.
pub const SHELL_TOOL: &str = "Bash";

/// Name of the built-in tool that finds tools which are not declared.
pub const DISCOVERY_TOOL: &str = "DiscoverTools";

/// All built-in tools in their documented order. The values are shared: listing them costs a few reference counts.
pub fn builtin_tools() -> Vec<Arc<dyn AnyTool>> {
    let mut tools = file::tools();
    tools.extend(search::tools());
    tools.extend(shell::tools());
    tools.extend(system::tools());
    tools
}

/// Whether the built-in tools hold anything for a Session that closing has to wait for.
pub fn holds_for_session(session: &str) -> bool {
    shell::holds_for_session(session)
}

/// Releases what the built-in tools hold for a Session: background shells, file records.
pub async fn close_session(session: &str) {
    forget_session(session);
    shell::close_session(session).await;
}

/// Forgets what costs nothing to release: which files a Session has read.
pub fn forget_session(session: &str) {
    file::forget_session(session);
}

/// Kills every process a tool has running, without waiting. For the end of the host process.
pub fn kill_all() {
    shell::kill_all();
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn built_in_tools_have_names_and_aliases_of_their_own_and_the_shell_is_one_of_them() {
        let tools = builtin_tools();
        let mut seen = HashSet::new();
        for tool in &tools {
            // Looking at the specification compiles its schema.
            let spec = tool.spec();
            for name in spec.aliases.iter().chain([&spec.name]) {
                assert!(seen.insert(name.to_string()), "{name} is taken");
            }
        }
        assert!(seen.contains(SHELL_TOOL));
    }
}
