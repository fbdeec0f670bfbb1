//! The Codex prompt pipeline in our own code, on any model, served as an app-server.

pub mod item;

pub mod tokens;

pub mod model;

pub mod model_secrets;

pub mod server_models;

pub mod outlet;

pub mod prompter;

pub mod guard;

pub mod thread;

mod turn;

mod tools;

mod compact;

pub mod review;

pub mod mcp;

mod syntax;

mod tls;

pub mod exec;

pub mod patch;

pub mod plain_file;

pub mod config;

pub mod prompt;

pub mod diff;

pub mod truncate;

pub mod picture;

pub mod service;

pub mod sandbox;

pub mod git;

pub mod safety;
