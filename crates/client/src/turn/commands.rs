//! Commands of a turn that is stopped: Codex stops the model and leaves them running.

use std::collections::BTreeSet;

use bindery_core::ids::{ItemId, ThreadId};
use bindery_core::open::tag_of;
use bindery_core::wire::app_server::notification::Body;
use bindery_core::wire::app_server::reply::Page;
use serde_json::{Value, json};

use crate::app_server::AppServer;
use crate::error::Error;

/// The commands that a turn has started and that have not ended.
#[derive(Debug, Default)]
pub(super) struct Commands {
    running: BTreeSet<ItemId>,
}

impl Commands {
    /// Hears of their starts and ends.
    pub(super) fn note(&mut self, body: &Body) {
        match body {
            Body::ItemStarted(note) if tag_of(&note.raw, "type") == "commandExecution" => {
                self.running.insert(note.id.clone());
            }
            Body::ItemCompleted(note) => {
                self.running.remove(&note.id);
            }
            _ => {}
        }
    }

    /// Ends them. Those of earlier turns were left running on purpose, and go on.
    pub(super) async fn end(self, server: AppServer, thread: ThreadId) {
        if self.running.is_empty() {
            return;
        }
        if let Err(err) = self.terminate(&server, &thread).await {
            // An app-server that ends them itself has no such request.
            tracing::debug!(%thread, %err, "commands of a stopped turn were not ended");
        }
    }

    async fn terminate(&self, server: &AppServer, thread: &ThreadId) -> Result<(), Error> {
        let mut cursor = None;
        loop {
            let params = json!({ "threadId": thread, "cursor": cursor });
            let method = "thread/backgroundTerminals/list";
            let page: Page<Value> = server.request(method, &params).await?;
            let ours = |terminal: &&Value| {
                let item = ItemId::new(tag_of(terminal, "itemId"));
                self.running.contains(&item)
            };
            for terminal in page.data.iter().filter(ours) {
                let params = json!({ "threadId": thread, "processId": terminal["processId"] });
                let method = "thread/backgroundTerminals/terminate";
                server.request::<Value>(method, &params).await?;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }
}
