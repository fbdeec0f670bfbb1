//! Which of a turn's messages is its answer.
//!
//! The AI SDK takes all text of a call for one answer, end to end, and reads objects out of it.
//! Codex says several messages in a turn: what it is about to do, then the answer. What is known
//! not to be the answer goes as reasoning, with `phase: "commentary"` in its metadata.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Delta, Part, Run};
use crate::ids::PartId;
use crate::spec::{Metadata, codex_metadata, codex_of};

/// When a message is told of which Codex has not said what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Undeclared {
    /// As it comes, as text; a part between two of them sets them off.
    #[default]
    AtOnce,
    /// When another message follows or the step ends: for callers who read the text as one value.
    /// What a turn ends with may be a tool, so only another message shows that it was not the last.
    WhenKnown,
}

/// What Codex says a message is, in its metadata.
const COMMENTARY: &str = "commentary";

/// Sets one message off from the next.
const BREAK: &str = "\n\n";

/// Tells the answer from what is said on the way to it.
#[derive(Debug, Default)]
pub struct AnswerFilter {
    undeclared: Undeclared,
    /// What becomes of the runs that have begun, by their ids.
    open: BTreeMap<PartId, Fate>,
    /// A message that may be the answer.
    held: Option<Held>,
    /// Text was told, and the next is to be set off from it.
    told: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Told as text.
    Text,
    /// Told as reasoning.
    Reasoning,
    /// Held back.
    Held,
}

#[derive(Debug)]
struct Held {
    id: PartId,
    metadata: Option<Metadata>,
    text: String,
    /// How it ended.
    end: Option<Option<Metadata>>,
}

impl Held {
    /// What stands in the end is what counts, where it is not what was streamed.
    fn end(&mut self, metadata: Option<&Metadata>) {
        let text = codex_of(metadata).and_then(|own| own.get("text")?.as_str());
        if let Some(text) = text {
            text.clone_into(&mut self.text);
        }
        self.end = Some(metadata.cloned());
    }
}

impl AnswerFilter {
    /// A filter for one stream.
    pub fn new(undeclared: Undeclared) -> Self {
        Self { undeclared, ..Self::default() }
    }

    /// Takes a part, and gives what is to be told of it, in order.
    pub fn push(&mut self, part: Part) -> Vec<Part> {
        let mut told = Vec::new();
        match part {
            Part::TextStart(run) => self.begin(run, &mut told),
            Part::TextDelta(delta) => self.more(delta, &mut told),
            Part::TextEnd { id, citations, provider_metadata } => {
                let part =
                    |id, provider_metadata| Part::TextEnd { id, citations, provider_metadata };
                self.end(id, provider_metadata, part, &mut told);
            }
            part => {
                if let Part::Finish { .. } = part {
                    self.release(true, &mut told);
                }
                told.push(part);
            }
        }
        told
    }

    fn begin(&mut self, run: Run, told: &mut Vec<Part>) {
        // One message at a time: the one before was not the last.
        self.release(false, told);
        let fate = match (phase(run.provider_metadata.as_ref()), self.undeclared) {
            (Some(COMMENTARY), _) => Fate::Reasoning,
            (Some("final_answer"), _) | (_, Undeclared::AtOnce) => Fate::Text,
            (_, Undeclared::WhenKnown) => Fate::Held,
        };
        self.open.insert(run.id.clone(), fate);
        match fate {
            Fate::Text => {
                self.set_off(&run.id, told);
                told.push(Part::TextStart(run));
            }
            Fate::Reasoning => told.push(Part::ReasoningStart(run)),
            Fate::Held => {
                let (id, metadata) = (run.id, run.provider_metadata);
                self.held = Some(Held { id, metadata, text: String::new(), end: None });
            }
        }
    }

    fn more(&mut self, delta: Delta, told: &mut Vec<Part>) {
        match self.open.get_mut(&delta.id) {
            Some(Fate::Reasoning) => told.push(Part::ReasoningDelta(delta)),
            Some(Fate::Held) => {
                let held = self.held.iter_mut().filter(|held| held.id == delta.id);
                held.for_each(|held| held.text.push_str(&delta.delta));
            }
            Some(Fate::Text) => {
                self.told = true;
                told.push(Part::TextDelta(delta));
            }
            None => told.push(Part::TextDelta(delta)),
        }
    }

    fn end(
        &mut self,
        id: PartId,
        metadata: Option<Metadata>,
        text_end: impl FnOnce(PartId, Option<Metadata>) -> Part,
        told: &mut Vec<Part>,
    ) {
        match self.open.remove(&id) {
            Some(Fate::Reasoning) => {
                told.push(Part::ReasoningEnd(Run { id, provider_metadata: metadata }));
            }
            Some(Fate::Held) => {
                let is = phase(metadata.as_ref()).map(str::to_owned);
                let discarded = is_discarded(metadata.as_ref());
                let held = self.held.iter_mut().filter(|held| held.id == id);
                held.for_each(|held| held.end(metadata.as_ref()));
                match is.as_deref() {
                    Some("final_answer") if !discarded => self.release(true, told),
                    Some(COMMENTARY) => self.release(false, told),
                    _ if discarded => self.release(false, told),
                    _ => {}
                }
            }
            Some(Fate::Text) | None => told.push(text_end(id, metadata)),
        }
    }

    /// A part of its own before this one, so that every message keeps its own words.
    fn set_off(&self, id: &PartId, told: &mut Vec<Part>) {
        if !self.told || self.undeclared == Undeclared::WhenKnown {
            return;
        }
        let id = PartId::new(format!("{id}~break"));
        told.push(Part::TextStart(Run { id: id.clone(), provider_metadata: None }));
        let delta = BREAK.to_owned();
        told.push(Part::TextDelta(Delta { id: id.clone(), delta, provider_metadata: None }));
        told.push(Part::TextEnd { id, citations: None, provider_metadata: None });
    }

    /// Tells what was held back, all of it: a message that has not ended goes on as it is told.
    fn release(&mut self, is_answer: bool, told: &mut Vec<Part>) {
        let Some(Held { id, metadata, text, end }) = self.held.take() else { return };
        let fate = if is_answer { Fate::Text } else { Fate::Reasoning };
        self.told |= is_answer;
        let start = Run { id: id.clone(), provider_metadata: metadata };
        let delta = Delta { id: id.clone(), delta: text, provider_metadata: None };
        let delta = Some(delta).filter(|delta| !delta.delta.is_empty());
        match fate {
            Fate::Reasoning => {
                told.push(Part::ReasoningStart(as_commentary(start)));
                told.extend(delta.map(Part::ReasoningDelta));
            }
            _ => {
                told.push(Part::TextStart(start));
                told.extend(delta.map(Part::TextDelta));
            }
        }
        let Some(provider_metadata) = end else {
            self.open.insert(id, fate);
            return;
        };
        told.push(match fate {
            Fate::Reasoning => Part::ReasoningEnd(as_commentary(Run { id, provider_metadata })),
            _ => Part::TextEnd { id, citations: None, provider_metadata },
        });
    }
}

fn phase(metadata: Option<&Metadata>) -> Option<&str> {
    codex_of(metadata)?.get("phase")?.as_str()
}

fn is_discarded(metadata: Option<&Metadata>) -> bool {
    codex_of(metadata).is_some_and(|own| own.get("discarded") == Some(&Value::Bool(true)))
}

fn as_commentary(run: Run) -> Run {
    let mut own = codex_of(run.provider_metadata.as_ref()).cloned().unwrap_or_default();
    own.entry("phase").or_insert_with(|| json!(COMMENTARY));
    Run { id: run.id, provider_metadata: codex_metadata(Value::Object(own)) }
}

#[cfg(test)]
mod tests;
