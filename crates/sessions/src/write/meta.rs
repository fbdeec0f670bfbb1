//! The first line of a file: what the session is.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// How a session is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Numbered lines, shown items (0.150 and newer).
    #[default]
    Paginated,
    /// Lines without numbers, shown messages as events: Codex 0.34 and newer read it.
    Legacy,
}

impl Format {
    /// Codex's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Paginated => "paginated",
            Self::Legacy => "legacy",
        }
    }
}

/// What a session says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// The thread: a UUID of version 7.
    pub id: String,
    /// The thread that a sub-agent serves, else the thread itself.
    pub session_id: Option<String>,
    /// Where it works.
    pub cwd: PathBuf,
    /// The client that began it.
    pub originator: String,
    /// The version of Codex whose format this is.
    pub cli_version: String,
    /// `cli`, `exec`, `vscode` …, or an object for sub-agents.
    pub source: Value,
    /// The provider's id.
    pub model_provider: Option<String>,
    /// The system prompt.
    pub base_instructions: Option<String>,
    /// Tools of the client.
    pub dynamic_tools: Vec<Value>,
    /// The state of the repository.
    pub git: Option<Git>,
    /// The thread it was forked from.
    pub forked_from: Option<String>,
    /// What it begins with, in another file.
    pub base: Option<Base>,
    /// How it is written.
    pub format: Format,
    /// Fields beside these, as Codex names them.
    pub more: Map<String, Value>,
}

/// The state of a repository when a session began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Git {
    /// The commit.
    pub commit_hash: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The address of its origin.
    pub repository_url: Option<String>,
}

/// The part of another file that a session begins with (0.153 and newer).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The thread, or the part of one, whose file it is.
    pub thread_id: String,
    /// The first line that is not part of it.
    pub end_ordinal: u64,
    /// Where that line begins.
    pub end_offset: u64,
}

/// The Codex whose sessions ours are like.
pub const CODEX_VERSION: &str = "0.166.0";

impl Meta {
    /// A session of a client, with as little as Codex needs.
    pub fn new(id: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            id: id.into(),
            session_id: None,
            cwd: cwd.into(),
            originator: "bindery".to_owned(),
            cli_version: CODEX_VERSION.to_owned(),
            source: Value::from("vscode"),
            model_provider: None,
            base_instructions: None,
            dynamic_tools: Vec::new(),
            git: None,
            forked_from: None,
            base: None,
            format: Format::default(),
            more: Map::new(),
        }
    }

    /// A new thread's id.
    pub fn new_id() -> String {
        uuid::Uuid::now_v7().to_string()
    }

    /// The payload of the line.
    pub fn payload(&self, stamp: &str) -> Value {
        let mut payload = self.more.clone();
        let mut set = |key: &str, value: Value| payload.insert(key.to_owned(), value);
        set("session_id", json!(self.session_id.as_ref().unwrap_or(&self.id)));
        set("id", json!(self.id));
        set("timestamp", json!(stamp));
        set("cwd", json!(self.cwd));
        set("originator", json!(self.originator));
        set("cli_version", json!(self.cli_version));
        set("source", self.source.clone());
        set("history_mode", json!(self.format.word()));
        if let Some(provider) = &self.model_provider {
            set("model_provider", json!(provider));
        }
        if let Some(text) = &self.base_instructions {
            set("base_instructions", json!({ "text": text }));
        }
        if !self.dynamic_tools.is_empty() {
            set("dynamic_tools", json!(self.dynamic_tools));
        }
        if let Some(git) = &self.git {
            set("git", git.payload());
        }
        if let Some(parent) = &self.forked_from {
            set("forked_from_id", json!(parent));
        }
        if let Some(base) = &self.base {
            if self.forked_from.is_some() {
                set("forked_from_ordinal_exclusive", json!(base.end_ordinal));
            }
            set("history_base", base.payload());
        }
        Value::Object(payload)
    }
}

impl Git {
    fn payload(&self) -> Value {
        let fields = [
            ("commit_hash", &self.commit_hash),
            ("branch", &self.branch),
            ("repository_url", &self.repository_url),
        ];
        let known = fields
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), Value::from(value.clone()?))));
        Value::Object(known.collect())
    }
}

impl Base {
    fn payload(&self) -> Value {
        json!({
            "thread_id": self.thread_id,
            "end_ordinal_exclusive": self.end_ordinal,
            "end_byte_offset": self.end_offset,
        })
    }
}
