//! The parts of the `bindery` command that can be tested without a process.

pub mod terminal;

pub mod view;

pub mod approval;

pub mod failure;

mod server;

pub mod commands;
