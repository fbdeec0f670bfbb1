//! The parts of the `bindery` command that can be tested without a process.

pub mod terminal;

pub mod view;

pub mod approval;

pub mod command_line;

mod config_flags;

pub mod failure;

mod global_flags;

pub mod helper;

mod lazy;

mod model_server;

mod server;

pub mod commands;
