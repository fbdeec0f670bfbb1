//! The engine against scripted models, real processes, real sandboxes, the real Codex and hostile
//! input.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod stage;

mod turns;

mod turn_faults;

mod interrupts;

mod compaction;

mod review;

mod mcp;

mod tools;

mod fenced;

mod decisions;

mod shell_words;

mod hidden_paths;

mod patch_race;

mod session_approvals;

mod hostile_git;

mod protected_places;

mod whole;

mod scenario;

mod patch;

mod patch_codex;

mod diff;

mod exec;

mod wires;

mod server_models;

mod faults;

mod bodies;

mod rules_responses;

mod rules_chat;

mod rules_tokens;

mod rules_tools;

mod rules_prompt;

mod place;

mod config;

mod catalogue;

mod agents_md;

mod context;

mod git;

mod custom;

mod attach;

mod side_by_side;

mod sandbox;

mod sandbox_borders;

mod sandbox_network;

mod templates;

mod terminal;

mod service;

mod safety;

mod output_codex;
