//! The task behind a turn: events in, parts out, questions asked, deadlines kept.

use std::collections::HashMap;
use std::sync::Arc;

use bindery_core::ids::ApprovalId;
use bindery_core::interrupt::{Answer, Interrupt};
use bindery_core::map::answer_to_reply;
use bindery_core::map::app_server_to_part::{Cut, TurnMapper};
use bindery_core::part::Part;
use bindery_core::wire::app_server::notification::{Body, Notification};
use bindery_core::wire::app_server::request::ServerRequest;
use bindery_core::wire::rpc::{RequestId, RpcError};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::gap::Gap;
use super::reattach::Snapshot;
use super::{Deadlines, Seat, TurnControl};
use crate::answerer::Answerer;
use crate::error::Error;
use crate::switchboard::Event;
use crate::transport::End;

/// Runs one turn to its end.
pub(super) struct Drive {
    pub(super) control: TurnControl,
    pub(super) mapper: TurnMapper,
    events: mpsc::Receiver<Event>,
    parts: mpsc::Sender<Part>,
    deadlines: Deadlines,
    answerer: Arc<dyn Answerer>,
    /// Answers being made; their ids lead back to the questions.
    answers: JoinSet<Option<Answer>>,
    pub(super) questions: HashMap<Id, Question>,
    /// Requests of ours that nobody waits for, such as the interrupt.
    pub(super) errands: JoinSet<()>,
    pub(super) clock: Clock,
    /// What keeps a lost connection from doubling or tearing what is told.
    pub(super) gap: Gap,
    /// `finish`, held back until it may be told.
    last: Option<Part>,
}

pub(super) struct Question {
    pub(super) id: RequestId,
    pub(super) interrupt: Interrupt,
    task: AbortHandle,
}

/// When patience ends.
pub(super) struct Clock {
    started: Instant,
    /// The last progress.
    last: Instant,
    /// When we asked Codex to stop.
    pub(super) stopping: Option<Instant>,
}

/// What woke the drive.
enum Wake {
    Event(Option<Event>),
    Answered(Id, Option<Answer>),
    CaughtUp(Result<Snapshot, Error>),
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
            gap: Gap::default(),
            last: None,
        }
    }

    /// Runs until `finish` is given and gives the seat back.
    pub(super) async fn run(mut self, seat: Seat) {
        let mut ours = false;
        let first = self.mapper.begin();
        self.give(first).await;
        while !self.mapper.is_finished() {
            match self.wake().await {
                Wake::Event(Some(event)) => self.event(event).await,
                Wake::Event(None) => self.closed(&End::closed()).await,
                Wake::Answered(task, answer) => self.answered(task, answer).await,
                Wake::CaughtUp(caught) => ours |= self.caught_up(caught).await,
                Wake::Stop => self.stop(),
                Wake::Late(what) => {
                    ours = true;
                    self.late(what).await;
                }
            }
        }
        self.leave(seat, ours).await;
    }

    /// `ours` tells that we ended the turn and not Codex.
    async fn leave(mut self, seat: Seat, ours: bool) {
        self.hang_up().await;
        let ledger = self.mapper.ledger().for_next_turn();
        if ours {
            // Codex still runs it, so the thread stays taken until the interrupt is through; the
            // reader does not wait for that.
            self.say_last().await;
            while self.errands.join_next().await.is_some() {}
            seat.give_back(ledger);
        } else {
            // Whoever hears the end may start the next turn at once.
            seat.give_back(ledger);
            self.say_last().await;
            while self.errands.join_next().await.is_some() {}
        }
    }

    /// Takes no more events. Codex waits forever for an answer, so what it still asks is refused.
    async fn hang_up(&mut self) {
        self.events.close();
        while let Some(event) = self.events.recv().await {
            if let Event::Request(id, _) = event {
                self.refuse(id, "the turn is over");
            }
        }
    }

    async fn say_last(&mut self) {
        if let Some(finish) = self.last.take() {
            let _ = self.send(finish).await;
        }
        // A channel nobody sends to takes the place of the reader's, which thereby ends.
        self.parts = mpsc::channel(1).0;
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
            Some(Ok(caught)) = self.gap.catching.join_next() => Wake::CaughtUp(caught),
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

    pub(super) async fn event(&mut self, event: Event) {
        let Some(event) = self.gap.admit(event) else { return };
        match event {
            Event::Notification(notification) => self.told(&notification).await,
            Event::Request(id, request) => self.asked(id, &request).await,
            Event::Unreadable { why, head } => {
                let parts = self.mapper.unreadable(&why, &head);
                self.give(parts).await;
            }
            Event::Lost => self.gap.open(),
            Event::Regained => self.catch_up(),
            Event::Closed(end) => self.closed(&end).await,
        }
    }

    async fn told(&mut self, notification: &Notification) {
        let retry = matches!(&notification.body, Body::Error(note) if note.will_retry);
        if !retry {
            self.clock.last = Instant::now();
        }
        match &notification.body {
            Body::RequestResolved(id) => self.withdraw(id).await,
            Body::ItemCompleted(note) => self.settle(&note.id).await,
            _ => {}
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
        if self.is_repeated(&id) {
            return;
        }
        let name = ApprovalId::new(format!("{}:{}", self.control.turn_id, show(&id)));
        let (parts, interrupt) = self.mapper.ask(&name, request);
        self.give(parts).await;
        let Some(interrupt) = interrupt else {
            return self.refuse(id, "nobody here can answer this question");
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
            Ok(reply) => self.respond(id, Ok(reply)),
            Err(why) => self.refuse(id, &why),
        }
        self.give(parts).await;
    }

    /// Codex needs no answer any more: the turn was interrupted, or another client answered. It is
    /// sent none, not even a no.
    pub(super) async fn withdraw(&mut self, id: &serde_json::Value) {
        self.gap.confirmed(id);
        let asked = |question: &Question| {
            serde_json::to_value(&question.id).is_ok_and(|known| known == *id)
        };
        let task = self.questions.iter().find(|(_, question)| asked(question)).map(|(id, _)| *id);
        if let Some(question) = task.and_then(|task| self.questions.remove(&task)) {
            question.task.abort();
            let parts = self.mapper.withdrawn(&question.interrupt);
            self.give(parts).await;
        }
    }

    fn refuse(&mut self, id: RequestId, why: &str) {
        let error = RpcError { code: -32601, message: why.to_owned(), data: None };
        self.respond(id, Err(error));
    }

    /// Sent once: Codex never answers a second one.
    pub(super) fn stop(&mut self) {
        if self.clock.stopping.replace(Instant::now()).is_none() {
            self.send_interrupt();
        }
    }

    pub(super) fn send_interrupt(&mut self) {
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

    pub(super) async fn closed(&mut self, end: &End) {
        let mut message = format!("Codex is gone: {}", end.status);
        if let Some(last) = end.stderr.trim().lines().last() {
            message.push_str(&format!(": {}", last.trim()));
        }
        let parts = self.mapper.cut(&Cut { kind: "closed".to_owned(), message });
        self.give(parts).await;
    }

    /// Waits for room: a slow reader slows the turn. A reader that left is noticed by `wake`.
    pub(super) async fn give(&mut self, parts: Vec<Part>) {
        let begin = Instant::now();
        for part in parts {
            if matches!(part, Part::Finish { .. }) {
                self.last = Some(part);
            } else if self.send(part).await.is_err() {
                break;
            }
        }
        // The time our reader takes is no silence of Codex's.
        self.clock.last += begin.elapsed();
    }

    async fn send(&mut self, part: Part) -> Result<(), mpsc::error::SendError<()>> {
        let may_stop = self.clock.stopping.is_none() && !self.mapper.is_finished();
        tokio::select! {
            biased;
            room = self.parts.reserve() => return room.map(|room| room.send(part)),
            () = self.control.stop.cancelled(), if may_stop => {}
        }
        // Somebody wants it stopped while nobody reads: ask Codex first, then go on waiting.
        self.stop();
        self.parts.reserve().await.map(|room| room.send(part))
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
