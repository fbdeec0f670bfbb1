//! `codex exec --json` → stream parts, by way of the normalised stream.
//!
//! The parts are those of a live turn, with the same names of tools, so that one renderer draws
//! both; only deltas are missing, as `exec` gives whole items.

mod tools;

use serde_json::{Value, json};

use super::exec_to_ndjson::{ExecMapper, Exit, Options};
use crate::ids::PartId;
use crate::json_text::JsonText;
use crate::ndjson::{
    Artifact, Event, PlanItem, Reason, Role, RunResult, Severity, Status, Tokens, Topic,
};
use crate::part::{Delta, Part, Run, Source};
use crate::spec::codex_metadata;
use crate::usage::{FinishReason, InputCounts, Unified, Usage};

/// Takes what Codex prints and gives stream parts.
#[derive(Debug)]
pub struct ExecParts {
    mapper: ExecMapper,
    parts: EventParts,
}

impl ExecParts {
    /// A mapper for one stream.
    pub fn new(options: Options) -> Self {
        Self { mapper: ExecMapper::new(options), parts: EventParts::default() }
    }

    /// Feeds bytes; gives the parts of the lines they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Part> {
        let mut out = Vec::new();
        self.mapper.feed(bytes, &mut |event| self.parts.take(event, &mut out));
        out
    }

    /// Takes an event that does not come from stdout: stderr, an artifact.
    pub fn event(&mut self, event: &Event<'_>) -> Vec<Part> {
        let mut out = Vec::new();
        self.parts.take(event, &mut out);
        out
    }

    /// Ends the stream; the last part is `finish`.
    pub fn flush(&mut self, exit: &Exit) -> Vec<Part> {
        let mut out = Vec::new();
        self.mapper.end(exit, &mut |event| self.parts.take(event, &mut out));
        out
    }
}

/// Events of a normalised stream → parts.
#[derive(Debug, Default)]
pub struct EventParts {
    started: bool,
    finished: bool,
    thread: Option<String>,
    model: Option<String>,
    /// The message that comes in deltas, if one does.
    open: Option<(PartId, String)>,
    turn: Option<Tokens>,
    total: Option<Tokens>,
    /// Counts things without a name.
    unnamed: u32,
    plans: u32,
}

impl EventParts {
    /// Takes one event.
    pub fn take(&mut self, event: &Event<'_>, out: &mut Vec<Part>) {
        if self.finished {
            return;
        }
        if let Event::Init { session_id, model_id, .. } = event {
            self.thread = session_id.as_ref().map(|id| id.decode().into_owned());
            self.model = model_id.as_ref().map(|id| id.decode().into_owned());
        }
        self.begin(out);
        match event {
            Event::Init { .. } => {}
            Event::Message { role: Role::User, content, .. } => out.push(user(content)),
            Event::Message { content, delta: true, .. } => self.delta(content, out),
            Event::Message { content, id, .. } => self.message(content, id.as_ref(), out),
            Event::Reasoning { content, id } => self.reasoning(content, id.as_ref(), out),
            Event::ToolUse(call) => tools::call(call, out),
            Event::ToolResult(result) => tools::result(result, out),
            Event::Plan { explanation, items, .. } => {
                self.plans += 1;
                tools::plan(self.plans, explanation.as_ref(), items, out);
            }
            Event::Stderr { content, severity, topic } => {
                out.push(notice(content, *severity, *topic));
            }
            Event::Artifact(artifact) => out.push(document(artifact)),
            Event::Usage { turn, total } => {
                self.turn = *turn;
                self.total = Some(*total);
            }
            Event::Error { message, fatal: true } => {
                out.push(Part::Error { error: json!({ "message": message.decode() }) });
            }
            Event::Error { message, fatal: false } => {
                out.push(notice(message, Some(Severity::Warning), Some(Topic::Warning)));
            }
            Event::Unknown { tag, why, raw, .. } => {
                out.push(custom("codex.unknown", json!({ "tag": tag, "why": why, "raw": raw })));
            }
            Event::Result(result) => self.finish(result, out),
        }
    }

    fn begin(&mut self, out: &mut Vec<Part>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        out.push(Part::StreamStart { warnings: Vec::new() });
        out.push(Part::ResponseMetadata {
            id: None,
            timestamp: None,
            model_id: self.model.clone(),
        });
    }

    fn delta(&mut self, content: &JsonText<'_>, out: &mut Vec<Part>) {
        let text = content.decode();
        let (id, so_far) = match self.open.take() {
            Some(open) => open,
            None => {
                let id = self.name(None, "text");
                out.push(Part::TextStart(run(id.clone())));
                (id, String::new())
            }
        };
        out.push(Part::TextDelta(delta(id.clone(), &text)));
        self.open = Some((id, so_far + &text));
    }

    /// A whole message; where it came in deltas before, it only ends them.
    fn message(&mut self, content: &JsonText<'_>, id: Option<&JsonText<'_>>, out: &mut Vec<Part>) {
        let text = content.decode();
        if let Some((id, so_far)) = self.open.take() {
            let whole = (so_far != text).then(|| json!({ "text": text }));
            return out.push(text_end(id, whole));
        }
        let id = self.name(id, "text");
        out.push(Part::TextStart(run(id.clone())));
        if !text.is_empty() {
            out.push(Part::TextDelta(delta(id.clone(), &text)));
        }
        out.push(text_end(id, None));
    }

    fn reasoning(
        &mut self,
        content: &JsonText<'_>,
        id: Option<&JsonText<'_>>,
        out: &mut Vec<Part>,
    ) {
        let item = self.name(id, "reasoning");
        let id = PartId::new(format!("{item}:summary:0"));
        let provider_metadata = codex_metadata(json!({ "itemId": item, "form": "summary" }));
        out.push(Part::ReasoningStart(Run { id: id.clone(), provider_metadata }));
        out.push(Part::ReasoningDelta(delta(id.clone(), &content.decode())));
        out.push(Part::ReasoningEnd(run(id)));
    }

    fn finish(&mut self, result: &RunResult<'_>, out: &mut Vec<Part>) {
        if let Some((id, _)) = self.open.take() {
            out.push(text_end(id, Some(json!({ "incomplete": true }))));
        }
        self.finished = true;
        let details = json!({
            "threadId": self.thread,
            "threadUsage": self.total,
            "exitCode": result.exit_code,
            "signal": result.signal,
        });
        out.push(Part::Finish {
            usage: self.turn.map(usage).unwrap_or_default(),
            finish_reason: reason(result),
            provider_metadata: codex_metadata(without_nulls(details)),
        });
    }

    fn name(&mut self, id: Option<&JsonText<'_>>, kind: &str) -> PartId {
        match id {
            Some(id) => PartId::new(id.decode()),
            None => {
                self.unnamed += 1;
                PartId::new(format!("{kind}-{}", self.unnamed))
            }
        }
    }
}

fn run(id: PartId) -> Run {
    Run { id, provider_metadata: None }
}

fn delta(id: PartId, text: &str) -> Delta {
    Delta { id, delta: text.to_owned(), provider_metadata: None }
}

fn text_end(id: PartId, details: Option<Value>) -> Part {
    Part::TextEnd { id, citations: None, provider_metadata: details.and_then(codex_metadata) }
}

fn custom(kind: &str, details: Value) -> Part {
    Part::Custom { kind: kind.to_owned(), provider_metadata: codex_metadata(details) }
}

fn user(content: &JsonText<'_>) -> Part {
    let content = json!([{ "type": "text", "text": content.decode() }]);
    custom("codex.user-message", json!({ "content": content }))
}

fn notice(content: &JsonText<'_>, severity: Option<Severity>, topic: Option<Topic>) -> Part {
    let text = content.decode();
    if topic == Some(Topic::Retry) {
        return custom("codex.retry", json!({ "message": text }));
    }
    let level = if severity == Some(Severity::Warning) { "warning" } else { "info" };
    let topic = if topic == Some(Topic::Warning) { "warning" } else { "stderr" };
    custom("codex.notice", json!({ "topic": topic, "level": level, "text": text }))
}

fn document(artifact: &Artifact) -> Part {
    Part::Source(Source::Document {
        id: artifact.path.clone(),
        media_type: artifact.mime_type.to_owned(),
        title: artifact.label.clone(),
        filename: Some(artifact.path.clone()),
        provider_metadata: codex_metadata(json!({ "sizeBytes": artifact.size_bytes })),
    })
}

fn usage(turn: Tokens) -> Usage {
    let read = InputCounts {
        all: turn.input_tokens,
        cached: turn.cached_input_tokens,
        cache_written: turn.cache_write_input_tokens,
    };
    let raw = serde_json::to_value(turn).ok();
    Usage::of(read, turn.output_tokens, turn.reasoning_output_tokens, raw)
}

fn reason(result: &RunResult<'_>) -> FinishReason {
    let unified = match (result.status, result.reason) {
        (Status::Success, _) => Unified::Stop,
        (Status::Error, Reason::Aborted | Reason::Signal) => Unified::Interrupted,
        (Status::Error | Status::Unknown, _) => Unified::Error,
    };
    FinishReason { unified, raw: word(&result.reason) }
}

/// The word an enum of the stream is written as.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
    }
    value
}

/// The steps of a plan in the words of live turns.
fn steps(items: &[PlanItem]) -> Value {
    let status = |item: &PlanItem| match (item.completed, item.in_progress) {
        (true, _) => "completed",
        (false, true) => "inProgress",
        (false, false) => "pending",
    };
    items.iter().map(|item| json!({ "step": item.text, "status": status(item) })).collect()
}
