//! Everything between us and a running Codex.
//!
//! Read in this order: [`locate`] (which Codex), [`drift`] (whether it speaks as we do),
//! [`transport`] (lines to and from it), [`peer`] (questions and answers over them),
//! [`app_server`] (the requests we use), [`turn`] (one run of a thread), [`answerer`] (who answers
//! its questions), [`model`] (a call of the AI SDK as a turn), [`pool`] (many users on a few
//! processes), [`run_chat`] (one run of a command-line agent), [`error`] (what can go wrong).

pub mod locate;

pub mod version;

pub mod drift;

pub mod transport;

pub mod packet_log;

pub mod peer;

mod switchboard;

mod link;

pub mod app_server;

pub mod turn;

pub mod interrupts;

pub mod answerer;

pub mod tools;

pub mod model;

pub mod compaction;

pub mod pool;

pub mod run_chat;

pub mod error;
