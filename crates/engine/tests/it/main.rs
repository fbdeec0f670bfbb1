//! The engine against folders of scenarios, made-up input and the real Codex.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod scenario;

mod patch;

mod patch_codex;

mod diff;

mod output_codex;
