//! Which thread a prompt belongs to, and which of its messages that thread does not have yet.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::notes::Notes;
use super::own::{self, Own};
use super::{ThreadChoice, ThreadSource};
use crate::ids::{CallId, ThreadId, TurnId};
use crate::open::{Open, tag_of};
use crate::prompt::{AssistantPart, Message, Prompt};
use crate::spec::Metadata;

/// A message with its index in the prompt.
pub(super) type Placed<'a> = (usize, &'a Message);

/// A prompt, cut where its thread ends.
pub(super) struct Split<'a> {
    /// The thread.
    pub(super) thread: ThreadChoice,
    /// See [`super::TurnPlan::after`].
    pub(super) after: Option<TurnId>,
    /// New messages before the last user turn; system messages left out.
    pub(super) earlier: Vec<Placed<'a>>,
    /// The last user turn: all user messages at the end.
    pub(super) latest: Vec<Placed<'a>>,
    /// Calls that the thread knows; their results are answers, not history.
    pub(super) known_calls: HashSet<&'a CallId>,
    /// Marks of the message where the thread ends, see [`super::TurnPlan::marks`].
    pub(super) marks: Map<String, Value>,
}

/// Chooses the thread and cuts the prompt.
pub(super) fn split<'a>(prompt: &'a Prompt, own: &Own, notes: &mut Notes<'_>) -> Split<'a> {
    let thread = thread(prompt, own, notes);
    let without = &notes.context.without;
    let end = thread.as_ref().and_then(|thread| end_of(prompt, thread, without));
    let new_from = end.map_or(0, |end| end + 1);
    let (old, new) = prompt.0.split_at(new_from);

    let mut earlier = placed(new, new_from, notes);
    let users = earlier.iter().rev().take_while(|(_, message)| is_user(message)).count();
    let latest = earlier.split_off(earlier.len() - users);
    let ended = end.and_then(|end| prompt.0[end].known());
    let turn = thread.as_ref().zip(ended).and_then(|(thread, ended)| turn_in(ended, thread));
    let resumes = thread.is_some() && !own.fork && notes.context.branches;
    Split {
        after: turn.clone().filter(|_| resumes),
        thread: choice(thread, turn, own, notes),
        earlier,
        latest,
        known_calls: old.iter().filter_map(Open::known).flat_map(calls).collect(),
        marks: ended
            .and_then(|m| metadata_of(m, "marks")?.as_object().cloned())
            .unwrap_or_default(),
    }
}

fn thread(prompt: &Prompt, own: &Own, notes: &mut Notes<'_>) -> Option<ThreadId> {
    let context = notes.context;
    let in_history = || {
        let newest = prompt.0.iter().rev().filter_map(Open::known);
        let newest = newest.filter(|message| !is_of(message, &context.without));
        newest.filter_map(|message| metadata_of(message, "threadId")?.as_str()).next()
    };
    match &context.thread {
        ThreadSource::Fresh => None,
        _ if own.thread_id.is_some() => own.thread_id.clone(),
        ThreadSource::Given(thread) => Some(thread.clone()),
        ThreadSource::History => in_history().map(ThreadId::from),
    }
}

fn choice(
    thread: Option<ThreadId>,
    last_turn_id: Option<TurnId>,
    own: &Own,
    notes: &mut Notes<'_>,
) -> ThreadChoice {
    match thread {
        Some(thread_id) if own.fork => ThreadChoice::Fork { thread_id, last_turn_id },
        Some(thread) => ThreadChoice::Resume(thread),
        None => {
            if own.fork {
                notes.unsupported(
                    "providerOptions.codex.fork",
                    "neither the call nor the history names a thread; a fresh one is started",
                );
            }
            ThreadChoice::Fresh
        }
    }
}

/// Index of the last message that the thread has.
///
/// A thread that no message names was given by the caller, who knows that it holds the
/// conversation up to the last answer.
fn end_of(prompt: &Prompt, thread: &ThreadId, without: &BTreeSet<TurnId>) -> Option<usize> {
    let last = |wanted: &dyn Fn(&Message) -> bool| {
        let wanted = |message: &Message| wanted(message) && !is_of(message, without);
        prompt.0.iter().rposition(|message| message.known().is_some_and(wanted))
    };
    last(&|message| carries(message, thread)).or_else(|| last(&is_assistant))
}

/// Known messages with their places; unknown ones are noted, system messages go another way.
fn placed<'a>(new: &'a [Open<Message>], from: usize, notes: &mut Notes<'_>) -> Vec<Placed<'a>> {
    let mut placed = Vec::new();
    for (index, message) in (from..).zip(new) {
        match message {
            Open::Known(Message::System { .. }) => {}
            Open::Known(message) => placed.push((index, message)),
            Open::Unknown { raw, why } => {
                let feature = format!("message of role `{}`", tag_of(raw, "role"));
                notes.unsupported(feature, format!("prompt[{index}]: {why}"));
            }
        }
    }
    placed
}

fn is_user(message: &Message) -> bool {
    matches!(message, Message::User { .. })
}

fn is_assistant(message: &Message) -> bool {
    matches!(message, Message::Assistant { .. })
}

fn carries(message: &Message, thread: &ThreadId) -> bool {
    let ours = |metadata| own::find_text(metadata, "threadId") == Some(thread.as_str());
    metadata_all(message).into_iter().any(|metadata| ours(Some(metadata)))
}

/// The turn of the thread that a message is of: that of its last part which says so.
fn turn_in(message: &Message, thread: &ThreadId) -> Option<TurnId> {
    let of_thread =
        |metadata: &&Metadata| own::find_text(Some(metadata), "threadId") == Some(thread.as_str());
    let mut parts = metadata_all(message).into_iter().rev().filter(of_thread);
    parts.find_map(|metadata| own::find_text(Some(metadata), "turnId")).map(TurnId::from)
}

/// Whether a message is of one of these turns.
fn is_of(message: &Message, turns: &BTreeSet<TurnId>) -> bool {
    let turn = metadata_of(message, "turnId").and_then(Value::as_str);
    turn.is_some_and(|turn| turns.contains(&TurnId::from(turn)))
}

/// A value in the metadata of an assistant message: its own, else of its first part that has it.
fn metadata_of<'a>(message: &'a Message, name: &str) -> Option<&'a Value> {
    metadata_all(message).into_iter().find_map(|metadata| own::find(Some(metadata), name))
}

fn metadata_all(message: &Message) -> Vec<&Metadata> {
    let Message::Assistant { content, provider_options } = message else { return Vec::new() };
    let parts = content.iter().filter_map(part_metadata);
    provider_options.iter().chain(parts).collect()
}

fn part_metadata(part: &Open<AssistantPart>) -> Option<&Metadata> {
    match part {
        Open::Unknown { raw, .. } => raw.get("providerOptions")?.as_object(),
        Open::Known(part) => match part {
            AssistantPart::Text(text) | AssistantPart::Reasoning(text) => &text.provider_options,
            AssistantPart::File(file) | AssistantPart::ReasoningFile(file) => {
                &file.provider_options
            }
            AssistantPart::ToolResult(result) => &result.provider_options,
            AssistantPart::ToolCall { provider_options, .. }
            | AssistantPart::Custom { provider_options, .. } => provider_options,
        }
        .as_ref(),
    }
}

fn calls(message: &Message) -> Vec<&CallId> {
    let Message::Assistant { content, .. } = message else { return Vec::new() };
    let call = |part| match part {
        &Open::Known(AssistantPart::ToolCall { ref tool_call_id, .. }) => Some(tool_call_id),
        _ => None,
    };
    content.iter().filter_map(call).collect()
}
