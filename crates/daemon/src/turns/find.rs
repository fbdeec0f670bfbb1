//! A turn that the backend may have been asked for is looked for there, by its mark.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bindery_client::app_server::AppServer;
use bindery_client::error::Error as ClientError;
use bindery_core::ids::ThreadId;
use bindery_core::wire::app_server::reply::Page;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Inner;
use super::open::{Scene, session};
use crate::error::Error;
use crate::store::{Paging, TurnKind};

/// How long a thread must have been idle without the turn until it counts as not begun. Codex says
/// that a turn is there some milliseconds after it was asked for; this is ample.
const QUIET: Duration = Duration::from_secs(3);

/// How often to look within that time.
const GLANCE: Duration = Duration::from_millis(50);

/// Turns of a page, newest first, and pages that are looked at.
const PAGE: usize = 5;
const PAGES: usize = 4;

/// Turns of ours whose names in the backend are known to be others'.
const KNOWN: usize = 1000;

/// A turn that was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// The backend's name for it.
    pub(super) id: String,
    /// How it stands there: `inProgress`, `completed` …
    pub(super) status: String,
}

/// What one look has shown.
#[derive(Debug, PartialEq)]
enum Look {
    Found(Found),
    /// Something runs there, and it is not known yet what.
    Busy,
    /// Nothing runs there, and the turn is not among those that did.
    Quiet,
}

impl Inner {
    /// The turn in the backend; none if that has not begun it and never will.
    pub(super) async fn find_begun(&self, scene: &Scene) -> Result<Option<Found>, Error> {
        let mark = scene.turn.mark.as_deref().unwrap_or_default();
        if mark.is_empty() {
            let message = "the daemon ended while the turn was being started".to_owned();
            return Err(Error::Conflict { code: "lost_at_start", message });
        }
        let thread = session(&scene.thread)?;
        let others = self.bound_turns(scene).await?;
        let backend = &scene.thread.backend;
        let lease = self.workers.lease(&scene.tenant, backend, Some(thread.as_str())).await?;
        let search = Search { server: lease.server(), thread, kind: scene.turn.kind, mark, others };
        let (begin, mut quiet_since) = (Instant::now(), Instant::now());
        loop {
            match search.look().await? {
                Look::Found(found) => return Ok(Some(found)),
                // A worker that was started since runs nothing of old.
                Look::Quiet if scene.live.gone.is_some() => return Ok(None),
                Look::Quiet if quiet_since.elapsed() > QUIET => return Ok(None),
                Look::Quiet => {}
                Look::Busy if begin.elapsed() > self.idle() => {
                    return Err(ClientError::Busy { thread: search.thread.to_string() }.into());
                }
                Look::Busy => quiet_since = Instant::now(),
            }
            sleep(GLANCE).await;
        }
    }

    /// The backend's names of the thread's other turns.
    async fn bound_turns(&self, scene: &Scene) -> Result<HashSet<String>, Error> {
        let page = Paging { before: None, limit: KNOWN };
        let turns = self.store.turns(&scene.tenant.id, &scene.thread.id, page).await?;
        Ok(turns.into_iter().filter_map(|turn| turn.backend_turn).collect())
    }
}

/// A search for one turn.
struct Search<'a> {
    server: &'a AppServer,
    thread: ThreadId,
    kind: TurnKind,
    mark: &'a str,
    others: HashSet<String>,
}

impl Search<'_> {
    async fn look(&self) -> Result<Look, Error> {
        // First whether something runs: what begins after this look is seen by the next.
        let runs = match self.server.read_thread(&self.thread).await {
            Ok(thread) => thread.status["type"] == "active",
            // Not there: a thread is written down with its first turn.
            Err(ClientError::Rpc { .. }) => false,
            Err(err) => return Err(err.into()),
        };
        let looked = match self.listed().await {
            Ok(turns) => self.judge(&turns),
            // 0.166 and 0.169: `not materialized yet` before the first turn, and for a moment of
            // that `list_turns is not supported yet`.
            Err(ClientError::Rpc { .. }) => Look::Quiet,
            Err(err) => return Err(err.into()),
        };
        Ok(if runs && looked == Look::Quiet { Look::Busy } else { looked })
    }

    /// The newest turns that are not known to be others, newest first.
    async fn listed(&self) -> Result<Vec<Value>, ClientError> {
        let (mut turns, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..PAGES {
            let params = json!({
                "threadId": self.thread, "itemsView": "full", "limit": PAGE, "cursor": cursor,
            });
            let page: Page<Value> = self.server.request("thread/turns/list", &params).await?;
            for turn in page.data {
                if turn["id"].as_str().is_some_and(|id| self.others.contains(id)) {
                    return Ok(turns);
                }
                turns.push(turn);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(turns)
    }

    fn judge(&self, turns: &[Value]) -> Look {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(turn) = turns.iter().find(|turn| self.is_it(turn)) {
            return Look::Found(Found { id: text(&turn["id"]), status: text(&turn["status"]) });
        }
        match turns.iter().any(|turn| turn["status"] == "inProgress") {
            true => Look::Busy,
            false => Look::Quiet,
        }
    }

    /// Only the message of a prompt can carry a mark; other turns are known by what they do.
    fn is_it(&self, turn: &Value) -> bool {
        let mut items = turn["items"].as_array().into_iter().flatten();
        items.any(|item| match self.kind {
            TurnKind::Prompt => item["type"] == "userMessage" && item["clientId"] == self.mark,
            TurnKind::Review => item["type"] == "enteredReviewMode",
            TurnKind::Compact => item["type"] == "contextCompaction",
        })
    }
}
