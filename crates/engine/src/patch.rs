//! The `apply_patch` language: read, checked as a whole against the files, then written.
//!
//! [`Plan::make`] reads a patch and works out every file's new content; nothing is written and a
//! single misfit refuses all of it. [`Plan::write`] then writes file by file, each at once.

pub mod parse;

pub mod seek;

mod lines;

mod place;

mod plan;

mod changes;

mod write;

pub mod report;

pub mod heredoc;

pub mod spec;

pub(crate) use changes::hunks;
pub use changes::{Change, Kind, changes};
pub use plan::{Action, Before, MAX_BYTES, Plan, Refused, Step, Target};
pub use write::{Confine, Denied, Done, Halted};
