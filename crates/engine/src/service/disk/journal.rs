//! Writes a thread's doings into its session file, which begins with the first of them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bindery_sessions::Error;
use bindery_sessions::write::{Clock, LateSync, Meta, Recorder};
use tokio::runtime::Handle;

use super::entries;
use crate::thread::{Entry, Journal, JournalError};

/// How long after the end of a turn the disk is made to have it. Turns that follow one another
/// quickly wait for it once.
const LATER: Duration = Duration::from_secs(1);

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
    if entries.iter().any(ends)
        && let Some(sync) = recorder.sync_later()?
    {
        run_later(sync);
    }
    Ok(())
}

/// Nobody waits for the disk: neither the one who is told of the end of a turn, nor a thread that
/// serves others. Of a runtime that ends, the recorders do it when they are dropped.
fn run_later(sync: LateSync) {
    let Ok(runtime) = Handle::try_current() else { return sync.run() };
    runtime.spawn(async {
        tokio::time::sleep(LATER).await;
        // It only fails when the runtime ends.
        let _ = tokio::task::spawn_blocking(|| sync.run()).await;
    });
}
