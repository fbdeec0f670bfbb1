//! Summaries: what a list shows of a session, from the head and the tail of its file.

mod facts;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use bindery_core::ids::ThreadId;
use serde::{Deserialize, Serialize};

use self::facts::Facts;
use crate::Error;
use crate::error::read_error;
use crate::find::SessionFile;
use crate::record::{self, Limits, Records, is_packed};
use crate::skim::Counts;

/// What a list shows of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// The thread.
    pub id: Option<ThreadId>,
    /// Its name, else the user's first words.
    pub title: Option<String>,
    /// Where it worked last.
    pub cwd: Option<String>,
    /// The git branch it began on.
    pub branch: Option<String>,
    /// The model in force last.
    pub model: Option<String>,
    /// The Codex that began it.
    pub version: Option<String>,
    /// Who started it: `exec`, `vscode`, `cli` …
    pub source: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub created_ms: Option<i64>,
    /// When it was last written to.
    pub updated_ms: Option<i64>,
    /// Turns; none where nobody asked to have those of a long file counted.
    pub turns: Option<u64>,
    /// Messages of user and model; none as above.
    pub messages: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// How it stands.
    pub status: SessionStatus,
    /// The thread it came from.
    pub parent: Option<ThreadId>,
    /// How it came from there.
    pub relation: Option<Relation>,
    /// The name of a sub-agent.
    pub nickname: Option<String>,
    /// Threads that came from it.
    pub children: Vec<ThreadId>,
    /// Bytes on disk.
    pub size: u64,
    /// It is archived.
    pub archived: bool,
    /// Its file.
    pub path: std::path::PathBuf,
}

/// How a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionStatus {
    /// Its last turn ended.
    Done,
    /// Its last turn failed.
    Failed,
    /// Somebody stopped its last turn.
    Aborted,
    /// Its last turn has no end yet.
    Open,
    /// The file does not tell.
    #[default]
    Unknown,
}

/// How a session came from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// It goes another way from a point of the other.
    Fork,
    /// The other gave it a task.
    SubAgent,
    /// It reviews the other's work.
    Review,
}

/// A file up to this size is read whole, and its turns are counted.
pub const WHOLE: u64 = 128 << 10;
/// What is read of a longer one, at each end; more of the head if the user's words are not there.
const HEAD: u64 = 48 << 10;
const LONG_HEAD: u64 = 1 << 20;
const TAIL: u64 = 32 << 10;
/// What is read of the tail at most, where its lines are long.
const LONG_TAIL: u64 = 64 << 20;

/// Buffers that are used again for each file.
#[derive(Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    /// Reads the summary of a file; `exact` counts turns whatever the size.
    pub fn summary(&mut self, file: &SessionFile, exact: bool) -> Result<Summary, Error> {
        let mut facts = Facts::default();
        let counts = if is_packed(&file.path) {
            self.packed(file, exact, &mut facts)?
        } else if file.size <= WHOLE {
            Some(self.whole(file, &mut facts)?)
        } else {
            self.ends(file, &mut facts)?;
            if exact { Some(count(file)?) } else { None }
        };
        let mut summary = facts.summary();
        summary.id = file.thread_id.clone().or(summary.id);
        summary.turns = counts.map(|counts| counts.turns());
        summary.messages = counts.map(|counts| counts.messages());
        summary.updated_ms = summary.updated_ms.or(Some(file.modified_ms));
        summary.size = file.size;
        summary.archived = file.archived;
        summary.path.clone_from(&file.path);
        Ok(summary)
    }

    fn whole(&mut self, file: &SessionFile, facts: &mut Facts) -> Result<Counts, Error> {
        let mut handle = file.open()?;
        self.buffer.resize(WHOLE as usize, 0);
        let read = fill(&mut handle, &mut self.buffer).map_err(read_error(&file.path))?;
        self.buffer.truncate(read);
        let mut counts = Counts::default();
        counts.add(&self.buffer);
        facts.head(&self.buffer);
        facts.tail(&self.buffer);
        Ok(counts)
    }

    fn ends(&mut self, file: &SessionFile, facts: &mut Facts) -> Result<(), Error> {
        let mut handle = file.open()?;
        let mut read = |from: u64, length: u64, buffer: &mut Vec<u8>| {
            buffer.resize(length as usize, 0);
            let result = handle.seek(SeekFrom::Start(from)).and_then(|_| fill(&mut handle, buffer));
            buffer.truncate(result.map_err(read_error(&file.path))?);
            Ok::<(), Error>(())
        };
        read(0, HEAD, &mut self.buffer)?;
        facts.head(&self.buffer);
        if !facts.is_known() {
            read(0, LONG_HEAD, &mut self.buffer)?;
            facts.head(&self.buffer);
        }
        let mut length = TAIL.min(file.size);
        loop {
            read(file.size - length, length, &mut self.buffer)?;
            let lines = whole_lines(&self.buffer, length < file.size);
            // Where the cut line takes most of it, the lines here are long: what tells how the
            // session stands may be before the last of them.
            let is_enough = lines.len() as u64 > length / 2 || length >= LONG_TAIL;
            if is_enough || length == file.size {
                facts.tail(lines);
                return Ok(());
            }
            length = (length * 4).min(file.size);
        }
    }

    /// A packed file has no tail to jump to: a small one is unpacked whole, of others the head.
    fn packed(
        &mut self,
        file: &SessionFile,
        exact: bool,
        facts: &mut Facts,
    ) -> Result<Option<Counts>, Error> {
        let limit = if exact || file.size <= WHOLE { 64 << 20 } else { LONG_HEAD };
        self.buffer.clear();
        let source = record::open_within(&file.path, file.within.as_deref())?;
        let result = source.take(limit).read_to_end(&mut self.buffer);
        // A file that breaks off has a head; one of which nothing can be read is told.
        if self.buffer.is_empty() {
            result.as_ref().map_err(|error| Error::Read {
                path: file.path.clone(),
                source: std::io::Error::other(error.to_string()),
            })?;
        }
        facts.head(&self.buffer);
        let is_whole = result.is_ok() && (self.buffer.len() as u64) < limit;
        if !is_whole {
            return Ok(None);
        }
        facts.tail(&self.buffer);
        let mut counts = Counts::default();
        counts.add(&self.buffer);
        Ok(Some(counts))
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Counts the lines of a long file, block by block; by reading its records where the beginning of
/// a long line does not tell what it is.
fn count(file: &SessionFile) -> Result<Counts, Error> {
    match count_blocks(file)? {
        Some(counts) => Ok(counts),
        None => count_records(file),
    }
}

fn count_blocks(file: &SessionFile) -> Result<Option<Counts>, Error> {
    let mut source = file.open()?;
    let mut counts = Counts::default();
    let (mut buffer, mut kept) = (vec![0; 1 << 20], 0);
    // The rest of a long line that is counted already.
    let mut is_counted = false;
    loop {
        let read = source.read(&mut buffer[kept..]).map_err(read_error(&file.path))?;
        let filled = kept + read;
        if read == 0 {
            if !is_counted {
                counts.add(&buffer[..filled]);
            }
            return Ok(Some(counts));
        }
        let start = match memchr::memchr(b'\n', &buffer[..filled]) {
            Some(end) if is_counted => end + 1,
            _ => 0,
        };
        let Some(end) = memchr::memrchr(b'\n', &buffer[..filled]) else {
            if filled == buffer.len() && !is_counted {
                if !counts.add_head(&buffer[..filled]) {
                    return Ok(None);
                }
                is_counted = true;
            }
            kept = if is_counted { 0 } else { filled };
            continue;
        };
        counts.add(&buffer[start..end.max(start)]);
        is_counted = false;
        buffer.copy_within(end + 1..filled, 0);
        kept = filled - end - 1;
    }
}

fn count_records(file: &SessionFile) -> Result<Counts, Error> {
    let mut records = Records::new(file.open()?, Limits::default());
    let mut counts = Counts::default();
    while let Some(record) = records.next().map_err(read_error(&file.path))? {
        if record.length > 0 {
            counts.add_record(&record);
        }
    }
    Ok(counts)
}

/// From the first beginning of a line on.
fn whole_lines(bytes: &[u8], cut: bool) -> &[u8] {
    match memchr::memchr(b'\n', bytes) {
        Some(at) if cut => &bytes[at + 1..],
        None if cut => &[],
        _ => bytes,
    }
}
