//! The Codex prompt pipeline in our own code, on any model, served as an app-server.

pub mod item;

pub mod tokens;

pub mod model;

pub mod outlet;

pub mod service;

pub mod prompter;

pub mod thread;

mod turn;

mod tools;

mod compact;

pub mod config;

pub mod prompt;
