//! Earlier messages → Responses items, roles and order kept, every call with its result.

mod calls;

use serde_json::{Value, json};

use super::ThreadChoice;
use super::detail;
use super::file::File;
use super::history::{Placed, Split};
use super::notes::{Notes, Place};
use super::output::{self, Piece};
use super::own::{self, Own};
use crate::open::{Open, tag_of};
use crate::prompt::{
    AssistantPart, FilePart, Message, TextPart, ToolOutput, ToolPart, ToolResultPart, UserPart,
};
use crate::spec::Metadata;
use crate::wire::app_server::input::ResponseItem;
use calls::Calls;

/// The items of all earlier messages.
pub(super) fn items(split: &Split<'_>, own: &Own, notes: &mut Notes<'_>) -> Vec<ResponseItem> {
    let mut injector = Injector { items: Vec::new(), calls: Calls::default(), split, own, notes };
    let trailing = trailing_tools(split);
    for (at, placed) in split.earlier.iter().enumerate() {
        injector.message(*placed, at >= trailing);
    }
    injector.close_calls();
    injector.items
}

/// Where the tool messages at the very end begin: their approvals are answers, not history.
fn trailing_tools(split: &Split<'_>) -> usize {
    let is_tool = |placed: &&Placed<'_>| matches!(placed.1, Message::Tool { .. });
    let tools = split.earlier.iter().rev().take_while(is_tool).count();
    split.earlier.len() - if split.latest.is_empty() { tools } else { 0 }
}

struct Injector<'s, 'a, 'n, 'c> {
    items: Vec<ResponseItem>,
    calls: Calls,
    split: &'s Split<'a>,
    own: &'s Own,
    notes: &'n mut Notes<'c>,
}

impl Injector<'_, '_, '_, '_> {
    fn message(&mut self, (index, message): Placed<'_>, is_last: bool) {
        match message {
            Message::System { .. } => {}
            Message::User { content, provider_options } => {
                self.close_calls();
                let options = provider_options.as_ref();
                let pieces: Vec<Piece> = placed(index, content)
                    .filter_map(|(place, part)| self.user_part(part, options, place))
                    .collect();
                self.say("user", pieces.iter().map(Piece::response).collect());
                self.note_skills(options);
            }
            Message::Assistant { content, .. } => {
                for (place, part) in placed(index, content) {
                    self.assistant_part(part, place);
                }
            }
            Message::Tool { content, .. } => {
                for (place, part) in placed(index, content) {
                    self.tool_part(part, place, is_last);
                }
            }
        }
    }

    fn user_part(
        &mut self,
        part: &Open<UserPart>,
        message: Option<&Metadata>,
        place: Place,
    ) -> Option<Piece> {
        match part {
            Open::Known(UserPart::Text(part)) => {
                self.note_skills(part.provider_options.as_ref());
                (!part.text.is_empty()).then(|| Piece::Text(part.text.clone()))
            }
            Open::Known(UserPart::File(part)) => self.user_file(&File::of(part, place), message),
            Open::Known(UserPart::Image { image, media_type, provider_options }) => {
                let media_type = media_type.as_deref().unwrap_or("image/*");
                let options = provider_options.as_ref();
                let file = File { data: image, media_type, filename: None, options, place };
                self.user_file(&file, message)
            }
            Open::Unknown { raw, why } => {
                note_unknown(raw, why, place, self.notes);
                None
            }
        }
    }

    fn user_file(&mut self, file: &File<'_>, message: Option<&Metadata>) -> Option<Piece> {
        let mut piece = output::piece(file, self.notes)?;
        if let Piece::Image { detail, .. } = &mut piece {
            *detail = detail::choose(file.options, message, self.own, file.place, self.notes);
        }
        Some(piece)
    }

    fn assistant_part(&mut self, part: &Open<AssistantPart>, place: Place) {
        match part {
            Open::Known(AssistantPart::Text(part)) => self.assistant_says(&part.text),
            Open::Known(AssistantPart::File(part)) => self.assistant_file(part, place),
            // What Codex said on the way to an answer was said, though it is not part of that.
            Open::Known(AssistantPart::Reasoning(part)) if is_commentary(part) => {
                self.assistant_says(&part.text);
            }
            Open::Known(AssistantPart::Reasoning(_)) => self.notes.reasoning += 1,
            Open::Known(AssistantPart::ReasoningFile(part)) => self.notes.unsupported(
                format!("reasoning-file ({})", part.media_type),
                format!("{place}: Codex takes no files of reasoning"),
            ),
            Open::Known(AssistantPart::ToolCall { tool_call_id, tool_name, input, .. }) => {
                let name = self.calls.name(tool_name, self.notes);
                let arguments = if input.is_null() { json!({}) } else { input.clone() };
                let call_id = self.calls.open(tool_call_id, tool_name, place);
                self.items.push(function_call(&call_id, &name, &arguments));
            }
            Open::Known(AssistantPart::ToolResult(result)) => {
                self.result(result, place);
            }
            Open::Known(AssistantPart::Custom { kind, .. }) => {
                let feature = format!("custom part `{kind}`");
                self.notes.unsupported(feature, format!("{place}: Codex has no such item"));
            }
            Open::Unknown { raw, why } => note_unknown(raw, why, place, self.notes),
        }
    }

    fn tool_part(&mut self, part: &Open<ToolPart>, place: Place, is_last: bool) {
        match part {
            Open::Known(ToolPart::ToolResult(result)) => {
                // The thread itself waits for it; see `answers`.
                if !self.split.known_calls.contains(&result.tool_call_id) {
                    self.result(result, place);
                }
            }
            Open::Known(ToolPart::ToolApprovalResponse { approval_id, .. }) => {
                if !is_last && self.split.thread == ThreadChoice::Fresh {
                    let feature = format!("tool-approval-response `{approval_id}`");
                    let why = "it was settled in an earlier turn; the call's result tells how";
                    self.notes.unsupported(feature, format!("{place}: {why}"));
                }
            }
            Open::Unknown { raw, why } => note_unknown(raw, why, place, self.notes),
        }
    }

    /// Codex 0.166 drops a result without a call and says nothing.
    fn result(&mut self, result: &ToolResultPart, place: Place) {
        if is_preliminary(result) {
            return;
        }
        let output = output::read(&result.output, place, self.notes);
        let call_id = self.calls.answer(&result.tool_call_id).unwrap_or_else(|| {
            let name = self.calls.name(&result.tool_name, self.notes);
            let call_id = self.calls.open(&result.tool_call_id, &result.tool_name, place);
            self.items.push(function_call(&call_id, &name, &json!({})));
            self.calls.answer(&result.tool_call_id);
            self.notes.compatibility(
                format!("tool-result `{}`", result.tool_call_id),
                format!("{place}: the prompt has no call to it; one without input is put before"),
            );
            call_id
        });
        self.items.push(function_call_output(&call_id, &output.response()));
    }

    /// A call without a result would be closed by Codex as "aborted", which says too much.
    fn close_calls(&mut self) {
        for open in self.calls.take_open() {
            let output = json!("(no result was recorded)");
            self.items.push(function_call_output(&open.call_id, &output));
            self.notes.compatibility(
                format!("tool-call `{}` (`{}`)", open.original, open.tool_name),
                format!("{}: the prompt has no result of it; sent as unanswered", open.place),
            );
        }
    }

    fn assistant_says(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let said = json!({ "type": "output_text", "text": text });
        match self.items.last_mut() {
            Some(last) if last["role"] == "assistant" => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.push(said);
                }
            }
            _ => self.say("assistant", vec![said]),
        }
    }

    /// The Responses API knows no images of the assistant's, so the user shows it.
    fn assistant_file(&mut self, part: &FilePart, place: Place) {
        match output::piece(&File::of(part, place), self.notes) {
            Some(Piece::Text(text)) => self.assistant_says(&text),
            Some(image) => {
                let label = Piece::Text("[image made by the assistant]".to_owned());
                self.say("user", vec![label.response(), image.response()]);
                self.notes.compatibility(
                    format!("assistant file ({})", part.media_type),
                    format!("{place}: sent as an image that the user shows"),
                );
            }
            None => {}
        }
    }

    fn say(&mut self, role: &str, content: Vec<Value>) {
        if !content.is_empty() {
            self.items.push(json!({ "type": "message", "role": role, "content": content }));
        }
    }

    fn note_skills(&mut self, options: Option<&Metadata>) {
        if own::find(options, "skills").is_some() {
            self.notes.unsupported(
                "providerOptions.codex.skills of earlier messages",
                "Codex reads skills for the newest message only",
            );
        }
    }
}

/// Parts with their places.
pub(super) fn placed<T>(message: usize, content: &[T]) -> impl Iterator<Item = (Place, &T)> {
    content.iter().enumerate().map(move |(part, value)| (Place { message, part }, value))
}

/// Output of a command of ours while it ran. The AI SDK's streams keep such a result beside the
/// last one and forget that it was preliminary.
fn is_preliminary(result: &ToolResultPart) -> bool {
    let Open::Known(ToolOutput::Json { value }) = &result.output else { return false };
    result.tool_name.starts_with("codex_") && value["status"] == "inProgress"
}

fn is_commentary(part: &TextPart) -> bool {
    own::find_text(part.provider_options.as_ref(), "phase") == Some("commentary")
}

/// Notes a part of a kind we do not know.
pub(super) fn note_unknown(raw: &Value, why: &str, place: Place, notes: &mut Notes<'_>) {
    notes.unsupported(format!("part of type `{}`", tag_of(raw, "type")), format!("{place}: {why}"));
}

fn function_call(call_id: &str, name: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    json!({ "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments })
}

fn function_call_output(call_id: &str, output: &Value) -> Value {
    json!({ "type": "function_call_output", "call_id": call_id, "output": output })
}
