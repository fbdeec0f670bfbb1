//! A turn ends: once, with a reason, for its readers, its thread and its questions.

use std::sync::Arc;

use bindery_core::part::Part;
use bindery_core::usage::{FinishReason, Unified, Usage};
use serde_json::{Value, json};

use super::flow::{Flow, used};
use super::log::Kind;
use super::{Inner, Live};
use crate::clock;
use crate::error::Error;
use crate::store::{Change, TurnEnd, TurnRow, TurnState};

/// How a turn ended, by its last part.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    reason: Unified,
}

impl Ending {
    /// The end that a part is; none for what ends only a step.
    pub(super) fn of(part: &Part) -> Option<Self> {
        let Part::Finish { finish_reason, .. } = part else { return None };
        let reason = finish_reason.unified;
        (reason != Unified::ToolCalls).then_some(Self { reason })
    }

    pub(super) fn success() -> Self {
        Self { reason: Unified::Stop }
    }

    fn failure() -> Self {
        Self { reason: Unified::Error }
    }

    fn state(&self, failed: bool) -> TurnState {
        match self.reason {
            Unified::Interrupted => TurnState::Interrupted,
            Unified::Error => TurnState::Failed,
            Unified::Length | Unified::ContentFilter if failed => TurnState::Failed,
            _ => TurnState::Completed,
        }
    }
}

impl Flow<'_> {
    /// Keeps the last parts, and that they are the last.
    pub(super) async fn end(
        &mut self,
        parts: &[Part],
        ending: Ending,
        thread_usage: Option<Value>,
        why: &str,
    ) -> Result<(), Error> {
        self.used = self.used.plus(&used(parts));
        let state = match self.confinement.is_broken() {
            true => TurnState::Failed,
            false => ending.state(self.error.is_some()),
        };
        let error = self.error.clone().filter(|_| state == TurnState::Failed);
        let error = error.as_ref().map(problem);
        let at = clock::now();
        let (thread, turn) = (&self.scene.thread.id, &self.scene.turn.id);
        let resumable = state != TurnState::Completed;
        let end = TurnEnd {
            turn: turn.clone(),
            state,
            error: error.clone(),
            resumable,
            usage: Some(json!(self.used)),
            at,
        };
        let told = self.inner.hooks.ended(&self.scene.tenant, &self.scene.turn, &end);
        let mut changes = vec![
            Change::EndTurn(Box::new(end)),
            Change::CloseInterrupts { turn: turn.clone(), why: why.to_owned(), at },
        ];
        changes.extend(told);
        if let Some(usage) = thread_usage {
            changes.push(Change::CountThread { thread: thread.clone(), usage, at });
        }
        let last = (Kind::End, end_event(state, error.as_ref(), resumable));
        self.keep_with(parts, vec![last], changes).await?;
        self.inner.live().remove(turn);
        let span = tracing::Span::current();
        span.record("turn.state", tracing::field::debug(state));
        if state == TurnState::Failed {
            span.record("otel.status_code", "ERROR");
        }
        tracing::info!(turn, thread, ?state, "turn over");
        Ok(())
    }

    /// Whether a turn that was taken over ended with its worker, and not because it was stopped.
    pub(super) fn died(&self, parts: &[Part]) -> bool {
        let ending = parts.last().and_then(Ending::of);
        self.scene.live.gone.is_some()
            && !self.scene.live.stop.is_cancelled()
            && ending.is_some_and(|ending| ending.reason == Unified::Interrupted)
    }

    /// The worker is gone, and the turn with it.
    pub(super) async fn lost(mut self, last: Vec<Part>, why: &str) -> Result<(), Error> {
        let message = format!("the worker ended: {why}");
        let last =
            if last.is_empty() { self.last_words(Unified::Error, "worker_gone") } else { last };
        self.error = Some(json!({ "message": message, "kind": "worker_gone" }));
        let last = blamed(last, &message);
        let ending = last.last().and_then(Ending::of).unwrap_or_else(Ending::failure);
        self.end(&last, ending, None, &message).await
    }

    /// The turn could not be started, or not be taken over.
    pub(super) async fn fail(mut self, err: &Error) -> Result<(), Error> {
        tracing::warn!(turn = self.scene.turn.id, %err, "the turn does not run");
        let error = json!({ "message": err.to_string(), "kind": err.code(), "hint": err.hint() });
        self.error = Some(error.clone());
        let mut parts = self.last_words(Unified::Error, err.code());
        parts.insert(parts.len() - 1, Part::Error { error });
        self.end(&parts, Ending::failure(), None, &err.to_string()).await
    }

    /// Somebody wanted the turn stopped before the backend was asked for it.
    pub(super) async fn withdraw(mut self) -> Result<(), Error> {
        let parts = self.last_words(Unified::Interrupted, "withdrawn");
        let ending = Ending { reason: Unified::Interrupted };
        self.end(&parts, ending, None, "the turn was stopped").await
    }

    /// The end of a turn of which the backend has told nothing, or nothing more.
    fn last_words(&self, reason: Unified, raw: &str) -> Vec<Part> {
        let silent = self.scene.live.log.last() == 0;
        let start = silent.then(|| Part::StreamStart { warnings: Vec::new() });
        start.into_iter().chain([finish(reason, raw)]).collect()
    }
}

/// Ends a turn that has not begun.
pub(super) async fn withdraw(inner: &Arc<Inner>, turn: &TurnRow, live: &Live) -> Result<(), Error> {
    // One that is being begun is ended where it runs, and one that is being ended ends once.
    let Ok(_dequeue) = live.dequeue.try_lock() else { return Ok(()) };
    let row = inner.store.turn(&turn.tenant, &turn.id).await?;
    if row.is_none_or(|row| row.state != TurnState::Queued) {
        return Ok(());
    }
    let state = TurnState::Interrupted;
    let parts =
        [Part::StreamStart { warnings: Vec::new() }, finish(Unified::Interrupted, "withdrawn")];
    let mut events = Vec::new();
    for part in &parts {
        let json = serde_json::to_string(part).map_err(|err| Error::Internal(err.to_string()))?;
        events.push((Kind::Part, json));
    }
    events.push((Kind::End, end_event(state, None, true)));
    let (shown, append) = live.log.next(&events);
    let at = clock::now();
    let end =
        TurnEnd { turn: turn.id.clone(), state, error: None, resumable: true, usage: None, at };
    let tenant = inner.store.tenant(&turn.tenant).await?;
    let told = tenant.map(|tenant| inner.hooks.ended(&tenant, turn, &end)).unwrap_or_default();
    let mut changes = vec![append, Change::EndTurn(Box::new(end))];
    changes.extend(told);
    match inner.store.commit(changes).await {
        // It stays in its lane, and is ended there when its turn comes.
        Err(err) if err.is_passing() => return Ok(()),
        outcome => drop(outcome?),
    }
    inner.leave(&turn.thread, &turn.id);
    inner.hooks.wake();
    live.log.show(shown);
    inner.live().remove(&turn.id);
    Ok(())
}

/// Ends a turn that could not be run for a reason of ours: every turn ends.
pub(super) async fn abandon(inner: &Inner, tenant: &str, turn: &str, err: &Error) {
    let live = inner.live().get(turn).cloned();
    let (Some(live), Ok(Some(row))) = (live, inner.store.turn(tenant, turn).await) else { return };
    let scene = inner.scene(tenant, &row.thread, turn).await;
    if let Ok(Some(scene)) = scene
        && let Ok(flow) = Flow::new(inner, &scene, &scene.turn.request).await
        && let Err(err) = flow.fail(err).await
    {
        tracing::error!(turn, %err, last = live.log.last(), "a turn could not be ended");
    }
}

/// The last words of a turn, with the worker's end as their reason.
fn blamed(mut last: Vec<Part>, message: &str) -> Vec<Part> {
    let reason = json!({ "message": message, "kind": "worker_gone" });
    let mut told = false;
    for part in &mut last {
        match part {
            Part::Error { error } => (*error, told) = (reason.clone(), true),
            // A worker that was asked to end says so of its turns, as if somebody had stopped them.
            Part::Finish { finish_reason, .. } if finish_reason.unified != Unified::ToolCalls => {
                *finish_reason = FinishReason::new(Unified::Error, "worker_gone");
            }
            _ => {}
        }
    }
    if !told {
        let end = last.len().saturating_sub(1);
        last.insert(end, Part::Error { error: reason });
    }
    last
}

pub(super) fn finish(reason: Unified, raw: &str) -> Part {
    Part::Finish {
        usage: Usage::default(),
        finish_reason: FinishReason::new(reason, raw),
        provider_metadata: None,
    }
}

fn end_event(state: TurnState, error: Option<&Value>, resumable: bool) -> String {
    let mut event = json!({ "state": state, "resumable": resumable });
    if let Some(error) = error {
        event["error"] = error.clone();
    }
    event.to_string()
}

/// An error part's content as `{code, message}`.
fn problem(error: &Value) -> Value {
    json!({ "code": error["kind"], "message": error["message"] })
}
