//! The maps of core, tried on recordings of the real Codex.

mod recording;

mod replay;
