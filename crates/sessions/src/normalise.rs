//! Lines → the Transcript of `core`, as they stream by.
//!
//! Codex writes most things twice: what the model sees (`response_item`) and what a client sees
//! (`item_completed`, older: events). Precedence is `item_completed` > end events >
//! `response_item` > other events; the halves are found by id, else by equal text nearby, and
//! counted, because the same text may be said twice. A turn is handed out when two more have
//! begun, since results may come late; a very long one is handed out in pieces.

mod entry;

mod item;

mod marker;

mod message;

mod names;

mod odd;

mod output;

mod patch;

mod setup;

mod shell;

mod slot;

mod tool;

mod turn;

mod usage;

use std::collections::{HashMap, HashSet, VecDeque};

use bindery_core::ids::ThreadId;
use bindery_core::item::{Body, Origin, Status};
use bindery_core::transcript::{Setup, Transcript, TurnRecord};
use serde_json::{Value, json};

use self::slot::{Place, Slot, Turn};
use crate::ledger::{Account, Hidden, Ledger};
use crate::line::{Broken, Envelope};
use crate::record::Record;
use crate::schema::{self, Drift, Oddity};
use crate::wire::{Meta, Tokens};

pub(crate) use self::item::kind_of as item_kind;
pub use self::message::plain_user_text;
pub use self::names::{canonical_name, sort_of};
pub(crate) use self::setup::injected_topic;
pub use self::shell::{display_command, join as join_command};

/// What the normaliser hands out.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A turn, or the next piece of a long one.
    Turn {
        /// Its number in the file, from 1.
        number: u64,
        /// More of it follows under the same number.
        more: bool,
        /// The turn.
        turn: Box<TurnRecord>,
    },
    /// So many turns before this point were taken back.
    RollBack(u64),
}

/// How to normalise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The file is still being written: what has no end is pending rather than incomplete.
    pub live: bool,
}

/// What the head of a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// The thread.
    pub id: Option<ThreadId>,
    /// The Codex that began the file; later lines may be of a newer one.
    pub version: Option<String>,
    /// Where it began.
    pub cwd: Option<String>,
    /// The thread it was forked from.
    pub forked_from: Option<ThreadId>,
}

/// Normalises one file, line by line.
pub struct Normaliser<'e> {
    options: Options,
    emit: Box<dyn FnMut(Event) + 'e>,
    ledger: Ledger,
    head: Head,
    has_head: bool,
    turns: VecDeque<Turn>,
    /// The number of the first turn in `turns`.
    first: u64,
    /// Setup and markers that come before the turn they belong to.
    early_setup: Vec<Setup>,
    early_slots: Vec<Slot>,
    /// Bytes of the lines that these came from.
    early_bytes: usize,
    calls: HashMap<String, Place>,
    /// Commands that go on in the background, by the name the model polls them with.
    processes: HashMap<String, Place>,
    /// Messages and reasoning of which only one half is known, newest last.
    halves: VecDeque<Place>,
    clients: HashSet<String>,
    responses: HashSet<u64>,
    last_total: Option<Tokens>,
    /// Lines of another file, which this one continues: shown, but not this file's to account for.
    inherited: bool,
    line: u64,
    time: Option<i64>,
    /// The file has numbered items or events, so a message without one was injected.
    has_events: bool,
    /// The first ordinal that is this thread's own: a sub-agent is given some of its parent's.
    own_start: Option<u64>,
    /// The line that is being read was copied from the parent.
    is_copied: bool,
    /// What is odd in the line that is being read.
    drift: Vec<Drift>,
    /// What of the line is not in the item: payloads, fields that we do not know.
    left_out: Vec<String>,
    /// The line has a type, status or role that we do not know: it tells of no success.
    has_odd_word: bool,
    /// How many records the line holds.
    records: usize,
}

/// Turns kept open for late results.
const WINDOW: usize = 3;

impl<'e> Normaliser<'e> {
    /// A normaliser that hands its turns to `emit`.
    pub fn new(options: Options, emit: impl FnMut(Event) + 'e) -> Self {
        Self {
            options,
            emit: Box::new(emit),
            ledger: Ledger::default(),
            head: Head::default(),
            has_head: false,
            turns: VecDeque::new(),
            first: 1,
            early_setup: Vec::new(),
            early_slots: Vec::new(),
            early_bytes: 0,
            calls: HashMap::new(),
            processes: HashMap::new(),
            halves: VecDeque::new(),
            clients: HashSet::new(),
            responses: HashSet::new(),
            last_total: None,
            inherited: false,
            line: 0,
            time: None,
            has_events: false,
            own_start: None,
            is_copied: false,
            drift: Vec::new(),
            left_out: Vec::new(),
            has_odd_word: false,
            records: 0,
        }
    }

    /// From here on, lines are of a file that the real one continues (or no longer).
    pub fn inherit(&mut self, inherited: bool) {
        self.inherited = inherited;
    }

    /// Tells the head of a file of which only the end is read.
    pub(crate) fn know(&mut self, meta: Meta) {
        self.has_head = true;
        self.own_start = meta.own_start();
        self.head.id = meta.id.or(meta.session_id).map(ThreadId::new);
        self.head.version = meta.cli_version;
        self.head.cwd = meta.cwd;
        self.head.forked_from = meta.forked_from_id.map(ThreadId::new);
    }

    /// Takes one record. False if it is not understood, and shown as a card.
    pub fn take(&mut self, record: &Record<'_>) -> bool {
        self.take_line(record, Envelope::read(record))
    }

    /// Takes a record whose envelope was read before.
    pub(crate) fn take_line(
        &mut self,
        record: &Record<'_>,
        line: Result<Envelope<'_>, Broken>,
    ) -> bool {
        self.line = record.line;
        if !self.inherited {
            self.ledger.read(record.line);
        }
        self.drift.clear();
        self.records = 1;
        let understood = match self.read(record, line) {
            Ok(()) => true,
            Err((tag, why)) => self.split(record, &tag, &why),
        };
        self.weigh(record.raw.len());
        self.relieve();
        understood
    }

    /// What is odd in the line that was taken last.
    pub(crate) fn drift(&self) -> &[Drift] {
        &self.drift
    }

    /// How many records the line held that was taken last: more than one if they are glued.
    pub(crate) fn records(&self) -> usize {
        self.records
    }

    /// A line that is not understood: several records, or a card.
    fn split(&mut self, record: &Record<'_>, tag: &str, why: &str) -> bool {
        let records = crate::line::split(record);
        if records.is_empty() {
            self.card(tag, why, bounded(record));
            return false;
        }
        self.records = records.len();
        if !self.inherited {
            self.ledger.hold(self.line, records.len());
        }
        for record in &records {
            if let Err((tag, why)) = self.read(record, Envelope::read(record)) {
                self.card(&tag, &why, bounded(record));
            }
        }
        // Each of them is shown; that they share a line is told.
        false
    }

    /// Reads one record; its tag and what is wrong with it if it is not understood.
    fn read(
        &mut self,
        record: &Record<'_>,
        line: Result<Envelope<'_>, Broken>,
    ) -> Result<(), (String, String)> {
        self.look(record, line.as_ref().ok());
        let ordinal = line.as_ref().ok().and_then(|line| line.ordinal);
        self.is_copied = self.own_start.is_some_and(|own| ordinal.is_some_and(|at| at < own));
        match line {
            Ok(envelope) => {
                self.time = envelope.time_ms().or(self.time);
                let odd = self.entry(&envelope);
                odd.map_err(|odd| (odd.tag.unwrap_or_else(|| envelope.tag()), odd.why))
            }
            Err(Broken::Blank) => {
                self.settle(Account::Hidden(Hidden::Blank));
                Ok(())
            }
            Err(broken) => {
                let why = format!("{} of {} bytes", broken.word(), record.length);
                Err((broken.word().to_owned(), why))
            }
        }
    }

    /// Looks for what is odd in a record, before anything is made of it.
    fn look(&mut self, record: &Record<'_>, line: Option<&Envelope<'_>>) {
        let from = self.drift.len();
        if let (Some(line), Ok(text)) = (line, std::str::from_utf8(record.raw)) {
            schema::check(text, &line.full_tag(), &mut self.drift);
        }
        let found = &self.drift[from..];
        self.has_odd_word = found.iter().any(|drift| drift.oddity == Oddity::Word);
        let of = |oddities: &[Oddity]| {
            let named = found.iter().filter(|drift| oddities.contains(&drift.oddity));
            named.map(|drift| drift.what.clone()).collect::<Vec<_>>()
        };
        self.left_out = of(&[Oddity::Word, Oddity::Field]);
        self.left_out.extend(shortened(record));
        // What is known and never shown, the definitions of tools for one, is the ledger's alone.
        let unshown = of(&[Oddity::Unshown]);
        if !self.inherited {
            self.ledger.leave_out(self.line, self.left_out.iter().chain(&unshown));
        }
    }

    /// Takes a record that is not to be shown.
    pub fn skip(&mut self, record: &Record<'_>) {
        self.line = record.line;
        if !self.inherited {
            self.ledger.read(record.line);
            self.settle(Account::Hidden(Hidden::OutOfRange));
        }
    }

    /// Ends the file: hands out what is left.
    pub fn finish(mut self) -> (Head, Ledger) {
        if !self.early_slots.is_empty() || !self.early_setup.is_empty() {
            self.begin_turn(None);
        }
        while !self.turns.is_empty() {
            self.release();
        }
        (self.head, self.ledger)
    }

    fn settle(&mut self, account: Account) {
        if !self.inherited {
            self.ledger.settle(self.line, account);
        }
    }

    /// Shows what is not understood: tag, version, line and (bounded) raw text.
    fn card(&mut self, tag: &str, why: &str, raw: Value) {
        let version = self.head.version.as_deref().unwrap_or("unknown version");
        let why = format!("{why} (file of {version}, line {})", self.line);
        let body = Body::Unknown { tag: tag.to_owned(), why, raw };
        let mut slot = self.slot(format!("line-{}", self.line), Status::Unknown, body);
        slot.is_card = true;
        self.push_anywhere(slot);
    }

    /// A card for a part of a line whose rest is shown.
    fn card_beside(&mut self, tag: &str, why: &str, raw: Value) {
        let why = format!("{why} (line {})", self.line);
        let body = Body::Unknown { tag: tag.to_owned(), why, raw };
        let mut slot = self.slot(format!("line-{}-part", self.line), Status::Unknown, body);
        slot.item.origin.lines.clear();
        slot.is_card = true;
        self.push_anywhere(slot);
    }

    fn origin(&self) -> Origin {
        Origin {
            lines: if self.inherited { Vec::new() } else { vec![self.line] },
            mark: (self.inherited || self.is_copied).then(|| "inherited".to_owned()),
            left_out: self.left_out.clone(),
        }
    }
}

/// What is left out of a record, in words.
fn shortened(record: &Record<'_>) -> impl Iterator<Item = String> {
    let of = record.shortened;
    let payloads = (of.payloads > 0).then(|| {
        let values = if of.payloads == 1 { "value" } else { "values" };
        format!("{} bytes of base64 in {} {values}", of.payload_bytes, of.payloads)
    });
    let text = (of.text_bytes > 0).then(|| format!("{} bytes of text", of.text_bytes));
    payloads.into_iter().chain(text)
}

/// The longest raw text of a card.
const RAW_LIMIT: usize = 16 << 20;

/// The raw value of a card, cut when it is long.
fn bounded(record: &Record<'_>) -> Value {
    if record.raw.len() <= RAW_LIMIT
        && let Ok(value) = serde_json::from_slice(record.raw)
    {
        return value;
    }
    let text = String::from_utf8_lossy(&record.raw[..record.raw.len().min(RAW_LIMIT)]);
    json!({ "text": text, "bytes": record.length })
}

/// Collects what the normaliser hands out.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    /// The transcript so far.
    pub transcript: Transcript,
    /// More of its last turn follows.
    more: bool,
}

impl Collector {
    /// Takes one event.
    pub fn take(&mut self, event: Event) {
        let turns = &mut self.transcript.turns;
        match event {
            Event::Turn { more, turn, .. } => {
                match turns.last_mut().filter(|_| self.more) {
                    Some(last) => join(last, *turn),
                    None => turns.push(*turn),
                }
                self.more = more;
            }
            Event::RollBack(count) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let live = turns.iter_mut().rev().filter(|turn| has_user(turn));
                let live = live.filter(|turn| !turn.rolled_back);
                live.take(count).for_each(|turn| turn.rolled_back = true);
            }
        }
    }
}

pub(crate) fn has_user(turn: &TurnRecord) -> bool {
    turn.items.iter().any(|item| matches!(item.body, Body::User { .. }))
}

fn join(turn: &mut TurnRecord, mut piece: TurnRecord) {
    let mut items = std::mem::take(&mut turn.items);
    let mut setup = std::mem::take(&mut turn.setup);
    items.append(&mut piece.items);
    setup.append(&mut piece.setup);
    *turn = piece;
    (turn.items, turn.setup) = (items, setup);
}
