//! The client against processes, hostile streams and the real Codex.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod backend;

mod branches;

mod answers;

mod server;

mod routing;

mod stdio;

mod rig;

mod conformance;

mod ws;

mod proxy;

mod reconnect;

mod codex;

mod stage;

mod told;

mod turn;

mod approval;

mod failure;

mod history;

#[cfg(unix)]
mod run_chat;

#[cfg(unix)]
mod exec;

mod fault;

mod specimen;

mod schema;

mod steps;

mod pool;
