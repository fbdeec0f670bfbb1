//! The maps of core, tried on recordings of the real Codex.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod recording;

mod replay;

mod exec;
