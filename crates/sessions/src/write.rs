//! Writing sessions as Codex writes them, so that Codex, and everything that reads its files,
//! takes them for its own.
//!
//! Read: [`place`] (where a thread's file is), [`hold`] (one writer for each thread), [`meta`]
//! (the first line), [`record`] (the others), [`recorder`] (bytes on disk, line by line), [`late`]
//! (the disk, waited for later), [`marks`] (where turns begin and end), [`shown`] (what a client is
//! shown of an item), [`fork`](mod@fork), [`shelf`] (archiving and names).
//!
//! Codex keeps everything twice: `response_item` lines are what the model is told again,
//! `event_msg` lines what people are shown. A session with one half only resumes without the
//! other.

pub mod clock;

pub mod place;

pub mod hold;

pub mod meta;

pub mod record;

pub mod recorder;

pub mod late;

pub mod marks;

pub mod shown;

pub mod fork;

pub mod shelf;

pub use clock::Clock;
pub use fork::{ForkPoint, fork};
pub use late::LateSync;
pub use meta::{Base, Format, Git, Meta};
pub use record::Record;
pub use recorder::Recorder;
pub use shelf::{archive, rename, unarchive};
