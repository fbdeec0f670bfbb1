//! The client against processes, hostile streams and the real Codex.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod server;

mod routing;

mod stdio;

mod codex;

mod stage;

mod turn;

mod approval;

mod failure;

mod history;

mod fault;

mod specimen;

mod schema;

mod steps;
