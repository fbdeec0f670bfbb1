//! The task behind a turn: events in, parts out, questions asked, deadlines kept.

use std::collections::HashMap;
use std::sync::Arc;

use bindery_core::ids::ApprovalId;
use bindery_core::interrupt::{Answer, Interrupt};
use bindery_core::map::answer_to_reply;
use bindery_core::map::app_server_to_part::{Cut, Ledger, TurnMapper};
use bindery_core::part::Part;
use bindery_core::wire::app_server::notification::{Body, Notification};
use bindery_core::wire::app_server::request::ServerRequest;
use bindery_core::wire::rpc::{RequestId, RpcError};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::{Deadlines, TurnControl};
use crate::answerer::Answerer;
use crate::switchboard::Event;
use crate::transport::End;

/// Runs one turn to its end.
pub(super) struct Drive {
    control: TurnControl,
    mapper: TurnMapper,
    events: mpsc::Receiver<Event>,
    parts: mpsc::Sender<Part>,
    deadlines: Deadlines,
    answerer: Arc<dyn Answerer>,
    /// Answers being made; their ids lead back to the questions.
    answers: JoinSet<Option<Answer>>,
    questions: HashMap<Id, Question>,
    /// Requests of ours that nobody waits for, such as the interrupt.
    errands: JoinSet<()>,
    clock: Clock,
}

struct Question {
    id: RequestId,
    interrupt: Interrupt,
    task: AbortHandle,
}

/// When patience ends.
struct Clock {
    started: Instant,
    /// The last progress.
    last: Instant,
    /// When we asked Codex to stop.
    stopping: Option<Instant>,
}

/// What woke the drive.
enum Wake {
    Event(Option<Event>),
    Answered(Id, Option<Answer>),
    Stop,
    Late(&'static str),
}

impl Drive {
    pub(super) fn new(
        control: TurnControl,
        mapper: TurnMapper,
        events: mpsc::Receiver<Event>,
        parts: mpsc::Sender<Part>,
        deadlines: Deadlines,
        answerer: Arc<dyn Answerer>,
    ) -> Self {
        let now = Instant::now();
        Self {
            control,
            mapper,
            events,
            parts,
            deadlines,
            answerer,
            answers: JoinSet::new(),
            questions: HashMap::new(),
            errands: JoinSet::new(),
            clock: Clock { started: now, last: now, stopping: None },
        }
    }

    /// Runs until `finish` is given; gives the thread's totals for its next turn.
    pub(super) async fn run(mut self) -> Ledger {
        let first = self.mapper.begin();
        self.give(first).await;
        while !self.mapper.is_finished() {
            match self.wake().await {
                Wake::Event(Some(event)) => self.event(event).await,
                Wake::Event(None) => self.closed(&End::closed()).await,
                Wake::Answered(task, answer) => self.answered(task, answer).await,
                Wake::Stop => self.stop(),
                Wake::Late(what) => self.late(what).await,
            }
        }
        // The interrupt's reply is not worth waiting for; its sending is.
        while self.errands.join_next().await.is_some() {}
        self.mapper.ledger().for_next_turn()
    }

    async fn wake(&mut self) -> Wake {
        let (at, what) = self.patience();
        let stopping = self.clock.stopping.is_some();
        tokio::select! {
            biased;
            () = sleep_until(at) => Wake::Late(what),
            () = self.control.stop.cancelled(), if !stopping => Wake::Stop,
            () = self.parts.closed(), if !stopping => Wake::Stop,
            Some(done) = self.answers.join_next_with_id() => match done {
                Ok((task, answer)) => Wake::Answered(task, answer),
                // A panic or a withdrawal is no answer.
                Err(err) => Wake::Answered(err.id(), None),
            },
            event = self.events.recv() => Wake::Event(event),
        }
    }

    /// The next deadline and its name.
    fn patience(&self) -> (Instant, &'static str) {
        if let Some(asked) = self.clock.stopping {
            return (asked + self.deadlines.interrupt, "interrupt");
        }
        let whole = self.deadlines.whole.map(|whole| (self.clock.started + whole, "turn"));
        // A person may take all the time there is.
        let idle =
            self.questions.is_empty().then(|| (self.clock.last + self.deadlines.idle, "idle"));
        let far = (Instant::now() + std::time::Duration::from_secs(86_400), "far");
        [whole, idle].into_iter().flatten().min_by_key(|(at, _)| *at).unwrap_or(far)
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Notification(notification) => self.told(&notification).await,
            Event::Request(id, request) => self.asked(id, &request).await,
            Event::Unreadable { why, head } => {
                let parts = self.mapper.unreadable(&why, &head);
                self.give(parts).await;
            }
            Event::Closed(end) => self.closed(&end).await,
        }
    }

    async fn told(&mut self, notification: &Notification) {
        let retry = matches!(&notification.body, Body::Error(note) if note.will_retry);
        if !retry {
            self.clock.last = Instant::now();
        }
        if let Body::RequestResolved(id) = &notification.body {
            self.withdraw(id);
        }
        let parts = self.mapper.notify(notification);
        self.give(parts).await;
        for child in self.mapper.agent_threads() {
            for event in self.adopt(&child) {
                Box::pin(self.event(event)).await;
            }
        }
    }

    fn adopt(&self, child: &bindery_core::ids::ThreadId) -> Vec<Event> {
        self.control.server.switchboard().adopt(child, &self.control.thread_id)
    }

    async fn asked(&mut self, id: RequestId, request: &ServerRequest) {
        self.clock.last = Instant::now();
        let name = ApprovalId::new(format!("{}:{}", self.control.turn_id, show(&id)));
        let (parts, interrupt) = self.mapper.ask(&name, request);
        self.give(parts).await;
        let Some(interrupt) = interrupt else {
            return self.refuse(id, "this question is not understood");
        };
        let task = self.answers.spawn(self.answerer.answer(interrupt.clone()));
        self.questions.insert(task.id(), Question { id, interrupt, task });
    }

    async fn answered(&mut self, task: Id, answer: Option<Answer>) {
        let Some(Question { id, interrupt, .. }) = self.questions.remove(&task) else { return };
        self.clock.last = Instant::now();
        let refusal = || Answer::refusal(&interrupt.ask, "nobody answered");
        let answer = answer.unwrap_or_else(refusal);
        let (answer, reply) = match answer_to_reply::reply(&interrupt.ask, &answer) {
            Ok(reply) => (answer, Ok(reply)),
            Err(why) => {
                let text = format!("an answer was not accepted and counts as no: {why}");
                let parts = self.mapper.notice("answer", &text);
                self.give(parts).await;
                let refusal = refusal();
                let reply = answer_to_reply::reply(&interrupt.ask, &refusal);
                (refusal, reply)
            }
        };
        let parts = self.mapper.answered(&interrupt, &answer);
        match reply {
            Ok(reply) => {
                let peer = self.control.server.peer().clone();
                self.errands.spawn(async move { drop(peer.respond(&id, reply).await) });
            }
            Err(why) => self.refuse(id, &why),
        }
        self.give(parts).await;
    }

    /// Codex needs no answer any more: the turn was interrupted, or another client answered.
    fn withdraw(&mut self, id: &serde_json::Value) {
        for question in self.questions.values() {
            if serde_json::to_value(&question.id).is_ok_and(|known| known == *id) {
                question.task.abort();
            }
        }
    }

    fn refuse(&mut self, id: RequestId, why: &str) {
        let peer = self.control.server.peer().clone();
        let error = RpcError { code: -32601, message: why.to_owned(), data: None };
        self.errands.spawn(async move { drop(peer.respond_error(&id, &error).await) });
    }

    /// Sent once: Codex never answers a second one.
    fn stop(&mut self) {
        if self.clock.stopping.replace(Instant::now()).is_some() {
            return;
        }
        let (control, within) = (self.control.clone(), self.deadlines.interrupt);
        self.errands.spawn(async move {
            let asked = control.server.interrupt(&control.thread_id, &control.turn_id, within);
            if let Err(err) = asked.await {
                tracing::debug!(turn = %control.turn_id, %err, "the interrupt was not confirmed");
            }
        });
    }

    async fn late(&mut self, what: &str) {
        let parts = match what {
            "interrupt" => self.mapper.stop(),
            "far" => return,
            _ => {
                self.stop();
                self.mapper.cut(&self.timeout(what))
            }
        };
        self.give(parts).await;
    }

    fn timeout(&self, what: &str) -> Cut {
        let message = match (what, self.deadlines.whole) {
            ("turn", Some(whole)) => format!("the turn took longer than {whole:?}"),
            _ => format!("Codex made no progress for {:?}", self.deadlines.idle),
        };
        Cut { kind: "timeout".to_owned(), message }
    }

    async fn closed(&mut self, end: &End) {
        let mut message = format!("Codex is gone: {}", end.status);
        if let Some(last) = end.stderr.trim().lines().last() {
            message.push_str(&format!(": {}", last.trim()));
        }
        let parts = self.mapper.cut(&Cut { kind: "closed".to_owned(), message });
        self.give(parts).await;
    }

    /// Waits for room: a slow reader slows the turn. A reader that left is noticed by `wake`.
    async fn give(&mut self, parts: Vec<Part>) {
        for part in parts {
            let stopped = self.control.stop.clone();
            tokio::select! {
                biased;
                sent = self.parts.send(part.clone()) => if sent.is_err() { return },
                // Somebody wants it stopped while nobody reads: ask Codex first, then go on waiting.
                () = stopped.cancelled(), if self.clock.stopping.is_none() => {
                    self.stop();
                    if self.parts.send(part).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

impl Drop for Drive {
    /// Answers that are still being made are of no use to anybody.
    fn drop(&mut self) {
        self.answers.abort_all();
        for (_, question) in self.questions.drain() {
            question.task.abort();
        }
    }
}

fn show(id: &RequestId) -> String {
    match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::Text(text) => text.clone(),
    }
}
