//! The arrows between their words and ours, each a pure function or a pure fold.

pub mod answer_to_reply;

pub mod prompt_to_turn;
