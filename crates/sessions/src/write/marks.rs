//! Marks of turns: where they begin, how they end, what they cost.

use serde_json::{Value, json};

use super::record::Record;

/// A turn begins. Times are in milliseconds since 1970.
pub fn turn_started(turn: &str, started_ms: i64, context_window: Option<u64>) -> Record {
    Record::Event(json!({
        "type": "task_started",
        "turn_id": turn,
        "root_turn_id": turn,
        "started_at": started_ms.div_euclid(1_000),
        "model_context_window": context_window,
        "collaboration_mode_kind": "default",
    }))
}

/// How a turn went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended<'a> {
    /// The turn.
    pub turn: &'a str,
    /// The last thing the model said.
    pub last_message: Option<&'a str>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended.
    pub completed_ms: i64,
    /// Why it failed: `{message, codex_error_info}`.
    pub error: Option<Value>,
}

impl Ended<'_> {
    fn duration(&self) -> i64 {
        self.completed_ms.saturating_sub(self.started_ms).max(0)
    }
}

/// A turn ends by itself, well or with an error.
pub fn turn_completed(ended: &Ended<'_>) -> Record {
    let mut event = json!({
        "type": "task_complete",
        "turn_id": ended.turn,
        "root_turn_id": ended.turn,
        "last_agent_message": ended.last_message,
        "started_at": ended.started_ms.div_euclid(1_000),
        "completed_at": ended.completed_ms.div_euclid(1_000),
        "duration_ms": ended.duration(),
    });
    if let Some(error) = &ended.error {
        event["error"] = error.clone();
    }
    Record::Event(event)
}

/// A turn is ended from outside; `reason` is `interrupted`, `replaced` or `review_ended`.
pub fn turn_aborted(ended: &Ended<'_>, reason: &str) -> Record {
    Record::Event(json!({
        "type": "turn_aborted",
        "turn_id": ended.turn,
        "root_turn_id": ended.turn,
        "reason": reason,
        "started_at": ended.started_ms.div_euclid(1_000),
        "completed_at": ended.completed_ms.div_euclid(1_000),
        "duration_ms": ended.duration(),
    }))
}

/// Tokens of an answer, or of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the request.
    pub input: u64,
    /// Those of them that were cached.
    pub cached_input: u64,
    /// Of the answer.
    pub output: u64,
    /// Those of them that were thoughts.
    pub reasoning_output: u64,
    /// All.
    pub total: u64,
}

impl Usage {
    fn payload(&self) -> Value {
        json!({
            "input_tokens": self.input,
            "cached_input_tokens": self.cached_input,
            "output_tokens": self.output,
            "reasoning_output_tokens": self.reasoning_output,
            "total_tokens": self.total,
        })
    }
}

/// What the thread has cost so far, and its last answer.
pub fn token_count(total: &Usage, last: &Usage, context_window: Option<u64>) -> Record {
    Record::Event(json!({
        "type": "token_count",
        "info": {
            "total_token_usage": total.payload(),
            "last_token_usage": last.payload(),
            "model_context_window": context_window,
        },
        "rate_limits": null,
    }))
}

/// The last turns of the user are taken back: neither told nor shown any more.
pub fn rolled_back(turns: u64) -> Record {
    Record::Event(json!({ "type": "thread_rolled_back", "num_turns": turns }))
}
