//! Sub-agents: threads of their own, mapped apart and wrapped, never mixed into the parent.

use std::collections::BTreeMap;

use serde_json::json;

use super::notice::custom;
use super::{Cut, TurnContext, TurnMapper};
use crate::ids::{ApprovalId, ThreadId};
use crate::interrupt::Interrupt;
use crate::part::Part;
use crate::wire::app_server::notification::{Body, Notification};
use crate::wire::app_server::request::ServerRequest;

/// The sub-agents of a turn.
#[derive(Debug, Default)]
pub(super) struct Agents {
    known: BTreeMap<ThreadId, Option<Box<TurnMapper>>>,
}

impl Agents {
    /// A thread that the turn works with.
    pub(super) fn learn(&mut self, thread: &str) {
        self.known.entry(ThreadId::new(thread)).or_default();
    }

    /// A thread that the turn works with, and its mapper.
    pub(super) fn put(&mut self, thread: &ThreadId, mapper: Option<TurnMapper>) {
        self.known.insert(thread.clone(), mapper.map(Box::new));
    }

    /// The threads seen so far, those of sub-agents' sub-agents too.
    pub(super) fn threads(&self) -> Vec<ThreadId> {
        let nested = self.known.values().flatten().flat_map(|mapper| mapper.agent_threads());
        self.known.keys().cloned().chain(nested).collect()
    }

    /// An event of a sub-agent; none of a stranger's.
    pub(super) fn notify(&mut self, notification: &Notification) -> Vec<Part> {
        let Some(thread) = notification.address.thread_id.as_ref() else { return Vec::new() };
        let Some(slot) = self.known.get_mut(thread) else {
            return self.pass_on(|mapper| mapper.notify(notification));
        };
        if let (Body::TurnStarted(turn), true) = (&notification.body, is_idle(slot)) {
            let context = TurnContext::new(thread.clone(), turn.id.clone());
            *slot = Some(Box::new(TurnMapper::new(context)));
        }
        let Some(mapper) = slot else { return Vec::new() };
        wrap(thread, mapper.notify(notification))
    }

    /// A question of a sub-agent, or of a sub-agent's own.
    pub(super) fn ask(
        &mut self,
        id: &ApprovalId,
        request: &ServerRequest,
    ) -> Option<(Vec<Part>, Option<Interrupt>)> {
        let asking = request.address.thread_id.as_ref()?;
        let (thread, mapper) = self.known.iter_mut().find_map(|(thread, mapper)| {
            let mapper = mapper.as_mut()?;
            let its = thread == asking || mapper.agent_threads().contains(asking);
            its.then_some((thread, mapper))
        })?;
        let (parts, interrupt) = mapper.ask(id, request);
        Some((wrap(thread, parts), interrupt))
    }

    /// The parent's turn is over; what an agent still does is no longer told here.
    pub(super) fn close(&mut self, parts: &mut Vec<Part>) {
        let cut = Cut {
            kind: "parent_ended".to_owned(),
            message: "the turn ended before the sub-agent did".to_owned(),
        };
        for (thread, mapper) in &mut self.known {
            if let Some(mapper) = mapper {
                parts.extend(wrap(thread, mapper.cut(&cut)));
            }
        }
    }

    /// Offers an event to the sub-agents' sub-agents, until one takes it.
    fn pass_on(&mut self, offer: impl Fn(&mut TurnMapper) -> Vec<Part>) -> Vec<Part> {
        for (thread, mapper) in &mut self.known {
            if let Some(mapper) = mapper {
                let parts = offer(mapper);
                if !parts.is_empty() {
                    return wrap(thread, parts);
                }
            }
        }
        Vec::new()
    }
}

/// A sub-agent may be given one turn after another.
fn is_idle(slot: &Option<Box<TurnMapper>>) -> bool {
    slot.as_ref().is_none_or(|mapper| mapper.is_finished())
}

fn wrap(thread: &ThreadId, parts: Vec<Part>) -> Vec<Part> {
    let wrapped =
        |part: Part| custom("codex.subagent", json!({ "agentThreadId": thread, "part": part }));
    parts.into_iter().map(wrapped).collect()
}
