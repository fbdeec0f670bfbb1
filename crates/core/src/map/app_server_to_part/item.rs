//! Thread items → parts, one family an arm.

use serde_json::{Map, Value, json};

use super::TurnMapper;
use super::notice::{custom, unknown};
use super::runs::Channel;
use super::tools::COMMAND;
use crate::file::FileData;
use crate::item::Status;
use crate::open::{Open, tag_of};
use crate::part::{Part, Source};
use crate::wire::app_server::item::{ImageGeneration, ThreadItem};
use crate::wire::app_server::notification::ItemNote;

/// An item begins.
pub(super) fn started(mapper: &mut TurnMapper, note: &ItemNote, parts: &mut Vec<Part>) {
    let Open::Known(item) = &note.item else {
        mapper.strange.push((note.id.clone(), strange(note)));
        return;
    };
    match item {
        ThreadItem::AgentMessage { phase, .. } => {
            mapper.runs.begin_message(&note.id, phase.as_deref(), parts);
        }
        ThreadItem::Plan { .. } => mapper.runs.begin(&note.id, Channel::Plan, parts),
        // A user message amid an answer means that the model was steered away from it.
        ThreadItem::UserMessage { .. } => mapper.runs.discard_open(parts),
        ThreadItem::WebSearch { .. } => {
            mapper.runs.discard_abandoned(parts);
            mapper.tools.announce(&note.id, WEB_SEARCH, parts);
        }
        other => {
            learn_agents(mapper, other);
            if let Some((name, input)) = tool_of(other) {
                mapper.runs.discard_abandoned(parts);
                mapper.tools.call(&note.id, &name, &input, parts);
            }
        }
    }
}

/// An item ends.
pub(super) fn completed(mapper: &mut TurnMapper, note: &ItemNote, parts: &mut Vec<Part>) {
    let Open::Known(item) = &note.item else {
        mapper.strange.retain(|(id, _)| *id != note.id);
        parts.push(strange(note));
        return;
    };
    match item {
        ThreadItem::AgentMessage { text, .. } => {
            let details = message_details(note);
            mapper.runs.complete(&note.id, Channel::Message, text, details, parts);
        }
        ThreadItem::Plan { text } => {
            let details = json!({ "phase": "plan" });
            mapper.runs.complete(&note.id, Channel::Plan, text, details, parts);
        }
        ThreadItem::Reasoning { summary, content } => {
            reasoning(mapper, note, summary, content, parts);
        }
        other => {
            learn_agents(mapper, other);
            match tool_of(other) {
                Some((name, input)) => tool(mapper, note, &name, &input, parts),
                None => {
                    parts.extend(marker(mapper, other, note));
                    mapper.asked |= matches!(other, ThreadItem::UserMessage { .. });
                }
            }
            extras(other, note, parts);
        }
    }
}

/// What a message says besides its text, also what only later versions of Codex know: its phase,
/// the memories it cites, how it was moderated, how many tokens it has.
fn message_details(note: &ItemNote) -> Value {
    const SAID_ELSEWHERE: [&str; 5] = ["id", "type", "text", "startedAtMs", "completedAtMs"];
    let fields = note.raw.as_object().into_iter().flatten();
    let mut details: Map<String, Value> = fields
        .filter(|(name, value)| !SAID_ELSEWHERE.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(count) = note.content_tokens {
        details.insert("contentTokenCount".to_owned(), json!(count));
    }
    Value::Object(details)
}

const WEB_SEARCH: &str = "codex_web_search";

/// The tool an item is, and its input.
fn tool_of(item: &ThreadItem) -> Option<(String, Value)> {
    let (name, input) = match item {
        ThreadItem::CommandExecution(command) => (
            COMMAND,
            json!({
                "command": command.command,
                "cwd": command.cwd,
                "actions": command.command_actions,
            }),
        ),
        ThreadItem::FileChange { changes, .. } => {
            ("codex_file_change", json!({ "changes": changes }))
        }
        ThreadItem::WebSearch { query, action, .. } => {
            (WEB_SEARCH, json!({ "query": query, "action": action }))
        }
        ThreadItem::CollabAgentToolCall(call) => (
            "codex_agent",
            json!({
                "action": call.tool,
                "prompt": call.prompt,
                "threads": call.receiver_thread_ids,
            }),
        ),
        ThreadItem::ImageView { path } => ("codex_image_view", json!({ "path": path })),
        ThreadItem::ImageGeneration(image) => {
            ("codex_image_generation", json!({ "prompt": image.revised_prompt }))
        }
        ThreadItem::Sleep { duration_ms } => ("codex_sleep", json!({ "durationMs": duration_ms })),
        ThreadItem::McpToolCall(call) => {
            return Some((format!("mcp:{}/{}", call.server, call.tool), call.arguments.clone()));
        }
        ThreadItem::DynamicToolCall(call) => {
            let name = tool_name(call.namespace.as_deref(), &call.tool);
            return Some((name, call.arguments.clone()));
        }
        _ => return None,
    };
    Some((name.to_owned(), input))
}

/// A client tool's name; a namespaced one is `namespace.tool`.
pub(super) fn tool_name(namespace: Option<&str>, tool: &str) -> String {
    namespace.map_or_else(|| tool.to_owned(), |namespace| format!("{namespace}.{tool}"))
}

/// An item that completes without having begun is announced here.
fn tool(
    mapper: &mut TurnMapper,
    note: &ItemNote,
    name: &str,
    input: &Value,
    parts: &mut Vec<Part>,
) {
    mapper.tools.call(&note.id, name, input, parts);
    let is_error = !matches!(
        Status::of_word(Some(tag_of(&note.raw, "status")), None),
        Status::Ok | Status::Pending
    );
    mapper.tools.result(&note.id, note.raw.clone(), is_error, parts);
}

fn reasoning(
    mapper: &mut TurnMapper,
    note: &ItemNote,
    summary: &[String],
    content: &[String],
    parts: &mut Vec<Part>,
) {
    let summaries = (0..).map(Channel::Summary).zip(summary);
    let raw = (0..).map(Channel::Raw).zip(content);
    for (channel, text) in summaries.chain(raw) {
        mapper.runs.complete(&note.id, channel, text, json!({}), parts);
    }
}

/// Items that are neither said nor done.
fn marker(mapper: &TurnMapper, item: &ThreadItem, note: &ItemNote) -> Option<Part> {
    let (kind, details) = match item {
        ThreadItem::UserMessage { .. } => {
            // The first piece of most turns, so an answer without text can be gone on with too.
            let mut details = Value::Object(mapper.context.origin());
            details["content"] = note.raw.get("content").cloned().unwrap_or_default();
            if mapper.asked {
                details["steering"] = json!(true);
            }
            ("codex.user-message", details)
        }
        ThreadItem::FunctionCallOutput { .. } => ("codex.tool-output", note.raw.clone()),
        ThreadItem::SubAgentActivity { kind, agent_thread_id, agent_path } => (
            "codex.subagent",
            json!({ "agentThreadId": agent_thread_id, "activity": kind, "path": agent_path }),
        ),
        ThreadItem::EnteredReviewMode { review } => {
            ("codex.review", json!({ "phase": "entered", "review": review }))
        }
        ThreadItem::ExitedReviewMode { review } => {
            ("codex.review", json!({ "phase": "exited", "review": review }))
        }
        ThreadItem::HookPrompt { fragments } => ("codex.hook", json!({ "fragments": fragments })),
        ThreadItem::ContextCompaction {} => ("codex.compaction", json!({})),
        _ => return None,
    };
    let mut details = details;
    details["itemId"] = json!(note.id);
    Some(custom(kind, details))
}

/// Pages a search opened or found, and images that came as bytes.
fn extras(item: &ThreadItem, note: &ItemNote, parts: &mut Vec<Part>) {
    match item {
        ThreadItem::WebSearch { action, results, .. } => {
            let opened = action.iter();
            let found = results.iter().filter_map(Value::as_array).flatten();
            parts.extend(opened.chain(found).filter_map(source));
        }
        ThreadItem::ImageGeneration(ImageGeneration { result: Some(data), .. }) => {
            parts.push(Part::File {
                media_type: "image/png".to_owned(),
                data: FileData::Data { data: data.clone() },
                provider_metadata: crate::spec::codex_metadata(json!({ "itemId": note.id })),
            });
        }
        _ => {}
    }
}

fn source(page: &Value) -> Option<Part> {
    let url = page.get("url")?.as_str()?.to_owned();
    let title = page.get("title").and_then(Value::as_str).map(str::to_owned);
    Some(Part::Source(Source::Url { id: url.clone(), url, title, provider_metadata: None }))
}

/// Sub-agents are known by the calls that reach them; they announce themselves in no other way.
fn learn_agents(mapper: &mut TurnMapper, item: &ThreadItem) {
    match item {
        ThreadItem::CollabAgentToolCall(call) => {
            call.receiver_thread_ids.iter().for_each(|thread| mapper.agents.learn(thread));
        }
        ThreadItem::SubAgentActivity { agent_thread_id, .. } => {
            mapper.agents.learn(agent_thread_id);
        }
        _ => {}
    }
}

fn strange(note: &ItemNote) -> Part {
    let why = match &note.item {
        Open::Unknown { why, .. } => why.as_str(),
        Open::Known(_) => "",
    };
    unknown(&format!("item/{}", tag_of(&note.raw, "type")), why, &note.raw)
}
