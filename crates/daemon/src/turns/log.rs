//! The log of a turn: durable first, then shown, to any number of readers.
//!
//! The newest events are kept in memory for those who follow; whoever is further behind, or comes
//! when the turn is over, reads the store. So no reader is ever too slow, and none misses anything.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use tokio::sync::watch;

use crate::error::Error;
use crate::store::{Change, Chunk, Store};

/// Events kept in memory for each running turn.
const RECENT: usize = 512;

/// Bytes of them.
const RECENT_BYTES: usize = 256 * 1024;

/// Bytes that a reader takes from the store at a time.
const PAGE: usize = 64 * 1024;

/// What kind of event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of the answer.
    Part,
    /// A question was asked.
    Interrupt,
    /// The turn is over; always the last.
    End,
}

impl Kind {
    /// The name of the SSE event.
    pub fn name(self) -> &'static str {
        match self {
            Self::Part => "part",
            Self::Interrupt => "interrupt",
            Self::End => "end",
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Part => 'p',
            Self::Interrupt => 'i',
            Self::End => 'e',
        }
    }

    fn of(letter: u8) -> Option<Self> {
        match letter {
            b'p' => Some(Self::Part),
            b'i' => Some(Self::Interrupt),
            b'e' => Some(Self::End),
            _ => None,
        }
    }
}

/// One event, as it is written to readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in the turn, from 1.
    pub seq: u64,
    /// What kind it is.
    pub kind: Kind,
    /// The whole SSE frame; the JSON is in it.
    pub frame: Bytes,
    /// Where the JSON begins.
    begin: usize,
}

impl Event {
    /// An event with this JSON.
    pub fn new(seq: u64, kind: Kind, json: &str) -> Self {
        let mut frame = String::with_capacity(json.len() + 48);
        // Writing to a text cannot fail.
        let _ = write!(frame, "id: {seq}\nevent: {}\ndata: ", kind.name());
        let begin = frame.len();
        frame.push_str(json);
        frame.push_str("\n\n");
        Self { seq, kind, frame: frame.into(), begin }
    }

    /// The JSON.
    pub fn json(&self) -> &str {
        let bytes = self.frame.get(self.begin..self.frame.len() - 2).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// The log of a turn that runs.
#[derive(Debug)]
pub struct Log {
    turn: String,
    recent: Mutex<Recent>,
    /// The number of the last event that may be shown, and whether it is the last of all.
    shown: watch::Sender<(u64, bool)>,
    /// Why what comes next is held back, if it is.
    held: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<Event>,
    bytes: usize,
}

impl Log {
    /// The log of a turn with so many events.
    pub fn new(turn: &str, last: u64) -> Self {
        let shown = watch::Sender::new((last, false));
        let held = watch::Sender::new(None);
        Self { turn: turn.to_owned(), recent: Mutex::default(), shown, held }
    }

    /// What comes next is held back for this reason, or is no longer.
    pub fn hold(&self, why: Option<String>) {
        self.held.send_if_modified(|held| {
            let changes = *held != why;
            *held = why;
            changes
        });
    }

    /// Why what comes next is held back, if it is.
    pub fn held(&self) -> Option<String> {
        self.held.borrow().clone()
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.shown.borrow().0
    }

    /// Events that come next, numbered, with the change that keeps them. They are shown with
    /// [`Self::show`], once that is done.
    pub fn next(&self, events: &[(Kind, String)]) -> (Vec<Event>, Change) {
        let first = self.last() + 1;
        let size = events.iter().map(|(_, json)| json.len() + 2).sum();
        let mut body = String::with_capacity(size);
        let mut numbered = Vec::with_capacity(events.len());
        for (seq, (kind, json)) in (first..).zip(events) {
            body.push(kind.letter());
            body.push_str(json);
            body.push('\n');
            numbered.push(Event::new(seq, *kind, json));
        }
        let last = first + events.len() as u64 - 1;
        let chunk = Chunk { first, body };
        (numbered, Change::Append { turn: self.turn.clone(), chunk, last })
    }

    /// Shows events that are kept.
    pub fn show(&self, events: Vec<Event>) {
        let Some(last) = events.last().map(|event| (event.seq, event.kind == Kind::End)) else {
            return;
        };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            recent.bytes += event.frame.len();
            recent.events.push_back(event);
        }
        while recent.events.len() > RECENT || recent.bytes > RECENT_BYTES {
            let Some(old) = recent.events.pop_front() else { break };
            recent.bytes -= old.frame.len();
        }
        drop(recent);
        self.shown.send_replace(last);
    }

    /// What follows this number and is in memory; none if it begins later.
    fn after(&self, seq: u64) -> Option<Vec<Event>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = recent.events.front().map_or(self.last() + 1, |event| event.seq);
        if seq + 1 < first {
            return None;
        }
        let skip = usize::try_from(seq + 1 - first).unwrap_or(usize::MAX);
        Some(recent.events.iter().skip(skip).cloned().collect())
    }
}

/// The log, while the turn runs here, and word of what is new in it.
type Following = (Arc<Log>, watch::Receiver<(u64, bool)>);

/// Word of what is held back.
type Holding = watch::Receiver<Option<String>>;

/// What a reader is told.
#[derive(Debug)]
pub enum News {
    /// Events, at least one.
    Events(Vec<Event>),
    /// What comes next is held back, for this reason.
    Held(String),
}

/// Waits until something is held back; for ever where nothing can be.
async fn why_held(held: &mut Option<Holding>) -> String {
    if let Some(held) = held {
        while held.changed().await.is_ok() {
            if let Some(why) = held.borrow_and_update().clone() {
                return why;
            }
        }
    }
    std::future::pending().await
}

/// Reads a log from any place to its end.
pub struct Reader {
    store: Arc<dyn Store>,
    turn: String,
    /// The number of the last event that was given.
    seq: u64,
    live: Option<Following>,
    held: Option<Holding>,
    over: bool,
}

impl Reader {
    /// Begins after this number; `log` is there while the turn runs.
    pub fn new(store: Arc<dyn Store>, turn: &str, seq: u64, log: Option<Arc<Log>>) -> Self {
        let held = log.as_ref().map(|log| {
            let mut held = log.held.subscribe();
            // Whoever comes while it lasts is told, too.
            held.mark_changed();
            held
        });
        let live = log.map(|log| {
            let shown = log.shown.subscribe();
            (log, shown)
        });
        Self { store, turn: turn.to_owned(), seq, live, held, over: false }
    }

    /// The next events, or why they are held back; none at the end.
    pub async fn next_or_held(&mut self) -> Result<Option<News>, Error> {
        // Whoever asks may give up in the middle, and must not lose word of it.
        let mut held = self.held.clone();
        let why = tokio::select! {
            biased;
            events = self.next() => return events.map(|events| events.map(News::Events)),
            why = why_held(&mut held) => why,
        };
        self.held = held;
        Ok(Some(News::Held(why)))
    }

    /// The next events, at least one; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, Error> {
        while !self.over {
            let mut events = match &self.live {
                Some((log, _)) => match log.after(self.seq) {
                    Some(events) => events,
                    None => self.stored().await?,
                },
                None => self.stored().await?,
            };
            // Stored may be more than what is shown already; both are kept, so both may be told.
            events.retain(|event| event.seq > self.seq);
            if let Some(last) = events.last() {
                (self.seq, self.over) = (last.seq, last.kind == Kind::End);
                return Ok(Some(events));
            }
            match &mut self.live {
                Some((_, shown)) => {
                    let seq = self.seq;
                    if shown.wait_for(|(last, _)| *last > seq).await.is_err() {
                        // The turn was let go; what there is of it is in the store.
                        self.live = None;
                    }
                }
                None => break,
            }
        }
        Ok(None)
    }

    async fn stored(&self) -> Result<Vec<Event>, Error> {
        let chunks = self.store.events(&self.turn, self.seq, PAGE).await?;
        Ok(chunks.iter().flat_map(events_of).collect())
    }
}

/// The events of a chunk.
pub fn events_of(chunk: &Chunk) -> Vec<Event> {
    let lines = chunk.body.split_terminator('\n');
    let numbered = (chunk.first..).zip(lines);
    numbered
        .filter_map(|(seq, line)| {
            let kind = Kind::of(*line.as_bytes().first()?)?;
            Some(Event::new(seq, kind, line.get(1..)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(count: usize) -> Vec<(Kind, String)> {
        (0..count).map(|n| (Kind::Part, format!("{{\"n\":{n}}}"))).collect()
    }

    #[test]
    fn a_chunk_reads_back_as_it_was_written() {
        let log = Log::new("t", 4);
        let mut events = parts(2);
        events.push((Kind::End, "{}".to_owned()));
        let (shown, change) = log.next(&events);
        let Change::Append { chunk, last, .. } = change else { panic!("no append") };
        assert_eq!((chunk.first, last), (5, 7));
        assert_eq!(events_of(&chunk), shown);
        assert_eq!(shown[1].json(), "{\"n\":1}");
        assert_eq!(shown[2].frame, "id: 7\nevent: end\ndata: {}\n\n");
    }

    #[test]
    fn memory_holds_the_newest_and_says_when_it_does_not_reach() {
        let log = Log::new("t", 0);
        for _ in 0..3 {
            let (events, _) = log.next(&parts(RECENT / 2));
            log.show(events);
        }
        assert_eq!(log.last(), (RECENT / 2 * 3) as u64);
        assert_eq!(log.after(0), None);
        let newest = log.after(RECENT as u64).unwrap();
        assert_eq!(newest.first().unwrap().seq, RECENT as u64 + 1);
        assert_eq!(newest.len(), RECENT / 2);
        assert_eq!(log.after(log.last()).unwrap(), []);
    }
}
