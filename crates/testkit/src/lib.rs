//! Test doubles for everything Bindery talks to, and a real Codex to check them against.
//!
//! Read: [`model`] (a provider that says what a script tells it), [`app_server`] (a Codex that
//! misbehaves on purpose), [`codex`] (the real one, in a home of its own), [`listening`] (the
//! real one on a socket), [`lines`] (a bare client that speaks JSON lines), [`tls`] (TLS before any
//! of them), [`skipped`] (tests that have nothing to try here). This crate knows bytes and JSON,
//! and none of our types.

pub mod api_tools;

pub mod model;

pub mod app_server;

pub mod codex;

pub mod listening;

pub mod lines;

pub mod backend;

pub mod tls;

pub mod skipped;
