//! The questions of a turn: recorded under tokens, answered once, confirmed by Codex.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bindery_core::ids::ItemId;
use bindery_core::interrupt::{Answer, Ask, Interrupt};
use bindery_core::wire::rpc::RequestId;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::sleep;

use crate::answerer::Answerer;
use crate::interrupts::{AnswerError, Interrupts};

/// What became of a question.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// This was answered, by callback or by token.
    Answer(Answer),
    /// Nobody answered, or whoever should have has failed.
    Nothing,
    /// Nobody answered in time.
    Late,
    /// What was answered does not fit.
    Unfit(String),
}

/// A question that waits.
pub(super) struct Question {
    pub(super) id: RequestId,
    pub(super) interrupt: Interrupt,
    /// Its answer comes by token, from whoever reads the turn.
    left: bool,
    task: AbortHandle,
}

/// The questions of a turn.
pub(super) struct Questions {
    interrupts: Interrupts,
    answerer: Arc<dyn Answerer>,
    limit: Duration,
    answers: JoinSet<Said>,
    open: HashMap<Id, Question>,
    /// Answers on their way; Codex has not confirmed them.
    sent: Vec<(RequestId, Interrupt)>,
}

impl Questions {
    pub(super) fn new(
        interrupts: Interrupts,
        answerer: Arc<dyn Answerer>,
        limit: Duration,
    ) -> Self {
        let (answers, open, sent) = (JoinSet::new(), HashMap::new(), Vec::new());
        Self { interrupts, answerer, limit, answers, open, sent }
    }

    /// Nobody is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Records a question and has it answered; true if that is left to whoever reads the turn.
    ///
    /// To be called before anybody is shown it.
    pub(super) fn ask(&mut self, id: RequestId, interrupt: Interrupt) -> bool {
        let by_token = self.interrupts.open(&id, &interrupt);
        let left = self.answerer.leaves(&interrupt);
        let answering = answering(
            self.interrupts.clone(),
            self.answerer.clone(),
            interrupt.clone(),
            by_token,
            self.limit,
        );
        let task = self.answers.spawn(answering);
        self.open.insert(task.id(), Question { id, interrupt, left, task });
        left
    }

    /// Whether this question waits already.
    pub(super) fn is_open(&self, id: &RequestId) -> bool {
        self.open.values().any(|question| question.id == *id)
    }

    /// The questions about a call, by the ids that Codex gave them.
    pub(super) fn about(&self, item: &ItemId) -> Vec<Value> {
        let open = self.open.values();
        let about = open.filter(|open| open.interrupt.call_id.as_str() == item.as_str());
        about.filter_map(|open| serde_json::to_value(&open.id).ok()).collect()
    }

    /// A call of a tool is left to whoever reads the turn.
    pub(super) fn any_call_left(&self) -> bool {
        let is_call = |ask: &Ask| matches!(ask, Ask::ToolCall { .. });
        self.open.values().any(|question| question.left && is_call(&question.interrupt.ask))
    }

    /// Some question is left to whoever reads the turn.
    pub(super) fn any_left(&self) -> bool {
        self.open.values().any(|question| question.left)
    }

    /// The next question that has an answer, or will have none.
    pub(super) async fn next(&mut self) -> Option<(Question, Said)> {
        loop {
            let (task, said) = match self.answers.join_next_with_id().await? {
                Ok(done) => done,
                // A panic is no answer.
                Err(err) => (err.id(), Said::Nothing),
            };
            // One that was withdrawn is not there any more.
            if let Some(question) = self.open.remove(&task) {
                return Some((question, said));
            }
        }
    }

    /// The answer is on its way.
    pub(super) fn sent(&mut self, id: RequestId, interrupt: Interrupt) {
        self.sent.push((id, interrupt));
    }

    /// The question ended without an answer of anybody's.
    pub(super) fn refused(&self, interrupt: &Interrupt, why: &str) {
        self.interrupts.over(&interrupt.id, why);
    }

    /// Codex needs no answer to this any more: it has ours, or another client's, or the turn was
    /// interrupted. Gives the question if it was still open.
    pub(super) fn resolved(&mut self, id: &Value) -> Option<Question> {
        let is = |known: &RequestId| serde_json::to_value(known).is_ok_and(|known| known == *id);
        if let Some(at) = self.sent.iter().position(|(sent, _)| is(sent)) {
            let (_, interrupt) = self.sent.remove(at);
            self.interrupts.delivered(&interrupt.id);
            return None;
        }
        let task =
            self.open.iter().find(|(_, question)| is(&question.id)).map(|(task, _)| *task)?;
        let question = self.open.remove(&task)?;
        question.task.abort();
        self.interrupts.over(&question.interrupt.id, "Codex needs no answer any more");
        Some(question)
    }

    /// An item has ended: the result of a tool call is confirmed by nothing else.
    pub(super) fn item_ended(&mut self, item: &ItemId) {
        let is = |interrupt: &Interrupt| {
            matches!(interrupt.ask, Ask::ToolCall { .. })
                && interrupt.call_id.as_str() == item.as_str()
        };
        if let Some(at) = self.sent.iter().position(|(_, interrupt)| is(interrupt)) {
            let (_, interrupt) = self.sent.remove(at);
            self.interrupts.delivered(&interrupt.id);
        }
    }
}

impl Drop for Questions {
    /// The turn is over, and so is everything it asked.
    fn drop(&mut self) {
        self.answers.abort_all();
        for (_, question) in self.open.drain() {
            self.interrupts.over(&question.interrupt.id, "the turn has ended");
        }
        for (_, interrupt) in self.sent.drain(..) {
            self.interrupts.over(&interrupt.id, "the turn has ended");
        }
    }
}

async fn answering(
    interrupts: Interrupts,
    answerer: Arc<dyn Answerer>,
    interrupt: Interrupt,
    mut by_token: oneshot::Receiver<Answer>,
    limit: Duration,
) -> Said {
    let token = interrupt.id.clone();
    let said = tokio::select! {
        biased;
        Ok(answer) = &mut by_token => return Said::Answer(answer),
        said = answerer.answer(interrupt) => said,
        () = sleep(limit) => return Said::Late,
    };
    let Some(answer) = said else { return Said::Nothing };
    match interrupts.answer(&token, answer.clone()) {
        Ok(()) => Said::Answer(answer),
        Err(AnswerError::Unfit { why, .. }) => Said::Unfit(why),
        // Somebody with the token was quicker.
        Err(_) => by_token.await.map_or(Said::Nothing, Said::Answer),
    }
}
