//! The law of conservation: every line of a file is accounted for exactly once, and what of a
//! line is not shown is named.

use std::collections::BTreeMap;

use serde::Serialize;

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// It began an item of the transcript.
    Shown,
    /// It was folded into an item that another line began.
    Folded,
    /// It tells about the session or a turn: its beginning, end, model, settings.
    Turn,
    /// It was counted in a turn's tokens.
    Usage,
    /// It is setup: instructions and context, kept apart from the conversation.
    Setup,
    /// It is not understood, and shown as a card.
    Unknown,
    /// It is not shown, for a reason.
    Hidden(Hidden),
}

/// Why a line is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hidden {
    /// Nothing in it.
    Blank,
    /// A filler of 0.29 and older (`record_type: state`).
    Filler,
    /// The parent's head in a forked file; the first head is the file's own.
    CopiedHead,
    /// A snapshot for undo (0.58 to 0.72).
    GhostSnapshot,
    /// Codex's own bookkeeping of what the model knows.
    WorldState,
    /// Answers and sources that Codex retains through compactions.
    RetainedContext,
    /// How a message between agents was delivered.
    AgentRouting,
    /// The notice of 0.58 and older that a compaction is done.
    CompactionNotice,
    /// The reader was asked to begin or end elsewhere: a fork takes only a part of its parent.
    OutOfRange,
}

/// The accounts of all lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    first: u64,
    lines: Vec<Option<Account>>,
    left_out: BTreeMap<u64, Vec<String>>,
    records: BTreeMap<u64, usize>,
}

/// A file of garbage must not fill the memory with what is odd in it.
const NAMED_LINES: usize = 100_000;

impl Ledger {
    /// A ledger whose first line has this number.
    pub fn beginning_at(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// How many lines were read.
    pub fn lines(&self) -> u64 {
        self.lines.len() as u64
    }

    /// The account of a line.
    pub fn account(&self, line: u64) -> Option<Account> {
        self.lines.get(self.index(line)?).copied().flatten()
    }

    /// The lines of each account.
    pub fn counts(&self) -> BTreeMap<Account, u64> {
        let mut counts = BTreeMap::new();
        for account in self.lines.iter().flatten() {
            *counts.entry(*account).or_default() += 1;
        }
        counts
    }

    /// Lines without an account: the law holds when there are none.
    pub fn missing(&self) -> Vec<u64> {
        let missing = self.lines.iter().zip(self.first..).filter(|(account, _)| account.is_none());
        missing.map(|(_, line)| line).collect()
    }

    /// What of a line is not shown: fields and words that we do not know, payloads that were not
    /// read. The item that the line is in says the same.
    pub fn left_out(&self, line: u64) -> &[String] {
        self.left_out.get(&line).map(Vec::as_slice).unwrap_or_default()
    }

    /// The lines of which something is left out.
    pub fn lines_left_out(&self) -> impl Iterator<Item = (u64, &[String])> {
        self.left_out.iter().map(|(line, names)| (*line, names.as_slice()))
    }

    /// How many records a line holds: one, unless a writer has not ended its line.
    pub fn records(&self, line: u64) -> usize {
        self.records.get(&line).copied().unwrap_or(1)
    }

    pub(crate) fn leave_out<'a>(&mut self, line: u64, names: impl Iterator<Item = &'a String>) {
        let mut names = names.peekable();
        if names.peek().is_some() && self.left_out.len() < NAMED_LINES {
            self.left_out.entry(line).or_default().extend(names.cloned());
        }
    }

    pub(crate) fn hold(&mut self, line: u64, records: usize) {
        self.records.insert(line, records);
    }

    /// A line was read; its account follows, at the latest when its turn is complete.
    pub(crate) fn read(&mut self, line: u64) {
        if self.lines.is_empty() {
            self.first = line;
        }
        self.lines.push(None);
    }

    /// Settles a line; a later word overrules an earlier one.
    pub(crate) fn settle(&mut self, line: u64, account: Account) {
        if let Some(slot) = self.index(line).and_then(|index| self.lines.get_mut(index)) {
            *slot = Some(account);
        }
    }

    fn index(&self, line: u64) -> Option<usize> {
        usize::try_from(line.checked_sub(self.first)?).ok()
    }
}
