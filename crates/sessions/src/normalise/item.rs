//! Items as clients see them: `item_completed`, and the end events before it.

use bindery_core::item::{Body, Span, Status, ToolSort};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::entry::{Odd, read};
use super::names::camel;
use super::slot::CLIENT;
use super::tool::{Update, status_word};
use super::{Normaliser, patch, shell};
use crate::line::{Envelope, word as plain_word};
use crate::wire::{Command, Completed, Duration, ImageCall, OtherItem, Patch, TextItem};

impl Normaliser<'_> {
    pub(super) fn item_completed(&mut self, line: &Envelope<'_>) -> Result<(), Odd> {
        self.has_events = true;
        let kind = kind_of(line)?;
        match kind.as_str() {
            "CommandExecution" => {
                let done: Completed<Command> = read(line)?;
                let span = span_of(&done);
                self.command(done.item, done.turn_id.as_deref(), span, None);
            }
            "FileChange" => {
                let done: Completed<Patch> = read(line)?;
                let span = span_of(&done);
                self.patch(done.item, done.turn_id.as_deref(), span, None);
            }
            "UserMessage" | "AgentMessage" | "Plan" | "Reasoning" => {
                let done: Completed<TextItem> = read(line)?;
                self.text_item(&kind, done);
            }
            _ => {
                let done: Completed<OtherItem> = read(line)?;
                let turn_id = done.turn_id.as_deref();
                let fields = Value::Object(done.item.fields);
                if !self.other_item(&kind, &done.item.id, turn_id, &fields) {
                    let tag = Some(format!("event_msg/item_completed/{kind}"));
                    return Err(Odd { tag, why: "unknown item".to_owned() });
                }
            }
        }
        Ok(())
    }

    fn text_item(&mut self, kind: &str, done: Completed<TextItem>) {
        let (item, turn_id) = (done.item, done.turn_id.as_deref());
        match kind {
            "UserMessage" => {
                let (text, attachments) = user_content(item.content);
                self.user_client(text, attachments, Some(item.id), turn_id);
            }
            "AgentMessage" => {
                let (known, odd): (Vec<_>, Vec<_>) = item.content.into_iter().partition(|piece| {
                    let kind = piece.get("type").and_then(Value::as_str).unwrap_or("Text");
                    kind.eq_ignore_ascii_case("text")
                        && piece.get("text").is_some_and(Value::is_string)
                });
                let texts = known.iter().filter_map(|piece| piece.get("text")?.as_str());
                let text: String = texts.collect();
                if self.odd_blocks("event_msg/item_completed/AgentMessage", odd, known.is_empty()) {
                    return;
                }
                self.agent_event(text, item.phase, Some(item.id), turn_id);
            }
            "Plan" => {
                let number = self.turn_for(turn_id);
                let phase = Some("plan".to_owned());
                let body = Body::Message { text: item.text.unwrap_or_default(), phase };
                let slot = self.slot(item.id, Status::Ok, body);
                self.push(number, slot);
            }
            _ => self.push_reasoning_item(item, turn_id),
        }
    }

    fn push_reasoning_item(&mut self, item: TextItem, turn_id: Option<&str>) {
        let id = item.id.clone();
        let same = |slot: &super::slot::Slot| {
            matches!(slot.item.body, Body::Reasoning { .. }) && slot.item.id.as_str() == id
        };
        match self.find_half(CLIENT, same) {
            Some(place) => {
                self.add_line(place);
                if let Some(slot) = self.at(place) {
                    slot.sides |= CLIENT;
                }
            }
            None => {
                self.push_reasoning(item.id, item.summary_text, item.raw_content, turn_id, CLIENT);
            }
        }
    }

    /// A command has ended.
    pub(super) fn command(
        &mut self,
        command: Command,
        turn_id: Option<&str>,
        span: Option<Span>,
        name: Option<&str>,
    ) {
        let status = Status::of_word(command.status.as_deref(), command.exit_code);
        let duration_ms = command.duration.map(Duration::millis);
        let is_user = command.source.as_deref() == Some("user_shell");
        let name = name.unwrap_or(if is_user { "user_shell" } else { "exec_command" });
        let mut output = Map::new();
        output.insert("status".into(), json!(word_of(status, command.status.as_deref())));
        // Extended histories of 0.110 to 0.125 have the streams apart, and sometimes those only.
        let streams = [command.stdout, command.stderr].into_iter().flatten().collect::<String>();
        let printed = command.aggregated_output.filter(|text| !text.is_empty());
        let printed = printed.or((!streams.is_empty()).then_some(streams));
        output.insert("aggregatedOutput".into(), printed.or(command.formatted_output).into());
        output.insert("exitCode".into(), json!(command.exit_code));
        output.insert("durationMs".into(), json!(duration_ms));
        let turn_id = turn_id.map(str::to_owned).or(command.turn_id);
        let place = self.upsert(Update {
            id: &command.id,
            turn_id: turn_id.as_deref(),
            side: CLIENT,
            name: name.to_owned(),
            sort: ToolSort::Bash,
            input: json!({
                "command": shell::join(&command.command),
                "cwd": command.cwd.as_deref().map(plain_path),
                "actions": actions(command.parsed_cmd),
            }),
            status,
            output: Some(Value::Object(output)),
            exit_code: command.exit_code,
            duration_ms,
        });
        self.set_span(place, span);
    }

    /// A patch has ended.
    pub(super) fn patch(
        &mut self,
        done: Patch,
        turn_id: Option<&str>,
        span: Option<Span>,
        name: Option<&str>,
    ) {
        let status = match (done.status.as_deref(), done.success) {
            (None, Some(false)) => Status::Failed,
            (word, _) => Status::of_word(word, None),
        };
        let changes = patch::of_item(&done.changes);
        let turn_id = turn_id.map(str::to_owned).or(done.turn_id);
        let output = json!({
            "status": word_of(status, done.status.as_deref()),
            "changes": changes,
            "stdout": done.stdout,
            "stderr": done.stderr,
        });
        let place = self.upsert(Update {
            id: &done.id,
            turn_id: turn_id.as_deref(),
            side: CLIENT,
            name: name.unwrap_or("apply_patch").to_owned(),
            sort: ToolSort::Edit,
            input: json!({ "changes": changes }),
            status,
            output: Some(output),
            exit_code: None,
            duration_ms: None,
        });
        self.set_span(place, span);
    }

    fn set_span(&mut self, place: super::slot::Place, span: Option<Span>) {
        if let (Some(slot), Some(span)) = (self.at(place), span) {
            slot.item.span = span;
        }
    }

    pub(super) fn mcp_end(&mut self, event: &Value) {
        let call = &event["invocation"];
        let word = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default();
        let result = event.get("result");
        let failed = result.and_then(|result| result.get("Err")).is_some();
        let result = result.and_then(|result| result.get("Ok").or(result.get("Err")));
        let is_error = result.and_then(|r| r.get("is_error").or(r.get("isError")));
        let failed = failed || is_error == Some(&Value::Bool(true));
        self.tool_item(&ToolItem {
            id: event.get("call_id").and_then(Value::as_str).unwrap_or_default(),
            turn_id: event.get("turn_id").and_then(Value::as_str),
            name: format!("mcp:{}/{}", word("server"), word("tool")),
            sort: ToolSort::Mcp,
            input: call.get("arguments").cloned().unwrap_or_default(),
            status: if failed { Status::Failed } else { Status::Ok },
            word: None,
            output: json!({ "result": result }),
            duration: duration_of(event),
        });
    }

    pub(super) fn view_image(&mut self, event: &Value) {
        let id = event.get("call_id").or_else(|| event.get("id")).and_then(Value::as_str);
        let path = event.get("path").and_then(Value::as_str).unwrap_or_default();
        self.tool_item(&ToolItem {
            id: id.unwrap_or_default(),
            turn_id: None,
            name: "view_image".to_owned(),
            sort: ToolSort::Image,
            input: json!({ "path": plain_path(path) }),
            status: Status::Ok,
            word: None,
            output: json!({ "path": plain_path(path) }),
            duration: None,
        });
    }

    /// Items that are few and short. False if the kind is unknown.
    fn other_item(&mut self, kind: &str, id: &str, turn_id: Option<&str>, item: &Value) -> bool {
        match kind {
            "McpToolCall" | "DynamicToolCall" | "CollabAgentToolCall" | "ImageView" | "Sleep" => {
                self.tool_item(&tool_of(kind, id, turn_id, item));
            }
            "WebSearch" => {
                let query = item.get("query").and_then(Value::as_str);
                let action = item.get("action").cloned().unwrap_or_default();
                self.web_search(Some(id), turn_id, CLIENT, query, action, Status::Ok);
            }
            "ImageGeneration" => {
                if let Ok(mut image) = ImageCall::deserialize(item) {
                    image.id = Some(id.to_owned());
                    self.image_call(image, CLIENT);
                }
            }
            "ContextCompaction" => {
                self.compaction_mark(turn_id, CLIENT, |data| data["itemId"] = json!(id));
            }
            "EnteredReviewMode" | "ExitedReviewMode" => {
                let mut event = item.clone();
                event["turn_id"] = json!(turn_id);
                let phase = if kind == "EnteredReviewMode" { "entered" } else { "exited" };
                self.review(phase, &event);
            }
            "SubAgentActivity" => self.sub_agent(item, turn_id),
            "HookPrompt" => self.notice("hook", String::new(), item.clone(), turn_id),
            "Extension" => self.notice("extension", String::new(), item.clone(), turn_id),
            _ => return false,
        }
        true
    }

    fn tool_item(&mut self, item: &ToolItem<'_>) {
        let mut output = item.output.clone();
        output["status"] = json!(word_of(item.status, item.word.as_deref()));
        if let Some(duration) = item.duration {
            output["durationMs"] = json!(duration);
        }
        self.upsert(Update {
            id: item.id,
            turn_id: item.turn_id,
            side: CLIENT,
            name: item.name.clone(),
            sort: item.sort,
            input: item.input.clone(),
            status: item.status,
            output: Some(output),
            exit_code: None,
            duration_ms: item.duration,
        });
    }
}

/// An item that is a tool call.
struct ToolItem<'a> {
    id: &'a str,
    turn_id: Option<&'a str>,
    name: String,
    sort: ToolSort,
    input: Value,
    status: Status,
    /// How it stands in Codex's word.
    word: Option<String>,
    output: Value,
    duration: Option<u64>,
}

fn tool_of<'a>(kind: &str, id: &'a str, turn_id: Option<&'a str>, item: &Value) -> ToolItem<'a> {
    let word = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
    let field = |key: &str| item.get(key).cloned().unwrap_or_default();
    let (name, sort, input, output) = match kind {
        "McpToolCall" => (
            format!("mcp:{}/{}", word("server"), word("tool")),
            ToolSort::Mcp,
            field("arguments"),
            json!({ "result": field("result"), "error": field("error") }),
        ),
        "DynamicToolCall" => (
            match item.get("namespace").and_then(Value::as_str) {
                Some(namespace) => format!("{namespace}.{}", word("tool")),
                None => word("tool").to_owned(),
            },
            ToolSort::Client,
            field("arguments"),
            json!({ "contentItems": field("content_items"), "success": field("success") }),
        ),
        "CollabAgentToolCall" => (
            word("tool").to_owned(),
            ToolSort::Agent,
            json!({
                "action": camel(word("tool")),
                "prompt": field("prompt"),
                "threads": field("receiver_thread_ids"),
            }),
            json!({ "agentsStates": field("agents_states") }),
        ),
        "Sleep" => ("sleep".to_owned(), ToolSort::Other, item.clone(), json!({})),
        _ => {
            let path = json!({ "path": plain_path(word("path")) });
            ("view_image".to_owned(), ToolSort::Image, path.clone(), path)
        }
    };
    let status = match (item.get("success"), word("status")) {
        (Some(Value::Bool(false)), _) => Status::Failed,
        (_, word) => Status::of_word(Some(word), None),
    };
    let (word, duration) = (Some(word("status").to_owned()), duration_of(item));
    ToolItem { id, turn_id, name, sort, input, status, word, output, duration }
}

/// The live protocol's word for a status; Codex's own where we do not know it.
pub(super) fn word_of(status: Status, word: Option<&str>) -> &str {
    match (status, word) {
        (Status::Unknown, Some(word)) => word,
        _ => status_word(status),
    }
}

fn duration_of(value: &Value) -> Option<u64> {
    Duration::deserialize(value.get("duration")?).ok().map(Duration::millis)
}

fn span_of<T>(done: &Completed<T>) -> Option<Span> {
    let span = Span { started_at_ms: done.started_at_ms, completed_at_ms: done.completed_at_ms };
    done.started_at_ms.is_some().then_some(span)
}

/// The type of a completed item.
pub(crate) fn kind_of(line: &Envelope<'_>) -> Result<String, Odd> {
    match peek(line.payload_text()) {
        Some(kind) => Ok(kind.to_owned()),
        None => slow_kind(line),
    }
}

/// The item's type, without reading the item: only where the keys before it stand as Codex writes
/// them, each with a plain word.
fn peek(payload: &str) -> Option<&str> {
    let mut rest = payload.strip_prefix("{\"type\":\"item_completed\"")?;
    loop {
        let (key, after) = plain_word(rest.strip_prefix(",\"")?)?;
        if key == "item" {
            return plain_word(after.strip_prefix(":{\"type\":\"")?).map(|(kind, _)| kind);
        }
        (_, rest) = plain_word(after.strip_prefix(":\"")?)?;
    }
}

fn slow_kind(line: &Envelope<'_>) -> Result<String, Odd> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    let done: Completed<Kind> = read(line)?;
    Ok(done.item.kind)
}

/// A path from `file://…`.
fn plain_path(path: &str) -> &str {
    path.strip_prefix("file://").unwrap_or(path)
}

/// What a command is understood to do, in the words of the live protocol.
fn actions(parsed: Option<Value>) -> Value {
    let Some(Value::Array(mut actions)) = parsed else { return json!([]) };
    for action in &mut actions {
        let Some(map) = action.as_object_mut() else { continue };
        if let Some(command) = map.remove("cmd") {
            map.insert("command".to_owned(), command);
        }
        if let Some(kind) = map.get("type").and_then(Value::as_str).map(camel) {
            map.insert("type".to_owned(), json!(kind));
        }
    }
    Value::Array(actions)
}

/// The text of a user message, and its other pieces in the live protocol's words.
fn user_content(content: Vec<Value>) -> (String, Vec<Value>) {
    let (texts, mut others): (Vec<_>, Vec<_>) = content
        .into_iter()
        .partition(|piece| piece.get("type").and_then(Value::as_str) == Some("text"));
    let texts: Vec<_> = texts.iter().filter_map(|piece| piece.get("text")?.as_str()).collect();
    for piece in &mut others {
        let Some(map) = piece.as_object_mut() else { continue };
        if let Some(kind) = map.get("type").and_then(Value::as_str).map(camel) {
            map.insert("type".to_owned(), json!(kind));
        }
        if let Some(url) = map.remove("image_url") {
            map.insert("url".to_owned(), url);
        }
    }
    (texts.join("\n"), others)
}
