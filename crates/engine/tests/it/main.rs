//! The engine against real processes, real sandboxes and hostile input.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod exec;

mod sandbox;

mod safety;
