//! What the targets in `fuzz/` call. Built by cargo-fuzz only: none of it is part of the crate.
