//! What the model is told around the user's words: the seam between the loop and the prompt.

use bindery_core::open::Open;
use bindery_core::wire::app_server::input::UserInput;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::item::{Content, HistoryItem, Message, Role};
use crate::thread::Standing;
use crate::truncate::Budget;

/// Makes prompts.
pub trait Prompter: Send + Sync {
    /// What is known of a model.
    fn profile(&self, model: &str) -> Profile;

    /// The base prompt.
    fn base(&self, standing: &Standing) -> String;

    /// What the model must be told of the context before a turn. `told` is what it was told
    /// last; none tells everything.
    fn context<'a>(
        &'a self,
        standing: &'a Standing,
        told: Option<&'a Value>,
    ) -> BoxFuture<'a, Context>;

    /// What a history shows that the model was told of the context: for threads that nobody
    /// remembers it of, such as those that Codex has written.
    fn recalled(&self, _standing: &Standing, _history: &[HistoryItem]) -> Option<Value> {
        None
    }

    /// The user's words and pictures as the model is sent them.
    fn user<'a>(
        &'a self,
        standing: &'a Standing,
        input: &'a [Open<UserInput>],
    ) -> BoxFuture<'a, Vec<HistoryItem>>;

    /// What one of the user's own prompts says, where these words call one: `/prompts:NAME …`. An
    /// error is for whoever said them.
    fn called(&self, _words: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    /// Asks for a summary of everything so far.
    fn compaction(&self) -> String;

    /// The model that reviews; none for the thread's own.
    fn review_model(&self) -> Option<String> {
        None
    }
}

/// What the model is to be told of the context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// In these words; empty when nothing changed.
    pub items: Vec<HistoryItem>,
    /// What it has been told then, for the next comparison.
    pub told: Value,
    /// Things the user should know: a model without an entry, a file that cannot be read.
    pub warnings: Vec<String>,
}

/// What is known of a model, as far as the loop goes by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The name that is sent.
    pub slug: String,
    /// Tokens it can hold.
    pub window: u64,
    /// Of these we use so many percent.
    pub effective_percent: u64,
    /// Compacts at this many tokens, if that comes before nine tenths of the window.
    pub auto_compact_limit: Option<u64>,
    /// How it runs commands.
    pub exec: ExecForm,
    /// How it changes files.
    pub patch: PatchForm,
    /// Whether it has the plan.
    pub plan: bool,
    /// Whether it can be shown pictures.
    pub images: bool,
    /// Whether it may call several tools at once.
    pub parallel: bool,
    /// Whether it may ask to be shown one that is in a file.
    pub view_image: bool,
    /// How much of a tool's output it is sent.
    pub truncation: Budget,
    /// Reasoning effort, where nobody says otherwise.
    pub effort: Option<String>,
    /// Summary of thoughts, where nobody says otherwise.
    pub summary: Option<String>,
    /// `low`, `medium`, `high`.
    pub verbosity: Option<String>,
}

/// How a model runs commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecForm {
    /// `exec_command` and `write_stdin`.
    Unified,
    /// `shell`, which takes a list of words.
    Shell,
    /// `shell_command`, which takes a line.
    ShellCommand,
    /// Not at all.
    None,
}

/// How a model changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchForm {
    /// A tool that takes the patch as it is.
    Freeform,
    /// A tool that takes the patch as JSON.
    Function,
    /// Only through the shell.
    None,
}

impl Profile {
    /// What is assumed of a model that nobody described.
    pub fn unknown(slug: impl Into<String>) -> Self {
        Self {
            slug: slug.into(),
            window: 272_000,
            effective_percent: 95,
            auto_compact_limit: None,
            exec: ExecForm::Unified,
            patch: PatchForm::None,
            plan: false,
            images: true,
            parallel: true,
            view_image: false,
            truncation: Budget::Bytes(10_000),
            effort: None,
            summary: Some("auto".to_owned()),
            verbosity: None,
        }
    }

    /// Tokens we use of the window.
    pub fn effective_window(&self) -> u64 {
        self.window.saturating_mul(self.effective_percent) / 100
    }

    /// The history is compacted when it holds this many tokens.
    pub fn compact_at(&self) -> u64 {
        let most = self.window.saturating_mul(9) / 10;
        self.auto_compact_limit.map_or(most, |limit| limit.min(most))
    }
}

/// Tells nothing but what the user says; for tests and for threads with their own base prompt.
#[derive(Clone, Debug)]
pub struct PlainPrompter {
    /// The model, whatever it is called.
    pub profile: Profile,
}

impl Prompter for PlainPrompter {
    fn profile(&self, model: &str) -> Profile {
        Profile { slug: model.to_owned(), ..self.profile.clone() }
    }

    fn base(&self, standing: &Standing) -> String {
        standing.base_instructions.clone().unwrap_or_default()
    }

    fn context<'a>(
        &'a self,
        standing: &'a Standing,
        told: Option<&'a Value>,
    ) -> BoxFuture<'a, Context> {
        let now = Value::from(standing.developer_instructions.clone());
        let changed = told != Some(&now);
        let words = standing.developer_instructions.as_ref().filter(|_| changed);
        let items = words.map(|words| Message::text(Role::Developer, words).into());
        let items = items.into_iter().collect();
        Box::pin(async { Context { items, told: now, warnings: Vec::new() } })
    }

    fn user<'a>(
        &'a self,
        _: &'a Standing,
        input: &'a [Open<UserInput>],
    ) -> BoxFuture<'a, Vec<HistoryItem>> {
        Box::pin(async {
            let content = input.iter().filter_map(plain).map(Open::Known).collect();
            vec![Message { id: None, role: Role::User, content, phase: None }.into()]
        })
    }

    fn compaction(&self) -> String {
        "Sum up the work so far, so that it can go on from your summary alone.".to_owned()
    }
}

fn plain(input: &Open<UserInput>) -> Option<Content> {
    match input {
        Open::Known(UserInput::Text { text, .. }) => {
            Some(Content::InputText { text: text.clone() })
        }
        Open::Known(UserInput::Image { url, detail }) => {
            Some(Content::InputImage { image_url: url.clone(), detail: detail.clone() })
        }
        _ => None,
    }
}
