//! The parts of the `bindery` command that can be tested without a process.

pub mod terminal;

pub mod view;

pub mod approval;

mod config_flags;

pub mod failure;

mod global_flags;

pub mod helper;

mod lazy;

mod model_server;

mod server;

pub mod commands;
