//! Messages and reasoning: the two halves of each, found and put together.

use bindery_core::item::{Body, Status};
use serde_json::{Value, json};

use super::Normaliser;
use super::setup::{injected_topic, is_image_label};
use super::slot::{CLIENT, MODEL, Place, Slot};
use crate::ledger::{Account, Hidden};
use crate::wire::{Block, Message, Reasoning, UserEvent};

/// Halves further apart than this are not of one message, unless they are in one turn.
const NEAR: u64 = 12;

impl Normaliser<'_> {
    pub(super) fn message(&mut self, message: Message, metadata: Option<&str>) {
        let role = message.role.clone();
        match role.as_str() {
            "user" => self.user_item(message),
            "assistant" => self.assistant_item(message, metadata),
            "developer" | "system" => self.instructions(message),
            role => self.other_role(role, message),
        }
    }

    fn user_item(&mut self, mut message: Message) {
        if self.odd_content("response_item/message", &mut message.content) {
            return;
        }
        let turn_id = message.passthrough.as_ref().and_then(|p| p.turn_id.clone());
        let kinds = message.passthrough.and_then(|p| p.content_item_kinds).unwrap_or_default();
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        let mut context = Vec::new();
        for (index, mut block) in message.content.into_iter().enumerate() {
            match (block.text.take(), block.image_url.take()) {
                (Some(text), _) if is_image_label(&text) => {}
                (Some(text), _) => match topic(kinds.get(index), &text) {
                    Some(topic) => context.push((topic, text)),
                    None => texts.push(text),
                },
                (None, Some(url)) => images.push(json!({ "type": "image", "url": url })),
                (None, None) => images.push(block.into_value()),
            }
        }
        if texts.is_empty() && images.is_empty() && !context.is_empty() {
            return self.add_setup(context);
        }
        let text = texts.join("\n");
        if text.trim().is_empty()
            && let Some(place) = self.shown_image()
        {
            // 0.98 and older give the model the image of `view_image` as a user message.
            return self.add_line(place);
        }
        let same =
            |slot: &Slot| matches!(&slot.item.body, Body::User { text: t, .. } if same(t, &text));
        if let Some(place) = self.find_half(MODEL, same) {
            self.join_user(place, MODEL, images);
        } else {
            let number = self.turn_of_user(turn_id.as_deref());
            let body = Body::User { text, attachments: images };
            let id = message.id.unwrap_or_else(|| format!("line-{}", self.line));
            let slot = self.slot(id, Status::Ok, body);
            self.push_half(number, slot, MODEL);
        }
        self.context_beside(context);
    }

    pub(super) fn user_event(&mut self, event: UserEvent) {
        let mut attachments: Vec<Value> = Vec::new();
        let images = event.images.unwrap_or_default();
        attachments.extend(images.iter().map(|url| json!({ "type": "image", "url": url })));
        let local = event.local_images.unwrap_or_default();
        attachments.extend(local.iter().map(|path| json!({ "type": "localImage", "path": path })));
        let audio = event.audio.unwrap_or_default();
        attachments.extend(audio.iter().map(|url| json!({ "type": "audio", "url": url })));
        let local = event.local_audio.unwrap_or_default();
        attachments.extend(local.iter().map(|path| json!({ "type": "localAudio", "path": path })));
        self.user_client(event.message, attachments, None, None);
    }

    /// The client's half of a user message.
    pub(super) fn user_client(
        &mut self,
        text: String,
        attachments: Vec<Value>,
        id: Option<String>,
        turn_id: Option<&str>,
    ) {
        self.has_events = true;
        let equal =
            |slot: &Slot| matches!(&slot.item.body, Body::User { text: t, .. } if same(t, &text));
        if let Some(place) = self.find_half(CLIENT, equal) {
            self.join_user(place, CLIENT, attachments);
            return self.move_to(place, turn_id);
        }
        if let Some(place) = self.repeated_prompt(&text) {
            return self.add_line(place);
        }
        if text.trim().is_empty()
            && let Some(place) = self.shown_image()
        {
            // 0.98 writes an event for the image of `view_image`, too.
            return self.add_line(place);
        }
        let number = self.turn_of_user(turn_id);
        let body = Body::User { text, attachments };
        let slot = self.slot(id.unwrap_or_else(|| format!("line-{}", self.line)), Status::Ok, body);
        self.push_half(number, slot, CLIENT);
    }

    fn assistant_item(&mut self, mut message: Message, metadata: Option<&str>) {
        if self.odd_content("response_item/message", &mut message.content) {
            return;
        }
        let text: String = message.content.into_iter().filter_map(|block| block.text).collect();
        let turn_id = message.passthrough.and_then(|p| p.turn_id);
        if is_mail(&text) {
            let data = serde_json::from_str(&text).unwrap_or_default();
            return self.notice("agent-mail", text, data, turn_id.as_deref());
        }
        let (id, bare) = (message.id.unwrap_or_default(), without_plan(&text));
        let equal = |slot: &Slot| match &slot.item.body {
            Body::Message { text: other, phase } if phase.as_deref() != Some("plan") => {
                (!id.is_empty() && slot.item.id.as_str() == id)
                    || same(other, &text)
                    || bare.as_ref().is_some_and(|bare| same(other, bare))
            }
            _ => false,
        };
        if let Some(place) = self.find_half(MODEL, equal) {
            self.add_line(place);
            let Some(slot) = self.at(place) else { return };
            slot.sides |= MODEL;
            if let (Body::Message { phase, .. }, true) =
                (&mut slot.item.body, message.phase.is_some())
            {
                *phase = message.phase;
            }
            return;
        }
        let number = self.turn_for(turn_id.as_deref());
        let body = Body::Message { text, phase: message.phase };
        let id = if id.is_empty() { format!("line-{}", self.line) } else { id };
        let mut slot = self.slot(id, Status::Ok, body);
        slot.alias = bare;
        if metadata.is_some_and(is_compaction_output) {
            slot.item.origin.mark = Some("compaction".to_owned());
        }
        self.push_half(number, slot, MODEL);
    }

    /// The client's half of an answer.
    pub(super) fn agent_event(
        &mut self,
        text: String,
        phase: Option<String>,
        id: Option<String>,
        turn_id: Option<&str>,
    ) {
        self.has_events = true;
        if text == "Compact task completed" {
            return self.settle(Account::Hidden(Hidden::CompactionNotice));
        }
        let equal = |slot: &Slot| match &slot.item.body {
            Body::Message { text: other, .. } => {
                same(other, &text) || slot.alias.as_ref().is_some_and(|alias| same(alias, &text))
            }
            _ => false,
        };
        if let Some(place) = self.find_half(CLIENT, equal) {
            self.add_line(place);
            if let Some(slot) = self.at(place) {
                slot.sides |= CLIENT;
                if let (Body::Message { text: whole, .. }, true) =
                    (&mut slot.item.body, slot.alias.is_some())
                {
                    *whole = text;
                }
            }
            return;
        }
        let number = self.turn_for(turn_id);
        let body = Body::Message { text, phase };
        let slot = self.slot(id.unwrap_or_else(|| format!("line-{}", self.line)), Status::Ok, body);
        self.push_half(number, slot, CLIENT);
    }

    pub(super) fn reasoning(&mut self, mut reasoning: Reasoning) {
        let blocks = reasoning.summary.iter_mut().chain(reasoning.content.iter_mut().flatten());
        let odd: Vec<_> = blocks
            .filter(|block| !block.is_known())
            .map(|block| {
                // Without its text it is not taken for a thought.
                let kept = Block { kind: block.kind.clone(), ..Block::default() };
                std::mem::replace(block, kept).into_value()
            })
            .collect();
        self.odd_blocks("response_item/reasoning", odd, false);
        let texts = |blocks: Vec<Block>| -> Vec<String> {
            blocks.into_iter().filter_map(|block| block.text).collect()
        };
        let summary = texts(reasoning.summary);
        let raw = texts(reasoning.content.unwrap_or_default());
        let turn_id = reasoning.passthrough.and_then(|p| p.turn_id);
        let id = reasoning.id.unwrap_or_default();
        let by_id = |slot: &Slot| {
            matches!(slot.item.body, Body::Reasoning { .. })
                && !id.is_empty()
                && slot.item.id.as_str() == id
        };
        let mut place = self.find_half(MODEL, by_id);
        // One event for each summary; the first keeps the place.
        for text in summary.iter().chain(&raw) {
            let event = |slot: &Slot| is_reasoning_of(slot, text);
            let Some(found) = self.find_half(MODEL, event) else { continue };
            match place {
                Some(first) => self.absorb(found, first),
                None => place = Some(found),
            }
        }
        if let Some(place) = place {
            self.add_line(place);
            if let Some(slot) = self.at(place) {
                slot.sides |= MODEL;
                slot.item.body = Body::Reasoning { summary, raw };
                if !id.is_empty() {
                    slot.item.id = id.as_str().into();
                }
            }
            return;
        }
        self.push_reasoning(id, summary, raw, turn_id.as_deref(), MODEL);
    }

    pub(super) fn reasoning_event(&mut self, text: String, is_raw: bool) {
        self.has_events = true;
        let holds = |slot: &Slot| match &slot.item.body {
            Body::Reasoning { summary, raw } => summary.contains(&text) || raw.contains(&text),
            _ => false,
        };
        if let Some(place) = self.find_half(CLIENT, holds) {
            self.add_line(place);
            // Further events of the same item may follow.
            return self.expect_half(place);
        }
        let (summary, raw) = if is_raw { (vec![], vec![text]) } else { (vec![text], vec![]) };
        self.push_reasoning(String::new(), summary, raw, None, CLIENT);
    }

    pub(super) fn push_reasoning(
        &mut self,
        id: String,
        summary: Vec<String>,
        raw: Vec<String>,
        turn_id: Option<&str>,
        side: u8,
    ) {
        let number = self.turn_for(turn_id);
        let is_silent = summary.is_empty() && raw.is_empty();
        let id = if id.is_empty() { format!("line-{}", self.line) } else { id };
        let mut slot = self.slot(id, Status::Ok, Body::Reasoning { summary, raw });
        if is_silent && slot.item.origin.mark.is_none() {
            slot.item.origin.mark = Some("encrypted".to_owned());
        }
        self.push_half(number, slot, side);
    }

    pub(super) fn push_half(&mut self, number: u64, mut slot: Slot, side: u8) {
        slot.sides = side;
        let place = self.push(number, slot);
        self.expect_half(place);
    }

    /// The newest slot that lacks `side` and fits.
    pub(super) fn find_half(&mut self, side: u8, fits: impl Fn(&Slot) -> bool) -> Option<Place> {
        let (line, last) = (self.line, self.last_number());
        for index in (0..self.halves.len()).rev() {
            let place = self.halves[index];
            let Some(slot) = self.at(place) else { continue };
            let is_near = line.saturating_sub(slot.line) <= NEAR || Some(place.0) == last;
            if !slot.dead && slot.sides & side == 0 && is_near && fits(slot) {
                self.halves.remove(index);
                return Some(place);
            }
        }
        None
    }

    fn join_user(&mut self, place: Place, side: u8, more: Vec<Value>) {
        self.add_line(place);
        let Some(slot) = self.at(place) else { return };
        slot.sides |= side;
        // The client's half knows paths, mentions and skills, too.
        if let Body::User { attachments, .. } = &mut slot.item.body
            && (attachments.is_empty() || (side == CLIENT && more.len() >= attachments.len()))
        {
            *attachments = more;
        }
    }

    /// A user message begins a turn, unless one is open by an explicit mark (it was steered).
    fn turn_of_user(&mut self, turn_id: Option<&str>) -> u64 {
        if let Some(number) = turn_id.and_then(|id| self.turn_number(id)) {
            return number;
        }
        match (self.last_number(), self.turns.back()) {
            (Some(number), Some(turn)) if !turn.ended && (turn.explicit || turn.is_fresh()) => {
                number
            }
            _ => self.begin_turn(turn_id.map(str::to_owned)),
        }
    }

    /// In migrated files the model's half of a prompt stands before the end of the turn before.
    fn move_to(&mut self, place: Place, turn_id: Option<&str>) {
        let number = turn_id.and_then(|id| self.turn_number(id));
        let Some(number) = number.filter(|number| *number != place.0) else { return };
        let Some(slot) = self.at(place) else { return };
        slot.dead = true;
        let item = slot.item.clone();
        let moved = Slot {
            item,
            sides: MODEL | CLIENT,
            line: slot.line,
            dead: false,
            is_card: false,
            alias: None,
            has_odd_word: slot.has_odd_word,
        };
        self.push(number, moved);
    }

    /// 0.65 to 0.144 write the prompt of a review twice, as events only.
    fn repeated_prompt(&mut self, text: &str) -> Option<Place> {
        let number = self.last_number()?;
        let line = self.line;
        let turn = self.turn_at(number)?;
        let index = turn.slots.len().checked_sub(1)?;
        let slot = &turn.slots[index];
        let is_same = matches!(&slot.item.body, Body::User { text: t, .. } if same(t, text));
        let fits = is_same && slot.sides == CLIENT && line.saturating_sub(slot.line) <= 2;
        fits.then_some((number, turn.handed_out + index))
    }

    /// The `view_image` call whose image comes next.
    fn shown_image(&mut self) -> Option<Place> {
        let number = self.last_number()?;
        let turn = self.turn_at(number)?;
        let index = turn.slots.iter().rposition(|slot| !slot.dead)?;
        match &turn.slots[index].item.body {
            Body::Tool(tool) if tool.name == "view_image" => {
                Some((number, turn.handed_out + index))
            }
            _ => None,
        }
    }

    fn agent_message_mark(slot: &mut Slot) {
        if slot.item.origin.mark.is_none() {
            slot.item.origin.mark = Some("injected".to_owned());
        }
    }

    /// The last look at a turn: what is still half is explained.
    pub(super) fn classify(&mut self, turn: &mut super::slot::Turn) {
        if !self.has_events {
            return;
        }
        for slot in turn.slots.iter_mut().filter(|slot| !slot.dead && slot.sides == MODEL) {
            if matches!(slot.item.body, Body::User { .. }) {
                Self::agent_message_mark(slot);
            }
        }
    }
}

/// The text of a prompt without what an IDE puts around it.
pub fn plain_user_text(text: &str) -> &str {
    const MARK: &str = "## My request for Codex:";
    text.rfind(MARK).map_or(text, |at| text[at + MARK.len()..].trim_start())
}

fn is_reasoning_of(slot: &Slot, text: &str) -> bool {
    match &slot.item.body {
        Body::Reasoning { summary, raw } if slot.sides == CLIENT => {
            summary.len() + raw.len() == 1
                && summary.iter().chain(raw).any(|known| same(known, text))
        }
        _ => false,
    }
}

/// Equal but for white space: the halves differ in how they join blocks and trim.
fn same(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let visible = |text: &str| text.bytes().filter(|b| !b.is_ascii_whitespace()).count();
    // Lengths first: halves of other messages differ there, mostly.
    a.len().abs_diff(b.len()) <= 64
        && visible(a) == visible(b)
        && (a.split_ascii_whitespace().flat_map(str::bytes))
            .eq(b.split_ascii_whitespace().flat_map(str::bytes))
}

/// The text around a `<proposed_plan>`, if it has one.
fn without_plan(text: &str) -> Option<String> {
    const BEGIN: &str = "<proposed_plan>";
    const END: &str = "</proposed_plan>";
    let begin = text.find(BEGIN)?;
    let end = text[begin..].find(END).map(|at| begin + at + END.len())?;
    Some(format!("{}{}", &text[..begin], &text[end..]))
}

/// Codex's note on an answer that is the summary of a compaction.
fn is_compaction_output(metadata: &str) -> bool {
    let notes: Value = serde_json::from_str(metadata).unwrap_or_default();
    holds(&notes, "compaction_output")
}

/// The value says yes under this name, at some depth.
fn holds(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get(name) == Some(&Value::Bool(true))
                || fields.values().any(|value| holds(value, name))
        }
        _ => false,
    }
}

/// 0.118 to 0.125 write mail between agents as JSON in an assistant message.
fn is_mail(text: &str) -> bool {
    text.starts_with('{') && text.contains("\"author\"") && text.contains("\"recipient\"")
}

/// The topic of a block of a user message, if the user did not write it.
fn topic(kind: Option<&String>, text: &str) -> Option<String> {
    match kind.map(String::as_str) {
        Some("user.text" | "user.image" | "user.audio") => None,
        // What a client did for the user, such as setting a goal (0.169), is not in his words.
        Some(kind) if kind.starts_with("user.") => injected_topic(text).map(str::to_owned),
        Some("unknown") | None => injected_topic(text).map(str::to_owned),
        Some(kind) => Some(injected_topic(text).map_or_else(|| kind.to_owned(), str::to_owned)),
    }
}
