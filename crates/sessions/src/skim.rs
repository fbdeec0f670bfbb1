//! Skimming: what lines are, told by their first bytes where they stand as Codex writes them, and
//! by reading them where they do not.

use crate::line::Envelope;
use crate::record::{Record, Shortened};
use crate::wire::Message;

/// Counts of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines.
    pub lines: u64,
    /// Turns that began with a mark.
    pub marked_turns: u64,
    /// What the user said, as clients saw it.
    pub user: u64,
    /// What the model said, as clients saw it.
    pub assistant: u64,
    /// The same in files that have no events: what the model saw.
    pub bare_user: u64,
    /// The same in files that have no events: what the model said.
    pub bare_assistant: u64,
}

impl Counts {
    /// Turns: by their marks, else by what the user said.
    pub fn turns(&self) -> u64 {
        [self.marked_turns, self.user, self.bare_user].into_iter().find(|n| *n > 0).unwrap_or(0)
    }

    /// Messages of user and model.
    pub fn messages(&self) -> u64 {
        let events = self.user + self.assistant;
        if events > 0 { events } else { self.bare_user + self.bare_assistant }
    }

    /// Counts the whole lines of a block.
    pub fn add(&mut self, block: &[u8]) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', block).chain([block.len()]) {
            if end > start {
                self.line(&block[start..end]);
            }
            start = end + 1;
        }
    }

    /// Counts a line of which only the beginning is there. False if that does not tell.
    pub(crate) fn add_head(&mut self, head: &[u8]) -> bool {
        let kind = LineKind::by_head(head);
        self.lines += 1;
        self.count(kind.unwrap_or(LineKind::Other));
        kind.is_some()
    }

    /// Counts a record that was read.
    pub(crate) fn add_record(&mut self, record: &Record<'_>) {
        self.lines += 1;
        let kind = Envelope::read(record).map_or(LineKind::Other, |line| LineKind::of(&line));
        self.count(kind);
    }

    fn line(&mut self, line: &[u8]) {
        let kind = LineKind::by_head(line).filter(|_| line.trim_ascii_end().ends_with(b"}"));
        let Some(kind) = kind else {
            let length = line.len() as u64;
            let shortened = Shortened::default();
            let record = Record { line: 1, offset: 0, length, raw: line, shortened, ended: true };
            return self.add_record(&record);
        };
        self.lines += 1;
        self.count(kind);
    }

    fn count(&mut self, kind: LineKind) {
        match kind {
            LineKind::TurnMark => self.marked_turns += 1,
            LineKind::User => self.user += 1,
            LineKind::Assistant => self.assistant += 1,
            LineKind::BareUser => self.bare_user += 1,
            LineKind::BareAssistant => self.bare_assistant += 1,
            LineKind::Other => {}
        }
    }
}

/// What a line counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    TurnMark,
    User,
    Assistant,
    BareUser,
    BareAssistant,
    Other,
}

impl LineKind {
    /// By the first bytes; none unless they are as Codex has written them since 0.34.
    fn by_head(line: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"{\"timestamp\":\"")?;
        let (_, mut rest) = word(rest)?;
        if let Some(number) = rest.strip_prefix(b",\"ordinal\":") {
            let end = number.iter().position(|byte| !byte.is_ascii_digit())?;
            rest = &number[end..];
        }
        let (kind, rest) = word(rest.strip_prefix(b",\"type\":\"")?)?;
        let payload = rest.strip_prefix(b",\"payload\":{")?;
        if kind != b"event_msg" {
            return Some(Self::Other);
        }
        let (event, rest) = word(payload.strip_prefix(b"\"type\":\"")?)?;
        match event {
            b"item_completed" => item_type(rest).map(Self::of_item),
            event => Some(Self::of_event(event)),
        }
    }

    fn of_event(event: &[u8]) -> Self {
        match event {
            b"task_started" | b"turn_started" => Self::TurnMark,
            b"user_message" => Self::User,
            b"agent_message" => Self::Assistant,
            _ => Self::Other,
        }
    }

    fn of_item(item: &[u8]) -> Self {
        match item {
            b"UserMessage" => Self::User,
            b"AgentMessage" => Self::Assistant,
            _ => Self::Other,
        }
    }

    fn of(line: &Envelope<'_>) -> Self {
        match (line.kind, line.inner) {
            ("event_msg", "item_completed") => match crate::normalise::item_kind(line) {
                Ok(kind) => Self::of_item(kind.as_bytes()),
                Err(_) => Self::Other,
            },
            ("event_msg", event) => Self::of_event(event.as_bytes()),
            // A bare line of 0.29 and older.
            ("", "message") => match line.payload::<Message>() {
                Ok((message, _)) => Self::of_message(&message),
                Err(_) => Self::Other,
            },
            _ => Self::Other,
        }
    }

    fn of_message(message: &Message) -> Self {
        let texts = || message.content.iter().filter_map(|block| block.text.as_deref());
        let is_injected = texts().any(|text| crate::normalise::injected_topic(text).is_some());
        match message.role.as_str() {
            "user" if !is_injected => Self::BareUser,
            "assistant" => Self::BareAssistant,
            _ => Self::Other,
        }
    }
}

/// The type of the item of an event, after plain words under other keys.
fn item_type(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let (key, after) = word(rest.strip_prefix(b",\"")?)?;
        if key == b"item" {
            return word(after.strip_prefix(b":{\"type\":\"")?).map(|(kind, _)| kind);
        }
        (_, rest) = word(after.strip_prefix(b":\"")?)?;
    }
}

/// A string without escapes, and what follows it.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr2(b'"', b'\\', bytes)?;
    (bytes[end] == b'"').then(|| (&bytes[..end], &bytes[end + 1..]))
}
