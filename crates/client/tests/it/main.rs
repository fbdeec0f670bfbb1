//! The client against processes, hostile streams and the real Codex.

mod server;

mod routing;

mod stdio;

mod codex;
