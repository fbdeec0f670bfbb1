//! Base prompts of our own, chosen by model and mode.
//!
//! A history is summed up under the base prompt it was made with, so that the server's cache
//! stays of use; what is asked then is a message, [`COMPACT_PROMPT`].

use std::io;
use std::path::PathBuf;

use crate::config::{BaseKind, Config, ConfigError, ExecTool, ModelEntry, PatchTool};
use crate::plain_file::PlainFileReader;

/// What a thread is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Work on a task.
    #[default]
    Agent,
    /// Work a plan out, and change nothing.
    Plan,
}

const FULL: &str = include_str!("base/full.md");
const SHORT: &str = include_str!("base/short.md");
const PLAN: &str = include_str!("base/plan.md");
const PATCH: &str = include_str!("base/patch.md");
const PATCH_LANGUAGE: &str = include_str!("base/patch_language.md");
const PLAN_ONLY: &str = include_str!("base/plan_only.md");
const NO_PATCH: &str = include_str!("base/no_patch.md");
const UNIFIED: &str = include_str!("base/unified.md");
const IMAGES: &str = include_str!("base/images.md");

/// What is asked of a model that is to sum up its history.
pub const COMPACT_PROMPT: &str = include_str!("base/compact.md");

/// What comes before a summary when the work goes on from it.
pub const SUMMARY_PREFIX: &str = include_str!("base/summary_prefix.md");

/// The base prompt for a model. It names only tools that the model is offered.
pub fn base(entry: &ModelEntry, mode: Mode) -> String {
    let tools = &entry.tools;
    let body = match entry.base {
        BaseKind::Full => FULL,
        BaseKind::Short => SHORT,
    };
    let patch = match tools.apply_patch {
        PatchTool::None => vec![NO_PATCH],
        // A grammar teaches the language by itself.
        PatchTool::Freeform => vec![PATCH],
        PatchTool::Function => vec![PATCH, PATCH_LANGUAGE],
    };
    let mut blocks = vec![body];
    blocks.extend((tools.exec == ExecTool::Unified).then_some(UNIFIED));
    blocks.extend(patch);
    blocks.extend(tools.plan.then_some(PLAN));
    blocks.extend((mode == Mode::Plan).then_some(PLAN_ONLY));
    blocks.extend((tools.view_image && entry.images).then_some(IMAGES));
    blocks.iter().map(|block| block.trim_end()).collect::<Vec<_>>().join("\n\n")
}

/// The longest prompt of a user's own.
const MOST_BYTES: u64 = 4 << 20;

/// A base prompt and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The prompt.
    pub text: String,
    /// The user's own file, where it is not one of ours.
    pub source: Option<PathBuf>,
}

/// The base prompt that the settings ask for: the user's own file, or ours for the model.
pub fn chosen(config: &Config, entry: &ModelEntry, mode: Mode) -> Result<Base, ConfigError> {
    let Some(path) = &config.model_instructions_file else {
        return Ok(Base { text: base(entry, mode), source: None });
    };
    let unreadable = |source| ConfigError::Unreadable { path: path.clone(), source };
    let text = PlainFileReader::default()
        .read_text(path, MOST_BYTES)
        .map_err(|error| unreadable(error.into()))?;
    match text.trim() {
        // A file that says nothing is an accident, not a wish.
        "" => Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"))),
        text => Ok(Base { text: text.to_owned(), source: Some(path.clone()) }),
    }
}
