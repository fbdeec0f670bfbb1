//! Codex session files: found, read without loss, written, normalised, checked and rendered.
//!
//! Read in this order: [`record`] (bytes → lines), [`mod@line`] (a line's envelope and tag),
//! [`normalise`] (lines → the Transcript of `core`), [`ledger`] (the law that no line is lost),
//! [`session`] (a file and those it continues); then [`find`], [`catalogue`], [`messages`],
//! [`validate`] and [`render`]. [`resume`] makes of a file what a model must be told to go on.
//! Only [`write`](mod@write) writes into a Codex home, and only what it is told to.

pub mod error;

pub mod clock;

pub mod plain;

pub mod record;

pub mod line;

pub mod ledger;

mod wire;

pub mod normalise;

pub mod session;

pub mod find;

pub mod skim;

pub mod summary;

pub mod catalogue;

pub mod write;

pub mod resume;

pub mod messages;

mod schema;

pub mod validate;

pub mod render;

pub use error::Error;
