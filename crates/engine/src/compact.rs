//! Makes room: the history is replaced by what the user said and a summary.

mod rebuild;

mod recall;

use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::item::{HistoryItem, Message, Role};
use crate::model::{Answered, Fault, ModelError, ModelEvent, ModelRequest};
use crate::thread::Entry;
use crate::thread::history::{assistant_text, call_id, output_id};
use crate::tokens::percent_left;
use crate::turn::{Turn, TurnFault, say_retry};

pub(crate) use self::recall::recall;

/// Why the history is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Somebody asked for it.
    ByHand,
    /// A turn begins with a full history.
    BeforeTurn,
    /// The model is to go on in the middle of its work.
    MidTurn,
}

impl Turn<'_> {
    /// The whole of a turn that somebody asked for.
    pub(crate) async fn compact_by_hand(&mut self) -> Result<(), TurnFault> {
        self.compact(When::ByHand).await
    }

    /// Replaces the history. The turn goes on with the new one.
    pub(crate) async fn compact(&mut self, when: When) -> Result<(), TurnFault> {
        if when != When::ByHand {
            self.say_why();
        }
        let id = Uuid::now_v7().to_string();
        let begun = self.voice.begin(json!({ "type": "contextCompaction", "id": id }));
        let summary = self.summarise().await?;
        self.rebuild(when, &summary).await;
        self.voice.complete(begun);
        self.voice.tell("thread/compacted", json!({}));
        self.voice.usage(self.core.usage, self.profile.effective_window());
        Ok(())
    }

    fn say_why(&self) {
        let left = percent_left(self.profile.effective_window(), self.core.history.used());
        self.voice.warn(&format!(
            "the model's window is nearly full ({left}% left): earlier work is being summed up, \
             and details of it may get lost"
        ));
    }

    /// Asks for the summary. A history that is too long even for that loses its oldest items, one
    /// with its partner at a time.
    async fn summarise(&mut self) -> Result<String, TurnFault> {
        let mut history = self.core.history.for_model(self.profile.images);
        loop {
            match self.ask_summary(&history).await {
                Ok(summary) => return Ok(summary),
                Err(error) if error.kind == Fault::ContextOverflow && history.len() > 1 => {
                    drop_oldest(&mut history);
                }
                Err(error) => return Err(TurnFault::Model(error)),
            }
        }
    }

    async fn ask_summary(&mut self, history: &[HistoryItem]) -> Result<String, ModelError> {
        let prompter = Arc::clone(&self.core.makings.prompter);
        let mut input = history.to_vec();
        input.push(Message::text(Role::User, prompter.compaction()).into());
        let request = ModelRequest {
            model: self.profile.slug.clone(),
            base: prompter.base(&self.core.standing),
            input,
            effort: self.core.standing.effort.clone().or(self.profile.effort.clone()),
            thread_id: self.core.thread_id.clone(),
            purpose: Some("compact"),
            ..ModelRequest::default()
        };
        let (answered, summary) = self.hear_summary(request).await?;
        if let Some(usage) = answered.usage {
            self.core.usage.add(usage);
        }
        Ok(summary)
    }

    async fn hear_summary(
        &mut self,
        request: ModelRequest,
    ) -> Result<(Answered, String), ModelError> {
        let model = Arc::clone(&self.core.makings.model);
        let (sender, mut events) = mpsc::channel(64);
        let mut answer = model.answer(request, sender);
        let mut summary = String::new();
        let answered = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => self.summary_event(event, &mut summary)?,
                answered = &mut answer => break answered?,
            }
        };
        while let Ok(event) = events.try_recv() {
            self.summary_event(event, &mut summary)?;
        }
        Ok((answered, summary))
    }

    fn summary_event(&self, event: ModelEvent, summary: &mut String) -> Result<(), ModelError> {
        match event {
            ModelEvent::ItemDone(item) => {
                if let Some(text) = assistant_text(&item) {
                    *summary = text;
                }
            }
            ModelEvent::Retrying { attempt, most, cause, .. } => {
                summary.clear();
                say_retry(&self.voice, attempt, most, &cause);
            }
            ModelEvent::Notice(text) => self.voice.warn(&text),
            _ => {}
        }
        if summary.len() > self.core.limits.response_bytes {
            return Err(ModelError {
                kind: Fault::Garbage,
                message: "the model's summary is longer than a response may be".to_owned(),
                status: None,
            });
        }
        Ok(())
    }

    async fn rebuild(&mut self, when: When, summary: &str) {
        let context = match when {
            When::MidTurn => {
                self.core.told = None;
                let context = self.gather().await;
                self.core.told = Some(context.told);
                context.items
            }
            // The next turn tells everything again.
            When::ByHand | When::BeforeTurn => {
                self.core.told = None;
                Vec::new()
            }
        };
        let kept =
            rebuild::Kept { plan: self.core.session.plan(), files: self.core.session.files() };
        let limit = self.profile.compact_at();
        let items = rebuild::history(self.core.history.items(), context, summary, &kept, limit);
        self.core.history.replace(items.clone());
        self.voice.write(&[Entry::Compacted { message: summary.to_owned(), history: items }]);
    }
}

/// Leaves out the oldest item, and the answer to it if it is a call.
fn drop_oldest(history: &mut Vec<HistoryItem>) {
    let oldest = history.remove(0);
    if let Some(call) = call_id(&oldest) {
        history.retain(|item| output_id(item) != Some(call));
    }
}
