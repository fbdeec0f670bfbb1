//! Why the settings could not be read.

use std::path::PathBuf;

/// One variant for each thing a caller would do differently.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file is there and cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not TOML.
    #[error("`{origin}` is not TOML, line {line}: {why}")]
    Syntax {
        /// The file, or the flag.
        origin: String,
        /// Counted from one.
        line: usize,
        /// The parser's words.
        why: String,
    },
    /// A setting has a value it cannot have.
    #[error("`{key}` in {place}: {why}")]
    Value {
        /// The setting, dotted.
        key: String,
        /// File and line, or the flag.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// No provider of this name is known.
    #[error("no model provider `{name}`; there are {known}")]
    NoProvider {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No profile of this name is known.
    #[error("no profile `{name}`")]
    NoProfile {
        /// The name asked for.
        name: String,
    },
    /// A provider on this machine cannot guess which model is meant.
    #[error("provider `{provider}` needs the name of a model")]
    NoModel {
        /// The provider.
        provider: String,
    },
    /// Neither `CODEX_HOME` nor `HOME` says where settings are.
    #[error("no home folder: neither `CODEX_HOME` nor `HOME` is set")]
    NoHome,
}

impl ConfigError {
    /// Stable name for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::Syntax { .. } => "syntax",
            Self::Value { .. } => "value",
            Self::NoProvider { .. } => "no_provider",
            Self::NoProfile { .. } => "no_profile",
            Self::NoModel { .. } => "no_model",
            Self::NoHome => "no_home",
        }
    }

    /// The next thing to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable { path, .. } => format!("make `{}` readable", path.display()),
            Self::Syntax { .. } | Self::Value { .. } => return None,
            Self::NoProvider { name, .. } => {
                format!("add `[model_providers.{name}]` with a `base_url` to `bindery.toml`")
            }
            Self::NoProfile { name } => format!("add a `[profiles.{name}]` table"),
            Self::NoModel { .. } => "name the model with `--model NAME`".to_owned(),
            Self::NoHome => "set `CODEX_HOME` to a folder".to_owned(),
        })
    }
}
