//! A call of the AI SDK → what Codex is asked: thread, instructions, history, input, settings.
//!
//! [`plan`] is the whole arrow. Nothing of a call is dropped in silence: a part is in the plan, is
//! already in the thread that is resumed, or is named by a warning.

mod notes;

mod own;

mod history;

mod instructions;

mod settings;

mod tools;

mod file;

mod detail;

mod output;

mod inject;

mod told;

mod mention;

mod skills;

mod input;

mod answers;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::CallOptions;
use crate::ids::{ApprovalId, CallId, ThreadId, TurnId};
use crate::interrupt::Answer;
use crate::part::Warning;
use crate::wire::app_server::input::{ResponseItem, UserInput};
use crate::wire::app_server::params::{ThreadSettings, TurnSettings};
use notes::Notes;
pub use skills::names_skills;
pub use tools::RESERVED;

/// What the caller of [`plan`] knows beside the call.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanContext {
    /// Where the thread comes from.
    pub thread: ThreadSource,
    /// Codex has `thread/inject_items`.
    pub can_inject: bool,
    /// Read `@path` and `$skill` in the text; the call can ask for it too.
    pub parse_mentions: bool,
    /// Skills by name, with the path of their file.
    pub skills: BTreeMap<String, String>,
    /// The folder that relative mentions are meant from.
    pub cwd: Option<String>,
    /// Addresses that an earlier plan wanted, and what came of them.
    pub fetched: BTreeMap<String, Fetched>,
    /// A thread that has gone on since the turn that the history ends with is not gone on with; see
    /// [`TurnPlan::after`].
    pub branches: bool,
    /// Turns that the history shows only in part and that nobody goes on with: their messages
    /// count as unknown to the thread.
    pub without: BTreeSet<TurnId>,
}

impl Default for PlanContext {
    fn default() -> Self {
        Self {
            thread: ThreadSource::default(),
            can_inject: true,
            parse_mentions: false,
            skills: BTreeMap::new(),
            cwd: None,
            fetched: BTreeMap::new(),
            branches: true,
            without: BTreeSet::new(),
        }
    }
}

/// Where the thread of a call comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ThreadSource {
    /// The option `threadId`, else the newest id in the history's metadata, else a fresh one.
    #[default]
    History,
    /// This one, unless the call names another.
    Given(ThreadId),
    /// A fresh one whatever the call says, as when the old thread is gone.
    Fresh,
}

/// What came of a wanted address.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched {
    /// The file.
    File {
        /// Its content.
        bytes: Vec<u8>,
        /// The type the server gave; empty if it gave none.
        media_type: String,
    },
    /// It was not fetched, because of this.
    Refused(String),
}

/// What Codex is to be asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnPlan {
    /// The thread.
    pub thread: ThreadChoice,
    /// The turn that the history ends with. Has the thread to resume gone on since, then the caller
    /// wants another answer, or has changed what was said: a copy that ends here goes on instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<TurnId>,
    /// The thread is named by the history alone, which holds the conversation should it be gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_history: bool,
    /// For `thread/start`, `thread/resume` or `thread/fork`, instructions included.
    pub thread_settings: ThreadSettings,
    /// Keep no session file (fresh and forked threads).
    pub ephemeral: Option<bool>,
    /// The caller's tools; Codex takes them at `thread/start` only.
    pub dynamic_tools: Vec<Value>,
    /// For `thread/inject_items`, before the turn.
    pub inject: Vec<ResponseItem>,
    /// For `turn/start`; empty input still runs the model on what is injected.
    pub input: Vec<UserInput>,
    /// For `turn/start`.
    pub turn_settings: TurnSettings,
    /// Answers to a turn that may be waiting; they come before `inject` and `input`.
    ///
    /// On a fresh thread tool results are in `inject` too, for when no turn waits.
    pub answers: Vec<Continuation>,
    /// Addresses to fetch. Put the outcome into [`PlanContext::fetched`] and plan again; run as it
    /// is, the plan lacks these files and warns of each.
    pub downloads: Vec<Download>,
    /// What could not be carried as asked.
    pub warnings: Vec<Warning>,
    /// To be written beside `threadId` in the answer's metadata: later calls tell by it whether
    /// instructions or tools have changed, which Codex itself would pass over in silence.
    pub marks: Map<String, Value>,
    /// Codex's own messages are wanted beside the parts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub raw_chunks: bool,
}

impl TurnPlan {
    /// The turn of the history that waits for results of tools which the caller brings.
    pub fn answered_turn(&self) -> Option<&TurnId> {
        let result = |answer: &Continuation| matches!(answer, Continuation::ToolResult { .. });
        self.after.as_ref().filter(|_| self.answers.iter().any(result))
    }

    /// There are answers and nothing else: if no turn waits for them, there is nothing to run.
    pub fn only_answers(&self) -> bool {
        !self.answers.is_empty() && self.inject.is_empty() && self.input.is_empty()
    }
}

/// The thread of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadChoice {
    /// A new one.
    Fresh,
    /// This one.
    Resume(ThreadId),
    /// A copy of this one.
    Fork {
        /// The thread to copy.
        thread_id: ThreadId,
        /// The last turn that the prompt shows, where its metadata says so.
        last_turn_id: Option<TurnId>,
    },
}

/// One answer to a turn that waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Continuation {
    /// Yes or no to an approval.
    Approval {
        /// The question.
        approval_id: ApprovalId,
        /// Yes or no.
        approved: bool,
        /// In words.
        reason: Option<String>,
        /// Our own options on the part, for decisions that are more than yes or no.
        options: Map<String, Value>,
    },
    /// What a tool of the caller's returned.
    ToolResult {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool_name: String,
        /// The result as an answer to the interrupt.
        answer: Answer,
    },
}

/// An address to fetch before the turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Download {
    /// The address, http or https.
    pub url: String,
    /// The type the prompt gives; may be `image/*` or empty.
    pub media_type: String,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// The prompt has no messages.
    EmptyPrompt,
    /// A tool of the caller's has the name of one of Codex's own, which would be run instead.
    ReservedTool {
        /// The name.
        name: String,
    },
    /// Nothing in the prompt is new, or nothing of it can be carried.
    NothingToSend {
        /// What was left out on the way here.
        warnings: Vec<Warning>,
    },
}

impl PlanError {
    /// Stable name for logs, HTTP bodies and tests. Never reworded.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyPrompt => "empty_prompt",
            Self::ReservedTool { .. } => "reserved_tool_name",
            Self::NothingToSend { .. } => "nothing_to_send",
        }
    }

    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::ReservedTool { .. } => "give the tool another name".to_owned(),
            _ => "end the prompt with a user message that has text or an image".to_owned(),
        })
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyPrompt => f.write_str("the prompt is empty"),
            Self::ReservedTool { name } => {
                write!(f, "Codex has a tool `{name}` of its own, and would run that instead")
            }
            Self::NothingToSend { warnings } => {
                f.write_str("the prompt has nothing to send")?;
                warnings.iter().try_for_each(|warning| write!(f, "; {}", notes::in_words(warning)))
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Maps a call to what Codex is asked.
pub fn plan(options: &CallOptions, context: &PlanContext) -> Result<TurnPlan, PlanError> {
    if options.prompt.0.is_empty() {
        return Err(PlanError::EmptyPrompt);
    }
    let mut notes = Notes::new(context);
    if let Some(name) = tools::reserved(options.tools.as_deref().unwrap_or_default()) {
        return Err(PlanError::ReservedTool { name: name.to_owned() });
    }
    if options.replaced > 0 {
        notes.compatibility(
            "characters",
            "half a surrogate pair is no character; it is sent as U+FFFD",
        );
    }
    let own = own::read(options.provider_options.as_ref(), &mut notes);
    let split = history::split(&options.prompt, &own, &mut notes);
    let instructions = instructions::read(&options.prompt, &own);
    let dynamic_tools = tools::declare(options.tools.as_deref().unwrap_or_default(), &mut notes);
    let answers = answers::collect(&split, &mut notes);
    let from_history = own.thread_id.is_none() && context.thread == ThreadSource::History;
    let news = tools::unknown_to(&split.marks, &dynamic_tools);
    if let Some(news) = news.filter(|_| from_history && !own.fork && answers.is_empty()) {
        return plan_afresh(options, context, &news);
    }
    let mut inject = inject::items(&split, &own, &mut notes);
    let mut input = input::items(&split.latest, &own, &mut notes);
    check(&split, &inject, &input, &answers, &mut notes)?;

    let marks = instructions::mark(&split, &instructions, &dynamic_tools, &mut inject, &mut notes);
    if !context.can_inject && !inject.is_empty() {
        input.splice(..0, told::as_input(&std::mem::take(&mut inject), &mut notes));
    }
    let (thread_settings, turn_settings) =
        settings::read(options, &own, instructions, &split.thread, &mut notes);
    Ok(TurnPlan {
        ephemeral: own.ephemeral,
        from_history,
        thread: split.thread,
        after: split.after,
        thread_settings,
        dynamic_tools,
        inject,
        input,
        turn_settings,
        answers,
        downloads: std::mem::take(&mut notes.downloads),
        warnings: notes.finish(),
        marks,
        raw_chunks: options.include_raw_chunks.unwrap_or(false),
    })
}

/// Codex takes tools at `thread/start` alone, so those that a thread does not know are declared to
/// a new one, which is told the conversation.
fn plan_afresh(
    options: &CallOptions,
    context: &PlanContext,
    news: &str,
) -> Result<TurnPlan, PlanError> {
    let context = PlanContext { thread: ThreadSource::Fresh, ..context.clone() };
    let mut plan = plan(options, &context)?;
    let details = format!(
        "{news}; Codex keeps the tools that a thread was started with, so the history goes on in a \
         new thread, which is told all of it"
    );
    let feature = "tools".to_owned();
    plan.warnings.insert(0, Warning::Compatibility { feature, details: Some(details) });
    Ok(plan)
}

/// A plan must have something for the model to answer to.
fn check(
    split: &history::Split<'_>,
    inject: &[ResponseItem],
    input: &[UserInput],
    answers: &[Continuation],
    notes: &mut Notes<'_>,
) -> Result<(), PlanError> {
    if !input.is_empty() || !answers.is_empty() || !notes.downloads.is_empty() {
        return Ok(());
    }
    let fresh = split.thread == ThreadChoice::Fresh;
    let asked = inject.iter().any(|item| !fresh || item["role"] == "user");
    if !asked {
        return Err(PlanError::NothingToSend { warnings: notes.finish() });
    }
    notes.compatibility(
        "prompt",
        "it does not end with a user message; the model answers to the history alone",
    );
    Ok(())
}
