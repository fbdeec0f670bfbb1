//! Forks: a new thread that begins as another one went.
//!
//! A fork of a numbered file only points to what it begins with, as Codex does since 0.153; one
//! of a legacy file is a copy, as before. Files of 0.29 and older are put into envelopes on the
//! way, so that the fork can be continued.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::clock::Clock;
use super::meta::{Base, Format, Meta};
use super::record::Record;
use super::recorder::{Head, Recorder};
use crate::Error;
use crate::error::read_error;
use crate::find::SessionFile;
use crate::line::Envelope;
use crate::record::{self, Limits, Records};
use crate::session::{Segment, chain};

/// How much of a thread its fork begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// All of it.
    End,
    /// What came before this turn.
    Before(String),
    /// What came up to the end of this turn.
    After(String),
}

/// Forks a session into a new file; `files` are those in which its parents may be found.
///
/// `meta` is the fork's own; its format, base and parent are set to what fits the source.
pub fn fork(
    home: &Path,
    source: &SessionFile,
    files: &[SessionFile],
    point: &ForkPoint,
    meta: &Meta,
    clock: Clock,
) -> Result<Recorder, Error> {
    let mut meta = meta.clone();
    meta.forked_from = source.thread_id.as_ref().map(ToString::to_string);
    match Head::read(&source.path) {
        Ok(Head { thread, format: Format::Paginated }) => {
            meta.format = Format::Paginated;
            meta.forked_from = Some(thread);
            meta.base = Some(base(source, files, point)?);
            Recorder::create(home, &meta, clock)
        }
        Ok(Head { thread, format: Format::Legacy }) => {
            meta.forked_from = Some(thread);
            copy(home, source, point, meta, clock, false)
        }
        // The only unfit files that have lines worth a fork are those without envelopes.
        Err(Error::Unfit { .. }) => copy(home, source, point, meta, clock, true),
        Err(error) => Err(error),
    }
}

/// Where in which file the inherited part ends.
fn base(source: &SessionFile, files: &[SessionFile], point: &ForkPoint) -> Result<Base, Error> {
    let chain = chain(&source.path, files);
    for segment in chain.iter().rev() {
        let Some(cut) = cut(segment, point)? else { continue };
        let file = files.iter().find(|file| file.path == segment.path).unwrap_or(source);
        let thread = file.thread_id.as_ref().map(ToString::to_string);
        let thread_id = file.part_id.clone().or(thread).unwrap_or_default();
        return Ok(Base { thread_id, end_ordinal: cut.ordinal, end_offset: cut.offset });
    }
    Err(missing(point))
}

fn missing(point: &ForkPoint) -> Error {
    let name = match point {
        ForkPoint::End => "the end".to_owned(),
        ForkPoint::Before(turn) | ForkPoint::After(turn) => turn.clone(),
    };
    Error::NotFound { name, nearest: None }
}

/// The first line that is not inherited.
struct Cut {
    ordinal: u64,
    offset: u64,
}

/// Finds the cut in a file; none if it is not there.
fn cut(segment: &Segment, point: &ForkPoint) -> Result<Option<Cut>, Error> {
    let path = &segment.path;
    let mut records = Records::new(record::open(path)?, Limits::default());
    let (mut last, mut found) = (None, None);
    while let Some(record) = records.next().map_err(read_error(path))? {
        if !record.ended {
            break;
        }
        let line = Envelope::read(&record).ok();
        let ordinal = line.as_ref().and_then(|line| line.ordinal);
        if segment.end.is_some_and(|end| ordinal.is_some_and(|at| at >= end)) {
            break;
        }
        let next = last.map_or(0, |last: u64| last + 1);
        let (here, after) = (record.offset, record.offset + record.length + 1);
        last = ordinal.or(last);
        let after_ordinal = last.map_or(0, |last| last + 1);
        match (point, line.as_ref().and_then(edge)) {
            (ForkPoint::End, _) => {
                found = Some(Cut { ordinal: after_ordinal, offset: after });
            }
            (ForkPoint::Before(turn), Some((true, id))) if id == *turn => {
                return Ok(Some(Cut { ordinal: ordinal.unwrap_or(next), offset: here }));
            }
            (ForkPoint::After(turn), Some((false, id))) if id == *turn => {
                return Ok(Some(Cut { ordinal: after_ordinal, offset: after }));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Whether a line begins (or ends) a turn, and which.
fn edge(line: &Envelope<'_>) -> Option<(bool, String)> {
    #[derive(Deserialize)]
    struct Edge {
        turn_id: Option<String>,
    }
    let begins = match (line.kind, line.inner) {
        ("event_msg", "task_started" | "turn_started") => true,
        ("event_msg", "task_complete" | "turn_complete" | "turn_aborted") => false,
        _ => return None,
    };
    let (edge, _): (Edge, _) = line.payload().ok()?;
    Some((begins, edge.turn_id?))
}

/// A fork that holds what it begins with.
fn copy(
    home: &Path,
    source: &SessionFile,
    point: &ForkPoint,
    mut meta: Meta,
    clock: Clock,
    bare: bool,
) -> Result<Recorder, Error> {
    (meta.format, meta.base) = (Format::Legacy, None);
    let whole = Segment { path: source.path.clone(), end: None, within: source.within.clone() };
    let end = cut(&whole, point)?.ok_or_else(|| missing(point))?.offset;
    let mut recorder = Recorder::create(home, &meta, clock)?;
    let from = record::open(&source.path)?.take(end);
    let copied = match bare {
        true => envelop(&source.path, from, &mut recorder),
        false => recorder.copy(from),
    };
    if let Err(error) = copied {
        // It is ours and begun a moment ago: half a copy helps nobody.
        let _ = std::fs::remove_file(recorder.path());
        return Err(error);
    }
    Ok(recorder)
}

/// Puts bare response items into envelopes.
fn envelop(path: &Path, from: impl Read, recorder: &mut Recorder) -> Result<(), Error> {
    let mut records = Records::new(from, Limits::none());
    while let Some(record) = records.next().map_err(read_error(path))? {
        let Ok(line) = Envelope::read(&record) else { continue };
        if matches!(line.inner, "header" | "state" | "session_meta") {
            continue;
        }
        let Ok((item, _)) = line.payload::<&RawValue>() else { continue };
        let item = serde_json::from_str(item.get()).unwrap_or_default();
        if let Some(shown) = shown_of(&item) {
            recorder.record(&shown)?;
        }
        recorder.record(&Record::ResponseItem(item))?;
    }
    Ok(())
}

/// What people were shown of a bare message; the harness's own words are not for them.
fn shown_of(item: &serde_json::Value) -> Option<Record> {
    let texts = item["content"].as_array().into_iter().flatten();
    let text: String = texts.filter_map(|block| block["text"].as_str()).collect();
    let is_injected = ["<user_instructions>", "<environment_context>"]
        .iter()
        .any(|tag| text.trim_start().starts_with(tag));
    match (item["type"].as_str()?, item["role"].as_str()?) {
        ("message", "user") if !is_injected => {
            let event = serde_json::json!({ "type": "user_message", "message": text });
            Some(Record::Event(event))
        }
        ("message", "assistant") => {
            let event = serde_json::json!({ "type": "agent_message", "message": text });
            Some(Record::Event(event))
        }
        _ => None,
    }
}

/// A block of a copy.
const BLOCK: usize = 256 << 10;

impl Recorder {
    /// Adds whole lines of another file as they are.
    fn copy(&mut self, mut from: impl Read) -> Result<(), Error> {
        let mut block = vec![0; BLOCK];
        loop {
            match from.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(count) => self.write(&block[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Read { path: self.path().to_owned(), source });
                }
            }
        }
    }
}
