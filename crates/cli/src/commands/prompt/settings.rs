//! Flags that say which model, where it is, and which folder.

use std::path::{Path, PathBuf};

use anyhow::Context;
use bindery::engine::config::{Config, Home, WireApi, endpoint, parse_override};
use clap::ValueEnum;

/// Settings on the command line, over those in files.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Settings {
    /// The model
    #[arg(long, short)]
    model: Option<String>,

    /// Who serves it: openai, azure, ollama, lmstudio, vllm, demo, or one of `bindery.toml`
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Where it is served, for this run: http://localhost:8000/v1
    #[arg(long, value_name = "URL", conflicts_with = "provider")]
    base_url: Option<String>,

    /// How the server is spoken to [default: the provider's own; chat with `--base-url`]
    #[arg(long, value_enum)]
    wire: Option<Wire>,

    /// A profile of the settings
    #[arg(long, short, value_name = "NAME")]
    profile: Option<String>,

    /// Any setting of `config.toml`: a dotted name, and a value in TOML
    #[arg(long = "config", short = 'c', value_name = "KEY=VALUE")]
    overrides: Vec<String>,

    /// The folder to work in [default: this one]
    #[arg(long = "cd", short = 'C', value_name = "DIR")]
    cd: Option<PathBuf>,
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Wire {
    /// OpenAI's Responses API
    Responses,
    /// The Chat Completions API
    Chat,
}

impl From<Wire> for WireApi {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Responses => Self::Responses,
            Wire::Chat => Self::Chat,
        }
    }
}

impl Settings {
    /// Reads the files, and lays the flags over them.
    pub(super) fn load(&self, home: &Home) -> anyhow::Result<Config> {
        let overrides = self.overrides.iter().map(|text| parse_override(text));
        let mut overrides = overrides.collect::<Result<Vec<_>, _>>()?;
        let wire = self.wire.map(WireApi::from);
        if let Some(url) = &self.base_url {
            overrides.extend(endpoint(url, wire.unwrap_or(WireApi::Chat)));
        }
        let named = [
            ("model", &self.model),
            ("model_provider", &self.provider),
            ("profile", &self.profile),
        ];
        for (key, value) in named {
            overrides.extend(value.clone().map(|value| (key.to_owned(), value.into())));
        }
        let mut config = Config::load(home, &self.folder()?, &overrides)?;
        if let Some(wire) = wire {
            config.provider.wire_api = wire;
        }
        Ok(config)
    }

    /// The folder without symbolic links, as a process started there would see it.
    fn folder(&self) -> anyhow::Result<PathBuf> {
        let folder = self.cd.as_deref().unwrap_or(Path::new("."));
        folder.canonicalize().with_context(|| format!("cannot enter `{}`", folder.display()))
    }
}
