//! What is known of one model.

use serde::{Deserialize, Serialize};

use super::WireApi;

/// A model: what fits into it, what it may call, and how it wants to be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelEntry {
    /// Its name on the wire.
    pub slug: String,
    /// False where nothing is known of the name and the fallback stands in.
    pub known: bool,
    /// Tokens it can read and write together.
    pub context_window: u64,
    /// How much of that is used, in percent.
    pub effective_percent: u64,
    /// Tokens at which the history is compacted, where it is less than nine tenths of the window.
    pub auto_compact_limit: Option<u64>,
    /// Where the base prompt goes on the Responses wire.
    pub placement: Placement,
    /// Which base prompt it is given.
    pub base: BaseKind,
    /// The tools it is offered.
    pub tools: ToolSet,
    /// How much of a tool's output it is shown.
    pub truncation: Truncation,
    /// The wire it is asked over, where the provider has no wire of its own.
    pub wire_api: Option<WireApi>,
    /// Whether it may call several tools at once.
    pub parallel_tool_calls: bool,
    /// How it thinks, if it does.
    pub reasoning: Option<ReasoningSettings>,
    /// `low`, `medium` or `high`, where it can be told.
    pub verbosity: Option<String>,
    /// Whether it can look at pictures.
    pub images: bool,
}

/// Where the base prompt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// The request's `instructions`.
    Instructions,
    /// The first item of the input, from the developer: Codex since 0.162.
    Developer,
    /// The first message, from the system: the Chat wire.
    System,
}

/// A base prompt of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaseKind {
    /// Everything spelt out.
    Full,
    /// For models that have been taught to work this way.
    Short,
}

/// The tools a model is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ToolSet {
    /// How it runs commands.
    pub exec: ExecTool,
    /// How it changes files.
    pub apply_patch: PatchTool,
    /// Whether it keeps a plan. On in every entry of ours; Codex turned it off in 0.152.
    pub plan: bool,
    /// Whether it may ask to see a picture.
    pub view_image: bool,
}

/// How a model runs commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecTool {
    /// `exec_command` and `write_stdin`.
    Unified,
    /// `shell`: a list of words.
    Shell,
    /// `shell_command`: one line.
    ShellCommand,
}

/// How a model changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchTool {
    /// Free text in a grammar.
    Freeform,
    /// A function with one argument.
    Function,
    /// Not at all; commands must do.
    None,
}

/// How much of a tool's output a model is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Truncation {
    /// So many tokens, at four bytes each.
    Tokens(u64),
    /// So many bytes.
    Bytes(u64),
}

/// How a model thinks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReasoningSettings {
    /// The effort where nobody asks for another.
    pub effort: Option<String>,
    /// The efforts it knows.
    pub efforts: Vec<String>,
    /// `auto`, `concise` or `detailed`; none asks for no summary.
    pub summary: Option<String>,
}

impl ModelEntry {
    /// Tokens of the window that are used.
    pub fn usable_window(&self) -> u64 {
        self.context_window.saturating_mul(self.effective_percent) / 100
    }

    /// Tokens at which the history is compacted: the entry's limit, and never more than nine
    /// tenths of the whole window.
    pub fn compact_at(&self) -> u64 {
        let most = self.context_window.saturating_mul(9) / 10;
        self.auto_compact_limit.map_or(most, |limit| limit.min(most))
    }

    /// Where the base prompt goes on this wire.
    pub fn placement_on(&self, wire: WireApi) -> Placement {
        match wire {
            WireApi::Chat => Placement::System,
            WireApi::Responses | WireApi::Demo => match self.placement {
                Placement::System => Placement::Instructions,
                placement => placement,
            },
        }
    }
}
