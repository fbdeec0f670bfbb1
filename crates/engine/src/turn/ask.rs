//! One question to the model: its answer is told while it comes, its calls run while it goes on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{RwLock, mpsc};

use super::asking::{Asking, Happened};
use super::{Turn, TurnFault};
use crate::item::HistoryItem;
use crate::model::{Answered, ModelError, ModelEvent, ModelRequest};
use crate::tools::{Ended, Router};

/// Events that may wait between the wire and the loop.
const EVENTS: usize = 64;

/// Answers cut after something binding that are gone on from, before the turn gives up.
const MOST_CUTS: u32 = 5;

type Calls = FuturesUnordered<BoxFuture<'static, (usize, Ended)>>;

/// How a response ended.
enum Heard {
    /// As it should.
    Whole(Answered),
    /// It was cut after a message was whole or a tool had run, so that it cannot be asked for again
    /// as if nothing had happened: what was said stays, and the model is asked to go on.
    Cut(Duration),
}

impl Turn<'_> {
    /// Asks once; true when the model is to be asked again.
    pub(super) async fn ask(&mut self) -> Result<bool, TurnFault> {
        self.asking = Asking::default();
        self.announce_unseen_pictures();
        let request = self.request();
        let mut calls = Calls::new();
        let heard = self.hear(request, &mut calls).await;
        // Calls that have begun are waited for even when the answer failed: they have effects.
        while let Some((slot, ended)) = calls.next().await {
            self.ended(slot, ended)?;
        }
        let called = self.asking.has_slots();
        self.record_done();
        // The server counted what it said, not what its calls are answered.
        if let Ok(Heard::Whole(answered)) = &heard
            && let Some(usage) = answered.usage
        {
            self.core.usage.add(usage);
            self.core.history.count(&usage, answered.counts_old_thoughts);
        }
        self.record_outputs();
        match heard? {
            Heard::Whole(answered) => {
                self.cuts = 0;
                self.voice.usage(self.core.usage, self.profile.effective_window());
                self.cx.tell_diff();
                Ok(called || answered.end_turn == Some(false))
            }
            Heard::Cut(delay) => {
                self.cuts += 1;
                tokio::time::sleep(delay).await;
                Ok(true)
            }
        }
    }

    fn announce_unseen_pictures(&mut self) {
        if self.profile.images {
            return;
        }
        let count = self.core.history.take_unannounced_pictures();
        if count > 0 {
            let pictures =
                if count == 1 { "a picture".to_owned() } else { format!("{count} pictures") };
            self.voice.warn(&format!(
                "the model `{}` cannot see pictures: {pictures} was left out; if it can, set \
                 `images = true` for it in `[[models]]` of bindery.toml",
                self.profile.slug,
            ));
        }
    }

    fn request(&self) -> ModelRequest {
        let standing = &self.core.standing;
        let profile = &self.profile;
        let or = |own: &Option<String>, other: &Option<String>| own.clone().or(other.clone());
        ModelRequest {
            model: profile.slug.clone(),
            base: self.base.clone(),
            input: self.core.history.for_model(profile.images),
            tools: self.router.specs(),
            parallel_tool_calls: profile.parallel,
            effort: or(&standing.effort, &profile.effort),
            summary: or(&standing.summary, &profile.summary).filter(|word| word != "none"),
            verbosity: profile.verbosity.clone(),
            output_schema: self.output_schema.clone(),
            thread_id: self.core.thread_id.clone(),
            purpose: None,
        }
    }

    async fn hear(&mut self, request: ModelRequest, calls: &mut Calls) -> Result<Heard, TurnFault> {
        let model = Arc::clone(&self.core.makings.model);
        let (sender, mut events) = mpsc::channel(EVENTS);
        let mut answer = model.answer(request, sender);
        let lock = Arc::new(RwLock::new(()));
        let answered = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    if let Some(delay) = self.event(event, calls, &lock)? {
                        return Ok(Heard::Cut(delay));
                    }
                }
                Some((slot, ended)) = calls.next(), if !calls.is_empty() => {
                    self.ended(slot, ended)?;
                }
                answered = &mut answer => break answered,
            }
        };
        // What the model said last may still stand in the queue.
        while let Ok(event) = events.try_recv() {
            if let Some(delay) = self.event(event, calls, &lock)? {
                return Ok(Heard::Cut(delay));
            }
        }
        answered.map(Heard::Whole).map_err(|error: ModelError| TurnFault::Model(error))
    }

    /// Takes an event; gives how long to wait when the answer was cut after a call.
    fn event(
        &mut self,
        event: ModelEvent,
        calls: &mut Calls,
        lock: &Arc<RwLock<()>>,
    ) -> Result<Option<Duration>, TurnFault> {
        if let ModelEvent::Retrying { cause, .. } = &event
            && self.asking.is_binding()
            && self.cuts >= MOST_CUTS
        {
            return Err(TurnFault::Model(cut_too_often(cause)));
        }
        match self.asking.take(event, &self.voice) {
            Happened::Told => {}
            Happened::Call(call) => self.call(call, calls, lock)?,
            Happened::Cut(delay) => return Ok(Some(delay)),
        }
        if self.asking.bytes > self.core.limits.response_bytes {
            return Err(TurnFault::bytes(self.core.limits.response_bytes));
        }
        Ok(None)
    }

    /// The call goes into the history before it runs: whatever happens then, it is known.
    fn call(
        &mut self,
        call: HistoryItem,
        calls: &mut Calls,
        lock: &Arc<RwLock<()>>,
    ) -> Result<(), TurnFault> {
        if self.asking.calls > self.core.limits.calls {
            return Err(TurnFault::calls(self.core.limits.calls));
        }
        let mut items = self.asking.take_done();
        items.push(call.clone());
        self.record(items);
        let slot = self.asking.open_slot(call.clone());
        let run = Router::run(&self.router, call, &self.cx, lock);
        calls.push(Box::pin(async move { (slot, run.await) }));
        Ok(())
    }

    fn ended(&mut self, slot: usize, ended: Ended) -> Result<(), TurnFault> {
        match ended {
            Ended::Output(output) => self.asking.fill_slot(slot, output),
            // The person who was asked wants the turn to end.
            Ended::Cancelled => return Err(TurnFault::Interrupted),
        }
        Ok(())
    }
}

fn cut_too_often(cause: &str) -> ModelError {
    ModelError {
        kind: crate::model::Fault::Transport,
        message: format!("the answer was cut again and again: {cause}"),
        status: None,
    }
}
