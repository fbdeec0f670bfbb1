//! Where threads are kept while they are not loaded: the seam between the service and session
//! files.
//!
//! Calls may read and write files, so the service makes them where they hold nobody up.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::refused::Refused;
use crate::item::HistoryItem;
use crate::thread::{DynamicTool, Journal, NoJournal};
use crate::tokens::ThreadUsage;

/// Keeps threads.
pub trait Store: Send + Sync {
    /// A place for a new thread. Its file begins with the first entry.
    fn begin(&self, newcomer: &Newcomer) -> Result<Kept, Refused>;

    /// Opens a thread to go on with it; nobody else may write it meanwhile.
    fn resume(&self, which: &Which) -> Result<Past, Refused>;

    /// Copies a thread into a new one.
    fn fork(&self, which: &Which, point: &Point, newcomer: &Newcomer) -> Result<Past, Refused>;

    /// A thread as it is, with its turns.
    fn read(&self, id: &str) -> Result<Past, Refused>;

    /// All threads, archived or not.
    fn list(&self, archived: bool) -> Result<Vec<Row>, Refused>;

    /// Puts a thread away.
    fn archive(&self, id: &str) -> Result<(), Refused>;

    /// Takes it back out.
    fn unarchive(&self, id: &str) -> Result<Row, Refused>;

    /// Removes it for good.
    fn delete(&self, id: &str) -> Result<(), Refused>;

    /// Names it.
    fn rename(&self, id: &str, name: &str) -> Result<(), Refused>;
}

/// Which thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// By its name.
    Id(String),
    /// By its file.
    File(PathBuf),
}

/// How much of a thread its fork begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// All of it.
    End,
    /// What came before this turn.
    Before(String),
    /// What came up to the end of this turn.
    After(String),
}

/// A thread that begins.
#[derive(Clone, Debug, Default)]
pub struct Newcomer {
    /// Its name.
    pub id: String,
    /// Its folder.
    pub cwd: PathBuf,
    /// Its model.
    pub model: String,
    /// The model's provider.
    pub provider: String,
    /// The base prompt.
    pub base_instructions: Option<String>,
    /// The client's tools, as the client declared them.
    pub dynamic_tools: Vec<Value>,
    /// The client.
    pub originator: String,
    /// `vscode`, `exec` …
    pub source: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

/// Where a thread is written.
#[derive(Clone)]
pub struct Kept {
    /// Writes it.
    pub journal: Arc<dyn Journal>,
    /// Its file; none if nothing is kept.
    pub path: Option<PathBuf>,
}

impl Kept {
    /// Nowhere.
    pub fn nowhere() -> Self {
        Self { journal: Arc::new(NoJournal), path: None }
    }
}

/// A thread that was.
#[derive(Clone)]
pub struct Past {
    /// Where it goes on.
    pub kept: Kept,
    /// What is known about it.
    pub row: Row,
    /// What was said.
    pub history: Vec<HistoryItem>,
    /// What the model was told of the context.
    pub context: Option<Value>,
    /// Its turns, in the protocol's shape.
    pub turns: Vec<Value>,
    /// What it used.
    pub usage: ThreadUsage,
    /// The base prompt it began with.
    pub base_instructions: Option<String>,
    /// The client's tools.
    pub dynamic_tools: Vec<DynamicTool>,
}

/// What is known about a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its name.
    pub id: String,
    /// The first words of it.
    pub preview: String,
    /// The name a person gave it.
    pub name: Option<String>,
    /// Its folder.
    pub cwd: PathBuf,
    /// Its model.
    pub model: Option<String>,
    /// The reasoning effort.
    pub effort: Option<String>,
    /// The model's provider.
    pub provider: Option<String>,
    /// Seconds since 1970.
    pub created_at: i64,
    /// Seconds since 1970.
    pub updated_at: i64,
    /// Its file.
    pub path: Option<PathBuf>,
    /// The version that wrote it.
    pub cli_version: String,
    /// The client it began with.
    pub originator: String,
    /// `cli`, `vscode`, `exec` …
    pub source: Value,
    /// Branch, commit and origin.
    pub git: Value,
    /// The thread it was forked from.
    pub forked_from: Option<String>,
}

/// Keeps nothing: threads live as long as they are loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStore;

impl Store for NoStore {
    fn begin(&self, _: &Newcomer) -> Result<Kept, Refused> {
        Ok(Kept::nowhere())
    }

    fn resume(&self, which: &Which) -> Result<Past, Refused> {
        Err(Refused::no_rollout(&which.to_string()))
    }

    fn fork(&self, which: &Which, _: &Point, _: &Newcomer) -> Result<Past, Refused> {
        Err(Refused::no_rollout(&which.to_string()))
    }

    fn read(&self, id: &str) -> Result<Past, Refused> {
        Err(Refused::not_loaded(id))
    }

    fn list(&self, _: bool) -> Result<Vec<Row>, Refused> {
        Ok(Vec::new())
    }

    fn archive(&self, id: &str) -> Result<(), Refused> {
        Err(Refused::no_rollout(id))
    }

    fn unarchive(&self, id: &str) -> Result<Row, Refused> {
        Err(Refused::invalid(format!("no archived rollout found for thread id {id}")))
    }

    fn delete(&self, id: &str) -> Result<(), Refused> {
        Err(Refused::no_rollout(id))
    }

    fn rename(&self, id: &str, _: &str) -> Result<(), Refused> {
        Err(Refused::no_rollout(id))
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
