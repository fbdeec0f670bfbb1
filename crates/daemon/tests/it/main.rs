//! The daemon in one process: its store, its log, and how clients see it over HTTP.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod document;

mod shapes;

mod store;

mod bodies;

mod flood;

mod front;

mod front_answers;

mod hooks;

mod matrix;

mod pages;

mod policy;

mod schemathesis;

mod uploads;

mod stage;
