//! What a thread is opened with, and what a turn may change.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bindery_core::open::Open;
use bindery_core::wire::app_server::input::UserInput;
use serde_json::Value;

use super::error::ThreadError;
use super::journal::Journal;
use super::permit::{Approval, ApprovalsReviewer, Sandbox};
use crate::guard::Guard;
use crate::item::HistoryItem;
use crate::mcp::ServerSettings;
use crate::model::Model;
use crate::outlet::Outlet;
use crate::prompter::Prompter;
use crate::sandbox::environment::EnvironmentPolicy;
use crate::tokens::ThreadUsage;

/// What a thread is opened with.
#[derive(Clone, Debug)]
pub struct ThreadSettings {
    /// The thread's name, a UUID of version 7.
    pub id: String,
    /// What is in force until a turn changes it.
    pub standing: Standing,
    /// The client's own tools.
    pub dynamic_tools: Vec<DynamicTool>,
    /// MCP servers, started when a turn needs them.
    pub mcp: Vec<ServerSettings>,
    /// Which variables commands get.
    pub environment: EnvironmentPolicy,
    /// What was said before, oldest first.
    pub history: Vec<HistoryItem>,
    /// What the model was told of the context when that history was written.
    pub context: Option<Value>,
    /// Turns of before, in the protocol's shape, for those who read the thread.
    pub turns: Vec<Value>,
    /// What was used before.
    pub usage: ThreadUsage,
    /// Bounds of every turn.
    pub limits: Limits,
}

/// What is in force for a turn and stays so for the next ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The model's name.
    pub model: String,
    /// The folder to work in.
    pub cwd: PathBuf,
    /// When the person is asked.
    pub approval: Approval,
    /// Who answers then.
    pub reviewer: ApprovalsReviewer,
    /// What commands can reach.
    pub sandbox: Sandbox,
    /// Reasoning effort; none leaves it to the model's entry.
    pub effort: Option<String>,
    /// Summary of thoughts; none leaves it to the model's entry.
    pub summary: Option<String>,
    /// Replaces the base prompt.
    pub base_instructions: Option<String>,
    /// Follows the base prompt.
    pub developer_instructions: Option<String>,
}

/// Bounds of a turn. Every turn ends, whatever the model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Questions to the model in one turn.
    pub steps: u32,
    /// How long a turn may take.
    pub time: Duration,
    /// Bytes the model may write in one response.
    pub response_bytes: usize,
    /// Calls the model may make in one response.
    pub calls: usize,
}

/// A turn to begin, or input for a running one.
#[derive(Clone, Debug, Default)]
pub struct TurnInput {
    /// The user's words and pictures.
    pub input: Vec<Open<UserInput>>,
    /// The client's name for the message.
    pub client_id: Option<String>,
    /// What changes with this turn.
    pub overrides: Overrides,
    /// JSON Schema of the answer; this turn only.
    pub output_schema: Option<Value>,
}

/// What a turn changes, for itself and those after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// The model.
    pub model: Option<String>,
    /// The folder.
    pub cwd: Option<PathBuf>,
    /// When the person is asked.
    pub approval: Option<Approval>,
    /// Who answers then.
    pub reviewer: Option<ApprovalsReviewer>,
    /// What commands can reach.
    pub sandbox: Option<Sandbox>,
    /// Reasoning effort.
    pub effort: Option<String>,
    /// Summary of thoughts.
    pub summary: Option<String>,
}

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq)]
pub enum DynamicTool {
    /// One function.
    Function {
        /// Its name.
        name: String,
        /// What it is for.
        description: String,
        /// JSON Schema of its arguments.
        input_schema: Value,
    },
    /// A named group.
    Namespace {
        /// Its name.
        name: String,
        /// What it is for.
        description: String,
        /// Its functions.
        tools: Vec<DynamicTool>,
    },
}

/// Everything a thread is made of that is not a setting.
#[derive(Clone)]
pub struct Makings {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Who listens.
    pub outlet: Arc<dyn Outlet>,
    /// Where it is written down.
    pub journal: Arc<dyn Journal>,
    /// What the model is told around the user's words.
    pub prompter: Arc<dyn Prompter>,
    /// Who decides about commands.
    pub guard: Arc<dyn Guard>,
    /// What time it is.
    pub clock: Clock,
}

/// Milliseconds since 1970.
pub type Clock = fn() -> i64;

/// The system's clock.
pub fn system_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 1_000,
            time: Duration::from_secs(24 * 60 * 60),
            response_bytes: 32 << 20,
            calls: 128,
        }
    }
}

impl Standing {
    /// A model in a folder, with nothing allowed but reading.
    pub fn new(model: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            model: model.into(),
            cwd: cwd.into(),
            approval: Approval::default(),
            reviewer: ApprovalsReviewer::default(),
            sandbox: Sandbox::default(),
            effort: None,
            summary: None,
            base_instructions: None,
            developer_instructions: None,
        }
    }

    /// Takes over what a turn changes.
    pub fn change(&mut self, overrides: Overrides) {
        let Overrides { model, cwd, approval, reviewer, sandbox, effort, summary } = overrides;
        self.model = model.unwrap_or(std::mem::take(&mut self.model));
        self.cwd = cwd.unwrap_or(std::mem::take(&mut self.cwd));
        self.approval = approval.unwrap_or(self.approval);
        self.reviewer = reviewer.unwrap_or(self.reviewer);
        self.sandbox = sandbox.unwrap_or(std::mem::take(&mut self.sandbox));
        self.effort = effort.or(self.effort.take());
        self.summary = summary.or(self.summary.take());
    }
}

impl ThreadSettings {
    /// A fresh thread.
    pub fn new(id: impl Into<String>, standing: Standing) -> Self {
        Self {
            id: id.into(),
            standing,
            dynamic_tools: Vec::new(),
            mcp: Vec::new(),
            environment: EnvironmentPolicy::default(),
            history: Vec::new(),
            context: None,
            turns: Vec::new(),
            usage: ThreadUsage::default(),
            limits: Limits::default(),
        }
    }
}

impl TurnInput {
    /// Plain words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { input: vec![Open::Known(UserInput::text(text))], ..Self::default() }
    }

    /// Says what of it cannot be taken.
    pub(super) fn check(&self) -> Result<(), ThreadError> {
        let far = |input: &Open<UserInput>| match input {
            Open::Known(UserInput::Image { url, .. }) => !url.starts_with("data:"),
            _ => false,
        };
        if self.input.iter().any(far) {
            let words = "remote image URLs are not supported; use an inline data URL instead";
            return Err(ThreadError::BadInput(words.to_owned()));
        }
        Ok(())
    }
}

impl DynamicTool {
    /// Reads the tools that a client declares: `{type: function|namespace, …}`, or the older shape
    /// without a type.
    pub fn read(value: &Value) -> Result<Self, String> {
        let word = |key: &str| value.get(key).and_then(Value::as_str);
        let name = word("name").filter(|name| !name.is_empty());
        let name = name.ok_or("a dynamic tool has no name")?.to_owned();
        let description = word("description").unwrap_or_default().to_owned();
        if word("type") == Some("namespace") {
            let inner = value.get("tools").and_then(Value::as_array);
            let tools = inner.into_iter().flatten().map(Self::read).collect::<Result<_, _>>()?;
            return Ok(Self::Namespace { name, description, tools });
        }
        let input_schema = value.get("inputSchema").cloned();
        let input_schema = input_schema.unwrap_or_else(|| serde_json::json!({ "type": "object" }));
        Ok(Self::Function { name, description, input_schema })
    }
}
