//! The task behind a turn: events in, parts out, questions asked, deadlines kept.

use std::time::Duration;

use bindery_core::interrupt::{Answer, Interrupt};
use bindery_core::map::answer_to_reply;
use bindery_core::map::app_server_to_part::{Cut, TurnMapper};
use bindery_core::part::Part;
use bindery_core::wire::app_server::notification::{Body, Notification, TurnError};
use bindery_core::wire::app_server::request::ServerRequest;
use bindery_core::wire::rpc::{RequestId, RpcError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::commands::Commands;
use super::gap::Gap;
use super::names::Names;
use super::questions::{Question, Questions, Said};
use super::reattach::Snapshot;
use super::response::Response;
use super::{Deadlines, Seat, TurnControl};
use crate::error::Error;
use crate::interrupts::Interrupts;
use crate::switchboard::Event;
use crate::transport::End;

/// Runs one turn to its end.
pub(super) struct Drive {
    pub(super) control: TurnControl,
    pub(super) mapper: TurnMapper,
    events: mpsc::Receiver<Event>,
    parts: mpsc::Sender<Part>,
    deadlines: Deadlines,
    pub(super) questions: Questions,
    /// Requests of ours that nobody waits for, such as the interrupt.
    pub(super) errands: JoinSet<()>,
    pub(super) clock: Clock,
    /// What keeps a lost connection from doubling or tearing what is told.
    pub(super) gap: Gap,
    pub(super) names: Names,
    /// Questions that another process was asked, under the names they had there.
    pub(super) known: Vec<(RequestId, Interrupt)>,
    /// `finish`, held back until it may be told.
    last: Option<Part>,
    /// Codex has begun to run the turn.
    pub(super) begun: bool,
    commands: Commands,
}

/// When patience ends.
pub(super) struct Clock {
    started: Instant,
    /// The last progress.
    last: Instant,
    /// Why Codex tries again, if that is all it has done since.
    retrying: Option<String>,
    /// When we asked Codex to stop.
    pub(super) stopping: Option<Instant>,
    /// When a question was last left to the reader, who has not been told to answer yet.
    left: Option<Instant>,
    pub(super) response: Response,
}

impl Clock {
    /// Something happened; that Codex tries again is no progress.
    fn note(&mut self, body: &Body) {
        match body {
            Body::Error(note) if note.will_retry => {
                let TurnError { message, additional_details, .. } = &note.error;
                let details = additional_details.iter().map(|details| format!(" ({details})"));
                self.retrying = Some(message.clone() + &details.collect::<String>());
            }
            _ => (self.last, self.retrying) = (Instant::now(), None),
        }
    }

    /// What to say of a turn that was silent for so long.
    fn silence(&self, idle: Duration) -> String {
        let retrying = self.retrying.iter().map(|why| format!(": {why}"));
        format!("Codex made no progress for {idle:?}{}", retrying.collect::<String>())
    }
}

/// What woke the drive.
enum Wake {
    Event(Option<Event>),
    Answered(Box<(Question, Said)>),
    CaughtUp(Result<Snapshot, Error>),
    Stop,
    Late(Limit),
}

/// Which patience ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// Codex did not confirm the interrupt.
    Interrupt,
    /// The turn took too long.
    Whole,
    /// Nothing moved.
    Idle,
    /// No further question came: the reader's step may end.
    Settled,
    /// None in sight.
    Far,
}

impl Drive {
    pub(super) fn new(
        control: TurnControl,
        mapper: TurnMapper,
        events: mpsc::Receiver<Event>,
        parts: mpsc::Sender<Part>,
        deadlines: Deadlines,
        questions: Questions,
    ) -> Self {
        let now = Instant::now();
        Self {
            control,
            mapper,
            events,
            parts,
            deadlines,
            questions,
            errands: JoinSet::new(),
            clock: Clock {
                started: now,
                last: now,
                retrying: None,
                stopping: None,
                left: None,
                response: Response::default(),
            },
            gap: Gap::default(),
            names: Names::default(),
            known: Vec::new(),
            last: None,
            begun: false,
            commands: Commands::default(),
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
                Wake::Answered(answered) => self.answered(answered.0, answered.1).await,
                Wake::CaughtUp(caught) => ours |= self.caught_up(caught).await,
                Wake::Stop => self.stop(),
                Wake::Late(Limit::Settled) => self.pause().await,
                Wake::Late(limit) => {
                    ours = limit != Limit::Far;
                    self.late(limit).await;
                }
            }
        }
        self.leave(seat, ours).await;
    }

    /// `ours` tells that we ended the turn and not Codex.
    async fn leave(mut self, seat: Seat, ours: bool) {
        if self.clock.stopping.is_some() {
            let TurnControl { server, thread_id, .. } = self.control.clone();
            let commands = std::mem::take(&mut self.commands);
            self.errands.spawn(commands.end(server, thread_id));
        }
        if ours {
            // Codex still runs it, so the thread stays taken until the interrupt is through; the
            // reader does not wait for that.
            self.say_last().await;
            self.wind_down().await;
        }
        self.hang_up().await;
        // Whoever hears the end may start the next turn at once.
        seat.give_back(self.mapper.ledger().for_next_turn());
        self.say_last().await;
        while self.errands.join_next().await.is_some() {}
    }

    /// Waits for our errands. What Codex says meanwhile must be taken, or their replies would wait
    /// behind it.
    async fn wind_down(&mut self) {
        loop {
            tokio::select! {
                biased;
                done = self.errands.join_next() => if done.is_none() { return },
                Some(event) = self.events.recv() => self.turn_away(event),
            }
        }
    }

    async fn hang_up(&mut self) {
        self.events.close();
        while let Some(event) = self.events.recv().await {
            self.turn_away(event);
        }
    }

    /// Codex waits forever for an answer, so what it still asks is refused.
    fn turn_away(&mut self, event: Event) {
        if let Event::Request(id, _) = event {
            self.refuse(id, "the turn is over");
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
            Some(answered) = self.questions.next() => Wake::Answered(Box::new(answered)),
            event = self.events.recv() => Wake::Event(event),
            Some(Ok(caught)) = self.gap.catching.join_next() => Wake::CaughtUp(caught),
        }
    }

    /// The next deadline.
    fn patience(&self) -> (Instant, Limit) {
        if let Some(asked) = self.clock.stopping {
            return (asked + self.deadlines.interrupt, Limit::Interrupt);
        }
        let whole = self.deadlines.whole.map(|whole| (self.clock.started + whole, Limit::Whole));
        // A person may take all the time there is.
        let idle = self.questions.is_empty().then(|| self.clock.last + self.deadlines.idle);
        let settle = self.deadlines.settle.map(|settle| match self.questions.any_call_left() {
            true => self.clock.response.settled(settle),
            false => settle,
        });
        let settled = self.clock.left.zip(settle).map(|(left, time)| left + time);
        let idle = idle.map(|at| (at, Limit::Idle));
        let settled = settled.map(|at| (at, Limit::Settled));
        let far = (Instant::now() + std::time::Duration::from_secs(86_400), Limit::Far);
        [whole, idle, settled].into_iter().flatten().min_by_key(|(at, _)| *at).unwrap_or(far)
    }

    pub(super) async fn event(&mut self, event: Event) {
        let Some(event) = self.gap.admit(event) else { return };
        self.hear(&event);
        match event {
            Event::Notification(notification) => self.told(&notification).await,
            Event::Raw(raw_value) => self.give(vec![Part::Raw { raw_value }]).await,
            Event::Request(id, request) => self.asked(id, &request).await,
            Event::Unreadable { why, head } => {
                let parts = self.mapper.unreadable(&why, &head);
                self.give(parts).await;
            }
            Event::Lost => {
                self.clock.response = Response::default();
                self.gap.open();
            }
            Event::Regained => self.catch_up(),
            Event::Closed(end) => self.closed(&end).await,
        }
    }

    async fn told(&mut self, notification: &Notification) {
        self.clock.note(&notification.body);
        if notification.address.thread_id.as_ref() == Some(&self.control.thread_id) {
            self.clock.response.note(&notification.body, &self.mapper);
            self.commands.note(&notification.body);
        }
        match &notification.body {
            Body::TurnStarted(_) | Body::ItemStarted(_) => self.begin(),
            Body::RequestResolved(id) => self.resolved(id).await,
            Body::ItemCompleted(note) => {
                self.questions.item_ended(&note.id);
                self.settle(&note.id).await;
            }
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
        let known = self.known.iter().position(|(known, _)| *known == id);
        let (parts, interrupt) = match known.map(|at| self.known.swap_remove(at)) {
            // It was told before; only its answer is missing.
            Some((_, interrupt)) => (Vec::new(), Some(interrupt)),
            None => self.mapper.ask(&Interrupts::token(), request),
        };
        match interrupt {
            Some(interrupt) => {
                self.clock.response.asked(&interrupt.call_id);
                if self.questions.ask(id, interrupt) {
                    self.clock.left = Some(Instant::now());
                }
            }
            None => self.refuse(id, "nobody here can answer this question"),
        }
        self.give(parts).await;
    }

    async fn answered(&mut self, question: Question, said: Said) {
        let Question { id, interrupt, .. } = question;
        self.clock.last = Instant::now();
        let answer = match said {
            Said::Answer(answer) => answer,
            Said::Nothing => self.no_answer(&interrupt, "nobody answered"),
            Said::Late => self.no_answer(&interrupt, "nobody answered in time"),
            Said::Unfit(why) => {
                let text = format!("an answer was not accepted and counts as no: {why}");
                let parts = self.mapper.notice("answer", &text);
                self.give(parts).await;
                self.no_answer(&interrupt, &text)
            }
        };
        let parts = self.mapper.answered(&interrupt, &answer);
        match answer_to_reply::reply(&interrupt.ask, &answer) {
            Ok(reply) => {
                self.questions.sent(id.clone(), interrupt);
                self.respond(id, Ok(reply));
            }
            Err(why) => self.refuse(id, &why),
        }
        self.give(parts).await;
    }

    fn no_answer(&self, interrupt: &Interrupt, why: &str) -> Answer {
        self.questions.refused(interrupt, why);
        Answer::refusal(&interrupt.ask, why)
    }

    /// Ends the reader's step: what is left to the reader is asked, and nothing else is to come
    /// before it is answered. The turn goes on with the answers, in the next step.
    async fn pause(&mut self) {
        self.clock.left = None;
        if !self.questions.any_left() {
            return;
        }
        for part in self.mapper.pause() {
            if self.send(part).await.is_err() {
                return;
            }
        }
    }

    /// Codex needs no answer any more. It is sent none, not even a no.
    pub(super) async fn resolved(&mut self, id: &serde_json::Value) {
        self.gap.confirmed(id);
        if let Some(question) = self.questions.resolved(id) {
            let parts = self.mapper.withdrawn(&question.interrupt);
            self.give(parts).await;
        }
    }

    fn refuse(&mut self, id: RequestId, why: &str) {
        let error = RpcError { code: -32601, message: why.to_owned(), data: None };
        self.respond(id, Err(error));
    }

    pub(super) fn stop(&mut self) {
        if self.clock.stopping.is_none() {
            self.clock.stopping = Some(Instant::now());
            self.control.server.switchboard().stopping(&self.control.thread_id);
            if self.begun {
                self.send_interrupt();
            }
        }
    }

    /// Codex has begun the turn. Before that it would refuse an interrupt and run on.
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) && self.clock.stopping.is_some() {
            self.send_interrupt();
        }
    }

    /// Sent once: Codex never answers a second one.
    pub(super) fn send_interrupt(&mut self) {
        let (control, within) = (self.control.clone(), self.deadlines.interrupt);
        self.errands.spawn(async move {
            let asked = control.server.interrupt(&control.thread_id, &control.turn_id, within);
            if let Err(err) = asked.await {
                tracing::debug!(turn = %control.turn_id, %err, "the interrupt was not confirmed");
            }
        });
    }

    async fn late(&mut self, limit: Limit) {
        let parts = match limit {
            Limit::Interrupt => self.mapper.stop(),
            Limit::Far | Limit::Settled => return,
            Limit::Whole | Limit::Idle => {
                self.stop();
                self.mapper.cut(&self.timeout(limit))
            }
        };
        self.give(parts).await;
    }

    fn timeout(&self, limit: Limit) -> Cut {
        let message = match (limit, self.deadlines.whole) {
            (Limit::Whole, Some(whole)) => format!("the turn took longer than {whole:?}"),
            _ => self.clock.silence(self.deadlines.idle),
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
