//! Which thread, and what it is asked: the requests before the turn runs.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use bindery::client::peer::Peer;
use bindery::core::wire::app_server::reply::{Page, Thread};
use bindery::engine::config::Home;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::flags::Flags;
use super::words::{self, Stdin};
use crate::commands::prompt::{called, filled};
use crate::commands::run::call::attached;
use crate::failure::Hinted;

/// No request before the turn takes this long.
const WITHIN: Duration = Duration::from_secs(120);

/// Pages of threads looked through for a name.
const MOST_PAGES: usize = 20;

/// Which thread.
#[derive(Debug)]
pub(super) enum Target {
    /// A new one.
    New,
    /// One by its id or name.
    Resume(String),
    /// The newest, of this folder or of all.
    Last {
        /// Of all.
        everywhere: bool,
    },
    /// A copy of one.
    Fork(String),
    /// A new one that reviews; what, unless the prompt says it.
    Review(Option<Value>),
}

/// Everything that is known before the engine starts.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) target: Target,
    /// What the model is told; empty for a review of changes.
    pub(super) prompt: String,
    /// Files that go along.
    files: Vec<String>,
    schema: Option<Value>,
}

/// A thread that is open, as the engine told it.
pub(super) struct Opened {
    pub(super) id: String,
    /// The whole reply.
    pub(super) reply: Value,
}

impl Opening {
    pub(super) fn read(
        target: Target,
        prompt: Option<&str>,
        flags: &Flags,
        home: &Home,
    ) -> anyhow::Result<Self> {
        let stdin = match target {
            Target::New => Stdin::Added,
            _ => Stdin::Instead,
        };
        // Before anything is added to it, which would be taken for its arguments.
        let custom = match (flags.custom.split_first(), prompt) {
            (Some((name, arguments)), _) => Some(filled(name, arguments, home)?),
            (None, Some(words)) => called(words, home)?,
            (None, None) => None,
        };
        let prompt = match (&target, custom) {
            (_, Some(custom)) => words::beside(&custom, stdin)?,
            (Target::Review(Some(_)), None) => String::new(),
            _ => words::prompt(prompt, stdin)?,
        };
        if flags.ephemeral && !matches!(target, Target::New | Target::Review(_)) {
            let hint = "leave `--ephemeral` out; `exec fork` keeps the thread as it is";
            return Err(Hinted::misuse("a thread that goes on is kept", hint));
        }
        let attached_any = !flags.file.is_empty() || !flags.image.is_empty();
        if attached_any && matches!(target, Target::Review(_)) {
            let hint = "name the files in the words of the review";
            return Err(Hinted::misuse("a review takes no files and no pictures", hint));
        }
        let schema = flags.output_schema.as_deref().map(schema).transpose()?;
        let files = flags.file.iter().map(|file| attached(file)).collect::<Result<_, _>>()?;
        Ok(Self { target, prompt, files, schema })
    }

    /// Opens the thread.
    pub(super) async fn open(
        &self,
        peer: &Peer,
        flags: &Flags,
        cwd: &Path,
    ) -> anyhow::Result<Opened> {
        greet(peer).await?;
        let mut params = json!({ "cwd": cwd, "approvalPolicy": "never" });
        if let Some(model) = &flags.model {
            params["model"] = json!(model);
        }
        let method = match &self.target {
            Target::New | Target::Review(_) => {
                params["ephemeral"] = json!(flags.ephemeral);
                "thread/start"
            }
            Target::Resume(name) => {
                params["threadId"] = json!(find(peer, name).await?);
                "thread/resume"
            }
            Target::Last { everywhere } => {
                params["threadId"] = json!(last(peer, cwd, *everywhere).await?);
                "thread/resume"
            }
            Target::Fork(name) => {
                params["threadId"] = json!(find(peer, name).await?);
                "thread/fork"
            }
        };
        if method != "thread/start" {
            params["excludeTurns"] = json!(true);
        }
        let reply: Value = ask(peer, method, &params).await?;
        let id = reply["thread"]["id"].as_str().context("the engine opened no thread")?.to_owned();
        Ok(Opened { id, reply })
    }

    /// Starts the turn.
    pub(super) async fn start(
        &self,
        peer: &Peer,
        flags: &Flags,
        thread: &str,
    ) -> anyhow::Result<()> {
        if let Target::Review(what) = &self.target {
            let said = || json!({ "type": "custom", "instructions": self.prompt });
            let target = what.clone().unwrap_or_else(said);
            let params = json!({ "threadId": thread, "target": target, "delivery": "inline" });
            return ask::<Value>(peer, "review/start", &params).await.map(drop);
        }
        let image = |path: &std::path::PathBuf| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            json!({ "type": "localImage", "path": path })
        };
        let mut input: Vec<Value> = flags.image.iter().map(image).collect();
        let words = self.files.iter().chain([&self.prompt]);
        input
            .extend(words.map(|text| json!({ "type": "text", "text": text, "text_elements": [] })));
        let params = json!({
            "threadId": thread, "input": input, "outputSchema": self.schema,
        });
        ask::<Value>(peer, "turn/start", &params).await.map(drop)
    }
}

/// A program that has Codex run for it may say who it is.
const ORIGINATOR: &str = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

async fn greet(peer: &Peer) -> anyhow::Result<()> {
    let name = std::env::var(ORIGINATOR).ok().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "bindery_exec".to_owned());
    let client = json!({ "name": name, "version": env!("CARGO_PKG_VERSION") });
    let hello = json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } });
    ask::<Value>(peer, "initialize", &hello).await?;
    Ok(peer.notify("initialized", ()).await?)
}

async fn ask<T: DeserializeOwned>(peer: &Peer, method: &str, params: &Value) -> anyhow::Result<T> {
    let reply = peer.request(method, params, WITHIN).await?;
    serde_json::from_str(reply.get()).with_context(|| format!("a strange answer to {method}"))
}

/// A thread by its id, else by its name.
async fn find(peer: &Peer, name: &str) -> anyhow::Result<String> {
    if is_id(name) {
        return Ok(name.to_owned());
    }
    let mut filter = Map::from_iter([("limit".to_owned(), json!(100))]);
    for _ in 0..MOST_PAGES {
        let page: Page<Thread> = ask(peer, "thread/list", &json!(filter)).await?;
        let found = page.data.into_iter().find(|thread| thread.name.as_deref() == Some(name));
        if let Some(thread) = found {
            return Ok(thread.id.as_str().to_owned());
        }
        let Some(cursor) = page.next_cursor else { break };
        filter.insert("cursor".to_owned(), json!(cursor));
    }
    anyhow::bail!("no thread is called `{name}`")
}

async fn last(peer: &Peer, cwd: &Path, everywhere: bool) -> anyhow::Result<String> {
    let mut filter = json!({ "limit": 1, "sortKey": "updated_at", "sortDirection": "desc" });
    if !everywhere {
        filter["cwd"] = json!(cwd);
    }
    let page: Page<Thread> = ask(peer, "thread/list", &filter).await?;
    let newest = page.data.into_iter().next();
    newest.map(|thread| thread.id.as_str().to_owned()).with_context(|| match everywhere {
        true => "no thread was run yet".to_owned(),
        false => format!("no thread was run in `{}` yet", cwd.display()),
    })
}

/// Whether this is a UUID.
fn is_id(name: &str) -> bool {
    let groups: Vec<&str> = name.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && name.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

fn schema(path: &Path) -> anyhow::Result<Value> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("Failed to read output schema file {name}"))?;
    serde_json::from_str(&text)
        .with_context(|| format!("Output schema file {name} is not valid JSON"))
}
