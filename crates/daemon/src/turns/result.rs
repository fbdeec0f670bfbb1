//! What comes of a turn: its last words and the files it changed, gathered from its log.
//!
//! While a turn runs, only what is new is read; once it is over, what was gathered is kept in its
//! row, where it stays when the events are forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bindery_core::item::FileChange;
use bindery_core::part::Part;
use bindery_core::spec::codex_of;
use bindery_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::log::{Kind, events_of};
use super::{Inner, lock};
use crate::clock::Millis;
use crate::error::Error;
use crate::store::{Change, TurnRow};

/// Bytes that are read from the store at a time.
const PAGE: usize = 256 * 1024;

/// Running turns whose results are held in memory.
const HELD: usize = 256;

/// Bytes of the diffs of a turn that are kept; of further changes only paths are.
const DIFFS: usize = 1 << 20;

/// Turns that are looked at together.
const TOGETHER: usize = 100;

const FILE_CHANGE: &str = "codex_file_change";

/// What came of a turn, so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnResult {
    /// Its last words: the final answer, or what was said last.
    pub text: Option<String>,
    /// Files that it changed, in that order; none if its events were forgotten before anybody
    /// looked.
    pub changes: Option<Vec<FileChange>>,
    /// Diffs were too long to keep all of them.
    pub diffs_left_out: bool,
    /// Tokens.
    pub usage: Option<Usage>,
}

/// A run of text.
#[derive(Debug, Default)]
struct Message {
    id: String,
    phase: Option<String>,
    text: String,
}

impl Message {
    fn is_commentary(&self) -> bool {
        self.phase.as_deref() == Some("commentary")
    }
}

/// Parts on their way to a result.
#[derive(Debug, Default)]
struct Fold {
    open: Vec<Message>,
    said: Option<Message>,
    /// The changes that calls announced.
    announced: HashMap<String, Vec<FileChange>>,
    changes: Vec<FileChange>,
    diff_bytes: usize,
    left_out: bool,
    usage: Option<Usage>,
}

impl Fold {
    /// Takes a part as it stands in the log; those that say nothing about the result are not read.
    fn push(&mut self, json: &str) {
        let kind = json.strip_prefix("{\"type\":\"").unwrap_or_default();
        let named = ["text-", "tool-call\"", "tool-result\"", "finish\""];
        if !named.iter().any(|name| kind.starts_with(name)) {
            return;
        }
        // What is no part of ours says nothing.
        let Ok(part) = serde_json::from_str::<Part>(json) else { return };
        self.take(part);
    }

    fn take(&mut self, part: Part) {
        let word = |details: Option<&serde_json::Map<String, Value>>, key: &str| {
            details.and_then(|details| details.get(key)?.as_str().map(str::to_owned))
        };
        match part {
            Part::TextStart(run) => self.open.push(Message {
                id: run.id.to_string(),
                phase: word(codex_of(run.provider_metadata.as_ref()), "phase"),
                text: String::new(),
            }),
            Part::TextDelta(delta) => {
                let id = delta.id.as_str();
                let open = self.open.iter_mut().rev().find(|message| message.id == id);
                open.into_iter().for_each(|message| message.text.push_str(&delta.delta));
            }
            Part::TextEnd { id, provider_metadata, .. } => {
                let at = self.open.iter().rposition(|message| message.id == id.as_str());
                let Some(mut message) = at.map(|at| self.open.remove(at)) else { return };
                let details = codex_of(provider_metadata.as_ref());
                if details.and_then(|d| d.get("discarded")) == Some(&Value::Bool(true)) {
                    return;
                }
                message.text = word(details, "text").unwrap_or(message.text);
                message.phase = word(details, "phase").or(message.phase);
                if !message.is_commentary() || self.said.as_ref().is_none_or(Message::is_commentary)
                {
                    self.said = Some(message);
                }
            }
            Part::ToolCall(call) if call.tool_name == FILE_CHANGE => {
                let input = serde_json::from_str(&call.input).unwrap_or_default();
                self.announced.insert(call.tool_call_id.to_string(), changes(&input));
            }
            Part::ToolResult(result) if result.tool_name == FILE_CHANGE && !result.preliminary => {
                let announced = self.announced.remove(result.tool_call_id.as_str());
                let told = changes(&result.result);
                let made = if told.is_empty() { announced.unwrap_or_default() } else { told };
                if !result.is_error {
                    made.into_iter().for_each(|change| self.change(change));
                }
            }
            Part::Finish { usage, .. } => self.usage = Some(usage),
            _ => {}
        }
    }

    fn change(&mut self, mut change: FileChange) {
        self.diff_bytes = self.diff_bytes.saturating_add(change.diff.len());
        if self.diff_bytes > DIFFS && !change.diff.is_empty() {
            change.diff.clear();
            self.left_out = true;
        }
        self.changes.push(change);
    }

    fn result(&self) -> TurnResult {
        let open = self.open.last().filter(|message| !message.text.is_empty());
        TurnResult {
            text: open.or(self.said.as_ref()).map(|message| message.text.clone()),
            changes: Some(self.changes.clone()),
            diffs_left_out: self.left_out,
            usage: self.usage.clone(),
        }
    }
}

fn changes(value: &Value) -> Vec<FileChange> {
    Vec::deserialize(&value["changes"]).unwrap_or_default()
}

/// Results of turns that run, as far as somebody has asked for them.
#[derive(Debug, Default)]
pub(super) struct Results {
    held: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Gathered>>>>,
}

/// A log that was read up to some event.
#[derive(Debug, Default)]
struct Gathered {
    seq: u64,
    fold: Fold,
}

impl Results {
    fn of(&self, turn: &str) -> Arc<tokio::sync::Mutex<Gathered>> {
        let mut held = lock(&self.held);
        if held.len() >= HELD && !held.contains_key(turn) {
            // They are read again when somebody asks.
            held.clear();
        }
        held.entry(turn.to_owned()).or_default().clone()
    }

    fn forget(&self, turn: &str) {
        lock(&self.held).remove(turn);
    }
}

impl Inner {
    /// What has come of a turn so far.
    pub(super) async fn result(&self, turn: &TurnRow) -> Result<TurnResult, Error> {
        if let Some(kept) = &turn.result {
            return TurnResult::deserialize(kept).map_err(|err| Error::Internal(err.to_string()));
        }
        let gathered = self.results.of(&turn.id);
        let mut gathered = gathered.lock().await;
        loop {
            let chunks = self.store.events(&turn.id, gathered.seq, PAGE).await?;
            if chunks.is_empty() {
                break;
            }
            for event in chunks.iter().flat_map(events_of) {
                if event.seq > gathered.seq && event.kind == Kind::Part {
                    gathered.fold.push(event.json());
                }
                gathered.seq = gathered.seq.max(event.seq);
            }
        }
        let result = match gathered.seq {
            // There were events, and they are forgotten.
            0 if turn.last > 0 => TurnResult::default(),
            _ => gathered.fold.result(),
        };
        if turn.state.is_over() {
            let change = Change::KeepResult { turn: turn.id.clone(), result: json!(result) };
            self.store.commit(vec![change]).await?;
            self.results.forget(&turn.id);
        }
        Ok(result)
    }

    /// Keeps the results of turns that ended before this time, so that their events may go.
    pub(super) async fn keep_results(&self, before: Millis) -> Result<(), Error> {
        loop {
            let turns = self.store.turns_without_result(before, TOGETHER).await?;
            if turns.is_empty() {
                return Ok(());
            }
            for turn in &turns {
                self.result(turn).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(parts: &[Value]) -> TurnResult {
        let mut fold = Fold::default();
        for part in parts {
            // As the log has it: the type first.
            let part: Part = serde_json::from_value(part.clone()).unwrap();
            fold.push(&serde_json::to_string(&part).unwrap());
        }
        fold.result()
    }

    fn said(id: &str, phase: &str, text: &str) -> [Value; 3] {
        let metadata = json!({ "codex": { "phase": phase } });
        [
            json!({ "type": "text-start", "id": id, "providerMetadata": metadata }),
            json!({ "type": "text-delta", "id": id, "delta": text }),
            json!({ "type": "text-end", "id": id }),
        ]
    }

    fn edited(call: &str, path: &str, diff: &str, is_error: bool) -> [Value; 2] {
        let changes = json!({ "changes": [
            { "path": path, "kind": { "type": "add" }, "diff": diff },
        ] });
        [
            json!({ "type": "tool-call", "toolCallId": call, "toolName": FILE_CHANGE,
                "input": changes.to_string() }),
            json!({ "type": "tool-result", "toolCallId": call, "toolName": FILE_CHANGE,
                "result": { "status": "completed" }, "isError": is_error }),
        ]
    }

    #[test]
    fn the_final_answer_counts_and_not_what_is_said_beside_it() {
        let mut parts = said("a", "commentary", "looking").to_vec();
        assert_eq!(folded(&parts).text.unwrap(), "looking");
        assert_eq!(folded(&parts[..2]).text.unwrap(), "looking", "so far");
        parts.extend(said("b", "final_answer", "done"));
        parts.extend(said("c", "commentary", "by the way"));
        assert_eq!(folded(&parts).text.unwrap(), "done");
        parts.extend(said("d", "final_answer", "taken back"));
        let last = parts.len() - 1;
        parts[last]["providerMetadata"] = json!({ "codex": { "discarded": true } });
        assert_eq!(folded(&parts).text.unwrap(), "done");
        assert_eq!(folded(&[]).text, None);
    }

    #[test]
    fn changes_that_were_made_are_told_and_long_diffs_said_to_be_left_out() {
        let mut parts = edited("1", "a.txt", "+a", false).to_vec();
        parts.extend(edited("2", "no.txt", "+n", true));
        let result = folded(&parts);
        let paths = |result: &TurnResult| -> Vec<String> {
            result.changes.iter().flatten().map(|change| change.path.clone()).collect()
        };
        assert_eq!(paths(&result), ["a.txt"]);
        assert!(!result.diffs_left_out);
        parts.extend(edited("3", "long.txt", &"x".repeat(DIFFS), false));
        let result = folded(&parts);
        assert_eq!(paths(&result), ["a.txt", "long.txt"]);
        assert!(result.diffs_left_out);
        let kept: Vec<usize> = result.changes.iter().flatten().map(|c| c.diff.len()).collect();
        assert_eq!(kept, [2, 0]);
    }
}
