//! Where settings are, and the environment they are read in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::ConfigError;

/// Folders and environment; the only place that asks the process for them.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// Codex's own: `$CODEX_HOME`, else `~/.codex`.
    pub codex: PathBuf,
    /// Where `bindery.toml` is: `$BINDERY_HOME`, else `$XDG_CONFIG_HOME/bindery`, else
    /// `~/.config/bindery`.
    pub bindery: Option<PathBuf>,
    /// The environment: keys of providers, the shell.
    pub environment: BTreeMap<String, String>,
    /// Leave `config.toml` and `bindery.toml` unread.
    pub without_settings: bool,
}

impl Home {
    /// The homes that this process's environment names.
    pub fn here() -> Result<Self, ConfigError> {
        let text = |text: std::ffi::OsString| text.into_string().ok();
        let pairs = std::env::vars_os().filter_map(|(k, v)| Some((text(k)?, text(v)?)));
        Self::of(pairs.collect())
    }

    /// The homes that an environment names.
    pub fn of(environment: BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let user = path("HOME");
        let codex = path("CODEX_HOME").or_else(|| Some(user.as_ref()?.join(".codex")));
        let config =
            path("XDG_CONFIG_HOME").or_else(|| user.as_ref().map(|home| home.join(".config")));
        let bindery = path("BINDERY_HOME").or_else(|| Some(config?.join("bindery")));
        let codex = codex.ok_or(ConfigError::NoHome)?;
        Ok(Self { codex, bindery, environment, without_settings: false })
    }

    /// A variable that is set to something.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
