//! Thread items: the things a turn is made of, in Codex's words.

use serde::Deserialize;
use serde_json::Value;

use super::input::UserInput;
use crate::item::FileChange;
use crate::open::Open;

/// One thread item. Fields we give no meaning to stay in the raw item beside it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadItem {
    /// What the user said.
    UserMessage {
        /// Its pieces.
        content: Vec<Open<UserInput>>,
    },
    /// What the model said.
    AgentMessage {
        /// The text so far; all of it at completion.
        text: String,
        /// What it is in the answer, where the model's provider says so.
        #[serde(default)]
        phase: Option<String>,
    },
    /// What the model thought.
    Reasoning {
        /// Summaries.
        #[serde(default)]
        summary: Vec<String>,
        /// Raw thoughts.
        #[serde(default)]
        content: Vec<String>,
    },
    /// A plan in plan mode.
    Plan {
        /// The text.
        text: String,
    },
    /// A command.
    CommandExecution(Command),
    /// A patch.
    FileChange {
        /// What it changes.
        changes: Vec<FileChange>,
        /// How it stands.
        status: String,
    },
    /// A call of an MCP server's tool.
    McpToolCall(McpCall),
    /// A call of the caller's tool.
    DynamicToolCall(DynamicCall),
    /// A tool's output that a caller started the turn with.
    FunctionCallOutput {
        /// The tool.
        name: String,
        /// Its namespace.
        #[serde(default)]
        namespace: Option<String>,
        /// The output.
        output: Value,
    },
    /// A web search.
    WebSearch {
        /// Empty at the start.
        query: String,
        /// What was done.
        #[serde(default)]
        action: Option<Value>,
        /// What was found.
        #[serde(default)]
        results: Option<Value>,
    },
    /// Work with sub-agents.
    CollabAgentToolCall(AgentCall),
    /// Something a sub-agent did.
    SubAgentActivity {
        /// `started`, `interacted`, `interrupted`, `completed`.
        kind: String,
        /// The sub-agent's thread.
        agent_thread_id: String,
        /// Its place in the tree.
        #[serde(default)]
        agent_path: String,
    },
    /// An image was shown to the model.
    ImageView {
        /// The file.
        path: String,
    },
    /// An image was made.
    ImageGeneration(ImageGeneration),
    /// The model waited.
    Sleep {
        /// How long.
        duration_ms: u64,
    },
    /// A review began.
    EnteredReviewMode {
        /// What is reviewed.
        review: String,
    },
    /// A review ended.
    ExitedReviewMode {
        /// What was found.
        review: String,
    },
    /// A hook added to the prompt.
    HookPrompt {
        /// What it added.
        fragments: Vec<Value>,
    },
    /// The history was replaced by a summary.
    ContextCompaction {},
}

/// A command.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// The command line, wrapped for the shell.
    pub command: String,
    /// Where it runs.
    pub cwd: String,
    /// How it stands: `inProgress`, `completed`, `failed`, `declined`.
    pub status: String,
    /// What it is understood to do.
    #[serde(default)]
    pub command_actions: Vec<Value>,
    /// What it printed, stdout and stderr together.
    #[serde(default)]
    pub aggregated_output: Option<String>,
    /// Its exit code.
    #[serde(default)]
    pub exit_code: Option<i64>,
    /// How long it ran.
    #[serde(default)]
    pub duration_ms: Option<u64>,
}

/// A call of an MCP server's tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpCall {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    #[serde(default)]
    pub arguments: Value,
    /// How it stands.
    pub status: String,
}

/// A call of the caller's tool.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DynamicCall {
    /// The tool.
    pub tool: String,
    /// Its namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Its input.
    #[serde(default)]
    pub arguments: Value,
    /// How it stands.
    pub status: String,
}

/// Work with sub-agents.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCall {
    /// `spawnAgent`, `sendInput`, `wait` …
    pub tool: String,
    /// How it stands.
    pub status: String,
    /// The threads it is about.
    #[serde(default)]
    pub receiver_thread_ids: Vec<String>,
    /// What they are told.
    #[serde(default)]
    pub prompt: Option<String>,
}

/// An image was made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageGeneration {
    /// How it stands.
    pub status: String,
    /// The prompt as the model understood it.
    #[serde(default)]
    pub revised_prompt: Option<String>,
    /// The image as base64; older versions only.
    #[serde(default)]
    pub result: Option<String>,
    /// Where it was saved.
    #[serde(default)]
    pub saved_path: Option<String>,
    /// Why there is none.
    #[serde(default)]
    pub failure: Option<Value>,
}
