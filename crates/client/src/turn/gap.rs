//! What a turn was told already, so that a lost connection neither doubles nor tears anything.
//!
//! Codex 0.166 lists the finished items of a running turn, but not the text of an unfinished one.
//! So after a gap the pieces of a text are let through only if its beginning was heard over the
//! same connection; any other is left as it stands until its item is complete, and the rest of it
//! is then told at once.

use std::collections::{HashMap, HashSet};

use bindery_core::ids::{ItemId, ThreadId};
use bindery_core::wire::app_server::notification::Body;
use bindery_core::wire::rpc::{RequestId, RpcError};
use serde_json::Value;
use tokio::task::JoinSet;

use super::reattach::Snapshot;
use crate::error::Error;
use crate::switchboard::Event;
use crate::transport::End;

/// Events that may wait until what was missed is known.
const MOST: usize = 4096;

/// What was sent in answer to a question.
pub(super) type Reply = Result<Value, RpcError>;

/// A turn's memory of what it heard and said.
#[derive(Default)]
pub(super) struct Gap {
    /// Items that are complete.
    done: HashSet<Key>,
    /// Items whose beginning came over the connection in use; none while it is the first one, over
    /// which everything has come.
    whole: Option<HashSet<Key>>,
    /// Answers that the server has not confirmed.
    said: HashMap<RequestId, Reply>,
    /// What came while what was missed is fetched.
    backlog: Option<Vec<Event>>,
    /// The fetching.
    pub(super) catching: JoinSet<Result<Snapshot, Error>>,
    /// The thread's whole history was asked for: once is enough, for it may be too long.
    pub(super) asked_usage: bool,
}

type Key = (ThreadId, ItemId);

impl Gap {
    /// The event, if it is to be told now: not held back, not told before, not torn.
    pub(super) fn admit(&mut self, event: Event) -> Option<Event> {
        if matches!(event, Event::Lost | Event::Regained | Event::Closed(_)) {
            return Some(event);
        }
        match &mut self.backlog {
            Some(backlog) if backlog.len() < MOST => {
                backlog.push(event);
                None
            }
            Some(_) => {
                let status = "too much happened while the turn caught up".to_owned();
                Some(Event::Closed(End { status, stderr: String::new() }))
            }
            None => self.is_news(&event).then_some(event),
        }
    }

    /// There is no connection, so nothing can be fetched.
    pub(super) fn open(&mut self) {
        self.whole = Some(HashSet::new());
        self.backlog = None;
        self.catching = JoinSet::new();
    }

    /// These items were told to their end before, by another process.
    pub(super) fn know(&mut self, thread: &ThreadId, items: Vec<ItemId>) {
        self.done.extend(items.into_iter().map(|item| (thread.clone(), item)));
    }

    /// There is a connection: what comes over it waits until the gap is closed.
    pub(super) fn hold(&mut self) {
        self.open();
        self.backlog = Some(Vec::new());
    }

    /// What was missed is known; gives what has come since.
    pub(super) fn close(&mut self) -> Vec<Event> {
        self.backlog.take().unwrap_or_default()
    }

    /// Whether anything may have been missed at any time.
    pub(super) fn is_torn(&self) -> bool {
        self.whole.is_some()
    }

    /// An answer was sent, or would have been.
    pub(super) fn say(&mut self, id: &RequestId, reply: &Reply) {
        self.said.insert(id.clone(), reply.clone());
    }

    /// The answer to a question that is asked again.
    pub(super) fn said(&self, id: &RequestId) -> Option<Reply> {
        self.said.get(id).cloned()
    }

    /// The server has its answer.
    pub(super) fn confirmed(&mut self, id: &Value) {
        self.said.retain(|known, _| serde_json::to_value(known).ok().as_ref() != Some(id));
    }

    fn is_news(&mut self, event: &Event) -> bool {
        let Event::Notification(notification) = event else { return true };
        let address = &notification.address;
        let (Some(thread), Some(item)) = (&address.thread_id, &address.item_id) else {
            return true;
        };
        let key = (thread.clone(), item.clone());
        match &notification.body {
            Body::ItemStarted(_) => self.begins(key),
            Body::ItemCompleted(_) => self.done.insert(key) || !self.is_torn(),
            Body::MessageDelta(_)
            | Body::PlanDelta(_)
            | Body::SummaryPart(_)
            | Body::SummaryDelta(..)
            | Body::ReasoningDelta(..) => self.goes_on(&key),
            _ => true,
        }
    }

    fn goes_on(&self, key: &Key) -> bool {
        let whole = |whole: &HashSet<Key>| whole.contains(key) && !self.done.contains(key);
        self.whole.as_ref().is_none_or(whole)
    }

    /// Names are Codex's business until a gap makes them ours.
    fn begins(&mut self, key: Key) -> bool {
        let Some(whole) = &mut self.whole else { return true };
        let news = !self.done.contains(&key);
        if news {
            whole.insert(key);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use bindery_core::wire::app_server::notification::Notification;
    use serde_json::json;

    use super::*;

    fn event(method: &str, item: &str) -> Event {
        let params = json!({
            "threadId": "t", "turnId": "u", "itemId": item, "delta": "x",
            "item": { "type": "agentMessage", "id": item, "text": "x" },
        });
        let params = serde_json::value::to_raw_value(&params).unwrap();
        Event::Notification(Box::new(Notification::decode(method, &params)))
    }

    fn admitted(gap: &mut Gap, events: &[(&str, &str)]) -> Vec<bool> {
        let admit = |(method, item): &(&str, &str)| gap.admit(event(method, item)).is_some();
        events.iter().map(admit).collect()
    }

    const START: &str = "item/started";
    const DELTA: &str = "item/agentMessage/delta";
    const DONE: &str = "item/completed";

    #[test]
    fn without_a_gap_everything_is_told() {
        let all = [(DELTA, "a"), (DONE, "a"), (START, "a"), (DELTA, "a"), (DONE, "a")];
        assert_eq!(admitted(&mut Gap::default(), &all), [true; 5]);
    }

    #[test]
    fn after_a_gap_nothing_is_told_twice_or_torn() {
        let mut gap = Gap::default();
        admitted(&mut gap, &[(START, "a"), (DONE, "a"), (START, "b"), (DELTA, "b")]);
        gap.open();
        #[rustfmt::skip]
        let table = [
            (START, "a", false), (DELTA, "a", false), (DONE, "a", false),
            (DELTA, "b", false), (DONE, "b", true), (DONE, "b", false),
            (START, "c", true), (DELTA, "c", true), (DONE, "c", true), (DELTA, "c", false),
            (START, "c", false),
        ];
        for (method, item, want) in table {
            assert_eq!(admitted(&mut gap, &[(method, item)]), [want], "{method} {item}");
        }
        gap.open();
        assert_eq!(admitted(&mut gap, &[(DELTA, "c"), (DONE, "c")]), [false, false]);
    }

    #[test]
    fn what_comes_while_catching_up_waits_within_bounds() {
        let mut gap = Gap::default();
        gap.hold();
        for _ in 0..MOST {
            assert!(gap.admit(event(DELTA, "a")).is_none());
        }
        assert!(matches!(gap.admit(event(DELTA, "a")), Some(Event::Closed(_))));
        assert_eq!(gap.close().len(), MOST);
    }

    #[test]
    fn an_answer_is_kept_until_it_is_confirmed() {
        let mut gap = Gap::default();
        gap.say(&RequestId::Number(0), &Ok(json!("yes")));
        gap.confirmed(&json!(1));
        assert!(matches!(gap.said(&RequestId::Number(0)), Some(Ok(yes)) if yes == "yes"));
        gap.confirmed(&json!(0));
        assert!(gap.said(&RequestId::Number(0)).is_none());
    }
}
