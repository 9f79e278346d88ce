//! Judges a command by what bash would make of it.
//!
//! Two questions, answered apart. *Is it read-only?* Only when it is exactly one command from a list, with options
//! from that command's list, in words without any expansion; whatever is not understood is not read-only. *Is it
//! destructive?* When any command in it, however deeply nested, is known to lose something that cannot be brought
//! back, or when what runs cannot be known.
//!
//! Limits: the contents of scripts and of programs in other languages are not read, and a repository's own git
//! configuration is trusted like the user's.

mod destructive;
mod parts;
mod readonly;
mod script;
mod words;

pub(super) use parts::parts;

/// What a command may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classification {
    /// It is proven to change nothing.
    pub read_only: bool,
    /// It may lose something for good, so it needs an explicit confirmation.
    pub destructive: bool,
}

/// Judges a command.
pub fn classify(command: &str) -> Classification {
    let script = script::Script::parse(command);
    Classification {
        read_only: script.single_command().is_some_and(|words| readonly::is_read_only(&words)),
        destructive: destructive::is_destructive(&script),
    }
}

#[cfg(test)]
mod tests;
