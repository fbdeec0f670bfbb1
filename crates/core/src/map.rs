//! The arrows between their words and ours, each a pure function or a pure fold.

pub mod prompt_to_turn;

pub mod app_server_to_part;

pub mod app_server_to_exec;

pub mod answer_to_reply;

pub mod exec_to_ndjson;

pub mod exec_to_part;
