//! A session: its file (and those it continues) as one transcript.

use std::path::Path;

use bindery_core::transcript::Transcript;

use crate::Error;
use crate::error::read_error;
use crate::ledger::Ledger;
use crate::normalise::{Collector, Event, Head, Normaliser, Options};
use crate::record::{self, Limits, Records};

/// A session, read.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// What the file says of itself.
    pub head: Head,
    /// What was said and done.
    pub transcript: Transcript,
    /// What became of every line.
    pub ledger: Ledger,
}

/// Reads one file into memory; [`stream`] does it turn by turn.
pub fn load(path: &Path, options: Options) -> Result<Session, Error> {
    let mut collector = Collector::default();
    let (head, ledger) = stream(path, options, |event| collector.take(event))?;
    let mut transcript = collector.transcript;
    transcript.thread_id.clone_from(&head.id);
    Ok(Session { head, transcript, ledger })
}

/// Reads one file and hands out its turns as they are complete.
pub fn stream(
    path: &Path,
    options: Options,
    emit: impl FnMut(Event),
) -> Result<(Head, Ledger), Error> {
    let source = record::open(path)?;
    let mut records = Records::new(source, Limits::default());
    let mut normaliser = Normaliser::new(options, emit);
    while let Some(record) = records.next().map_err(read_error(path))? {
        normaliser.take(&record);
    }
    Ok(normaliser.finish())
}

/// Normalises bytes that are in memory.
pub fn of_bytes(bytes: &[u8], options: Options) -> Session {
    let mut collector = Collector::default();
    let mut records = Records::new(bytes, Limits::default());
    let mut normaliser = Normaliser::new(options, |event| collector.take(event));
    // Reading from memory cannot fail.
    while let Ok(Some(record)) = records.next() {
        normaliser.take(&record);
    }
    let (head, ledger) = normaliser.finish();
    let mut transcript = collector.transcript;
    transcript.thread_id.clone_from(&head.id);
    Session { head, transcript, ledger }
}
