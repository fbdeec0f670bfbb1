//! Compaction: has a thread's history replaced by a summary, and waits until it is.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bindery_core::ids::ThreadId;
use bindery_core::wire::app_server::notification::{Body, Turn as Ended};
use bindery_core::wire::app_server::reply::ThreadOpened;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::app_server::AppServer;
use crate::error::Error;
use crate::switchboard::Event;
use crate::turn::Seat;

/// When a resumed thread is compacted before its turn.
#[derive(Clone, Default)]
pub enum Compaction {
    /// Never; Codex compacts by itself when the window is full.
    #[default]
    Never,
    /// Before every turn of a thread that is resumed.
    Always,
    /// When this says so.
    When(Arc<dyn Fn(&ThreadOpened) -> bool + Send + Sync>),
}

impl Compaction {
    /// Whether this thread is to be compacted.
    pub fn is_due(&self, opened: &ThreadOpened) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::When(due) => due(opened),
        }
    }
}

impl fmt::Debug for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "Never",
            Self::Always => "Always",
            Self::When(_) => "When(…)",
        })
    }
}

/// Compacts a thread and waits for the end of it, at most `within`.
pub async fn compact(server: &AppServer, thread: &ThreadId, within: Duration) -> Result<(), Error> {
    let Some(events) = server.switchboard().listen(thread) else {
        return Err(Error::Busy { thread: thread.to_string() });
    };
    let _seat = Seat::take(server, thread);
    // Codex answers at once and then runs a turn, of which it gives no id beforehand.
    server.compact_thread(thread).await?;
    match timeout(within, ended(events)).await {
        Ok(end) => end,
        Err(_) => Err(Error::Timeout { what: "thread/compact/start".to_owned(), after: within }),
    }
}

async fn ended(mut events: mpsc::Receiver<Event>) -> Result<(), Error> {
    while let Some(event) = events.recv().await {
        match event {
            Event::Notification(note) => {
                if let Body::TurnCompleted(turn) = note.body {
                    return outcome(turn);
                }
            }
            Event::Closed(end) => {
                return Err(Error::Closed { status: end.status, stderr: end.stderr });
            }
            // Nobody tells afterwards how the compaction went.
            Event::Lost => return Err(lost("the connection was lost")),
            Event::Raw(_) | Event::Request(..) | Event::Unreadable { .. } | Event::Regained => {}
        }
    }
    Err(lost("connection closed"))
}

fn lost(status: &str) -> Error {
    Error::Closed { status: status.to_owned(), stderr: String::new() }
}

fn outcome(turn: Ended) -> Result<(), Error> {
    if turn.status == "completed" {
        return Ok(());
    }
    let why = turn.error.map_or(turn.status, |error| error.message);
    Err(Error::Compaction { why })
}
