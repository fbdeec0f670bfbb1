//! What a request tells of where we are: who said what, which tools there are, what they answered.

use bindery_core::open::Open;
use serde_json::Value;

use super::super::{ModelRequest, ToolSpec};
use crate::item::{CallOutput, Content, Item, Message, Output, Role};
use crate::prompt::told::is_context;

/// A request, read.
pub(super) struct Scene<'a> {
    request: &'a ModelRequest,
    /// What the person said last.
    pub(super) asked: String,
    /// How often the person spoke before that.
    pub(super) earlier: usize,
    /// Where in the history what they said last stands.
    at: usize,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Well; this is what it printed.
    Well(String),
    /// It was not allowed.
    Denied,
    /// Badly; these are the tool's words.
    Badly(String),
}

impl<'a> Scene<'a> {
    pub(super) fn new(request: &'a ModelRequest) -> Self {
        let said: Vec<(usize, String)> = request
            .input
            .iter()
            .enumerate()
            .filter_map(|(index, item)| Some((index, said_by_person(item.known()?)?)))
            .collect();
        let earlier = said.len().saturating_sub(1);
        let (at, asked) = said.into_iter().next_back().unwrap_or_default();
        Self { request, asked, earlier, at }
    }

    /// How the call of this id ended, if it did, since the person spoke last.
    pub(super) fn ended(&self, call_id: &str) -> Option<Ended> {
        let since = &self.request.input[self.at.min(self.request.input.len())..];
        let output = since.iter().rev().find_map(|item| match item.known()? {
            Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output)
                if output.call_id == call_id =>
            {
                Some(output)
            }
            _ => None,
        })?;
        Some(read(output))
    }

    /// The tool of this name, if it is offered.
    pub(super) fn tool(&self, wanted: &str) -> Option<&'a ToolSpec> {
        self.request.tools.iter().find(|tool| match tool {
            ToolSpec::Function { name, .. } | ToolSpec::Freeform { name, .. } => name == wanted,
            ToolSpec::Namespace { .. } | ToolSpec::Hosted(_) => false,
        })
    }
}

/// All that people said, oldest first.
pub(super) fn said(request: &ModelRequest) -> Vec<String> {
    request.input.iter().filter_map(|item| said_by_person(item.known()?)).collect()
}

/// The text of a message.
pub(super) fn text_of(content: &[Open<Content>]) -> String {
    let texts = content.iter().filter_map(|part| match part.known()? {
        Content::InputText { text } | Content::OutputText { text } => Some(text.as_str()),
        Content::InputImage { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// On one line, and not more than this of it.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn said_by_person(item: &Item) -> Option<String> {
    let Item::Message(Message { role: Role::User, content, .. }) = item else { return None };
    let is_frame = |text: &str| text.starts_with("<image name=") || text == "</image>";
    let is_context = |text: &str| is_context(text) || is_frame(text.trim_start());
    let own = content.iter().filter(|part| match part.known() {
        Some(Content::InputText { text }) => !is_context(text),
        _ => false,
    });
    let own: Vec<Open<Content>> = own.cloned().collect();
    (!own.is_empty()).then(|| text_of(&own))
}

/// Tools answer in sentences; this reads those of every shell tool there was.
fn read(output: &CallOutput) -> Ended {
    let text = match &output.output {
        Output::Text(text) => text.clone(),
        Output::Content(parts) => text_of(parts),
    };
    if let Ok(json) = serde_json::from_str::<Value>(&text)
        && let Some(code) = json["metadata"]["exit_code"].as_i64()
    {
        let printed = json["output"].as_str().unwrap_or_default().to_owned();
        return if code == 0 { Ended::Well(printed) } else { Ended::Badly(printed) };
    }
    let (head, printed) = text.split_once("Output:\n").unwrap_or((&text, &text));
    let line = |start: &str| head.lines().find_map(|line| line.strip_prefix(start));
    let code = line("Process exited with code ").or_else(|| line("Exit code: "));
    match code.and_then(|code| code.trim().parse::<i64>().ok()) {
        Some(0) => Ended::Well(printed.to_owned()),
        Some(_) => Ended::Badly(printed.to_owned()),
        None if is_denial(&text) => Ended::Denied,
        None if head.len() == text.len() && !text.contains("failed") => Ended::Well(text),
        None => Ended::Badly(text),
    }
}

fn is_denial(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = [
        "rejected",
        "denied",
        "declined",
        "refused",
        "forbidden",
        "not approve",
        "not allow",
        "aborted",
        "cancel",
    ];
    words.iter().any(|word| text.contains(word))
}
