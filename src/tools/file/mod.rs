//! The file tools: Read, Edit and Write.
//!
//! `operation` is the one owner of file access. It opens files without following links, remembers what each Session
//! has read, refuses to change what it has not seen, and replaces files atomically. The tools decide what to read and
//! what to write; they never touch the file system themselves.

pub mod operation;
pub mod place;
pub mod records;
pub mod sensitive;
pub mod text;
