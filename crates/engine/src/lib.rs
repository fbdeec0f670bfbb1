//! The Codex prompt pipeline in our own code, on any model, served as an app-server.

pub mod item;

pub mod tokens;

pub mod model;

pub mod outlet;

pub mod exec;

pub mod sandbox;

pub mod safety;
