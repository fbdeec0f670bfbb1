//! Codex, bound into your app.
