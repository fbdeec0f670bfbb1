//! The engine from outside: settings, prompts, and the real Codex beside them.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod place;

mod config;

mod catalogue;

mod agents_md;

mod context;

mod git;

mod custom;

mod attach;

mod side_by_side;
