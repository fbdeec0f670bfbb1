//! Codex as a service: turns that belong to the server, interrupts in a store, many tenants.

pub mod front;
