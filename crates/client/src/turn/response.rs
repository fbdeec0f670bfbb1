//! Whether the model may still call more tools in the response that it is giving.
//!
//! Codex runs a call while the response goes on, and a model may take seconds from one call to the
//! next. A step of the AI SDK holds all calls of a response, so it ends when the response does.
//! Codex tells that for threads that were started with raw events, and for no others:
//! `thread/resume` and `thread/fork` do not take the wish, and usage is told when the calls are
//! answered. Nor does it tell, before they are answered, that a response was cut off. Where it does
//! not tell, only silence can. A call that comes later is asked in the next step; none is lost.

use std::collections::BTreeSet;
use std::time::Duration;

use bindery_core::ids::CallId;
use bindery_core::map::app_server_to_part::TurnMapper;
use bindery_core::wire::app_server::notification::{Body, RawCall};

/// Silence after a call that means the end of a response, where nobody tells it.
const UNTOLD: Duration = Duration::from_secs(1);

/// The same where it would be told, had the response not been cut off.
const CUT_OFF: Duration = Duration::from_secs(5);

/// The model's response under way.
#[derive(Debug, Default)]
pub(super) struct Response {
    /// Its end is told.
    told: bool,
    /// It has ended, though its calls wait.
    ended: bool,
    /// Calls of the caller's tools that it has made and that Codex has not asked for yet.
    due: BTreeSet<CallId>,
}

impl Response {
    /// Hears what concerns it.
    pub(super) fn note(&mut self, body: &Body, mapper: &TurnMapper) {
        match body {
            Body::RawItem(call) => {
                self.told = true;
                let ours =
                    |call: &&RawCall| mapper.is_declared(call.namespace.as_deref(), &call.name);
                self.due.extend(call.iter().filter(ours).map(|call| call.call_id.clone()));
            }
            Body::ResponseEnded => (self.told, self.ended) = (true, true),
            // Its calls are answered, and the next one begins.
            Body::TokenUsage(_) => {
                self.ended = false;
                self.due.clear();
            }
            _ => {}
        }
    }

    /// Codex asks for a call.
    pub(super) fn asked(&mut self, call: &CallId) {
        self.due.remove(call);
    }

    /// How long after its last call no other is to be expected; `settle` if it is over.
    pub(super) fn settled(&self, settle: Duration) -> Duration {
        match (self.told, self.ended && self.due.is_empty()) {
            (_, true) => settle,
            (true, false) => settle.max(CUT_OFF),
            (false, false) => settle.max(UNTOLD),
        }
    }
}
