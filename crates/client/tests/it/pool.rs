//! The pool over servers in memory, over processes, and over the real Codex.

mod memory;

mod rules;

mod schedule;

mod soak;

mod codex;
