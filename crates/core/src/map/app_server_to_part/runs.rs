//! Runs of text and reasoning, and what becomes of them when an attempt is given up.
//!
//! Codex retries a cut stream with a new item; the old one never completes and is not in the
//! model's history. The new attempt usually begins with the same words, so it goes on in the old
//! run and only what is new is given. When it says something else, the old run is ended as
//! discarded and a new one begun.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::ids::{ItemId, PartId};
use crate::part::{Delta, Part, Run as Edge};
use crate::spec::{PROVIDER_KEY, codex_metadata};

/// Which text of an item a run carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Channel {
    /// The answer.
    Message,
    /// A plan in plan mode.
    Plan,
    /// One summary of reasoning.
    Summary(u32),
    /// One piece of raw reasoning.
    Raw(u32),
}

/// The open and the abandoned runs of a turn.
#[derive(Debug)]
pub(super) struct Runs {
    /// Written into the metadata of every start, as a run may be cut, and of every end.
    origin: Map<String, Value>,
    open: Vec<Run>,
    abandoned: Vec<Run>,
    used: BTreeSet<PartId>,
    /// What ever had a run, under its own name or an abandoned one's.
    begun: BTreeSet<(ItemId, Channel)>,
}

#[derive(Debug)]
struct Run {
    item: ItemId,
    channel: Channel,
    id: PartId,
    text: String,
    /// What an abandoned attempt has already shown under `id`; nothing new is given before
    /// `text` goes beyond it.
    shown: Option<String>,
}

impl Runs {
    /// No runs yet.
    pub(super) fn new(origin: Map<String, Value>) -> Self {
        Self {
            origin,
            open: Vec::new(),
            abandoned: Vec::new(),
            used: BTreeSet::new(),
            begun: BTreeSet::new(),
        }
    }

    /// Begins the run of an item, unless it is there.
    pub(super) fn begin(&mut self, item: &ItemId, channel: Channel, parts: &mut Vec<Part>) {
        self.position(item, channel, parts);
    }

    /// Begins the run of a message; its phase, where Codex says it, is told with its first word.
    pub(super) fn begin_message(
        &mut self,
        item: &ItemId,
        phase: Option<&str>,
        parts: &mut Vec<Part>,
    ) {
        let before = parts.len();
        self.position(item, Channel::Message, parts);
        let metadata = match parts.get_mut(before..).and_then(<[Part]>::last_mut) {
            Some(Part::TextStart(run)) => run.provider_metadata.as_mut(),
            _ => None,
        };
        let own = metadata.and_then(|metadata| metadata.get_mut(PROVIDER_KEY));
        if let (Some(own), Some(phase)) = (own, phase) {
            own["phase"] = json!(phase);
        }
    }

    /// More text of an item; an item that was never announced is begun here.
    pub(super) fn delta(
        &mut self,
        item: Option<&ItemId>,
        channel: Channel,
        delta: &str,
        parts: &mut Vec<Part>,
    ) {
        let Some(item) = item else { return };
        let index = self.position(item, channel, parts);
        self.open[index].text.push_str(delta);
        self.show(index, delta, parts);
    }

    /// The next summary begins, so the one before is complete.
    pub(super) fn next_summary(
        &mut self,
        item: Option<&ItemId>,
        index: u32,
        parts: &mut Vec<Part>,
    ) {
        let Some(item) = item else { return };
        let earlier = |run: &Run| {
            run.item == *item && matches!(run.channel, Channel::Summary(i) if i < index)
        };
        while let Some(at) = self.open.iter().position(earlier) {
            self.end(at, json!({}), parts);
        }
    }

    /// The whole text of an item is known: gives what was not streamed, then ends the run.
    pub(super) fn complete(
        &mut self,
        item: &ItemId,
        channel: Channel,
        text: &str,
        details: Value,
        parts: &mut Vec<Part>,
    ) {
        if self.has_ended(item, channel) || (text.is_empty() && self.find(item, channel).is_none())
        {
            return;
        }
        let index = self.position(item, channel, parts);
        let mut details = details;
        if let Some(rest) = text.strip_prefix(self.open[index].text.as_str()) {
            self.open[index].text.push_str(rest);
            self.show(index, rest, parts);
        } else {
            // What was streamed is not what stands in the end; the fold takes the latter.
            details["text"] = json!(text);
        }
        self.part_from_shown(index, parts);
        self.end(index, details, parts);
    }

    /// The attempt that wrote the open runs was given up; another may go on with them.
    pub(super) fn abandon(&mut self) {
        self.abandoned.append(&mut self.open);
    }

    /// The model was steered away: what is open is void at once.
    pub(super) fn discard_open(&mut self, parts: &mut Vec<Part>) {
        self.abandon();
        self.discard_abandoned(parts);
    }

    /// No attempt took the abandoned runs up.
    pub(super) fn discard_abandoned(&mut self, parts: &mut Vec<Part>) {
        for run in self.abandoned.drain(..) {
            parts.push(run.end_part(json!({ "discarded": true }), &self.origin));
        }
    }

    /// The turn is over.
    pub(super) fn close(&mut self, parts: &mut Vec<Part>) {
        for run in self.abandoned.drain(..).chain(self.open.drain(..)) {
            parts.push(run.end_part(json!({ "incomplete": true }), &self.origin));
        }
    }

    /// A run that was begun, as its start tells.
    pub(super) fn remember_start(&mut self, item: &ItemId, channel: Channel, id: &PartId) {
        self.used.insert(id.clone());
        self.begun.insert((item.clone(), channel));
        let (item, text) = (item.clone(), String::new());
        self.open.push(Run { item, channel, id: id.clone(), text, shown: None });
    }

    /// Text that a run has told.
    pub(super) fn remember_delta(&mut self, id: &PartId, delta: &str) {
        // More of it means that another attempt has taken it up.
        if let Some(at) = self.abandoned.iter().position(|run| run.id == *id) {
            self.open.push(self.abandoned.remove(at));
        }
        let run = self.open.iter_mut().find(|run| run.id == *id);
        run.into_iter().for_each(|run| run.text.push_str(delta));
    }

    /// A run that has ended.
    pub(super) fn remember_end(&mut self, id: &PartId) {
        self.open.retain(|run| run.id != *id);
        self.abandoned.retain(|run| run.id != *id);
    }

    fn find(&self, item: &ItemId, channel: Channel) -> Option<usize> {
        self.open.iter().position(|run| run.item == *item && run.channel == channel)
    }

    /// A summary ends when the next begins, before its item completes. What was only abandoned has
    /// not ended.
    fn has_ended(&self, item: &ItemId, channel: Channel) -> bool {
        let mut live = self.open.iter().chain(&self.abandoned);
        !live.any(|run| run.item == *item && run.channel == channel)
            && self.begun.contains(&(item.clone(), channel))
    }

    fn position(&mut self, item: &ItemId, channel: Channel, parts: &mut Vec<Part>) -> usize {
        if let Some(index) = self.find(item, channel) {
            return index;
        }
        self.supersede(channel);
        self.begun.insert((item.clone(), channel));
        let taken = self.abandoned.iter().position(|run| run.channel == channel);
        let run = match taken.map(|index| self.abandoned.remove(index)) {
            Some(old) => Run {
                item: item.clone(),
                channel,
                id: old.id,
                text: String::new(),
                shown: Some(old.shown.unwrap_or(old.text)),
            },
            None => self.fresh(item, channel, parts),
        };
        self.open.push(run);
        self.open.len() - 1
    }

    /// One answer is written at a time: a second one means that the first was given up.
    fn supersede(&mut self, channel: Channel) {
        let same = |run: &Run| run.channel == channel && channel == Channel::Message;
        while let Some(at) = self.open.iter().position(same) {
            self.abandoned.push(self.open.remove(at));
        }
    }

    fn fresh(&mut self, item: &ItemId, channel: Channel, parts: &mut Vec<Part>) -> Run {
        let mut id = part_id(item, channel, 0);
        for attempt in 1.. {
            if self.used.insert(id.clone()) {
                break;
            }
            id = part_id(item, channel, attempt);
        }
        parts.push(start_part(item, channel, &id, &self.origin));
        Run { item: item.clone(), channel, id, text: String::new(), shown: None }
    }

    /// Gives new text, unless an abandoned attempt has shown it before.
    fn show(&mut self, index: usize, delta: &str, parts: &mut Vec<Part>) {
        let run = &mut self.open[index];
        let Some(shown) = &run.shown else {
            if !delta.is_empty() {
                parts.push(run.delta_part(delta));
            }
            return;
        };
        if let Some(rest) = run.text.strip_prefix(shown.as_str()) {
            if !rest.is_empty() {
                parts.push(run.delta_part(rest));
            }
            run.shown = None;
        } else if !shown.starts_with(&run.text) {
            self.part_from_shown(index, parts);
        }
    }

    /// The new attempt is not what was shown: ends the old run and begins one of its own.
    fn part_from_shown(&mut self, index: usize, parts: &mut Vec<Part>) {
        if self.open[index].shown.take().is_none() {
            return;
        }
        parts.push(self.open[index].end_part(json!({ "discarded": true }), &self.origin));
        let (item, channel) = (self.open[index].item.clone(), self.open[index].channel);
        let fresh = self.fresh(&item, channel, parts);
        let run = &mut self.open[index];
        run.id = fresh.id;
        if !run.text.is_empty() {
            parts.push(run.delta_part(&run.text));
        }
    }

    fn end(&mut self, index: usize, details: Value, parts: &mut Vec<Part>) {
        let run = self.open.remove(index);
        parts.push(run.end_part(details, &self.origin));
    }
}

impl Run {
    fn delta_part(&self, delta: &str) -> Part {
        let delta = Delta { id: self.id.clone(), delta: delta.to_owned(), provider_metadata: None };
        match self.channel {
            Channel::Message | Channel::Plan => Part::TextDelta(delta),
            Channel::Summary(_) | Channel::Raw(_) => Part::ReasoningDelta(delta),
        }
    }

    fn end_part(&self, mut details: Value, origin: &Map<String, Value>) -> Part {
        details["itemId"] = json!(self.item);
        let provider_metadata = codex_metadata(with(details, origin));
        match self.channel {
            Channel::Message | Channel::Plan => {
                Part::TextEnd { id: self.id.clone(), citations: None, provider_metadata }
            }
            Channel::Summary(_) | Channel::Raw(_) => {
                Part::ReasoningEnd(Edge { id: self.id.clone(), provider_metadata })
            }
        }
    }
}

fn with(mut details: Value, origin: &Map<String, Value>) -> Value {
    for (key, value) in origin {
        details[key] = value.clone();
    }
    details
}

fn start_part(item: &ItemId, channel: Channel, id: &PartId, origin: &Map<String, Value>) -> Part {
    let details = match channel {
        Channel::Message => json!({ "itemId": item }),
        Channel::Plan => json!({ "itemId": item, "phase": "plan" }),
        Channel::Summary(_) => json!({ "itemId": item, "form": "summary" }),
        Channel::Raw(_) => json!({ "itemId": item, "form": "raw" }),
    };
    let provider_metadata = codex_metadata(with(details, origin));
    let edge = Edge { id: id.clone(), provider_metadata };
    match channel {
        Channel::Message | Channel::Plan => Part::TextStart(edge),
        Channel::Summary(_) | Channel::Raw(_) => Part::ReasoningStart(edge),
    }
}

fn part_id(item: &ItemId, channel: Channel, attempt: u32) -> PartId {
    let mut id = match channel {
        Channel::Message | Channel::Plan => item.to_string(),
        Channel::Summary(index) => format!("{item}:summary:{index}"),
        Channel::Raw(index) => format!("{item}:raw:{index}"),
    };
    if attempt > 0 {
        id.push_str(&format!("~{attempt}"));
    }
    PartId::new(id)
}

#[cfg(test)]
mod tests;
