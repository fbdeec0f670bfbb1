//! The recorder: lines on disk, each by one write, in a file that nobody else writes.
//!
//! A line counts when [`Recorder::record`] has returned without an error: all its bytes are with
//! the system then, and a killed process loses none. A line cut short, by a full disk or by the
//! death of an earlier writer, is ended before the next one; no byte is ever taken away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::clock::{Clock, stamp};
use super::hold::Hold;
use super::late::{Debt, LateSync};
use super::meta::{Format, Meta};
use super::place;
use super::record::Record;
use crate::Error;
use crate::error::{read_error, record_error};
use crate::line::Envelope;
use crate::record::{self, Limits, Records};

/// Writes one session.
pub struct Recorder {
    out: Arc<dyn Sink>,
    debt: Arc<Debt>,
    path: PathBuf,
    thread: String,
    format: Format,
    /// The number of the next line.
    next: u64,
    /// The file does not end with a line feed.
    cut: bool,
    clock: Clock,
    _hold: Hold,
}

/// The longest line that is written: longer ones are not read back whole.
pub const LONGEST: usize = 64 << 20;

/// Where lines go: a file, or a disk that fails in a test.
pub(super) trait Sink: Send + Sync {
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    fn sync(&self) -> io::Result<()>;
}

impl Sink for File {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self;
        Write::write(&mut file, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl Recorder {
    /// Begins a session in a Codex home.
    pub fn create(home: &Path, meta: &Meta, clock: Clock) -> Result<Self, Error> {
        let now = clock.millis();
        Self::create_at(home, meta, clock, now)
    }

    /// The same for a session that began earlier: the file's name and first line say when.
    pub fn create_at(home: &Path, meta: &Meta, clock: Clock, now: i64) -> Result<Self, Error> {
        let hold = Hold::take(home, &meta.id)?;
        let path = place::new_file(home, &meta.id, &clock, now);
        let file = place::open(OpenOptions::new().append(true).create_new(true), &path);
        let file = file.map_err(record_error(&path))?;
        let next = meta.base.as_ref().map_or(0, |base| base.end_ordinal);
        let mut recorder = Self {
            out: Arc::new(file),
            debt: Arc::default(),
            path,
            thread: meta.id.clone(),
            format: meta.format,
            next,
            cut: false,
            clock,
            _hold: hold,
        };
        if let Err(error) = recorder.record(&Record::SessionMeta(meta.payload(&stamp(now)))) {
            // A file without its first line is nobody's session.
            let _ = fs::remove_file(&recorder.path);
            return Err(error);
        }
        Ok(recorder)
    }

    /// Continues a session where it ends. A packed one is unpacked first.
    pub fn append(home: &Path, path: &Path, clock: Clock) -> Result<Self, Error> {
        let head = Head::read(path)?;
        let hold = Hold::take_file(home, &head.thread, path)?;
        let path = unpacked(path)?;
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let mut file = file.map_err(record_error(&path))?;
        let end = End::find(&mut file).map_err(read_error(&path))?;
        let next = match (head.format, end.ordinal) {
            (Format::Paginated, Some(last)) => last + 1,
            (Format::Paginated, None) => {
                return Err(Error::Unfit { path, why: "its lines have no numbers" });
            }
            (Format::Legacy, _) => 0,
        };
        Ok(Self {
            out: Arc::new(file),
            debt: Arc::default(),
            path,
            thread: head.thread,
            format: head.format,
            next,
            cut: end.cut,
            clock,
            _hold: hold,
        })
    }

    /// Writes a line. After an error nothing of it counts: the caller may give it again.
    pub fn record(&mut self, record: &Record) -> Result<(), Error> {
        self.record_at(record, self.clock.millis())
    }

    /// The same, with the time it happened.
    pub fn record_at(&mut self, record: &Record, millis: i64) -> Result<(), Error> {
        let ordinal = (self.format == Format::Paginated).then_some(self.next);
        let line = record.line(&stamp(millis), ordinal);
        self.line(line.as_bytes())?;
        self.next += 1;
        Ok(())
    }

    /// Writes lines in order, up to the first that fails.
    pub fn record_all(&mut self, records: &[Record]) -> Result<(), Error> {
        records.iter().try_for_each(|record| self.record(record))
    }

    /// Waits until the disk has it all.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.out.sync().map_err(record_error(&self.path))
    }

    /// The same without waiting: who is given something is to run it in a while, in a thread that
    /// may wait; nothing is given as long as an earlier one has not been run. An error is that of
    /// the disk before this. A recorder that is dropped waits for what is still owed.
    pub fn sync_later(&mut self) -> Result<Option<LateSync>, Error> {
        self.debt.owe(&self.out).map_err(record_error(&self.path))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The thread.
    pub fn thread(&self) -> &str {
        &self.thread
    }

    /// How it is written.
    pub fn format(&self) -> Format {
        self.format
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        if line.len() > LONGEST {
            let source = io::Error::from(io::ErrorKind::FileTooLarge);
            return Err(Error::Record { path: self.path.clone(), source });
        }
        if self.cut {
            self.write(b"\n")?;
            self.cut = false;
        }
        self.write(line)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let source = match self.out.write(rest) {
                Ok(0) => io::Error::from(io::ErrorKind::WriteZero),
                Ok(count) => {
                    rest = &rest[count..];
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            let begun = rest.len() < bytes.len();
            self.cut |= begun;
            if begun && rest == b"\n" {
                // All of the line but its end is there, and readers take it for what it is: the
                // end follows with the next line.
                return Ok(());
            }
            return Err(Error::Record { path: self.path.clone(), source });
        }
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.debt.pay(&*self.out);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("Recorder");
        out.field("path", &self.path).field("format", &self.format).finish_non_exhaustive()
    }
}

/// What the first line of a file tells its next writer.
pub(super) struct Head {
    pub(super) thread: String,
    pub(super) format: Format,
}

impl Head {
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        #[derive(serde::Deserialize)]
        struct First {
            id: String,
            #[serde(default)]
            history_mode: Option<String>,
        }
        let unfit = |why| Error::Unfit { path: path.to_owned(), why };
        let mut records = Records::new(record::open(path)?, Limits::default());
        let record = records.next().map_err(read_error(path))?;
        let record = record.ok_or_else(|| unfit("it is empty"))?;
        let line = Envelope::read(&record).map_err(|_| unfit("its first line is broken"))?;
        if line.kind.is_empty() {
            return Err(unfit("it is of Codex 0.29 or older"));
        }
        if line.kind != "session_meta" {
            return Err(unfit("it does not begin with `session_meta`"));
        }
        let first: Result<(First, _), _> = line.payload();
        let (first, _) = first.map_err(|_| unfit("its first line is broken"))?;
        let format = match first.history_mode.as_deref() {
            Some("paginated") => Format::Paginated,
            _ => Format::Legacy,
        };
        Ok(Self { thread: first.id, format })
    }
}

/// How a file ends.
struct End {
    /// The number of its last whole line.
    ordinal: Option<u64>,
    /// Without a line feed.
    cut: bool,
}

impl End {
    fn find(file: &mut File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let mut window: u64 = 256 << 10;
        loop {
            let from = size.saturating_sub(window);
            let end = Self::within(file, from)?;
            if end.ordinal.is_some() || from == 0 {
                return Ok(end);
            }
            window = window.saturating_mul(8);
        }
    }

    fn within(file: &mut File, from: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(from))?;
        let mut records = Records::at(&mut *file, Limits::default(), from, 0);
        let mut end = Self { ordinal: None, cut: false };
        while let Some(record) = records.next()? {
            end.cut = !record.ended;
            // The beginning of the first one may be before the window.
            if record.line == 1 && from > 0 {
                continue;
            }
            let Ok(line) = Envelope::read(&record) else { continue };
            if line.payload::<IgnoredAny>().is_ok() {
                end.ordinal = line.ordinal.or(end.ordinal);
            }
        }
        Ok(end)
    }
}

/// A file that can be added to: a packed one is unpacked beside itself, then takes its place.
fn unpacked(path: &Path) -> Result<PathBuf, Error> {
    if !record::is_packed(path) {
        return Ok(path.to_owned());
    }
    let plain = path.with_extension("");
    let partial = path.with_extension("unpacking");
    let mut source = record::open(path)?;
    let mut copy = || -> io::Result<()> {
        let mut file = File::create(&partial)?;
        let mut block = vec![0; 256 << 10];
        loop {
            match source.read(&mut block)? {
                0 => break,
                count => file.write_all(&block[..count])?,
            }
        }
        file.sync_all()?;
        fs::rename(&partial, &plain)?;
        fs::remove_file(path)
    };
    match copy() {
        Ok(()) => Ok(plain),
        Err(source) => {
            let _ = fs::remove_file(&partial);
            Err(Error::Record { path: plain, source })
        }
    }
}

#[cfg(test)]
mod tests;
