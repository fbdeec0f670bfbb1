//! Who has had a part in the threads of the AI SDK front, and what their answers may grant.
//!
//! A call may bring answers to a turn that waits, in its prompt. Whoever brings them goes on with
//! the turn, and so has a part in it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bindery_client::interrupts::{Interrupts, State};
use bindery_client::model::approval_answer;
use bindery_core::call::CallOptions;
use bindery_core::ids::{ApprovalId, ThreadId};
use bindery_core::interrupt::Answer;
use bindery_core::map::prompt_to_turn::{Continuation, PlanContext, plan};

use crate::error::Error;
use crate::tenant::{Caller, Contributor, Role, check_answer};

/// Threads whose contributors are remembered; of older ones nobody knows who had a part in them.
const MAX_THREADS: usize = 4096;

/// Contributors by thread; clones share them.
#[derive(Clone, Default)]
pub(super) struct ThreadContributors {
    inner: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    threads: HashMap<ThreadId, Vec<Contributor>>,
    /// Oldest first.
    order: VecDeque<ThreadId>,
}

impl ThreadContributors {
    pub(super) fn add(&self, thread: &ThreadId, contributor: Contributor) {
        let mut known = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.threads.contains_key(thread) {
            known.order.push_back(thread.clone());
        }
        let all = known.threads.entry(thread.clone()).or_default();
        if !all.contains(&contributor) {
            all.push(contributor);
        }
        if known.order.len() > MAX_THREADS
            && let Some(oldest) = known.order.pop_front()
        {
            known.threads.remove(&oldest);
        }
    }

    fn of(&self, thread: &ThreadId) -> Option<Vec<Contributor>> {
        let known = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        known.threads.get(thread).cloned()
    }
}

/// Whether the caller may give this answer to an open question; one that is not open is left to
/// whoever takes answers.
pub(super) fn check_open(
    caller: &Caller,
    interrupts: &Interrupts,
    contributors: &ThreadContributors,
    token: &ApprovalId,
    answer: &Answer,
) -> Result<(), Error> {
    let Some(record) = interrupts.get(token).filter(|record| record.state == State::Open) else {
        return Ok(());
    };
    let known = contributors.of(&record.interrupt.thread_id);
    let ask = &record.interrupt.ask;
    check_answer(&caller.tenant, ask, answer, &caller.as_contributor(), known.as_deref())
}

/// Whether the caller may give the answers that a call brings along.
pub(super) fn check_brought(
    caller: &Caller,
    interrupts: &Interrupts,
    contributors: &ThreadContributors,
    options: &CallOptions,
) -> Result<(), Error> {
    if interrupts.pending().is_empty() {
        return Ok(());
    }
    // A call that cannot be planned is refused by whoever runs it.
    let Ok(plan) = plan(options, &PlanContext::default()) else { return Ok(()) };
    for brought in plan.answers {
        let Continuation::Approval { approval_id, approved, reason, options } = brought else {
            continue;
        };
        let Some(record) = interrupts.get(&approval_id) else { continue };
        if record.state != State::Open {
            continue;
        }
        caller.must_have(Role::Answer)?;
        contributors.add(&record.interrupt.thread_id, caller.as_contributor());
        let reason = reason.unwrap_or_default();
        let answer = approval_answer(&record.interrupt.ask, approved, &reason, &options);
        check_open(caller, interrupts, contributors, &approval_id, &answer)?;
    }
    Ok(())
}
