//! Codex as a service: turns that belong to the server, interrupts in a store, many tenants.
//!
//! Read in this order: [`config`] (what is asked for), [`store`] (what is kept), [`tenant`] (who
//! may do what), [`workers`] (Codex processes that outlive us), [`turns`] (the runner: owns turns,
//! their log and its readers), [`interrupts`] (questions and their answers), [`http`] (the API),
//! [`front`] (the AI SDK's calls),
//! [`serve`] (all of it together), [`error`] (what can go wrong).

pub mod clock;

pub mod secret;

pub mod private;

pub mod seal;

pub mod error;

pub mod config;

pub mod store;

pub mod tenant;

pub mod workers;

pub mod turns;

pub mod interrupts;

pub mod shelf;

pub mod files;

pub mod http;

pub mod logging;

pub mod traces;

pub mod serve;

pub mod front;
