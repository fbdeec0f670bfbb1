//! Foreign words: only what we give meaning to, decoded without ever failing.

pub mod rpc;

pub mod app_server;

pub mod exec;
