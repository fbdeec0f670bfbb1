//! The engine against scripted models, real processes, real sandboxes and hostile input.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod stage;

mod compaction;

mod exec;

mod turn_faults;

mod interrupts;

mod turns;

//! The engine against folders of scenarios, made-up input and the real Codex.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod scenario;

mod patch;

mod patch_codex;

mod diff;

//! The engine against doubles of what it talks to.

mod wires;

mod faults;

mod bodies;
