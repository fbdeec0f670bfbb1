//! The maps of core, tried on recordings of the real Codex.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::disallowed_methods, reason = "tests read recordings; core itself reads no files")]

mod chance;

mod recording;

mod to_exec;

mod replay;

mod exec;

mod chunks;

mod damage;

mod statuses;
