//! Custom prompts: texts of the user's in `$CODEX_HOME/prompts`, called as `/prompts:NAME …`.
//!
//! Codex had them in its terminal from 0.43 to 0.117; people have kept the files. The rules are
//! Codex's, here for every front.

mod frontmatter;

mod arguments;

use std::path::{Path, PathBuf};

use crate::plain_file::PlainFileReader;

use serde::Serialize;

/// A text of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CustomPrompt {
    /// The file's name without `.md`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What it does, in the user's words.
    pub description: Option<String>,
    /// What to write after the name.
    pub argument_hint: Option<String>,
    /// The text without its head.
    pub body: String,
}

/// Why a prompt could not be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// A prompt with names got something without one.
    #[error("`/prompts:{prompt}`: expected key=value but found '{word}'")]
    NotNamed {
        /// The prompt.
        prompt: String,
        /// What was found.
        word: String,
    },
    /// A value without a name.
    #[error("`/prompts:{prompt}`: expected a name before '=' in '{word}'")]
    NoName {
        /// The prompt.
        prompt: String,
        /// What was found.
        word: String,
    },
    /// Names that got no value.
    #[error("`/prompts:{prompt}`: missing required args: {missing}")]
    Missing {
        /// The prompt.
        prompt: String,
        /// The names.
        missing: String,
    },
    /// A quote that nobody closes.
    #[error("`/prompts:{prompt}`: a quote is not closed in: {words}")]
    Unclosed {
        /// The prompt.
        prompt: String,
        /// What was written after the name.
        words: String,
    },
}

impl ExpandError {
    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotNamed { .. } | Self::NoName { .. } => {
                "write KEY=value, with quotes around a value that has spaces".to_owned()
            }
            Self::Missing { missing, .. } => {
                let names = missing.split(", ").map(|name| format!("{name}=…"));
                format!("add {}", names.collect::<Vec<_>>().join(" "))
            }
            Self::Unclosed { .. } => "close the quote, or write \\' for an apostrophe".to_owned(),
        })
    }
}

/// How a call begins.
pub const CALL: &str = "/prompts:";

/// A file that is longer is no prompt.
const MOST: u64 = 1 << 20;

/// The folder with the prompts of a Codex home.
pub fn folder(codex_home: &Path) -> PathBuf {
    codex_home.join("prompts")
}

/// The prompts of a folder, sorted by name. What cannot be read as text is passed over, as is a
/// folder that is not there.
pub fn list(folder: &Path) -> Vec<CustomPrompt> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut prompts: Vec<_> = entries.filter_map(|entry| read(entry.path())).collect();
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    prompts
}

fn read(path: PathBuf) -> Option<CustomPrompt> {
    let is_markdown = path.extension()?.to_str()?.eq_ignore_ascii_case("md");
    if !is_markdown {
        return None;
    }
    let text = PlainFileReader::default().read_text(&path, MOST).ok()?;
    Some(parse(path.file_stem()?.to_str()?, path.clone(), &text))
}

fn parse(name: &str, path: PathBuf, text: &str) -> CustomPrompt {
    let (head, body) = frontmatter::split(text);
    CustomPrompt {
        name: name.to_owned(),
        path,
        description: head.description,
        argument_hint: head.argument_hint,
        body: body.to_owned(),
    }
}

impl CustomPrompt {
    /// The names that must be given; none where the prompt counts its arguments.
    pub fn names(&self) -> Vec<String> {
        arguments::names(&self.body)
    }

    /// The text with these arguments in it.
    pub fn expand(&self, words: &[String]) -> Result<String, ExpandError> {
        arguments::expand(&self.name, &self.body, words)
    }
}

/// What a user's text says once a call in it is filled in: none where it is no call of a prompt
/// we know, and thus plain text.
pub fn expand(text: &str, prompts: &[CustomPrompt]) -> Result<Option<String>, ExpandError> {
    let Some(call) = text.strip_prefix(CALL) else { return Ok(None) };
    let end = call.find(char::is_whitespace).unwrap_or(call.len());
    let (name, rest) = call.split_at(end);
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else { return Ok(None) };
    let rest = rest.trim();
    let mut splitter = shlex::Shlex::new(rest);
    let words: Vec<String> = splitter.by_ref().collect();
    if splitter.had_error {
        let (prompt, words) = (name.to_owned(), rest.to_owned());
        return Err(ExpandError::Unclosed { prompt, words });
    }
    prompt.expand(&words).map(Some)
}
