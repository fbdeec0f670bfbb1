//! Everything between us and a running Codex.
//!
//! Read in this order: [`locate`] (which Codex), [`transport`] (lines to and from it), [`peer`]
//! (questions and answers over them), [`error`] (what can go wrong).

pub mod locate;

pub mod transport;

pub mod peer;

pub mod error;
