//! Built-in tools, one directory a family. Each family has one owner of its capability.

pub mod file;
pub mod paths;
