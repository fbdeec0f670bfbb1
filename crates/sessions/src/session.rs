//! A session: its file (and those it continues) as one transcript.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bindery_core::transcript::Transcript;

use crate::Error;
use crate::error::read_error;
use crate::find::{self, SessionFile};
use crate::ledger::Ledger;
use crate::line::Envelope;
use crate::normalise::{Collector, Event, Head, Normaliser, Options, has_user};
use crate::record::{self, Limits, Records};
use crate::wire::{HistoryBase, Meta};

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
    load_chain(&[Segment::whole(path)], options)
}

/// Reads a session with the files it continues into memory.
pub fn load_chain(chain: &[Segment], options: Options) -> Result<Session, Error> {
    let mut collector = Collector::default();
    let (head, ledger) = stream_chain(chain, options, |event| {
        // Turns that were taken back are marked already.
        if matches!(event, Event::Turn { .. }) {
            collector.take(event);
        }
    })?;
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
    stream_chain(&[Segment::whole(path)], options, emit)
}

/// A file of a session, and how much of it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The file.
    pub path: PathBuf,
    /// Lines from this ordinal on belong to another way that the thread took.
    pub end: Option<u64>,
    /// The home that it must lie in when it is opened, as for [`SessionFile::within`].
    pub within: Option<PathBuf>,
}

impl Segment {
    fn whole(path: &Path) -> Self {
        Self { path: path.to_owned(), end: None, within: None }
    }
}

/// A fork of a fork of a fork …: more than anybody makes, and an end for pointers in a circle.
const GENERATIONS: usize = 64;

/// The files of a session, oldest first: since 0.153 forks and reverts only point to what they
/// begin with. One that is not among `files` is left out.
pub fn chain(path: &Path, files: &[SessionFile]) -> Vec<Segment> {
    let within = files.iter().find(|file| file.path == path).and_then(|file| file.within.clone());
    let mut chain = vec![Segment { within, ..Segment::whole(path) }];
    while let Some(base) = chain.last().and_then(base_of) {
        let parent = base.thread_id.as_deref().and_then(|id| find::base(files, id));
        let Some(parent) = parent.filter(|parent| parent.path != path) else { break };
        if chain.len() == GENERATIONS || chain.iter().any(|known| known.path == parent.path) {
            break;
        }
        // An end that a later fork set higher does not bring back what an earlier one left out.
        let (path, within) = (parent.path.clone(), parent.within.clone());
        chain.push(Segment { path, end: base.end_ordinal_exclusive, within });
    }
    chain.reverse();
    chain
}

/// The thread that the oldest file of a chain continues, if its file is not there.
pub fn missing_base(chain: &[Segment], files: &[SessionFile]) -> Option<String> {
    let id = base_of(chain.first()?)?.thread_id?;
    let is_known = |path: &Path| chain.iter().any(|segment| segment.path == path);
    let found = find::base(files, &id).is_some_and(|file| is_known(&file.path));
    (!found).then_some(id)
}

/// Reads a session with the files it continues, and hands out its turns. Those that were taken
/// back later say so; to know them, a file that tells of any is read twice.
///
/// The ledger is of the last file alone.
pub fn stream_chain(
    chain: &[Segment],
    options: Options,
    mut emit: impl FnMut(Event),
) -> Result<(Head, Ledger), Error> {
    let mut taken_back = HashSet::new();
    if tells_of_rollbacks(chain)? {
        let mut live: Vec<u64> = Vec::new();
        run(chain, options, |event| match event {
            Event::Turn { number, turn, .. } => {
                if has_user(&turn) && live.last() != Some(&number) {
                    live.push(number);
                }
            }
            Event::RollBack(count) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let from = live.len().saturating_sub(count);
                taken_back.extend(live.drain(from..));
            }
        })?;
    }
    run(chain, options, |mut event| {
        if let Event::Turn { number, turn, .. } = &mut event {
            turn.rolled_back = taken_back.contains(number);
        }
        emit(event);
    })
}

/// Some line of the files may take turns back.
fn tells_of_rollbacks(chain: &[Segment]) -> Result<bool, Error> {
    const MARK: &[u8] = b"thread_rolled_back";
    let mut block = vec![0; 256 << 10];
    for segment in chain {
        let mut source = record::open(&segment.path)?;
        let mut kept = 0;
        loop {
            let read = source.read(&mut block[kept..]).map_err(read_error(&segment.path))?;
            if read == 0 {
                break;
            }
            let filled = kept + read;
            let block_so_far = &block[..filled];
            if memchr::memmem::find(block_so_far, MARK).is_some() || spells_letters(block_so_far) {
                return Ok(true);
            }
            kept = filled.min(MARK.len());
            block.copy_within(filled - kept..filled, 0);
        }
    }
    Ok(false)
}

/// Letters are spelt as escapes, which Codex never does: the mark may be among them.
fn spells_letters(block: &[u8]) -> bool {
    let mut escapes = memchr::memmem::find_iter(block, b"\\u00");
    escapes.any(|at| matches!(block.get(at + 4), Some(b'5'..=b'7')))
}

fn run(
    chain: &[Segment],
    options: Options,
    emit: impl FnMut(Event),
) -> Result<(Head, Ledger), Error> {
    let mut normaliser = Normaliser::new(options, emit);
    for (index, segment) in chain.iter().enumerate() {
        normaliser.inherit(index + 1 < chain.len());
        let source = record::open_within(&segment.path, segment.within.as_deref())?;
        let mut records = Records::new(source, Limits::default());
        while let Some(record) = records.next().map_err(read_error(&segment.path))? {
            let line = Envelope::read(&record);
            let ordinal = line.as_ref().ok().and_then(|line| line.ordinal);
            let is_out = segment.end.is_some_and(|end| ordinal.is_some_and(|at| at >= end));
            match is_out {
                true => normaliser.skip(&record),
                false => {
                    normaliser.take_line(&record, line);
                }
            }
        }
    }
    Ok(normaliser.finish())
}

/// What the head of a file points to.
fn base_of(segment: &Segment) -> Option<HistoryBase> {
    let source = record::open_within(&segment.path, segment.within.as_deref()).ok()?;
    let limits = Limits { line: 1 << 20, payload: 4 << 10, total: 64 << 20 };
    let mut records = Records::new(source, limits);
    let record = records.next().ok()??;
    let (meta, _) = Envelope::read(&record).ok()?.payload::<Meta>().ok()?;
    meta.history_base
}

/// The last turns of a file, from its tail alone; all of it if it is short.
pub fn tail(path: &Path, turns: usize, options: Options) -> Result<Session, Error> {
    if record::is_packed(path) {
        let mut session = load(path, options)?;
        let surplus = session.transcript.turns.len().saturating_sub(turns);
        session.transcript.turns.drain(..surplus);
        return Ok(session);
    }
    let mut file = File::open(path).map_err(read_error(path))?;
    let size = file.metadata().map_err(read_error(path))?.len();
    let mut window: u64 = 256 << 10;
    loop {
        let from = size.saturating_sub(window);
        let (start, marked) = match from {
            0 => (0, true),
            from => turn_start(&mut file, from, path)?,
        };
        if !marked && window < TAIL_LIMIT {
            window *= 4;
            continue;
        }
        let mut session = from_offset(&mut file, start, options).map_err(read_error(path))?;
        let found = session.transcript.turns.len();
        if start == 0 || found >= turns || window >= TAIL_LIMIT {
            session.transcript.turns.drain(..found.saturating_sub(turns));
            return Ok(session);
        }
        window *= 4;
    }
}

/// What is read at most to find the last turns.
const TAIL_LIMIT: u64 = 64 << 20;

/// The first beginning of a turn after `from`, and true; the first line there if there is none.
fn turn_start(file: &mut File, from: u64, path: &Path) -> Result<(u64, bool), Error> {
    file.seek(SeekFrom::Start(from)).map_err(read_error(path))?;
    let mut records = Records::at(file, Limits::default(), from, 0);
    // The line that `from` is in the middle of.
    let cut = records.next().map_err(read_error(path))?;
    let first = from + cut.map_or(0, |record| record.length + u64::from(record.ended));
    while let Some(record) = records.next().map_err(read_error(path))? {
        let is_start = Envelope::read(&record).is_ok_and(|line| {
            line.kind == "event_msg" && matches!(line.inner, "task_started" | "turn_started")
        });
        if is_start {
            return Ok((record.offset, true));
        }
    }
    Ok((first, false))
}

fn from_offset(file: &mut File, start: u64, options: Options) -> std::io::Result<Session> {
    // Lines are named by their number in the file, and cards by its version.
    file.seek(SeekFrom::Start(0))?;
    let lines = lines_before(file, start)?;
    file.seek(SeekFrom::Start(0))?;
    let head = Records::new(&mut *file, Limits::default()).next()?.and_then(|record| {
        let (meta, _) = Envelope::read(&record).ok()?.payload::<Meta>().ok()?;
        Some(meta)
    });
    file.seek(SeekFrom::Start(start))?;
    let mut collector = Collector::default();
    let mut normaliser = Normaliser::new(options, |event| collector.take(event));
    if let Some(meta) = head.filter(|_| start > 0) {
        normaliser.know(meta);
    }
    let mut records = Records::at(file, Limits::default(), start, lines);
    while let Some(record) = records.next()? {
        normaliser.take(&record);
    }
    let (head, ledger) = normaliser.finish();
    Ok(Session { head, transcript: collector.transcript, ledger })
}

fn lines_before(file: &mut File, end: u64) -> std::io::Result<u64> {
    let (mut source, mut block, mut lines) = (file.take(end), vec![0; 1 << 20], 0);
    loop {
        match source.read(&mut block)? {
            0 => return Ok(lines),
            read => lines += memchr::memchr_iter(b'\n', &block[..read]).count() as u64,
        }
    }
}

/// Normalises bytes that are in memory.
pub fn of_bytes(bytes: &[u8], options: Options) -> Session {
    let mut collector = Collector::default();
    let mut records = Records::small(bytes, Limits::default(), bytes.len());
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
