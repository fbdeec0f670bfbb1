//! Turns: where they begin and end, and what they ran with.

use bindery_core::usage::{FinishReason, Unified};
use serde_json::{Value, json};

use super::{Event, Normaliser};
use crate::ledger::Account;
use crate::wire::{Edge, TurnContext, TurnError};

impl Normaliser<'_> {
    pub(super) fn started(&mut self, edge: Edge) {
        self.settle(Account::Turn);
        let id = edge.turn_id;
        let trigger = edge.turn_attribution.and_then(|attribution| attribution.turn_trigger);
        if let Some(number) = id.as_deref().and_then(|id| self.turn_number(id)) {
            // Something of the turn was written before its own beginning.
            if let Some(turn) = self.turn_at(number) {
                turn.explicit = true;
                turn.record.trigger = trigger;
            }
            return;
        }
        let number = self.begin_turn(id);
        if let Some(turn) = self.turn_at(number) {
            turn.explicit = true;
            turn.record.trigger = trigger;
            let started = edge.started_at.map(|seconds| seconds.saturating_mul(1_000));
            let known = turn.record.span.started_at_ms;
            turn.record.span.started_at_ms = known.or(started);
        }
    }

    pub(super) fn completed(&mut self, edge: Edge) {
        let reason = match &edge.error {
            Some(error) => {
                let kind = kind_of(error);
                FinishReason::new(unified_of(&kind), kind)
            }
            None => FinishReason::new(Unified::Stop, "completed"),
        };
        let error = edge.error.as_ref().map(error_value);
        self.end(edge, reason, error, false);
    }

    pub(super) fn aborted(&mut self, edge: Edge) {
        let raw = edge.reason.clone().unwrap_or_else(|| "interrupted".to_owned());
        self.end(edge, FinishReason::new(Unified::Interrupted, raw), None, true);
    }

    fn end(&mut self, edge: Edge, reason: FinishReason, error: Option<Value>, aborted: bool) {
        self.settle(Account::Turn);
        let time = self.time;
        let named = edge.turn_id.as_deref().and_then(|id| self.turn_number(id));
        let number = match named {
            Some(number) => number,
            None => self.turn_for(edge.turn_id.as_deref()),
        };
        let Some(turn) = self.turn_at(number) else { return };
        turn.ended = true;
        turn.aborted = aborted;
        turn.record.finish = Some(reason);
        turn.record.errors.extend(error.filter(|error| !turn.record.errors.contains(error)));
        let span = &mut turn.record.span;
        let completed = edge.completed_at.map(|seconds| seconds.saturating_mul(1_000));
        span.completed_at_ms = time.or(completed);
        if let (Some(duration), Some(end)) = (edge.duration_ms, span.completed_at_ms) {
            span.started_at_ms = end.checked_sub(duration);
        }
    }

    pub(super) fn context(&mut self, context: TurnContext) {
        self.settle(Account::Turn);
        let number = match context.turn_id.as_deref().and_then(|id| self.turn_number(id)) {
            Some(number) => number,
            None => match self.last_number() {
                Some(number) => number,
                None => return,
            },
        };
        let Some(turn) = self.turn_at(number) else { return };
        let record = &mut turn.record;
        record.model = context.model.or(record.model.take());
        record.effort = context.effort.or(record.effort.take());
        record.cwd = context.cwd.or(record.cwd.take());
    }

    /// An error by itself (only in extended histories of 0.110 to 0.125).
    pub(super) fn failed(&mut self, error: &TurnError) {
        self.settle(Account::Turn);
        let value = error_value(error);
        let kind = kind_of(error);
        let number = self.turn_for(None);
        if let Some(turn) = self.turn_at(number)
            && !turn.record.errors.contains(&value)
        {
            turn.record.errors.push(value);
            turn.record.finish = Some(FinishReason::new(unified_of(&kind), kind));
        }
    }

    /// Turns before this point were taken back: marks those still here, tells of the others.
    pub(super) fn rolled_back(&mut self, count: u64) {
        while !self.turns.is_empty() {
            self.release();
        }
        (self.emit)(Event::RollBack(count));
        let words = format!("{count} turn{} taken back", if count == 1 { "" } else { "s" });
        self.notice("rollback", words, json!({ "turns": count }), None);
    }
}

/// The kind as one word in the case of the live protocol.
fn kind_of(error: &TurnError) -> String {
    let word = match &error.codex_error_info {
        Some(Value::String(word)) => word,
        Some(Value::Object(map)) => match map.keys().next() {
            Some(key) => key,
            None => "other",
        },
        _ => "other",
    };
    super::names::camel(word)
}

fn error_value(error: &TurnError) -> Value {
    let mut value = json!({ "message": error.message, "kind": kind_of(error) });
    let inner = error.codex_error_info.as_ref().and_then(Value::as_object);
    let inner = inner.and_then(|map| map.values().next());
    if let Some(status) = inner.and_then(|inner| inner.get("http_status_code")?.as_u64()) {
        value["httpStatus"] = json!(status);
    }
    if let Some(details) = &error.additional_details {
        value["details"] = details.clone();
    }
    value
}

fn unified_of(kind: &str) -> Unified {
    match kind {
        "contextWindowExceeded" => Unified::Length,
        "cyberPolicy" | "misalignmentPolicyViolation" => Unified::ContentFilter,
        _ => Unified::Error,
    }
}
