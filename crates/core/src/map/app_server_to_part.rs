//! App-server events → stream parts: one [`TurnMapper`] per turn, fed in order.
//!
//! Routing is by thread *and* turn. What began and never ended is closed at the turn's end, and
//! what has no shape in the contract travels as a `custom` part.

mod agents;

mod item;

mod notice;

mod question;

mod recall;

mod runs;

mod tools;

mod usage;

mod words;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use self::agents::Agents;
pub use self::recall::finished_items;
use self::runs::{Channel, Runs};
use self::tools::Tools;
pub use self::usage::Ledger;
pub use self::words::Words;
use crate::ids::{ApprovalId, ItemId, ThreadId, TurnId};
use crate::interrupt::{Answer, Interrupt};
use crate::part::{Part, Warning};
use crate::spec::codex_metadata;
use crate::usage::{FinishReason, Unified};
use crate::wire::app_server::notification::{Body, ErrorNote, Notification, Turn, TurnError};
use crate::wire::app_server::request::ServerRequest;

/// What is known of a turn before its first event.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnContext {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn.
    pub turn_id: TurnId,
    /// The model in force.
    pub model: Option<String>,
    /// What could not be carried to Codex.
    pub warnings: Vec<Warning>,
    /// Tools that the caller declared and runs; all others are Codex's own business.
    pub declared_tools: BTreeSet<String>,
    /// The thread's token totals before this turn, where they are known.
    pub ledger: Ledger,
    /// Written beside the thread's id into the metadata of every finished piece.
    pub marks: Map<String, Value>,
}

impl TurnContext {
    /// A turn of which nothing else is known.
    pub fn new(thread_id: ThreadId, turn_id: TurnId) -> Self {
        Self {
            thread_id,
            turn_id,
            model: None,
            warnings: Vec::new(),
            declared_tools: BTreeSet::new(),
            ledger: Ledger::default(),
            marks: Map::new(),
        }
    }

    /// What every finished piece carries, so that a later call finds its thread in the history:
    /// the SDK keeps the metadata of pieces, not that of `finish`.
    fn origin(&self) -> Map<String, Value> {
        let mut origin = Map::new();
        origin.insert("threadId".to_owned(), json!(self.thread_id));
        origin.insert("turnId".to_owned(), json!(self.turn_id));
        if !self.marks.is_empty() {
            origin.insert("marks".to_owned(), Value::Object(self.marks.clone()));
        }
        origin
    }
}

/// Why a turn ended without Codex saying so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// A stable word: `closed`, `timeout`, …
    pub kind: String,
    /// In words.
    pub message: String,
}

/// Folds the events of one turn into parts.
#[derive(Debug)]
pub struct TurnMapper {
    context: TurnContext,
    runs: Runs,
    tools: Tools,
    agents: Agents,
    /// Unknown items that have begun, to be shown at the end if they never complete.
    strange: Vec<(ItemId, Part)>,
    last_diff: Option<String>,
    plans: u32,
    /// The turn's first user message has come; any other steers it.
    asked: bool,
    failed: bool,
    started: bool,
    finished: bool,
}

impl TurnMapper {
    /// A mapper for the turn of `context`.
    pub fn new(context: TurnContext) -> Self {
        let origin = context.origin();
        let declared = context.declared_tools.clone();
        Self {
            context,
            runs: Runs::new(origin.clone()),
            tools: Tools::new(declared, origin),
            agents: Agents::default(),
            strange: Vec::new(),
            last_diff: None,
            plans: 0,
            asked: false,
            failed: false,
            started: false,
            finished: false,
        }
    }

    /// The connection was lost, and what was said meanwhile may not all be told again: a command
    /// that is open at the end of the turn is then not known to run on.
    pub fn note_missed_events(&mut self) {
        self.tools.note_missed_events();
    }

    /// The parts every stream begins with; comes by itself with the first event.
    pub fn begin(&mut self) -> Vec<Part> {
        self.begin_at(None)
    }

    /// `finish` has been given; nothing follows.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether the caller runs this tool.
    pub fn is_declared(&self, namespace: Option<&str>, tool: &str) -> bool {
        self.context.declared_tools.contains(&item::tool_name(namespace, tool))
    }

    /// The thread's token totals so far, for the mapper of its next turn.
    pub fn ledger(&self) -> &Ledger {
        &self.context.ledger
    }

    /// The sub-agents' threads seen so far; their events belong to this mapper too.
    pub fn agent_threads(&self) -> Vec<ThreadId> {
        self.agents.threads()
    }

    /// Takes one notification.
    pub fn notify(&mut self, notification: &Notification) -> Vec<Part> {
        if self.finished {
            return Vec::new();
        }
        let thread = notification.address.thread_id.as_ref();
        if thread.is_some_and(|thread| *thread != self.context.thread_id) {
            return self.agents.notify(notification);
        }
        if let Body::TokenUsage(usage) = &notification.body {
            let ours = notification.address.turn_id.as_ref() == Some(&self.context.turn_id);
            self.context.ledger.update(usage, ours);
        }
        if !self.is_ours(notification) {
            return Vec::new();
        }
        let mut parts = match &notification.body {
            Body::TurnStarted(turn) => self.begin_at(turn.started_at),
            _ => self.begin(),
        };
        self.map(notification, &mut parts);
        parts
    }

    /// Takes one request of the server; the interrupt is none when there is nothing to answer.
    pub fn ask(
        &mut self,
        id: &ApprovalId,
        request: &ServerRequest,
    ) -> (Vec<Part>, Option<Interrupt>) {
        if self.finished {
            return (Vec::new(), None);
        }
        let mut parts = self.begin();
        let interrupt = question::ask(self, id, request, &mut parts);
        (parts, interrupt)
    }

    /// Something of the connection that could not be read; it may have been ours.
    pub fn unreadable(&mut self, why: &str, head: &str) -> Vec<Part> {
        let mut parts = self.begin();
        parts.push(notice::unknown("unreadable", why, &json!(head)));
        parts
    }

    /// Something to tell the reader that Codex did not say: `{topic, level, text}`.
    pub fn notice(&mut self, topic: &str, text: &str) -> Vec<Part> {
        let mut parts = self.begin();
        let details = json!({ "topic": topic, "level": "warning", "text": text });
        parts.push(notice::custom("codex.notice", details));
        parts
    }

    /// An interrupt was answered; a question that stood for a call of its own gets its result.
    pub fn answered(&mut self, interrupt: &Interrupt, answer: &Answer) -> Vec<Part> {
        let mut parts = Vec::new();
        let item = ItemId::new(interrupt.call_id.as_str());
        if question::stands_alone(&item) {
            let result = json!({ "answer": answer });
            self.tools.result(&item, result, false, &mut parts);
        }
        parts
    }

    /// Codex needs no answer any more; a question that stood for a call of its own is closed.
    pub fn withdrawn(&mut self, interrupt: &Interrupt) -> Vec<Part> {
        let mut parts = Vec::new();
        let item = ItemId::new(interrupt.call_id.as_str());
        if question::stands_alone(&item) {
            self.tools.result(&item, json!({ "status": "withdrawn" }), true, &mut parts);
        }
        parts
    }

    /// Ends a step: the turn waits for answers that its reader gives, and goes on in another
    /// stream. What this step used is told now, so that the steps add up to the turn.
    pub fn pause(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.finished {
            return parts;
        }
        parts.extend(self.begin());
        self.runs.close(&mut parts);
        parts.push(self.finish_part(FinishReason::new(Unified::ToolCalls, "waiting"), None));
        self.context.ledger = self.context.ledger.for_next_turn();
        self.context.warnings.clear();
        self.started = false;
        parts
    }

    /// Ends the turn for a reason that Codex did not give: death, silence, a deadline.
    pub fn cut(&mut self, cut: &Cut) -> Vec<Part> {
        if self.finished {
            return Vec::new();
        }
        let mut parts = self.begin();
        self.end_by(cut, &mut parts);
        parts
    }

    /// Ends the turn because somebody stopped it and Codex did not confirm in time.
    pub fn stop(&mut self) -> Vec<Part> {
        if self.finished {
            return Vec::new();
        }
        let mut parts = self.begin();
        self.close(&mut parts, "aborted");
        let reason = FinishReason::new(Unified::Interrupted, "interrupted");
        self.finish(&mut parts, reason, None);
        parts
    }

    /// `review/start` announces its turn under a second name, so a foreign `turn/started` is let
    /// through; everything else must carry the turn's own name or none.
    fn is_ours(&self, notification: &Notification) -> bool {
        match (&notification.body, &notification.address.turn_id) {
            (_, None) | (Body::TurnStarted(_), _) => true,
            (_, Some(turn)) => *turn == self.context.turn_id,
        }
    }

    fn begin_at(&mut self, started_at: Option<i64>) -> Vec<Part> {
        if std::mem::replace(&mut self.started, true) {
            return Vec::new();
        }
        let metadata = Part::ResponseMetadata {
            id: Some(self.context.turn_id.to_string()),
            timestamp: started_at.map(usage::rfc3339),
            model_id: self.context.model.clone(),
        };
        vec![Part::StreamStart { warnings: self.context.warnings.clone() }, metadata]
    }

    fn map(&mut self, notification: &Notification, parts: &mut Vec<Part>) {
        let item = notification.address.item_id.as_ref();
        match &notification.body {
            Body::ItemStarted(note) => item::started(self, note, parts),
            Body::ItemCompleted(note) => item::completed(self, note, parts),
            Body::MessageDelta(delta) => self.runs.delta(item, Channel::Message, delta, parts),
            Body::PlanDelta(delta) => self.runs.delta(item, Channel::Plan, delta, parts),
            Body::SummaryPart(index) => self.runs.next_summary(item, *index, parts),
            Body::SummaryDelta(index, delta) => {
                self.runs.delta(item, Channel::Summary(*index), delta, parts);
            }
            Body::ReasoningDelta(index, delta) => {
                self.runs.delta(item, Channel::Raw(*index), delta, parts);
            }
            Body::CommandOutput(delta) => self.tools.output(item, delta, parts),
            Body::TerminalInput(text) => self.tools.typed(item, text, parts),
            Body::PatchUpdated(changes) => self.tools.patch(item, changes, parts),
            Body::McpProgress(message) => self.tools.progress(item, message, parts),
            Body::PlanUpdated { explanation, plan } => {
                self.plans += 1;
                self.tools.plan(self.plans, explanation.as_deref(), plan, parts);
            }
            Body::DiffUpdated(diff) => self.diff(diff, parts),
            Body::Error(note) => self.error(note, parts),
            Body::TurnCompleted(turn) => self.completed(turn, parts),
            Body::Notice { method, params } => parts.push(notice::notice(method, params)),
            Body::Unknown { method, why, params } => {
                parts.push(notice::unknown(method, why, params));
                if method == "turn/completed" {
                    self.end_unread(why, parts);
                }
            }
            Body::ThreadStarted(_)
            | Body::TurnStarted(_)
            | Body::TokenUsage(_)
            | Body::RequestResolved(_)
            | Body::RawItem(_)
            | Body::ResponseEnded
            | Body::NotShown(_) => {}
        }
    }

    /// Codex sends the whole turn's diff again after each response, changed or not.
    fn diff(&mut self, diff: &str, parts: &mut Vec<Part>) {
        if self.last_diff.as_deref() != Some(diff) {
            self.last_diff = Some(diff.to_owned());
            parts.push(notice::custom("codex.diff", json!({ "diff": diff })));
        }
    }

    fn error(&mut self, note: &ErrorNote, parts: &mut Vec<Part>) {
        if note.will_retry {
            self.runs.abandon();
            parts.push(notice::custom("codex.retry", error_value(&note.error)));
        } else {
            self.fail(&note.error, parts);
        }
    }

    /// The terminal error comes twice, alone and with `turn/completed`; it is given once.
    fn fail(&mut self, error: &TurnError, parts: &mut Vec<Part>) {
        if !std::mem::replace(&mut self.failed, true) {
            parts.push(Part::Error { error: error_value(error) });
        }
    }

    fn completed(&mut self, turn: &Turn, parts: &mut Vec<Part>) {
        let reason = match (turn.status.as_str(), &turn.error) {
            ("completed", _) => {
                self.runs.discard_abandoned(parts);
                FinishReason::new(Unified::Stop, "completed")
            }
            ("interrupted", _) => FinishReason::new(Unified::Interrupted, "interrupted"),
            (_, Some(error)) => {
                self.fail(error, parts);
                FinishReason::new(unified_of(error), error.kind())
            }
            (status, None) => FinishReason::new(Unified::Error, status),
        };
        let left = match reason.unified {
            Unified::Interrupted => "aborted",
            Unified::Stop => tools::RUNNING,
            _ => "incomplete",
        };
        self.close(parts, left);
        self.finish(parts, reason, turn.duration_ms);
    }

    /// The turn is over, though we cannot read how: waiting on would be waiting for ever.
    fn end_unread(&mut self, why: &str, parts: &mut Vec<Part>) {
        let message = format!("the turn ended, but its end cannot be read: {why}");
        self.end_by(&Cut { kind: "protocol".to_owned(), message }, parts);
    }

    fn end_by(&mut self, cut: &Cut, parts: &mut Vec<Part>) {
        parts.push(Part::Error { error: json!({ "message": cut.message, "kind": cut.kind }) });
        self.close(parts, "incomplete");
        self.finish(parts, FinishReason::new(Unified::Error, cut.kind.clone()), None);
    }

    /// Ends whatever is open; Codex does not complete items of an interrupted or failed turn.
    fn close(&mut self, parts: &mut Vec<Part>, status: &str) {
        self.agents.close(parts);
        self.runs.close(parts);
        self.tools.close(parts, status);
        parts.extend(self.strange.drain(..).map(|(_, part)| part));
    }

    fn finish(&mut self, parts: &mut Vec<Part>, reason: FinishReason, duration_ms: Option<u64>) {
        self.finished = true;
        parts.push(self.finish_part(reason, duration_ms));
    }

    fn finish_part(&self, reason: FinishReason, duration_ms: Option<u64>) -> Part {
        let mut details = Value::Object(self.context.origin());
        if let Some(duration) = duration_ms {
            details["durationMs"] = json!(duration);
        }
        self.context.ledger.describe(&mut details);
        Part::Finish {
            usage: self.context.ledger.turn_usage(),
            finish_reason: reason,
            provider_metadata: codex_metadata(details),
        }
    }
}

/// A full window is a matter of length, all else is an error.
fn unified_of(error: &TurnError) -> Unified {
    match error.kind() {
        "contextWindowExceeded" => Unified::Length,
        "cyberPolicy" | "misalignmentPolicyViolation" => Unified::ContentFilter,
        _ => Unified::Error,
    }
}

/// Codex's text and kind, and whatever else it said.
fn error_value(error: &TurnError) -> Value {
    let mut value = json!({ "message": error.message, "kind": error.kind() });
    if let Some(status) = error.http_status() {
        value["httpStatus"] = json!(status);
    }
    if let Some(details) = &error.additional_details {
        value["details"] = json!(details);
    }
    value
}
