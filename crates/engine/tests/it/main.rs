//! Tests of the engine.

mod stage;

mod compaction;

mod faults;

mod interrupts;

mod turns;
