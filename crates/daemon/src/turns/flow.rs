//! A turn runs: its parts are kept, then shown; its questions are kept before anybody sees them.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use bindery_client::interrupts::State;
use bindery_client::turn::Turn;
use bindery_core::ids::ApprovalId;
use bindery_core::interrupt::{Answer, Ask};
use bindery_core::part::{Part, pace};
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::Instrument as _;

use super::Inner;
use super::close::Ending;
use super::confine::Confinement;
use super::lane::Job;
use super::log::Kind;
use super::open::{Opened, Scene, thread_usage};
use crate::clock::{self, Millis};
use crate::error::Error;
use crate::store::{Change, InterruptRow, InterruptState, TurnKind};

/// Parts that are kept in one go, at most.
const BURST: usize = 128;

/// How long a turn may wait for memory to begin in.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// A connection that lasts so long is none that is lost again and again.
const LASTING: Duration = Duration::from_secs(10);

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Open,
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

impl Inner {
    /// Runs one turn to its end, or until we stop.
    pub(super) async fn run(&self, tenant: &str, thread: &str, job: &Job) -> Result<(), Error> {
        let Some(row) = self.store.tenant(tenant).await? else { return Ok(()) };
        // Nothing of the turn is in memory while it waits.
        let admission = async {
            let room = self.room(&row).acquire_owned().await;
            let limit = row.settings.limits.request_bytes;
            let share = self.body_budget.share(tenant, limit, job.bytes, PATIENCE).await;
            (room, share)
        };
        let (_permit, share) = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Ok(()),
            admitted = admission => admitted,
        };
        let Some(mut scene) = self.scene(tenant, thread, &job.turn).await? else { return Ok(()) };
        // Needed to begin with; whoever takes the turn over later reads it again.
        let request = std::mem::take(&mut scene.turn.request);
        if !job.adopt {
            let start = Change::StartTurn { turn: job.turn.clone(), at: clock::now() };
            // Withdrawn meanwhile.
            if self.store.commit(vec![start]).await? != [true] {
                return Ok(());
            }
        }
        let flow = Flow::new(self, &scene, &request).await?;
        if let Some(err) = flow.confinement.broken().filter(|_| !job.adopt) {
            return flow.fail(&err).await;
        }
        if scene.turn.kind == TurnKind::Compact {
            return flow.compact(job.adopt).await;
        }
        let call = tracing::debug_span!(
            "worker.call",
            otel.kind = "client",
            worker.backend = scene.thread.backend,
            turn.adopted = job.adopt,
        );
        let opening = async {
            let share = share?;
            let opened = match job.adopt {
                true => self.adopt(&scene, request).await,
                false => self.open(&scene, request).await,
            };
            drop(share);
            opened
        };
        let opening = opening.instrument(call);
        let opened = tokio::select! {
            biased;
            opened = opening => opened,
            // What was not opened yet is left to the next daemon, which will say that it was lost.
            () = self.stop.cancelled() => return Ok(()),
        };
        match opened {
            Ok(opened) => flow.run(opened).await,
            Err(_) if self.stop.is_cancelled() => Ok(()),
            Err(err) => flow.fail(&err).await,
        }
    }
}

impl<'a> Flow<'a> {
    async fn new(
        inner: &'a Inner,
        scene: &'a Scene,
        request: &serde_json::Value,
    ) -> Result<Self, Error> {
        let asked = inner.asked(&scene.turn.id).await?.into_iter();
        let known = asked.map(|row| (row.interrupt.id, (Standing::Open, row.deadline))).collect();
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
        })
    }

    async fn run(mut self, opened: Opened) -> Result<(), Error> {
        let (mut opened, mut attempt) = (opened, 0);
        loop {
            let since = Instant::now();
            self.bind(&opened.turn).await?;
            // The worker has opened the folder meanwhile, or long ago.
            let moved = self.confined(&opened.turn, Vec::new());
            self.keep(&moved, Vec::new()).await?;
            match self.pump(&mut opened.turn).await? {
                Cut::Ended => return Ok(()),
                Cut::Stopping => return self.let_go(opened.turn).await,
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
                        Err(why) => return self.lost(last, &why).await,
                    }
                }
            }
        }
    }

    /// Writes down what the backend calls the thread and the turn.
    async fn bind(&self, turn: &Turn) -> Result<(), Error> {
        self.scene.live.set_control(turn.control());
        let (thread, row) = (&self.scene.thread, &self.scene.turn);
        let mut changes = Vec::new();
        if thread.session.is_none() {
            let session = turn.thread_id().to_string();
            let (thread, at) = (thread.id.clone(), clock::now());
            changes.push(Change::BindThread { thread, session, at });
        }
        if row.backend_turn.is_none() {
            let backend_turn = turn.turn_id().to_string();
            changes.push(Change::BindTurn { turn: row.id.clone(), backend_turn });
        }
        self.inner.store.commit(changes).await?;
        Ok(())
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
            self.inner.store.commit(changes).await?;
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
                (State::Open, Some(Standing::Open)) => {
                    // Asked again after a take-over; it may have been answered meanwhile.
                    let row = self.inner.store.interrupt(&text).await?;
                    deliver.extend(row.and_then(|row| row.answer).map(|answer| (token, answer)));
                }
                (State::Delivered(_), Some(Standing::Open)) => {
                    self.known.insert(token, (Standing::Closed, 0));
                    changes.push(Change::DeliverInterrupt { token: text });
                }
                (State::Over(why), Some(Standing::Open)) => {
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
            self.known.insert(token.clone(), (Standing::Closed, 0));
            let why = "nobody answered in time";
            let close = Change::CloseInterrupt {
                token: token.to_string(),
                state: InterruptState::Expired,
                why: why.to_owned(),
                at: now,
            };
            if self.inner.store.commit(vec![close]).await? == [true]
                && let Some(record) = self.scene.live.interrupts.get(&token)
            {
                let refusal = Answer::refusal(&record.interrupt.ask, why);
                let _ = self.scene.live.interrupts.answer(&token, refusal);
            }
        }
        Ok(())
    }

    /// The daemon stops: the turn runs on, and what it says meanwhile is fetched by the next one.
    /// It is read all the same until its connection is closed, because dropping it would stop it.
    async fn let_go(self, mut turn: Turn) -> Result<(), Error> {
        while turn.next().await.is_some() {}
        Ok(())
    }
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
