//! What a model is told before the user speaks: blocks, each with its source and its size.
//!
//! [`Context::gather`] reads the world once; [`Context::changes_since`] says what of it the model
//! has not been told yet. History is never written anew: what changed is told again, as a new
//! message.

pub mod section;

pub mod context;

pub mod base;

pub mod agents_md;

pub mod environment;

pub mod permissions;

pub mod git;

pub mod custom;

pub mod attach;

pub mod ledger;

pub mod told;

pub use base::{Mode, base};
pub use context::{Context, ThreadScene};
pub use section::{Section, SectionKind, Snapshot};
