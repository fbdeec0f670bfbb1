//! The test doubles against the real Codex.

mod model;
