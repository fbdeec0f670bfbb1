//! The daemon in one process: its store, its log.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod store;
