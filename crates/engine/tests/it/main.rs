//! The engine against scripted models, real processes, real sandboxes and hostile input.
#![expect(clippy::unwrap_used, reason = "a failing helper is a failing test")]

mod stage;

mod compaction;

mod exec;

mod turn_faults;

mod interrupts;

mod turns;
