//! Codex's words on disk: only what we give meaning to, by type.
//!
//! Missing fields are none, so that every version decodes; wrong shapes are errors, and the line
//! becomes a card.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// `session_meta`, and the first line of 0.29 and older.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Meta {
    pub(crate) id: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) timestamp: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) originator: Option<String>,
    pub(crate) cli_version: Option<String>,
    pub(crate) source: Option<Value>,
    pub(crate) model_provider: Option<String>,
    pub(crate) git: Option<Git>,
    pub(crate) dynamic_tools: Option<Vec<Value>>,
    pub(crate) forked_from_id: Option<String>,
    pub(crate) forked_from_ordinal_exclusive: Option<u64>,
    pub(crate) parent_thread_id: Option<String>,
    pub(crate) agent_nickname: Option<String>,
    pub(crate) agent_path: Option<String>,
    pub(crate) subagent_history_start_ordinal: Option<u64>,
    pub(crate) history_base: Option<HistoryBase>,
}

impl Meta {
    /// The first ordinal that is a sub-agent's own: what is before it was copied from its parent.
    ///
    /// Files that 0.166 migrated have the number of their last line there, and no such copy.
    pub(crate) fn own_start(&self) -> Option<u64> {
        self.subagent_history_start_ordinal.filter(|_| self.forked_from_id.is_some())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Git {
    pub(crate) branch: Option<String>,
}

/// The part of another file that a fork or a revert begins with (0.153 and newer).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct HistoryBase {
    pub(crate) thread_id: Option<String>,
    pub(crate) end_ordinal_exclusive: Option<u64>,
}

/// What is put on every response item since 0.144.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Passthrough {
    pub(crate) turn_id: Option<String>,
    pub(crate) content_item_kinds: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    pub(crate) id: Option<String>,
    pub(crate) role: String,
    pub(crate) content: Vec<Block>,
    #[serde(default)]
    pub(crate) phase: Option<String>,
    #[serde(default, rename = "internal_chat_message_metadata_passthrough")]
    pub(crate) passthrough: Option<Passthrough>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Block {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) image_url: Option<String>,
    #[serde(default)]
    pub(crate) encrypted_content: Option<String>,
    /// What else it has.
    #[serde(flatten)]
    pub(crate) rest: serde_json::Map<String, Value>,
}

impl Block {
    /// Its type is one whose text or image we show.
    pub(crate) fn is_known(&self) -> bool {
        match self.kind.as_str() {
            "input_text" | "output_text" | "summary_text" | "reasoning_text" | "text" => {
                self.text.is_some()
            }
            "input_image" => self.image_url.is_some() || self.rest.contains_key("file_id"),
            "encrypted_content" => true,
            _ => false,
        }
    }

    /// As it came.
    pub(crate) fn into_value(self) -> Value {
        let mut fields = self.rest;
        let known = [
            ("type", Some(self.kind)),
            ("text", self.text),
            ("image_url", self.image_url),
            ("encrypted_content", self.encrypted_content),
        ];
        for (name, value) in known {
            fields.extend(value.map(|value| (name.to_owned(), Value::String(value))));
        }
        Value::Object(fields)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Reasoning {
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) summary: Vec<Block>,
    #[serde(default)]
    pub(crate) content: Option<Vec<Block>>,
    #[serde(default, rename = "internal_chat_message_metadata_passthrough")]
    pub(crate) passthrough: Option<Passthrough>,
}

/// `function_call` and `custom_tool_call`.
#[derive(Debug, Deserialize)]
pub(crate) struct Call {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    pub(crate) call_id: String,
    #[serde(default)]
    pub(crate) arguments: Option<String>,
    #[serde(default)]
    pub(crate) input: Option<String>,
    #[serde(default, rename = "internal_chat_message_metadata_passthrough")]
    pub(crate) passthrough: Option<Passthrough>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LocalShell {
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) call_id: Option<String>,
    pub(crate) action: Value,
}

/// `function_call_output` and `custom_tool_call_output`; mostly the item beside it says it better.
#[derive(Debug, Deserialize)]
pub(crate) struct CallOutput<'a> {
    /// None for what answers no call: the objective of a goal (0.169).
    #[serde(default)]
    pub(crate) call_id: Option<String>,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    #[serde(borrow)]
    pub(crate) output: &'a RawValue,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WebSearchCall {
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default)]
    pub(crate) action: Option<Value>,
    #[serde(default, rename = "internal_chat_message_metadata_passthrough")]
    pub(crate) passthrough: Option<Passthrough>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ImageCall {
    #[serde(default, alias = "call_id")]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default)]
    pub(crate) revised_prompt: Option<String>,
    #[serde(default)]
    pub(crate) result: Option<String>,
    #[serde(default)]
    pub(crate) saved_path: Option<String>,
}

/// `response_item/agent_message`: mail between agents.
#[derive(Debug, Deserialize)]
pub(crate) struct AgentMail {
    #[serde(default)]
    pub(crate) id: Option<String>,
    pub(crate) author: String,
    pub(crate) recipient: String,
    pub(crate) content: Vec<Block>,
    #[serde(default, rename = "internal_chat_message_metadata_passthrough")]
    pub(crate) passthrough: Option<Passthrough>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TurnContext {
    #[serde(default)]
    pub(crate) turn_id: Option<String>,
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) effort: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Compacted {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) window_number: Option<u64>,
}

/// Token counts in Codex's own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    pub(crate) input_tokens: u64,
    pub(crate) cached_input_tokens: u64,
    pub(crate) cache_write_input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) reasoning_output_tokens: u64,
    pub(crate) total_tokens: u64,
}

/// The thread's total so far, as the newest record tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct ThreadTotal {
    #[serde(default)]
    pub(crate) thread_token_usage: Option<Tokens>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct UsageRecord {
    #[serde(default)]
    pub(crate) turn_id: Option<String>,
    pub(crate) response_id: String,
    pub(crate) usage: Tokens,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TokenCount {
    #[serde(default)]
    pub(crate) info: Option<TokenInfo>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TokenInfo {
    pub(crate) total_token_usage: Tokens,
    pub(crate) last_token_usage: Tokens,
}

/// `task_started`, `task_complete` and `turn_aborted`.
#[derive(Debug, Deserialize)]
pub(crate) struct Edge {
    #[serde(default)]
    pub(crate) turn_id: Option<String>,
    #[serde(default)]
    pub(crate) started_at: Option<i64>,
    #[serde(default)]
    pub(crate) completed_at: Option<i64>,
    #[serde(default)]
    pub(crate) duration_ms: Option<i64>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) error: Option<TurnError>,
    #[serde(default)]
    pub(crate) turn_attribution: Option<TurnAttribution>,
}

/// Why a turn began.
#[derive(Debug, Deserialize)]
pub(crate) struct TurnAttribution {
    #[serde(default)]
    pub(crate) turn_trigger: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TurnError {
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) codex_error_info: Option<Value>,
    #[serde(default)]
    pub(crate) additional_details: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct UserEvent {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) images: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) local_images: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) audio: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) local_audio: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AgentEvent {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) phase: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TextEvent {
    pub(crate) text: String,
}

/// `item_completed`, by the item's type.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct Completed<T> {
    #[serde(default)]
    pub(crate) turn_id: Option<String>,
    pub(crate) item: T,
    #[serde(default)]
    pub(crate) started_at_ms: Option<i64>,
    #[serde(default)]
    pub(crate) completed_at_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Duration {
    pub(crate) secs: u64,
    pub(crate) nanos: u64,
}

impl Duration {
    pub(crate) fn millis(self) -> u64 {
        self.secs.saturating_mul(1_000).saturating_add(self.nanos / 1_000_000)
    }
}

/// `CommandExecution` and `exec_command_end`.
#[derive(Debug, Deserialize)]
pub(crate) struct Command {
    #[serde(alias = "call_id")]
    pub(crate) id: String,
    pub(crate) command: Vec<String>,
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) parsed_cmd: Option<Value>,
    #[serde(default)]
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default)]
    pub(crate) aggregated_output: Option<String>,
    #[serde(default)]
    pub(crate) stdout: Option<String>,
    #[serde(default)]
    pub(crate) stderr: Option<String>,
    #[serde(default)]
    pub(crate) formatted_output: Option<String>,
    #[serde(default)]
    pub(crate) exit_code: Option<i64>,
    #[serde(default)]
    pub(crate) duration: Option<Duration>,
    #[serde(default)]
    pub(crate) turn_id: Option<String>,
}

/// `FileChange` and `patch_apply_end`.
#[derive(Debug, Deserialize)]
pub(crate) struct Patch {
    #[serde(alias = "call_id")]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) changes: Value,
    #[serde(default)]
    pub(crate) status: Option<String>,
    #[serde(default)]
    pub(crate) success: Option<bool>,
    #[serde(default)]
    pub(crate) stdout: Option<String>,
    #[serde(default)]
    pub(crate) stderr: Option<String>,
    #[serde(default)]
    pub(crate) turn_id: Option<String>,
}

/// `UserMessage`, `AgentMessage`, `Plan` and `Reasoning` items.
#[derive(Debug, Deserialize)]
pub(crate) struct TextItem {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) content: Vec<Value>,
    #[serde(default)]
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) phase: Option<String>,
    #[serde(default)]
    pub(crate) summary_text: Vec<String>,
    #[serde(default)]
    pub(crate) raw_content: Vec<String>,
}

/// Any other item: few and short, so read as a value.
#[derive(Debug, Deserialize)]
pub(crate) struct OtherItem {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) fields: serde_json::Map<String, Value>,
}
