//! The stream of one call, as server-sent events.

use std::collections::VecDeque;
use std::time::Duration;

use bindery_client::interrupts::{Interrupts, State};
use bindery_client::model::{Call, Step};
use bindery_core::content::Gather;
use bindery_core::ids::ApprovalId;
use bindery_core::interrupt::Interrupt;
use bindery_core::part::Part;
use bindery_core::part::answer::{AnswerFilter, Undeclared};
use bindery_core::part::echo::EchoFilter;
use bindery_core::part::pace::{LINGER, Pacer};
use bindery_core::spec::Spec;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Calls;
use super::folders::TurnFolder;
use super::hub::Questions;
use super::request::CallRequest;

/// One event: text ready to be sent.
pub type Frame = String;

/// The events of a call, to `[DONE]`. Dropped before, they interrupt the turn.
pub struct Events {
    step: Option<Step>,
    named: Named,
    /// Where the turn runs.
    folder: TurnFolder,
    questions: Asked,
    spec: Spec,
    /// Gathers instead of sending parts.
    gather: Option<Gather>,
    /// Leaves out the words of the caller, who has them.
    echo: EchoFilter,
    /// Tells the answer from what is said on the way to it.
    answer: AnswerFilter,
    /// Joins what comes too fast.
    pacer: Pacer,
    /// Which thread and turn it is, and when that must be told.
    opening: Option<(Frame, Instant)>,
    /// Frames that come before anything else.
    ahead: VecDeque<Frame>,
    sent: u64,
}

/// The questions of a stream: those to be shown, and those shown that need no answer any more.
pub(super) struct Asked {
    questions: Questions,
    interrupts: Interrupts,
    changes: watch::Receiver<u64>,
    /// Shown, and not over yet.
    shown: Vec<ApprovalId>,
}

impl Asked {
    pub(super) fn new(questions: Questions, interrupts: Interrupts) -> Self {
        let changes = interrupts.watch();
        Self { questions, interrupts, changes, shown: Vec::new() }
    }

    /// The next of either; may be given up and asked for again.
    async fn next(&mut self) -> Happened {
        loop {
            self.changes.mark_unchanged();
            if let Some(id) = self.withdrawn() {
                return Happened::Withdrawn(id);
            }
            tokio::select! {
                biased;
                Some(question) = self.questions.next() => {
                    self.shown.push(question.id.clone());
                    return Happened::Asked(question);
                }
                Ok(()) = self.changes.changed() => {}
                else => std::future::pending().await,
            }
        }
    }

    /// One that nobody answered, and that is over.
    fn withdrawn(&mut self) -> Option<ApprovalId> {
        let Self { interrupts, shown, .. } = self;
        let state = |id: &ApprovalId| interrupts.get(id).map(|record| record.state);
        let answered =
            |id: &ApprovalId| matches!(state(id), Some(State::Answered(_) | State::Delivered(_)));
        shown.retain(|id| !answered(id));
        let over = shown.iter().position(|id| state(id) != Some(State::Open));
        over.map(|at| shown.remove(at))
    }
}

/// A call's name; the call is forgotten with it.
pub(super) struct Named {
    pub(super) call_id: String,
    pub(super) calls: Calls,
}

impl Drop for Named {
    fn drop(&mut self) {
        self.calls.leave(&self.call_id);
    }
}

impl Events {
    pub(super) fn new(
        call: Call,
        (named, folder): (Named, TurnFolder),
        questions: Asked,
        backend: &str,
        request: &CallRequest,
    ) -> Self {
        let spec = request.specification;
        let gather = request.generate.then(|| Gather::to(spec, &request.options().prompt));
        let session = json!({
            "callId": named.call_id,
            "threadId": call.turn.thread_id(),
            "turnId": call.turn.turn_id(),
            "continued": call.opened.is_none(),
            "backend": backend,
            "model": call.opened.as_ref().map(|opened| &opened.model),
        });
        let (step, ahead) = (Some(call.turn), VecDeque::new());
        let (echo, pacer) = (EchoFilter::default(), Pacer::default());
        let answer = AnswerFilter::new(match request.wants_json() {
            true => Undeclared::WhenKnown,
            false => Undeclared::AtOnce,
        });
        let patience = if request.settings.session_at_once { Duration::ZERO } else { LINGER };
        let opening = Some((frame("session", &session), Instant::now() + patience));
        let sent = 0;
        Self {
            step,
            named,
            folder,
            questions,
            spec,
            gather,
            echo,
            answer,
            pacer,
            opening,
            ahead,
            sent,
        }
    }

    /// The name of the call, by which it can be steered.
    pub fn call_id(&self) -> &str {
        &self.named.call_id
    }

    /// The next event; none after `[DONE]`.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.ahead.pop_front() {
                return Some(frame);
            }
            let due = self.due();
            let step = self.step.as_mut()?;
            // A question comes before the part that would end its step.
            let happened = tokio::select! {
                biased;
                told = self.questions.next() => told,
                part = step.next() => part.map_or(Happened::Ended, Happened::Part),
                () = when(due), if due.is_some() => Happened::Due,
            };
            match happened {
                Happened::Asked(question) => self.tell("interrupt", &question),
                Happened::Withdrawn(id) => self.tell("withdrawn", &json!({ "id": id })),
                Happened::Part(part) => self.confine(part),
                Happened::Due => self.release(),
                Happened::Ended => self.end(),
            }
        }
    }

    /// When something must be sent, if anything waits.
    fn due(&self) -> Option<Instant> {
        let opening = self.opening.as_ref().map(|(_, until)| *until);
        let parts = self.pacer.due().map(Instant::from_std);
        opening.into_iter().chain(parts).min()
    }

    /// A turn whose folder is no longer where it was is stopped, and says so.
    fn confine(&mut self, part: Part) {
        if let Some(err) = self.folder.lost() {
            if let Some(control) = self.named.calls.get(&self.named.call_id) {
                control.interrupt();
            }
            let error = json!({
                "message": err.to_string(), "kind": err.code(), "hint": err.hint(),
            });
            self.take(Part::Error { error });
        }
        self.folder.told(&part);
        self.take(part);
    }

    fn take(&mut self, part: Part) {
        let mut parts = Vec::new();
        for part in self.echo.push(part) {
            match &mut self.gather {
                Some(gather) => gather.push(&part),
                None => {
                    for part in self.answer.push(part) {
                        self.pacer.push(part, Instant::now().into_std(), &mut parts);
                    }
                }
            }
        }
        self.send(parts);
    }

    /// An event that is no part, behind the parts that came before it.
    fn tell(&mut self, event: &str, data: &impl serde::Serialize) {
        self.release();
        self.ahead.push_back(frame(event, data));
    }

    /// What was kept back.
    fn release(&mut self) {
        self.open();
        let mut parts = Vec::new();
        self.pacer.release(Instant::now().into_std(), &mut parts);
        self.send(parts);
    }

    /// The first event is behind nothing.
    fn open(&mut self) {
        self.ahead.extend(self.opening.take().map(|(frame, _)| frame));
    }

    fn send(&mut self, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.open();
        }
        for part in parts {
            let Some(part) = part.to_json(self.spec) else { continue };
            self.sent += 1;
            self.ahead.push_back(format!("id: {}\ndata: {part}\n\n", self.sent));
        }
    }

    fn end(&mut self) {
        self.step = None;
        self.release();
        if let Some(gather) = self.gather.take() {
            let generated = gather.finish();
            let last = match generated.errors.first() {
                None => frame("generated", &generated),
                Some(error) => frame("failed", &json!({ "error": error, "generated": &generated })),
            };
            self.ahead.push_back(last);
        }
        self.ahead.push_back("data: [DONE]\n\n".to_owned());
    }
}

enum Happened {
    Asked(Interrupt),
    Withdrawn(ApprovalId),
    Part(Part),
    /// What was kept back must go.
    Due,
    Ended,
}

async fn when(due: Option<Instant>) {
    if let Some(due) = due {
        sleep_until(due).await;
    }
}

fn frame(event: &str, data: &impl serde::Serialize) -> Frame {
    // Words of ours; they have no maps with keys that are not text.
    let data = serde_json::to_value(data).unwrap_or(Value::Null);
    format!("event: {event}\ndata: {data}\n\n")
}
