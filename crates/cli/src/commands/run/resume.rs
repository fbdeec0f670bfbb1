//! The thread a user means: an id, the beginning of one, or the newest of the folder.

use std::path::Path;

use bindery::core::ids::ThreadId;
use bindery::core::wire::app_server::reply::Thread;
use bindery::{AppServer, Error};
use serde_json::{Map, Value, json};

use crate::failure::Hinted;

/// Threads looked through for the beginning of an id.
const MOST_PAGES: usize = 20;

/// Finds the thread.
pub(super) async fn find(server: &AppServer, wanted: &str, cwd: &Path) -> anyhow::Result<ThreadId> {
    match wanted {
        "last" => last(server, cwd).await,
        // A whole id: Codex knows best whether it is there.
        id if id.len() == 36 => Ok(ThreadId::new(id)),
        prefix => by_prefix(server, prefix).await,
    }
}

async fn last(server: &AppServer, cwd: &Path) -> anyhow::Result<ThreadId> {
    let filter = object(json!({
        "limit": 1, "cwd": cwd, "sortKey": "updated_at", "sortDirection": "desc",
    }));
    let newest = server.list_threads(&filter).await?.data.into_iter().next();
    newest.map(|thread| thread.id).ok_or_else(|| {
        let message = format!("no thread was run in `{}` yet", cwd.display());
        Hinted::misuse(message, "leave `--resume last` out, or name the folder with `--cwd`")
    })
}

async fn by_prefix(server: &AppServer, prefix: &str) -> anyhow::Result<ThreadId> {
    let mut found: Vec<Thread> = Vec::new();
    let mut filter = object(json!({ "limit": 100 }));
    for _ in 0..MOST_PAGES {
        let page = server.list_threads(&filter).await?;
        found.extend(page.data.into_iter().filter(|t| t.id.as_str().starts_with(prefix)));
        let Some(cursor) = page.next_cursor else { break };
        filter.insert("cursor".to_owned(), Value::from(cursor));
    }
    match found.as_slice() {
        [] => Err(no_thread(prefix)),
        [thread] => Ok(thread.id.clone()),
        several => Err(Hinted::misuse(
            format!("{} threads begin with `{prefix}`", several.len()),
            format!("did you mean `{}` ({})?", several[0].id, several[0].preview),
        )),
    }
}

/// A failure to open the thread, in the user's words where it is that there is none.
pub(super) fn explained(err: Error, wanted: Option<&str>) -> anyhow::Error {
    match (&err, wanted) {
        // Codex tells it by no code of its own: the one when it opens, the other when it reads.
        (Error::Rpc { message, .. }, Some(wanted))
            if ["no rollout found", "thread not loaded"].iter().any(|w| message.contains(w)) =>
        {
            no_thread(wanted)
        }
        _ => err.into(),
    }
}

fn no_thread(wanted: &str) -> anyhow::Error {
    let hint = "the closing line of a turn tells its thread; `--resume last` takes the newest";
    Hinted::misuse(format!("no thread `{wanted}`"), hint)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
