//! Slots: items while they may still change.

use bindery_core::ids::{ItemId, TurnId};
use bindery_core::item::{Body, Item, Span, Status};
use bindery_core::transcript::TurnRecord;
use serde_json::Value;

use super::{Event, Normaliser, WINDOW};
use crate::ledger::Account;
use crate::wire::Tokens;

/// What the model sees of something.
pub(super) const MODEL: u8 = 1;
/// What a client sees of it.
pub(super) const CLIENT: u8 = 2;

/// Where a slot is: the turn's number and the place in it.
pub(super) type Place = (u64, usize);

/// An item while it may still change.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) item: Item,
    /// Which halves are known.
    pub(super) sides: u8,
    /// The line of the newest half.
    pub(super) line: u64,
    /// It was merged into another.
    pub(super) dead: bool,
    /// It is a card for something unknown.
    pub(super) is_card: bool,
    /// Text as the other half may have it.
    pub(super) alias: Option<String>,
    /// A line of it has a word that we do not know.
    pub(super) has_odd_word: bool,
}

/// A turn while it may still change.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) record: TurnRecord,
    pub(super) slots: Vec<Slot>,
    /// How many slots were handed out; the first of `slots` is the next.
    pub(super) handed_out: usize,
    /// It began with an explicit mark.
    pub(super) explicit: bool,
    pub(super) ended: bool,
    pub(super) aborted: bool,
    pub(super) by_record: Option<Tokens>,
    pub(super) by_count: Option<Tokens>,
    pub(super) bytes: usize,
}

impl Turn {
    fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.dead || slot.is_card)
    }

    /// A user message may join it: nothing but setup and cards is in it.
    pub(super) fn is_fresh(&self) -> bool {
        self.is_empty() && !self.ended
    }
}

/// A turn with more open slots than this is handed out in pieces.
const MANY: usize = 4_096;
/// So is one that holds more text than this.
const MUCH: usize = 16 << 20;

impl Normaliser<'_> {
    pub(super) fn slot(&self, id: impl Into<String>, status: Status, body: Body) -> Slot {
        let span = Span { started_at_ms: self.time, completed_at_ms: self.time };
        let item = Item {
            id: ItemId::new(id),
            agent: None,
            status,
            span: if self.time.is_some() { span } else { Span::default() },
            body,
            origin: self.origin(),
        };
        Slot {
            item,
            sides: 0,
            line: self.line,
            dead: false,
            is_card: false,
            alias: None,
            has_odd_word: self.has_odd_word,
        }
    }

    /// Adds this line to a slot.
    pub(super) fn add_line(&mut self, place: Place) {
        let (line, inherited, is_odd) = (self.line, self.inherited, self.has_odd_word);
        let left_out = self.left_out.clone();
        if let Some(slot) = self.at(place) {
            slot.line = line;
            slot.has_odd_word |= is_odd;
            slot.item.origin.left_out.extend(left_out);
            if !inherited {
                slot.item.origin.lines.push(line);
            }
        }
    }

    pub(super) fn at(&mut self, (number, index): Place) -> Option<&mut Slot> {
        let turn = self.turns.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        turn.slots.get_mut(index.checked_sub(turn.handed_out)?)
    }

    pub(super) fn turn_number(&self, id: &str) -> Option<u64> {
        let same = |turn: &Turn| turn.record.id.as_ref().is_some_and(|known| known.as_str() == id);
        let index = self.turns.iter().rposition(same)?;
        Some(self.first + index as u64)
    }

    pub(super) fn turn_at(&mut self, number: u64) -> Option<&mut Turn> {
        self.turns.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    pub(super) fn last_number(&self) -> Option<u64> {
        (!self.turns.is_empty()).then(|| self.first + self.turns.len() as u64 - 1)
    }

    /// Begins a turn; what came early belongs to it.
    pub(super) fn begin_turn(&mut self, id: Option<String>) -> u64 {
        let mut turn = Turn::default();
        turn.record.id = id.map(TurnId::new);
        turn.record.setup = std::mem::take(&mut self.early_setup);
        turn.record.span.started_at_ms = self.time;
        turn.slots = std::mem::take(&mut self.early_slots);
        if let Some(last) = self.turns.back() {
            turn.record.model.clone_from(&last.record.model);
            turn.record.effort.clone_from(&last.record.effort);
            turn.record.cwd.clone_from(&last.record.cwd);
        } else {
            turn.record.cwd.clone_from(&self.head.cwd);
        }
        self.turns.push_back(turn);
        while self.turns.len() > WINDOW {
            self.release();
        }
        self.first + self.turns.len() as u64 - 1
    }

    /// The turn something belongs to: the one it names, else the open one, else a new one.
    pub(super) fn turn_for(&mut self, id: Option<&str>) -> u64 {
        if let Some(number) = id.and_then(|id| self.turn_number(id)) {
            return number;
        }
        match (self.last_number(), self.turns.back()) {
            (Some(number), Some(turn)) if !turn.ended => number,
            _ => self.begin_turn(id.map(str::to_owned)),
        }
    }

    pub(super) fn push(&mut self, number: u64, slot: Slot) -> Place {
        // Setup that nobody claimed belongs to the turn that goes on.
        let setup = std::mem::take(&mut self.early_setup);
        let Some(turn) = self.turn_at(number) else { return (number, usize::MAX) };
        turn.record.setup.extend(setup);
        turn.slots.push(slot);
        (number, turn.handed_out + turn.slots.len() - 1)
    }

    /// Adds a slot that says nothing about turns: to the open one, or before the next.
    pub(super) fn push_anywhere(&mut self, slot: Slot) {
        match (self.last_number(), self.turns.back()) {
            (Some(number), Some(turn)) if !turn.ended => {
                let _ = self.push(number, slot);
            }
            _ => self.early_slots.push(slot),
        }
    }

    /// Remembers that the other half of a slot may come.
    pub(super) fn expect_half(&mut self, place: Place) {
        if self.halves.len() == 64 {
            self.halves.pop_front();
        }
        self.halves.push_back(place);
    }

    /// Merges a slot into another: its lines go along.
    pub(super) fn absorb(&mut self, from: Place, into: Place) {
        let Some(slot) = self.at(from) else { return };
        slot.dead = true;
        let lines = std::mem::take(&mut slot.item.origin.lines);
        let left_out = std::mem::take(&mut slot.item.origin.left_out);
        if let Some(target) = self.at(into) {
            target.item.origin.lines.extend(lines);
            target.item.origin.left_out.extend(left_out);
        }
    }

    /// Counts what a line may have added: to the open turn, or to what waits for the next. When too
    /// much waits, for example because nothing in the file is understood, a turn begins with it.
    pub(super) fn weigh(&mut self, bytes: usize) {
        let waits = !self.early_slots.is_empty() || !self.early_setup.is_empty();
        self.early_bytes = if waits { self.early_bytes + bytes } else { 0 };
        let many = self.early_slots.len() + self.early_setup.len() >= MANY;
        if many || self.early_bytes >= MUCH {
            self.begin_turn(None);
        }
        if let Some(turn) = self.turns.back_mut() {
            turn.bytes += bytes;
        }
    }

    /// Hands out the front of a turn that has grown too large to hold.
    pub(super) fn relieve(&mut self) {
        let Some(turn) = self.turns.back() else { return };
        if turn.slots.len() < MANY && turn.bytes < MUCH {
            return;
        }
        let keep = turn.slots.len().saturating_sub(64);
        let open = |slot: &Slot| slot.item.status == Status::Pending && !slot.dead;
        // Up to the first call without a result; one that waits too long is handed out, too.
        let end = turn.slots[..keep].iter().position(open).unwrap_or(keep);
        let is_full = turn.slots.len() >= 4 * MANY || turn.bytes >= 4 * MUCH;
        let end = if is_full { end.max(1) } else { end };
        if end == 0 && turn.record.setup.is_empty() {
            return;
        }
        let number = self.first + self.turns.len() as u64 - 1;
        while self.turns.len() > 1 {
            self.release();
        }
        let Some(mut turn) = self.turns.pop_back() else { return };
        let mut record = TurnRecord { items: Vec::new(), ..turn.record.clone() };
        record.setup = std::mem::take(&mut turn.record.setup);
        for mut slot in turn.slots.drain(..end.min(turn.slots.len())).collect::<Vec<_>>() {
            record.items.extend(self.settled(&mut slot));
        }
        turn.handed_out += end;
        turn.bytes = turn.slots.iter().map(|slot| weight(&slot.item.body)).sum();
        let first = turn.handed_out;
        self.calls.retain(|_, place| place.0 != number || place.1 >= first);
        self.turns.push_back(turn);
        (self.emit)(Event::Turn { number, more: true, turn: Box::new(record) });
    }

    /// Hands out the oldest turn.
    pub(super) fn release(&mut self) {
        let Some(mut turn) = self.turns.pop_front() else { return };
        let number = self.first;
        self.first += 1;
        let is_last = self.turns.is_empty();
        self.classify(&mut turn);
        let left = match (turn.aborted, turn.ended || !is_last) {
            (true, _) => Status::Aborted,
            (false, false) if self.options.live => Status::Pending,
            _ => Status::Incomplete,
        };
        let mut record = std::mem::take(&mut turn.record);
        record.usage = super::usage::of_turn(turn.by_record.or(turn.by_count));
        for slot in &mut turn.slots {
            if slot.item.status == Status::Pending {
                slot.item.status = left;
            }
            record.items.extend(self.settled(slot));
        }
        if record == TurnRecord::default() {
            return;
        }
        self.calls.retain(|_, (of, _)| *of != number);
        self.processes.retain(|_, (of, _)| *of != number);
        self.halves.retain(|(of, _)| *of != number);
        (self.emit)(Event::Turn { number, more: false, turn: Box::new(record) });
    }

    /// Takes the item out of its slot and settles its lines.
    fn settled(&mut self, slot: &mut Slot) -> Option<Item> {
        if slot.dead {
            return None;
        }
        // A killed command has no exit code; Codex writes -1 for one.
        if let Body::Tool(tool) = &mut slot.item.body
            && slot.item.status == Status::Aborted
            && tool.exit_code == Some(-1)
        {
            tool.exit_code = None;
        }
        // What we do not understand of a call is no success.
        if matches!(slot.item.body, Body::Tool(_))
            && slot.has_odd_word
            && matches!(slot.item.status, Status::Ok | Status::Pending)
        {
            slot.item.status = Status::Unknown;
        }
        let empty = Body::Message { text: String::new(), phase: None };
        let mut item = Item {
            id: slot.item.id.clone(),
            agent: None,
            status: slot.item.status,
            span: slot.item.span,
            body: std::mem::replace(&mut slot.item.body, empty),
            origin: std::mem::take(&mut slot.item.origin),
        };
        item.origin.lines.sort_unstable();
        item.origin.lines.dedup();
        item.origin.left_out.sort_unstable();
        item.origin.left_out.dedup();
        let account = if slot.is_card { Account::Unknown } else { Account::Shown };
        for (index, line) in item.origin.lines.iter().enumerate() {
            self.ledger.settle(*line, if index == 0 { account } else { Account::Folded });
        }
        Some(item)
    }
}

/// About how much memory an item holds.
fn weight(body: &Body) -> usize {
    256 + match body {
        Body::User { text, attachments } => {
            text.len() + attachments.iter().map(value_weight).sum::<usize>()
        }
        Body::Message { text, .. } => text.len(),
        Body::Reasoning { summary, raw } => summary.iter().chain(raw).map(String::len).sum(),
        Body::Tool(tool) => {
            value_weight(&tool.input) + tool.output.as_ref().map_or(0, value_weight)
        }
        Body::Notice { text, data, .. } => text.len() + value_weight(data),
        Body::Unknown { raw, .. } => value_weight(raw),
        _ => 0,
    }
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_weight).sum(),
        Value::Object(fields) => fields.values().map(value_weight).sum(),
        _ => 8,
    }
}
