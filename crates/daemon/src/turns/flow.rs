//! A turn runs: its parts are kept, then shown; its questions are kept before anybody sees them.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use bindery_client::interrupts::State;
use bindery_client::turn::Turn;
use bindery_core::ids::ApprovalId;
use bindery_core::interrupt::{Answer, Ask};
use bindery_core::part::{Part, pace};
use bindery_core::usage::Usage;
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Inner;
use super::close::Ending;
use super::confine::Confinement;
use super::log::Kind;
use super::open::{Opened, Scene, thread_usage, told};
use crate::clock::{self, Millis};
use crate::error::Error;
use crate::store::{Change, InterruptRow, InterruptState};

/// Parts that are kept in one go, at most.
const BURST: usize = 128;

/// A connection that lasts so long is none that is lost again and again.
const LASTING: Duration = Duration::from_secs(10);

/// What a question is told that was not answered in time.
const LATE: &str = "nobody answered in time";

/// A turn on its way.
pub(super) struct Flow<'a> {
    pub(super) inner: &'a Inner,
    pub(super) scene: &'a Scene,
    pub(super) changes: watch::Receiver<u64>,
    /// Questions, how they stand in the store, and when they are too late.
    known: HashMap<ApprovalId, (Standing, Millis)>,
    /// Questions whose parts have come; one is told after what it is about.
    announced: HashSet<ApprovalId>,
    /// Its tools that are served by a webhook are no questions.
    hooked: std::collections::BTreeSet<String>,
    /// The error that ended it, if one did.
    pub(super) error: Option<serde_json::Value>,
    pub(super) confinement: Confinement,
    stopping: bool,
    /// Tokens of its steps so far.
    pub(super) used: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Open,
    /// Its answer is on its way.
    Answered,
    /// Too late to be answered; the worker is told so when it asks again.
    Expired,
    Closed,
}

/// Why a turn is no longer heard.
enum Cut {
    /// It has ended.
    Ended,
    /// The connection was lost, with these last words of ours.
    Lost(Vec<Part>),
    /// The daemon stops.
    Stopping,
}

impl<'a> Flow<'a> {
    pub(super) async fn new(
        inner: &'a Inner,
        scene: &'a Scene,
        request: &serde_json::Value,
    ) -> Result<Self, Error> {
        let asked = inner.asked(&scene.turn.id).await?.into_iter();
        let standing = |row: &InterruptRow| match row.state {
            InterruptState::Expired => Standing::Expired,
            InterruptState::Answered => Standing::Answered,
            _ => Standing::Open,
        };
        let known = asked.map(|row| (row.interrupt.id.clone(), (standing(&row), row.deadline)));
        let known = known.collect();
        let used = match scene.turn.last {
            0 => Usage::default(),
            _ => used(&told(&*inner.store, &scene.turn.id).await?),
        };
        let hooked = scene.tenant.settings.tools.iter().map(|tool| tool.name.clone()).collect();
        Ok(Self {
            inner,
            scene,
            changes: scene.live.interrupts.watch(),
            known,
            announced: HashSet::new(),
            hooked,
            error: None,
            confinement: Confinement::of(inner, scene, request),
            stopping: false,
            used,
        })
    }

    pub(super) async fn run(mut self, opened: Opened) -> Result<(), Error> {
        let (mut opened, mut attempt) = (opened, 0);
        loop {
            let since = Instant::now();
            let cut = match self.hear(&mut opened.turn).await {
                Ok(Cut::Stopping) => return self.let_go(opened.turn).await,
                // What cannot be written when we stop is left to the next daemon.
                Err(_) if self.inner.stop.is_cancelled() => return self.let_go(opened.turn).await,
                cut => cut?,
            };
            match cut {
                Cut::Ended | Cut::Stopping => return Ok(()),
                Cut::Lost(last) => {
                    if self.inner.stop.is_cancelled() {
                        return Ok(());
                    }
                    if let Some(why) = &self.scene.live.gone {
                        return self.lost(last, why).await;
                    }
                    drop(opened);
                    attempt = if since.elapsed() > LASTING { 0 } else { attempt + 1 };
                    match self.again(attempt).await {
                        Ok(again) => opened = again,
                        Err(_) if self.inner.stop.is_cancelled() => return Ok(()),
                        Err(why) => return self.lost(last, &why).await,
                    }
                }
            }
        }
    }

    /// Hears a turn from its beginning, or from where it is taken over.
    async fn hear(&mut self, turn: &mut Turn) -> Result<Cut, Error> {
        self.bind(turn).await?;
        // The worker has opened the folder meanwhile, or long ago.
        let moved = self.confined(turn, Vec::new());
        self.keep(&moved, Vec::new()).await?;
        self.pump(turn).await
    }

    /// Writes down what the backend calls the turn; what it calls the thread is known since it was
    /// asked for the turn.
    async fn bind(&self, turn: &Turn) -> Result<(), Error> {
        self.scene.live.set_control(turn.control());
        let row = &self.scene.turn;
        if row.backend_turn.is_none() {
            let backend_turn = turn.turn_id().to_string();
            self.commit(vec![Change::BindTurn { turn: row.id.clone(), backend_turn }]).await?;
        }
        self.scene.live.leave_start();
        Ok(())
    }

    /// Commits, as soon as that can be done.
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<bool>, Error> {
        self.inner.holder().commit(&self.scene.live, changes).await
    }

    async fn pump(&mut self, turn: &mut Turn) -> Result<Cut, Error> {
        let mut lost: Vec<Part> = Vec::new();
        loop {
            let late = self.next_deadline();
            tokio::select! {
                biased;
                () = self.inner.stop.cancelled() => return Ok(Cut::Stopping),
                () = self.scene.live.stop.cancelled(), if !self.stopping => {
                    self.stopping = true;
                    turn.control().interrupt();
                }
                part = turn.next() => {
                    let Some(part) = part else { return Ok(Cut::Lost(lost)) };
                    let parts = burst(turn, part);
                    let parts = self.confined(turn, parts);
                    match parts.iter().position(is_loss) {
                        _ if !lost.is_empty() => lost.extend(parts),
                        Some(at) => {
                            self.keep(&parts[..at], Vec::new()).await?;
                            lost.extend_from_slice(&parts[at..]);
                        }
                        None if self.died(&parts) => return Ok(Cut::Lost(parts)),
                        None => if self.take(&parts).await? { return Ok(Cut::Ended) },
                    }
                }
                Ok(()) = self.changes.changed() => self.keep(&[], Vec::new()).await?,
                () = sleep(clock::until(late.unwrap_or(Millis::MAX))), if late.is_some() => {
                    self.expire().await?;
                }
            }
        }
    }

    /// Keeps parts; true if they end the turn.
    async fn take(&mut self, parts: &[Part]) -> Result<bool, Error> {
        for part in parts {
            if let Part::Error { error } = part {
                self.error = Some(error.clone());
            }
        }
        match parts.last().and_then(Ending::of) {
            Some(ending) => {
                let usage = parts.last().and_then(thread_usage);
                self.end(parts, ending, usage, "the turn has ended").await.map(|()| true)
            }
            None => self.keep(parts, Vec::new()).await.map(|()| false),
        }
    }

    /// Keeps parts and what has become of the questions, then shows them.
    pub(super) async fn keep(
        &mut self,
        parts: &[Part],
        more: Vec<(Kind, String)>,
    ) -> Result<(), Error> {
        self.used = self.used.plus(&used(parts));
        self.keep_with(parts, more, Vec::new()).await
    }

    pub(super) async fn keep_with(
        &mut self,
        parts: &[Part],
        more: Vec<(Kind, String)>,
        mut changes: Vec<Change>,
    ) -> Result<(), Error> {
        let mut events = Vec::with_capacity(parts.len() + more.len());
        for part in parts {
            if let Part::ToolApprovalRequest { approval_id, .. } = part {
                self.announced.insert(approval_id.clone());
            }
            let json = serde_json::to_string(part);
            let json = json.map_err(|err| Error::Internal(err.to_string()))?;
            events.push((Kind::Part, json));
        }
        let deliver = self.sync(&mut events, &mut changes).await?;
        events.extend(more);
        let log = &self.scene.live.log;
        let shown = if events.is_empty() {
            Vec::new()
        } else {
            let (shown, append) = log.next(&events);
            // First of all: what follows may refer to it.
            changes.insert(0, append);
            shown
        };
        if !changes.is_empty() {
            let told = changes.iter().any(|change| matches!(change, Change::AddDelivery(_)));
            self.commit(changes).await?;
            if told {
                self.inner.hooks.wake();
            }
        }
        log.show(shown);
        for (token, answer) in deliver {
            // Answered while nobody heard the turn.
            let _ = self.scene.live.interrupts.answer(&token, answer);
        }
        Ok(())
    }

    /// What has become of the questions since we last looked.
    async fn sync(
        &mut self,
        events: &mut Vec<(Kind, String)>,
        changes: &mut Vec<Change>,
    ) -> Result<Vec<(ApprovalId, Answer)>, Error> {
        self.changes.mark_unchanged();
        let (mut deliver, session) = (Vec::new(), self.session());
        for record in self.scene.live.interrupts.records() {
            let token = record.interrupt.id.clone();
            if self.is_hooked(&record.interrupt.ask) {
                continue;
            }
            let told = matches!(record.interrupt.ask, Ask::ToolCall { .. })
                || self.announced.contains(&token)
                || record.interrupt.thread_id.as_str() != session;
            if !told && !self.known.contains_key(&token) {
                continue;
            }
            let text = token.to_string();
            match (&record.state, self.known.get(&token).map(|(standing, _)| *standing)) {
                (_, None) => {
                    let row = self.question(&record);
                    self.known.insert(token, (Standing::Open, row.deadline));
                    events.push((Kind::Interrupt, crate::interrupts::view(&row).to_string()));
                    changes.extend(self.inner.hooks.opened(&self.scene.tenant, &row)?);
                    changes.push(Change::OpenInterrupt(Box::new(row)));
                }
                (State::Open, Some(Standing::Open | Standing::Answered)) => {
                    // Asked again after a take-over; it may have been answered meanwhile.
                    let row = self.inner.store.interrupt(&text).await?;
                    deliver.extend(row.and_then(|row| row.answer).map(|answer| (token, answer)));
                }
                (State::Open, Some(Standing::Expired)) => {
                    deliver.push((token, Answer::refusal(&record.interrupt.ask, LATE)));
                }
                (State::Delivered(_), Some(Standing::Open | Standing::Answered)) => {
                    self.known.insert(token, (Standing::Closed, 0));
                    changes.push(Change::DeliverInterrupt { token: text });
                }
                (State::Over(why), Some(Standing::Open | Standing::Answered)) => {
                    self.known.insert(token, (Standing::Closed, 0));
                    let (state, why, at) = (InterruptState::Over, why.clone(), clock::now());
                    changes.push(Change::CloseInterrupt { token: text, state, why, at });
                }
                _ => {}
            }
        }
        Ok(deliver)
    }

    /// The backend's name of the thread; the questions of sub-agents have another.
    fn session(&self) -> String {
        let control = self.scene.live.control();
        control.map(|control| control.thread_id().to_string()).unwrap_or_default()
    }

    fn is_hooked(&self, ask: &Ask) -> bool {
        matches!(ask, Ask::ToolCall { tool, namespace: None, .. } if self.hooked.contains(tool))
    }

    fn question(&self, record: &bindery_client::interrupts::Record) -> InterruptRow {
        let now = clock::now();
        InterruptRow {
            token: record.interrupt.id.to_string(),
            tenant: self.scene.tenant.id.clone(),
            thread: self.scene.thread.id.clone(),
            turn: self.scene.turn.id.clone(),
            request: json!(record.request),
            interrupt: record.interrupt.clone(),
            state: InterruptState::Open,
            answer: None,
            answered_by: None,
            why: None,
            opened: now,
            deadline: clock::after(now, self.inner.config.answer()),
            closed: None,
        }
    }

    fn next_deadline(&self) -> Option<Millis> {
        let open = self.known.values().filter(|(standing, _)| *standing == Standing::Open);
        open.map(|(_, deadline)| *deadline).min()
    }

    /// No answer in time means no.
    async fn expire(&mut self) -> Result<(), Error> {
        let now = clock::now();
        let late = |(standing, deadline): &(Standing, Millis)| {
            *standing == Standing::Open && *deadline <= now
        };
        let tokens: Vec<ApprovalId> =
            self.known.iter().filter(|(_, known)| late(known)).map(|(t, _)| t.clone()).collect();
        for token in tokens {
            let close = Change::CloseInterrupt {
                token: token.to_string(),
                state: InterruptState::Expired,
                why: LATE.to_owned(),
                at: now,
            };
            // An answer that was quicker is delivered when the worker asks again.
            let standing = match self.commit(vec![close]).await? == [true] {
                true => Standing::Expired,
                false => Standing::Answered,
            };
            self.known.insert(token, (standing, 0));
        }
        // A worker that has not asked again yet, after a daemon's end, is told when it does.
        self.keep(&[], Vec::new()).await
    }

    /// The daemon stops: the turn runs on, and what it says meanwhile is fetched by the next one.
    /// It is read all the same until its connection is closed, because dropping it would stop it.
    async fn let_go(self, mut turn: Turn) -> Result<(), Error> {
        self.scene.live.leave_start();
        while turn.next().await.is_some() {}
        Ok(())
    }
}

/// Tokens of these parts' steps.
pub(super) fn used(parts: &[Part]) -> Usage {
    let steps = parts.iter().filter_map(|part| match part {
        Part::Finish { usage, .. } => Some(usage),
        _ => None,
    });
    steps.fold(Usage::default(), |all, step| all.plus(step))
}

/// What is there of a turn without waiting, up to a `finish` that ends a step; neighbouring deltas
/// are one.
fn burst(turn: &mut Turn, first: Part) -> Vec<Part> {
    let mut parts = vec![first];
    while parts.len() < BURST
        && Ending::of(&parts[parts.len() - 1]).is_none()
        && let Some(Some(part)) = turn.next().now_or_never()
    {
        parts.push(part);
    }
    pace::joined(parts)
}

/// Whether the connection, and not the turn, has come to an end.
fn is_loss(part: &Part) -> bool {
    let Part::Error { error } = part else { return false };
    error["kind"] == "closed" || error["kind"] == "detached"
}
