//! App-server events → lines of `codex exec --json`: one [`ExecMapper`] per run, fed in order.
//!
//! The vocabulary is smaller than the app-server's: what it has no word for is left out, as Codex
//! leaves it out. Each item gets a number of its own, counted over the run.

mod item;

use std::collections::HashMap;

use serde_json::Value;

use crate::ids::{ItemId, ThreadId};
use crate::item::PlanStep;
use crate::wire::app_server::item::ThreadItem;
use crate::wire::app_server::notification::{
    Body as Told, ItemNote, Notification, Tokens, Turn, TurnError,
};
use crate::wire::exec::event::{Body, Event, Item, Message, Todo, Usage};

/// Folds the events of one run.
#[derive(Debug)]
pub struct ExecMapper {
    thread: ThreadId,
    /// Items under way and the names they have in the run.
    open: HashMap<ItemId, String>,
    next: u32,
    plan: Option<(String, Vec<Todo>)>,
    usage: Usage,
    last_error: Option<String>,
    last_message: Option<String>,
    outcome: Option<Outcome>,
}

/// How the turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Completed,
    /// With an error.
    Failed,
    /// Somebody stopped it.
    Interrupted,
}

impl ExecMapper {
    /// A mapper for the turn of this thread; what other threads do is not told.
    pub fn new(thread: ThreadId) -> Self {
        Self {
            thread,
            open: HashMap::new(),
            next: 0,
            plan: None,
            usage: Usage::default(),
            last_error: None,
            last_message: None,
            outcome: None,
        }
    }

    /// The first line.
    pub fn begin(&self) -> Event {
        Event::ThreadStarted { thread_id: self.thread.clone() }
    }

    /// The lines for a notification.
    pub fn push(&mut self, told: &Notification) -> Vec<Event> {
        let elsewhere = told.address.thread_id.as_ref().is_some_and(|id| *id != self.thread);
        if elsewhere || self.outcome.is_some() {
            return Vec::new();
        }
        match &told.body {
            Told::TurnStarted(_) => vec![Event::TurnStarted {}],
            Told::TurnCompleted(turn) => self.finish(turn),
            Told::ItemStarted(note) => self.started(note).into_iter().collect(),
            Told::ItemCompleted(note) => self.completed(note).into_iter().collect(),
            Told::PlanUpdated { plan, .. } => vec![self.planned(plan)],
            Told::TokenUsage(usage) => {
                self.usage = counted(&usage.total);
                Vec::new()
            }
            Told::Error(note) => {
                let message = in_words(&note.error);
                if !note.will_retry {
                    self.last_error = Some(message.clone());
                }
                vec![Event::Error { message }]
            }
            Told::Notice { method, params } => {
                notice(method, params).map(|message| self.warn(message)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// A warning of whoever runs the turn.
    pub fn warn(&mut self, message: String) -> Event {
        Event::ItemCompleted { item: Item { id: self.name(), body: Body::Error { message } } }
    }

    /// How the turn ended; none while it runs.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// What the model said last.
    pub fn last_message(&self) -> Option<&str> {
        self.last_message.as_deref()
    }

    /// The thread's tokens so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    fn name(&mut self) -> String {
        let name = format!("item_{}", self.next);
        self.next += 1;
        name
    }

    fn started(&mut self, note: &ItemNote) -> Option<Event> {
        // Their text is told whole, at the end.
        if let Some(ThreadItem::AgentMessage { .. } | ThreadItem::Reasoning { .. }) =
            note.item.known()
        {
            return None;
        }
        let body = item::body(note)?;
        let id = self.name();
        self.open.insert(note.id.clone(), id.clone());
        Some(Event::ItemStarted { item: Item { id, body } })
    }

    fn completed(&mut self, note: &ItemNote) -> Option<Event> {
        let body = item::body(note)?;
        if let Body::AgentMessage { text } = &body {
            self.last_message = Some(text.clone());
        }
        let known = self.open.remove(&note.id);
        let id = known.unwrap_or_else(|| self.name());
        Some(Event::ItemCompleted { item: Item { id, body } })
    }

    fn planned(&mut self, plan: &[PlanStep]) -> Event {
        let todo = |step: &PlanStep| Todo {
            text: step.step.clone(),
            completed: step.status == "completed",
        };
        let items: Vec<Todo> = plan.iter().map(todo).collect();
        let body = Body::TodoList { items: items.clone() };
        let known = self.plan.take().map(|(id, _)| id);
        let is_new = known.is_none();
        let id = known.unwrap_or_else(|| self.name());
        self.plan = Some((id.clone(), items));
        let item = Item { id, body };
        if is_new { Event::ItemStarted { item } } else { Event::ItemUpdated { item } }
    }

    fn finish(&mut self, turn: &Turn) -> Vec<Event> {
        let plan = self.plan.take().map(|(id, items)| Event::ItemCompleted {
            item: Item { id, body: Body::TodoList { items } },
        });
        let mut events: Vec<Event> = plan.into_iter().collect();
        self.outcome = Some(match turn.status.as_str() {
            "completed" => {
                events.push(Event::TurnCompleted { usage: self.usage });
                Outcome::Completed
            }
            "interrupted" => Outcome::Interrupted,
            _ => {
                let told = turn.error.as_ref().map(in_words).or_else(|| self.last_error.take());
                let message = told.unwrap_or_else(|| "turn failed".to_owned());
                events.push(Event::TurnFailed { error: Message { message } });
                Outcome::Failed
            }
        });
        events
    }
}

fn counted(tokens: &Tokens) -> Usage {
    Usage {
        input_tokens: tokens.input_tokens,
        cached_input_tokens: tokens.cached_input_tokens,
        cache_write_input_tokens: tokens.cache_write_input_tokens,
        output_tokens: tokens.output_tokens,
        reasoning_output_tokens: tokens.reasoning_output_tokens,
    }
}

fn in_words(error: &TurnError) -> String {
    with_details(&error.message, error.additional_details.as_deref())
}

fn with_details(message: &str, details: Option<&str>) -> String {
    match details.filter(|details| !details.is_empty()) {
        Some(details) => format!("{message} ({details})"),
        None => message.to_owned(),
    }
}

/// A notification that is a warning, in words.
fn notice(method: &str, params: &Value) -> Option<String> {
    let word = |key: &str| params.get(key).and_then(Value::as_str);
    match method {
        "configWarning" | "deprecationNotice" => {
            Some(with_details(word("summary")?, word("details")))
        }
        "warning" | "guardianWarning" => word("message").map(str::to_owned),
        "model/rerouted" => {
            let (from, to) = (word("fromModel")?, word("toModel")?);
            Some(format!("model rerouted: {from} -> {to}"))
        }
        _ => None,
    }
}
