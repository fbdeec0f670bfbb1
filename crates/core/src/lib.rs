//! Pure heart of Bindery: their words, our words, and the maps between.
//!
//! Read in this order: [`prompt`] and [`call`] (what goes in), [`part`] (what comes out, live),
//! [`item`] and [`transcript`] (what is left), [`wire`] (Codex's words), [`map`] (the arrows).
//! This crate does no I/O, reads no clock and starts no task.

pub mod ids;

pub mod open;

pub mod lines;

pub mod json_text;

pub mod spec;

pub mod surrogates;

pub mod file;

pub mod prompt;

pub mod call;

pub mod settings;

pub mod usage;

pub mod part;

pub mod content;

pub mod ndjson;

pub mod item;

pub mod transcript;

pub mod interrupt;

pub mod review;

pub mod wire;

pub mod map;
