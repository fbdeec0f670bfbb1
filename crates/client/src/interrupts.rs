//! Interrupts under tokens: recorded before anybody is shown them, answered once.
//!
//! A token is the interrupt's own id, made from chance, so that knowing it is the right to answer.
//! Whoever answers first is taken, if the answer fits what was asked; the others are told why not.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_core::ids::{ApprovalId, CallId, ThreadId};
use bindery_core::interrupt::{Answer, Interrupt};
use bindery_core::map::answer_to_reply;
use bindery_core::wire::rpc::RequestId;
use thiserror::Error;
use tokio::sync::{oneshot, watch};

/// Interrupts that are over, kept so that a late answer can be told why it is late.
const REMEMBERED: usize = 1024;

/// The open interrupts of any number of turns; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Interrupts {
    shelf: Arc<Mutex<Shelf>>,
    /// How often anything has changed.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Shelf {
    records: BTreeMap<ApprovalId, Entry>,
    /// Those that are over, oldest first.
    over: VecDeque<ApprovalId>,
}

#[derive(Debug)]
struct Entry {
    record: Record,
    waiting: Option<oneshot::Sender<Answer>>,
}

/// An interrupt and how it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The question.
    pub interrupt: Interrupt,
    /// The server's own name for it, by which it asks again whoever comes later.
    pub request: RequestId,
    /// How it stands.
    pub state: State,
}

/// How an interrupt stands.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It waits for an answer.
    Open,
    /// It was answered, and the answer is on its way.
    Answered(Answer),
    /// Codex has confirmed the answer.
    Delivered(Answer),
    /// It needs no answer any more, because of this.
    Over(String),
}

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No such token, or one of long ago.
    #[error("no interrupt `{0}`")]
    Unknown(ApprovalId),
    /// Somebody was first.
    #[error("interrupt `{0}` was answered already")]
    Answered(ApprovalId),
    /// It needs no answer any more.
    #[error("interrupt `{token}` is over: {why}")]
    Over {
        /// The token.
        token: ApprovalId,
        /// Why.
        why: String,
    },
    /// The answer does not fit what was asked or offered. The interrupt stays open.
    #[error("this answer does not fit interrupt `{token}`: {why}")]
    Unfit {
        /// The token.
        token: ApprovalId,
        /// Why.
        why: String,
    },
}

impl AnswerError {
    /// Stable name for logs, HTTP bodies and tests. Never reworded.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "interrupt_unknown",
            Self::Answered(_) => "interrupt_answered",
            Self::Over { .. } => "interrupt_over",
            Self::Unfit { .. } => "answer_unfit",
        }
    }
}

impl Interrupts {
    /// Answers an interrupt, once.
    pub fn answer(&self, token: &ApprovalId, answer: Answer) -> Result<(), AnswerError> {
        let mut shelf = self.shelf();
        let Some(entry) = shelf.records.get_mut(token) else {
            return Err(AnswerError::Unknown(token.clone()));
        };
        match &entry.record.state {
            State::Open => {}
            State::Over(why) => {
                return Err(AnswerError::Over { token: token.clone(), why: why.clone() });
            }
            State::Answered(_) | State::Delivered(_) => {
                return Err(AnswerError::Answered(token.clone()));
            }
        }
        answer_to_reply::reply(&entry.record.interrupt.ask, &answer)
            .map_err(|why| AnswerError::Unfit { token: token.clone(), why })?;
        let Some(Ok(())) = entry.waiting.take().map(|waiting| waiting.send(answer.clone())) else {
            let why = "the turn has ended".to_owned();
            return Err(AnswerError::Over { token: token.clone(), why });
        };
        entry.record.state = State::Answered(answer);
        drop(shelf);
        self.changed();
        Ok(())
    }

    /// All that is known, and how it stands.
    pub fn records(&self) -> Vec<Record> {
        self.shelf().records.values().map(|entry| entry.record.clone()).collect()
    }

    /// Forgets everything: what is still asked is recorded again by whoever goes on with the turn.
    pub fn forget(&self) {
        *self.shelf() = Shelf::default();
    }

    /// Tells of every change from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// An interrupt and how it stands.
    pub fn get(&self, token: &ApprovalId) -> Option<Record> {
        self.shelf().records.get(token).map(|entry| entry.record.clone())
    }

    /// Everything that waits for an answer, oldest token first.
    pub fn pending(&self) -> Vec<Interrupt> {
        let shelf = self.shelf();
        let open = shelf.records.values().filter(|entry| entry.record.state == State::Open);
        open.map(|entry| entry.record.interrupt.clone()).collect()
    }

    /// The open interrupt about a tool call of a thread.
    pub fn of_call(&self, thread: &ThreadId, call: &CallId) -> Option<ApprovalId> {
        let mut pending = self.pending().into_iter();
        let found = pending.find(|open| open.thread_id == *thread && open.call_id == *call);
        found.map(|interrupt| interrupt.id)
    }

    /// A new token.
    pub(crate) fn token() -> ApprovalId {
        let mut bytes = [0; 16];
        // Without chance there are no secrets; a clash is all that must not happen then.
        if getrandom::fill(&mut bytes).is_err() {
            static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            bytes[..8].copy_from_slice(&next.to_be_bytes());
        }
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        ApprovalId::new(format!("ask_{hex}"))
    }

    /// Records an interrupt; its answer comes out of the receiver.
    pub(crate) fn open(
        &self,
        request: &RequestId,
        interrupt: &Interrupt,
    ) -> oneshot::Receiver<Answer> {
        let (waiting, answer) = oneshot::channel();
        let (interrupt, request) = (interrupt.clone(), request.clone());
        let token = interrupt.id.clone();
        let record = Record { interrupt, request, state: State::Open };
        self.shelf().records.insert(token, Entry { record, waiting: Some(waiting) });
        self.changed();
        answer
    }

    /// Codex has confirmed the answer.
    pub(crate) fn delivered(&self, token: &ApprovalId) {
        self.shelf().end(token, |state| match state {
            State::Answered(answer) => State::Delivered(answer.clone()),
            other => other.clone(),
        });
        self.changed();
    }

    /// No answer is needed any more; one that is on its way is lost with the turn.
    pub(crate) fn over(&self, token: &ApprovalId, why: &str) {
        self.shelf().end(token, |state| match state {
            State::Open => State::Over(why.to_owned()),
            other => other.clone(),
        });
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn end(&mut self, token: &ApprovalId, next: impl Fn(&State) -> State) {
        let Some(entry) = self.records.get_mut(token) else { return };
        entry.record.state = next(&entry.record.state);
        entry.waiting = None;
        if self.over.contains(token) {
            return;
        }
        self.over.push_back(token.clone());
        if self.over.len() > REMEMBERED
            && let Some(oldest) = self.over.pop_front()
        {
            self.records.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use bindery_core::interrupt::{Ask, Decision};
    use serde_json::json;

    use super::*;

    fn interrupt() -> Interrupt {
        Interrupt {
            id: Interrupts::token(),
            thread_id: "t".into(),
            turn_id: "u".into(),
            call_id: "c".into(),
            ask: Ask::FileChange { changes: vec![], reason: None, grant_root: None },
        }
    }

    fn yes() -> Answer {
        Answer::decision(Decision::Accept)
    }

    #[test]
    fn an_answer_is_taken_once() {
        let interrupts = Interrupts::default();
        let asked = interrupt();
        let mut answer = interrupts.open(&RequestId::Number(0), &asked);
        assert_eq!(interrupts.of_call(&asked.thread_id, &asked.call_id), Some(asked.id.clone()));
        assert_eq!(interrupts.answer(&asked.id, yes()), Ok(()));
        let again = interrupts.answer(&asked.id, Answer::decision(Decision::Decline));
        assert_eq!(again, Err(AnswerError::Answered(asked.id.clone())));
        assert_eq!(answer.try_recv(), Ok(yes()));
        interrupts.delivered(&asked.id);
        assert_eq!(interrupts.get(&asked.id).unwrap().state, State::Delivered(yes()));
        assert!(interrupts.pending().is_empty());
    }

    #[test]
    fn an_answer_that_does_not_fit_leaves_the_interrupt_open() {
        let interrupts = Interrupts::default();
        let asked = interrupt();
        let _answer = interrupts.open(&RequestId::Number(0), &asked);
        let rule = Answer::decision(Decision::AcceptWithRule(vec!["rm".into()]));
        assert_eq!(interrupts.answer(&asked.id, rule).unwrap_err().code(), "answer_unfit");
        let tool = Answer::ToolResult { content: vec![json!({})], success: true };
        assert_eq!(interrupts.answer(&asked.id, tool).unwrap_err().code(), "answer_unfit");
        assert_eq!(interrupts.answer(&asked.id, yes()), Ok(()));
    }

    #[test]
    fn late_and_unknown_answers_are_told_so() {
        let interrupts = Interrupts::default();
        let asked = interrupt();
        drop(interrupts.open(&RequestId::Number(0), &asked));
        assert_eq!(interrupts.answer(&asked.id, yes()).unwrap_err().code(), "interrupt_over");
        interrupts.over(&asked.id, "the turn was interrupted");
        let late = interrupts.answer(&asked.id, yes()).unwrap_err().to_string();
        assert!(late.ends_with("is over: the turn was interrupted"), "{late}");
        let unknown = interrupts.answer(&"nobody".into(), yes()).unwrap_err();
        assert_eq!(unknown.code(), "interrupt_unknown");
    }

    #[test]
    fn what_is_over_is_forgotten_in_the_end() {
        let interrupts = Interrupts::default();
        let first = interrupt();
        let _answer = interrupts.open(&RequestId::Number(0), &first);
        interrupts.over(&first.id, "over");
        for _ in 0..REMEMBERED {
            let asked = interrupt();
            let _answer = interrupts.open(&RequestId::Number(0), &asked);
            interrupts.over(&asked.id, "over");
        }
        assert_eq!(interrupts.get(&first.id), None);
        assert_eq!(interrupts.shelf().records.len(), REMEMBERED);
    }
}
