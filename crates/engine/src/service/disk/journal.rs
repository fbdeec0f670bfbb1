//! Writes a thread's doings into its session file, which begins with the first of them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bindery_sessions::Error;
use bindery_sessions::write::{Clock, Meta, Recorder};

use super::entries;
use crate::thread::{Entry, Journal, JournalError};

/// A thread's session file.
pub(super) struct DiskJournal(Mutex<State>);

enum State {
    /// Nothing happened yet.
    Later(Box<Later>),
    /// It is being written.
    Now(Box<Recorder>),
}

struct Later {
    home: PathBuf,
    meta: Meta,
    clock: Clock,
    created_ms: i64,
}

impl DiskJournal {
    /// A file that begins with the first entry.
    pub(super) fn later(home: &Path, meta: Meta, clock: Clock, created_ms: i64) -> Self {
        let later = Later { home: home.to_owned(), meta, clock, created_ms };
        Self(Mutex::new(State::Later(Box::new(later))))
    }

    /// A file that goes on.
    pub(super) fn now(recorder: Recorder) -> Self {
        Self(Mutex::new(State::Now(Box::new(recorder))))
    }
}

impl Journal for DiskJournal {
    fn write(&self, entries: &[Entry]) -> Result<(), JournalError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut state, entries).map_err(|err| {
            let cause = std::error::Error::source(&err).map(|cause| format!(": {cause}"));
            JournalError { why: format!("{err}{}", cause.unwrap_or_default()) }
        })
    }
}

fn write(state: &mut State, entries: &[Entry]) -> Result<(), Error> {
    if let State::Later(later) = state {
        let Later { home, meta, clock, created_ms } = &**later;
        let recorder = Recorder::create_at(home, meta, clock.clone(), *created_ms)?;
        *state = State::Now(Box::new(recorder));
    }
    let State::Now(recorder) = state else { return Ok(()) };
    for entry in entries {
        let records = entries::records(entry, recorder.thread(), recorder.format());
        recorder.record_all(&records)?;
    }
    let ends =
        |entry: &Entry| matches!(entry, Entry::TurnCompleted { .. } | Entry::TurnAborted { .. });
    if entries.iter().any(ends) { recorder.sync() } else { Ok(()) }
}
