//! Markers: compactions, reviews, forks, goals, mail between agents.

use bindery_core::item::{Body, Status};
use serde_json::{Value, json};

use super::Normaliser;
use super::names::camel;
use super::slot::{CLIENT, MODEL, Place, Slot};
use crate::wire::{AgentMail, Compacted};

impl Normaliser<'_> {
    pub(super) fn notice(&mut self, topic: &str, text: String, data: Value, turn: Option<&str>) {
        let slot = self.notice_slot(topic, text, data);
        match turn {
            Some(id) => {
                let number = self.turn_for(Some(id));
                self.push(number, slot);
            }
            None => self.push_anywhere(slot),
        }
    }

    pub(super) fn notice_slot(&self, topic: &str, text: String, data: Value) -> Slot {
        let body = Body::Notice { topic: topic.to_owned(), text, data };
        self.slot(format!("line-{}", self.line), Status::Ok, body)
    }

    /// `compacted`: the model goes on with a summary. An answer just before it is that summary.
    pub(super) fn compacted(&mut self, compacted: Compacted) {
        let summary = compacted.message;
        let place = self.compaction_mark(None, MODEL, |data| {
            data["summary"] = json!(summary);
            if let Some(window) = compacted.window_number {
                data["window"] = json!(window);
            }
        });
        let is_summary = |slot: &Slot| match &slot.item.body {
            Body::Message { text, .. } if slot.sides == MODEL => {
                slot.item.origin.mark.as_deref() == Some("compaction")
                    || (!text.trim().is_empty() && summary.contains(text.trim()))
            }
            _ => false,
        };
        if let Some(found) = self.find_half(CLIENT, is_summary) {
            self.absorb(found, place);
        }
    }

    /// One compaction, of which up to three lines tell.
    pub(super) fn compaction_mark(
        &mut self,
        turn_id: Option<&str>,
        side: u8,
        fill: impl FnOnce(&mut Value),
    ) -> Place {
        let is_compaction = |slot: &Slot| match &slot.item.body {
            Body::Notice { topic, .. } => topic == "compaction",
            _ => false,
        };
        let place = match self.find_half(side, is_compaction) {
            Some(place) => {
                self.add_line(place);
                place
            }
            None => {
                let number = self.turn_for(turn_id);
                let slot = self.notice_slot("compaction", String::new(), json!({}));
                let place = self.push(number, slot);
                self.expect_half(place);
                place
            }
        };
        if let Some(slot) = self.at(place) {
            slot.sides |= side;
            if let Body::Notice { data, .. } = &mut slot.item.body {
                fill(data);
            }
        }
        place
    }

    pub(super) fn review(&mut self, phase: &str, event: &Value) {
        let hint = event.get("user_facing_hint").and_then(Value::as_str);
        let output = event.get("review_output");
        let review = hint.map(str::to_owned).or_else(|| review_text(output?));
        let text = review.unwrap_or_default();
        let turn_id = event.get("turn_id").and_then(Value::as_str).map(str::to_owned);
        let mut data = json!({ "phase": phase, "review": text });
        if let Some(output) = output.filter(|output| !output.is_null()) {
            data["output"] = output.clone();
        }
        self.notice("review", text, data, turn_id.as_deref());
    }

    pub(super) fn sub_agent(&mut self, event: &Value, turn_id: Option<&str>) {
        let word = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
        let data = json!({
            "threadId": word("agent_thread_id"),
            "activity": camel(word("kind")),
            "path": word("agent_path"),
        });
        self.notice("subagent", String::new(), data, turn_id);
    }

    pub(super) fn goal(&mut self, event: &Value) {
        let goal = event.get("goal").cloned().unwrap_or_default();
        let text = goal.get("objective").or_else(|| goal.get("text")).and_then(Value::as_str);
        let text = text.unwrap_or_default().to_owned();
        self.notice("goal", text, goal, None);
    }

    pub(super) fn agent_mail(&mut self, mail: AgentMail) {
        let encrypted = mail.content.iter().any(|block| block.encrypted_content.is_some());
        let texts: Vec<_> = mail.content.into_iter().filter_map(|block| block.text).collect();
        let data = json!({
            "author": mail.author,
            "recipient": mail.recipient,
            "encrypted": encrypted,
            "itemId": mail.id,
        });
        let turn_id = mail.passthrough.and_then(|p| p.turn_id);
        self.notice("agent-mail", texts.join("\n"), data, turn_id.as_deref());
    }
}

/// The words of a review as Codex itself puts them.
fn review_text(output: &Value) -> Option<String> {
    let word = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.trim().to_owned());
    let mut text = word(output, "overall_explanation")?;
    let findings = output.get("findings").and_then(Value::as_array);
    let findings = findings.map(Vec::as_slice).unwrap_or_default();
    if !findings.is_empty() {
        let one = findings.len() == 1;
        text.push_str(if one { "\n\nReview comment:\n" } else { "\n\nFull review comments:\n" });
    }
    for finding in findings {
        let title = word(finding, "title").unwrap_or_default();
        let place = finding.get("code_location").and_then(|location| {
            let range = location.get("line_range")?;
            let path = word(location, "absolute_file_path")?;
            Some(format!(" — {path}:{}-{}", range.get("start")?, range.get("end")?))
        });
        text.push_str(&format!("\n- {title}{}", place.unwrap_or_default()));
        for line in word(finding, "body").unwrap_or_default().lines() {
            text.push_str(&format!("\n  {line}"));
        }
    }
    Some(text)
}
