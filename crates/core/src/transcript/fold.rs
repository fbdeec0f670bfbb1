//! Folding live parts into a transcript.

use serde_json::{Map, Value};

use super::{Transcript, TurnRecord};
use crate::ids::{CallId, ItemId, PartId, ThreadId};
use crate::item::{Body, Item, Origin, Span, Status, Tool, ToolSort};
use crate::part::{Part, ToolCall, ToolResult};
use crate::spec::{Metadata, codex_of};

impl Transcript {
    /// Takes one part of a live answer; `stream-start` begins a turn.
    pub fn apply(&mut self, part: &Part) {
        if matches!(part, Part::StreamStart { .. }) || self.turns.is_empty() {
            self.turns.push(TurnRecord::default());
        }
        let Some(turn) = self.turns.last_mut() else { return };
        turn.apply(part, None);
        if let Part::Finish { provider_metadata, .. } = part
            && let Some(thread) = word(codex_of(provider_metadata.as_ref()), "threadId")
        {
            self.thread_id = Some(ThreadId::new(thread));
        }
    }
}

impl TurnRecord {
    /// Takes one part, of the turn itself or of a sub-agent.
    fn apply(&mut self, part: &Part, agent: Option<&ThreadId>) {
        match part {
            Part::StreamStart { warnings } if agent.is_none() => {
                self.warnings.extend_from_slice(warnings);
            }
            Part::ResponseMetadata { id, model_id, .. } if agent.is_none() => {
                self.id = id.as_ref().map(|id| id.as_str().into());
                self.model.clone_from(model_id);
            }
            Part::TextStart(run) => {
                let phase = word(codex_of(run.provider_metadata.as_ref()), "phase");
                let body = Body::Message { text: String::new(), phase };
                self.push(run.id.as_str(), agent, Status::Pending, body);
            }
            Part::ReasoningStart(run) => {
                self.begin_reasoning(&run.id, agent, run.provider_metadata.as_ref());
            }
            Part::TextDelta(delta) | Part::ReasoningDelta(delta) => {
                self.extend(&delta.id, agent, &delta.delta);
            }
            Part::TextEnd { id, provider_metadata, .. } => {
                self.end(id, agent, provider_metadata.as_ref());
            }
            Part::ReasoningEnd(run) => self.end(&run.id, agent, run.provider_metadata.as_ref()),
            Part::ToolCall(call) => self.call(call, agent),
            Part::ToolResult(result) => self.result(result, agent),
            Part::File { media_type, data, .. } | Part::ReasoningFile { media_type, data, .. } => {
                let body = Body::File { media_type: media_type.clone(), data: data.clone() };
                self.append(agent, body);
            }
            Part::Source(source) => self.append(agent, Body::Source { source: source.clone() }),
            Part::Custom { kind, provider_metadata } => {
                self.custom(kind, provider_metadata.as_ref(), agent);
            }
            Part::Error { error } => self.errors.push(error.clone()),
            Part::Finish { usage, finish_reason, .. } if agent.is_none() => {
                self.usage = Some(usage.clone());
                self.finish = Some(finish_reason.clone());
            }
            _ => {}
        }
    }

    fn push(&mut self, id: &str, agent: Option<&ThreadId>, status: Status, body: Body) {
        let (id, agent) = (ItemId::new(id), agent.cloned());
        let (span, origin) = (Span::default(), Origin::default());
        self.items.push(Item { id, agent, status, span, body, origin });
    }

    /// An item that came without a name gets its place as one.
    fn append(&mut self, agent: Option<&ThreadId>, body: Body) {
        let id = format!("#{}", self.items.len());
        self.push(&id, agent, Status::Ok, body);
    }

    fn item(&mut self, id: &str, agent: Option<&ThreadId>) -> Option<&mut Item> {
        let same = |item: &&mut Item| item.id.as_str() == id && item.agent.as_ref() == agent;
        self.items.iter_mut().rev().find(same)
    }

    /// The summaries and raw thoughts of one reasoning item are several runs.
    fn begin_reasoning(
        &mut self,
        id: &PartId,
        agent: Option<&ThreadId>,
        metadata: Option<&Metadata>,
    ) {
        let name = reasoning_item(id);
        if self.item(name, agent).is_none() {
            let body = Body::Reasoning { summary: Vec::new(), raw: Vec::new() };
            self.push(name, agent, Status::Pending, body);
        }
        let is_raw = word(codex_of(metadata), "form").is_some_and(|form| form == "raw");
        if let Some(Item { body: Body::Reasoning { summary, raw }, .. }) = self.item(name, agent) {
            let texts = if is_raw { raw } else { summary };
            texts.push(String::new());
        }
    }

    fn extend(&mut self, id: &PartId, agent: Option<&ThreadId>, delta: &str) {
        if let Some(text) = self.text(id, agent) {
            text.push_str(delta);
        }
    }

    fn text(&mut self, id: &PartId, agent: Option<&ThreadId>) -> Option<&mut String> {
        let is_raw = id.as_str().contains(":raw:");
        match &mut self.item(reasoning_item(id), agent)?.body {
            Body::Message { text, .. } => Some(text),
            Body::Reasoning { raw, .. } if is_raw => raw.last_mut(),
            Body::Reasoning { summary, .. } => summary.last_mut(),
            _ => None,
        }
    }

    fn end(&mut self, id: &PartId, agent: Option<&ThreadId>, metadata: Option<&Metadata>) {
        let details = codex_of(metadata);
        let flag = |key| details.and_then(|d| d.get(key)) == Some(&Value::Bool(true));
        let name = reasoning_item(id);
        if flag("discarded") {
            self.items.retain(|item| item.id.as_str() != name || item.agent.as_ref() != agent);
            return;
        }
        if let (Some(text), Some(whole)) = (self.text(id, agent), word(details, "text")) {
            *text = whole;
        }
        let Some(item) = self.item(name, agent) else { return };
        item.status = if flag("incomplete") { Status::Incomplete } else { Status::Ok };
        if let (Body::Message { phase, .. }, Some(known)) = (&mut item.body, word(details, "phase"))
        {
            *phase = Some(known);
        }
    }

    fn call(&mut self, call: &ToolCall, agent: Option<&ThreadId>) {
        let input =
            serde_json::from_str(&call.input).unwrap_or_else(|_| Value::String(call.input.clone()));
        let tool = Tool {
            call_id: call.tool_call_id.clone(),
            name: call.tool_name.clone(),
            sort: sort_of(&call.tool_name),
            input,
            output: None,
            exit_code: None,
            duration_ms: None,
        };
        self.push(call.tool_call_id.as_str(), agent, Status::Pending, Body::Tool(tool));
    }

    fn result(&mut self, result: &ToolResult, agent: Option<&ThreadId>) {
        let id: &CallId = &result.tool_call_id;
        let Some(item) = self.item(id.as_str(), agent) else { return };
        let Body::Tool(tool) = &mut item.body else { return };
        tool.output = Some(result.result.clone());
        if result.preliminary {
            return;
        }
        tool.exit_code = result.result.get("exitCode").and_then(Value::as_i64);
        tool.duration_ms = result.result.get("durationMs").and_then(Value::as_u64);
        item.status = status_of(result);
    }

    fn custom(&mut self, kind: &str, metadata: Option<&Metadata>, agent: Option<&ThreadId>) {
        let details = codex_of(metadata).cloned().unwrap_or_default();
        match kind {
            "codex.subagent" if details.contains_key("part") => self.subagent(&details),
            "codex.user-message" => self.user(&details, agent),
            "codex.unknown" => {
                let text = |key| word(Some(&details), key).unwrap_or_default();
                let raw = details.get("raw").cloned().unwrap_or_default();
                self.append(agent, Body::Unknown { tag: text("tag"), why: text("why"), raw });
            }
            // The turn's whole diff is the sum of its edits.
            "codex.diff" => {}
            _ => {
                let mut keys = ["text", "message", "review"].iter();
                let text = keys.find_map(|key| word(Some(&details), key)).unwrap_or_default();
                let topic = word(Some(&details), "topic")
                    .unwrap_or_else(|| kind.trim_start_matches("codex.").to_owned());
                let data = Value::Object(details);
                self.append(agent, Body::Notice { topic, text, data });
            }
        }
    }

    fn subagent(&mut self, details: &Map<String, Value>) {
        let thread = word(Some(details), "agentThreadId").unwrap_or_default();
        let part = details.get("part").cloned().unwrap_or_default();
        if let Ok(part) = serde_json::from_value::<Part>(part) {
            self.apply(&part, Some(&ThreadId::new(thread)));
        }
    }

    fn user(&mut self, details: &Map<String, Value>, agent: Option<&ThreadId>) {
        let content = details.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
        let (texts, attachments): (Vec<_>, Vec<_>) =
            content.into_iter().partition(|piece| piece.get("text").is_some_and(Value::is_string));
        let texts: Vec<&str> =
            texts.iter().filter_map(|piece| piece.get("text")?.as_str()).collect();
        let id = word(Some(details), "itemId").unwrap_or_default();
        let body = Body::User { text: texts.join("\n"), attachments };
        self.push(&id, agent, Status::Ok, body);
    }
}

fn word(details: Option<&Map<String, Value>>, key: &str) -> Option<String> {
    details?.get(key)?.as_str().map(str::to_owned)
}

/// The runs of a reasoning item are named `item:summary:0`, `item:raw:0`.
fn reasoning_item(id: &PartId) -> &str {
    let id = id.as_str();
    let end = id.find(":summary:").or_else(|| id.find(":raw:"));
    end.map_or(id, |end| &id[..end])
}

/// The sort of a tool by the name our mapper gave it.
fn sort_of(name: &str) -> ToolSort {
    match name {
        "codex_command_execution" => ToolSort::Bash,
        "codex_file_change" => ToolSort::Edit,
        "codex_web_search" => ToolSort::WebSearch,
        "codex_plan_update" => ToolSort::Plan,
        "codex_image_view" | "codex_image_generation" => ToolSort::Image,
        "codex_agent" => ToolSort::Agent,
        "codex_permissions" | "codex_user_input" | "codex_elicitation" => ToolSort::Question,
        "codex_sleep" => ToolSort::Other,
        name if name.starts_with("mcp:") => ToolSort::Mcp,
        _ => ToolSort::Client,
    }
}

fn status_of(result: &ToolResult) -> Status {
    match result.result.get("status").and_then(Value::as_str) {
        Some("declined") => Status::Declined,
        Some("aborted") => Status::Aborted,
        Some("incomplete" | "inProgress" | "running") => Status::Incomplete,
        Some("unknown") => Status::Unknown,
        _ if result.is_error => Status::Failed,
        _ => Status::Ok,
    }
}
