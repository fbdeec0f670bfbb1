//! Resuming: what a model must be told, and a client shown, to go on with a session.
//!
//! Read: [`history`] (response items, compactions, turns taken back), [`turns`] (what clients are
//! shown), [`items`] and `events` (both spellings of it). One pass over the files of a session,
//! oldest first; memory is what the model is told plus the turns that were asked for.

pub mod history;

pub mod items;

mod events;

pub mod turns;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use self::history::History;
use self::turns::Turns;
use crate::Error;
use crate::error::read_error;
use crate::find::SessionFile;
use crate::line::Envelope;
use crate::record::{self, Limits, Records};
use crate::session::{Segment, chain};
use crate::write::recorder::LONGEST;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The last turns to keep for clients, none of them if 0; the model's history is always
    /// whole.
    pub turns: usize,
    /// The most bytes that a history may have.
    pub history: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { turns: usize::MAX, history: 512 << 20 }
    }
}

/// A session, ready to go on.
#[derive(Clone, Debug, Default)]
pub struct Resumed {
    /// The payload of the first line of the session's own file: id, cwd, instructions, tools …
    pub meta: Value,
    /// The items that the model is told again, in the Responses shape, oldest first.
    pub history: Vec<Value>,
    /// The settings of the last turn.
    pub turn_context: Option<Value>,
    /// What the model knows of its surroundings.
    pub world_state: Option<Value>,
    /// The last `info` of a token count: totals, the last answer's tokens, the window.
    pub tokens: Option<Value>,
    /// The turns as the app-server protocol has them, oldest first.
    pub turns: Vec<Value>,
    /// Turns before the first of `turns`.
    pub earlier_turns: u64,
    /// How often the history was shortened.
    pub compactions: u64,
    /// Lines read.
    pub lines: u64,
    /// Lines that are torn or no JSON: passed over, as Codex does.
    pub broken: u64,
    /// Lines over 64 MiB, of which long strings were cut short.
    pub shortened: u64,
    /// Lines of types we do not know, by type.
    pub unknown: BTreeMap<String, u64>,
}

/// Reads a session and the files it continues, which may be among `files`.
pub fn load(path: &Path, files: &[SessionFile], options: Options) -> Result<Resumed, Error> {
    load_chain(&chain(path, files), options)
}

/// Reads a session from its files, oldest first.
pub fn load_chain(chain: &[Segment], options: Options) -> Result<Resumed, Error> {
    let mut reader = Reader::new(options);
    for segment in chain {
        reader.has_meta = false;
        reader.segment(segment)?;
    }
    Ok(reader.finish())
}

struct Reader {
    options: Options,
    resumed: Resumed,
    has_meta: bool,
    history: History,
    turns: Turns,
}

impl Reader {
    fn new(options: Options) -> Self {
        Self {
            options,
            resumed: Resumed::default(),
            has_meta: false,
            history: History::default(),
            turns: Turns::keeping(options.turns),
        }
    }

    fn segment(&mut self, segment: &Segment) -> Result<(), Error> {
        let path = &segment.path;
        let limits = Limits { line: LONGEST, payload: 16 << 10, total: 256 << 20 };
        let mut records = Records::new(record::open(path)?, limits);
        while let Some(record) = records.next().map_err(read_error(path))? {
            self.resumed.lines += 1;
            self.resumed.shortened += u64::from(!record.shortened.is_none());
            let Ok(line) = Envelope::read(&record) else {
                let is_blank = record.raw.iter().all(u8::is_ascii_whitespace);
                self.resumed.broken += u64::from(!is_blank);
                continue;
            };
            if segment.end.is_some_and(|end| line.ordinal.is_some_and(|at| at >= end)) {
                continue;
            }
            if self.line(&line).is_none() {
                self.resumed.broken += 1;
            }
            if self.history.bytes() > self.options.history {
                let limit = self.options.history;
                return Err(Error::TooLong { path: path.clone(), limit });
            }
        }
        Ok(())
    }

    /// Takes a line; none if its payload cannot be read.
    fn line(&mut self, line: &Envelope<'_>) -> Option<()> {
        let payload = || line.payload::<Value>().ok().map(|(payload, _)| payload);
        match (line.kind, line.inner) {
            ("session_meta", _) | ("", "header") => self.meta(payload()?),
            ("response_item", "ghost_snapshot") | ("", "state") => {}
            ("response_item", _) | ("", _) => {
                let size = line.payload_text().len();
                let item = payload()?;
                if self.options.turns > 0 {
                    self.turns.item(&item);
                }
                self.history.push(item, size);
            }
            ("event_msg", kind) if self.is_wanted(kind) => self.event(kind, payload()?, line),
            ("event_msg", _) => {}
            ("turn_context", _) => self.resumed.turn_context = Some(payload()?),
            ("compacted", _) => {
                self.resumed.compactions += 1;
                // What the model knew of its surroundings went with the rest.
                self.resumed.world_state = None;
                self.history.compact(payload()?);
            }
            ("world_state", _) => self.world(payload()?),
            (
                "token_usage_record" | "retained_context" | "inter_agent_communication_metadata",
                _,
            ) => {
                payload()?;
            }
            (kind, _) => {
                payload()?;
                *self.resumed.unknown.entry(kind.to_owned()).or_default() += 1;
            }
        }
        Some(())
    }

    fn is_wanted(&self, event: &str) -> bool {
        self.options.turns > 0 || matches!(event, "token_count" | "thread_rolled_back")
    }

    fn meta(&mut self, payload: Value) {
        // Later ones in the same file are those of a parent it was copied from.
        if !std::mem::replace(&mut self.has_meta, true) {
            self.resumed.meta = payload;
        }
    }

    fn event(&mut self, kind: &str, payload: Value, line: &Envelope<'_>) {
        match kind {
            "token_count" => {
                if payload["info"].is_object() {
                    self.resumed.tokens = Some(payload["info"].clone());
                }
            }
            "thread_rolled_back" => {
                let count = payload["num_turns"].as_u64().unwrap_or(0);
                self.history.roll_back(count);
                self.turns.roll_back(count);
            }
            _ => self.turns.event(kind, payload, line.time_ms()),
        }
    }

    fn world(&mut self, payload: Value) {
        let state = payload["state"].clone();
        match &mut self.resumed.world_state {
            Some(known) if payload["full"] == false => merge(known, state),
            known => *known = Some(state),
        }
    }

    fn finish(self) -> Resumed {
        let (turns, earlier_turns) = self.turns.finish();
        let history = self.history.finish();
        Resumed { history, turns, earlier_turns, ..self.resumed }
    }
}

/// A change as Codex keeps it: objects are merged, null takes away.
fn merge(known: &mut Value, change: Value) {
    let Value::Object(change) = change else {
        *known = change;
        return;
    };
    if !known.is_object() {
        *known = Value::Object(Map::new());
    }
    let Some(known) = known.as_object_mut() else { return };
    for (key, value) in change {
        if value.is_null() {
            known.remove(&key);
        } else {
            merge(known.entry(key).or_insert(Value::Null), value);
        }
    }
}
