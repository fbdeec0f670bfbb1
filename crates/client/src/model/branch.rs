//! Where a thread and the history of a call part: the call goes on from what its history shows.
//!
//! A caller who wants another answer, changes an earlier message or tries a failed turn again sends
//! a history that ends before the thread's newest turn. The thread is left as it is, and a copy of
//! it that ends where the history does goes on.

use bindery_core::ids::{ThreadId, TurnId};
use bindery_core::map::prompt_to_turn::{PlanContext, ThreadChoice, ThreadSource, TurnPlan};
use bindery_core::part::Warning;
use bindery_core::wire::app_server::reply::Page;
use serde_json::{Value, json};

use super::{Call, LanguageModel};
use crate::error::Error;

/// Why a plan was not run.
pub(super) enum Stop {
    /// It cannot be.
    Error(Error),
    /// Another one can.
    Replan(Replan),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error {
            // An older Codex: what cannot be injected is told in the first message instead.
            Error::Rpc { method, message, .. }
                if method == "thread/inject_items" && message.contains("unknown variant") =>
            {
                Self::Replan(Replan::NoInjection)
            }
            error => Self::Error(error),
        }
    }
}

/// What another plan is to know.
pub(super) enum Replan {
    /// Codex cannot put items into a history.
    NoInjection,
    /// The thread is of no use, for this reason; the history is told to a new one.
    Fresh(String),
    /// The history shows a part of this turn, which waits for nothing any more.
    Without(TurnId),
}

impl Replan {
    /// Tells the planner; gives what the caller is to know.
    pub(super) fn apply(self, context: &mut PlanContext) -> Option<Warning> {
        match self {
            Self::NoInjection => context.can_inject = false,
            Self::Without(turn) => {
                context.without.insert(turn);
            }
            Self::Fresh(why) => {
                context.thread = ThreadSource::Fresh;
                let details =
                    format!("the history goes on in a new thread, which is told all of it: {why}");
                let details = Some(details);
                return Some(Warning::Compatibility { feature: "thread".to_owned(), details });
            }
        }
        None
    }
}

/// Turns on a page; a conversation that goes on needs the newest alone.
const PAGE: u32 = 50;

/// Pages that are looked through for the turn that the history ends with.
const PAGES: u32 = 200;

impl LanguageModel {
    /// Starts the plan's turn, on a copy of its thread where that has gone on without this caller.
    pub(super) async fn begin(&self, plan: TurnPlan) -> Result<Call, Stop> {
        let fork = match (&plan.thread, &plan.after) {
            (ThreadChoice::Resume(thread), Some(after)) => Some((thread, after)),
            _ => None,
        };
        let Some((thread, after)) = fork else {
            return self.begin_on(&plan.thread, &plan).await.map_err(|err| unless_gone(err, &plan));
        };
        if !self.has_gone_on(thread, after).await {
            match self.begin_on(&plan.thread, &plan).await {
                // Somebody else was faster.
                Err(Error::GoneOn { .. }) => {}
                Err(Error::Busy { .. }) if self.newest_turn(thread).as_ref() != Some(after) => {}
                outcome => return outcome.map_err(|err| unless_gone(err, &plan)),
            }
        }
        let (thread_id, last_turn_id) = (thread.clone(), Some(after.clone()));
        let fork = ThreadChoice::Fork { thread_id, last_turn_id };
        self.begin_on(&fork, &plan).await.map_err(|err| match err {
            Error::Rpc { method, message, .. } if method == "thread/fork" && plan.from_history => {
                let why = format!("the thread has gone on since, and has no copy: {message}");
                Stop::Replan(Replan::Fresh(why))
            }
            err => err.into(),
        })
    }

    pub(super) fn newest_turn(&self, thread: &ThreadId) -> Option<TurnId> {
        self.server.switchboard().newest_turn(thread)
    }

    /// Whether something was said in the thread after this turn.
    async fn has_gone_on(&self, thread: &ThreadId, after: &TurnId) -> bool {
        let newest = self.newest_turn(thread);
        if newest.as_ref() == Some(after) {
            return false;
        }
        match self.was_said_since(thread, after).await {
            Ok(said) => said,
            Err(err) => {
                // Codex lists no turns of threads that keep no file; we have heard of them all. Of
                // a thread that is not there, opening it tells.
                tracing::debug!(%thread, %err, "the thread's turns cannot be listed");
                newest.is_some()
            }
        }
    }

    /// Looks through the turns, newest first. Those in which nobody said anything are compactions,
    /// which the caller's history need not show.
    async fn was_said_since(&self, thread: &ThreadId, after: &TurnId) -> Result<bool, Error> {
        let mut cursor = None;
        for _ in 0..PAGES {
            let params = json!({
                "threadId": thread, "limit": PAGE, "cursor": cursor, "sortDirection": "desc",
            });
            let page: Page<Value> = self.server.request("thread/turns/list", &params).await?;
            for turn in &page.data {
                if turn["id"] == after.as_str() {
                    return Ok(false);
                }
                if turn["items"].as_array().is_none_or(|items| !items.is_empty()) {
                    return Ok(true);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(true)
    }
}

/// A thread that only the history names can be made again from it.
fn unless_gone(error: Error, plan: &TurnPlan) -> Stop {
    const GONE: [&str; 4] =
        ["no rollout found", "thread not found", "invalid session id", "invalid thread id"];
    match error {
        Error::Rpc { method, message, .. }
            if plan.from_history
                && ["thread/resume", "thread/fork", "turn/start"].contains(&&*method)
                && GONE.iter().any(|gone| message.contains(gone)) =>
        {
            Stop::Replan(Replan::Fresh(message))
        }
        error => error.into(),
    }
}
