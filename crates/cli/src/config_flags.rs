//! The flags that are settings over those of `config.toml`, alike for `run`, `exec` and `review`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use bindery::engine::config::{Config, Home, SandboxMode, parse_override, profile_overrides};

use crate::failure::Hinted;
use crate::global_flags::CommandSettings;

/// Settings over those of `config.toml`, for one command.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ConfigFlags {
    /// A setting over those of `config.toml`: TOML, or else text; may be given several times
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,

    /// Lay `NAME.config.toml` of the Codex home over the settings
    #[arg(long, short, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Who serves the model: one of `[model_providers]`, or one that is built in
    #[arg(long, value_name = "NAME", conflicts_with_all = ["oss", "local_provider"])]
    pub(crate) provider: Option<String>,

    /// Use a model on this machine
    #[arg(long)]
    pub(crate) oss: bool,

    /// Which server of this machine `--oss` uses: `ollama` or `lmstudio`
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) local_provider: Option<String>,

    /// Another folder that may be written; may be given several times
    #[arg(long, value_name = "FOLDER")]
    pub(crate) add_dir: Vec<PathBuf>,
}

impl ConfigFlags {
    /// What flags before the command may add to.
    pub(crate) fn settings(&mut self) -> CommandSettings<'_> {
        CommandSettings { config: &mut self.config, profile: Some(&mut self.profile) }
    }

    /// What was said in two places; the latter is nearer.
    pub(crate) fn and(mut self, after: Self) -> Self {
        self.config.extend(after.config);
        self.add_dir.extend(after.add_dir);
        Self {
            profile: after.profile.or(self.profile),
            provider: after.provider.or(self.provider),
            oss: self.oss || after.oss,
            local_provider: after.local_provider.or(self.local_provider),
            ..self
        }
    }

    /// The settings as `key=value`, those with a flag of their own last, so that they win. The
    /// engine lays a profile over its files by itself.
    pub(crate) fn overrides(&self) -> Vec<String> {
        let named = self.profile.iter().map(|name| setting("profile", name));
        self.config.iter().cloned().chain(named).chain(self.provider_setting()).collect()
    }

    /// All of it, for the engine in this folder; `mode` is the sandbox that another flag names.
    pub(crate) fn for_engine(&self, cwd: &Path, mode: Option<&str>) -> anyhow::Result<Vec<String>> {
        let mut said = self.overrides();
        said.extend(self.folders(cwd, mode)?);
        Ok(said)
    }

    /// The same for Codex's app-server, which knows no profiles: what one holds comes first.
    pub(crate) fn for_codex(&self, cwd: &Path, mode: Option<&str>) -> anyhow::Result<Vec<String>> {
        let mut said = match &self.profile {
            Some(name) => profile_overrides(&Home::here()?, name)?,
            None => Vec::new(),
        };
        said.extend(self.config.iter().cloned().chain(self.provider_setting()));
        said.extend(self.folders(cwd, mode)?);
        Ok(said)
    }

    /// The folders of `--add-dir` beside those of the files. A sandbox that writes nowhere, or
    /// everywhere, would pass over them in silence.
    fn folders(&self, cwd: &Path, mode: Option<&str>) -> anyhow::Result<Option<String>> {
        if self.add_dir.is_empty() {
            return Ok(None);
        }
        let said: Result<Vec<_>, _> = self.overrides().iter().map(|s| parse_override(s)).collect();
        let config = Config::load(&Home::here()?, cwd, &said?)?;
        let read_only = match mode {
            Some(mode) => mode == "read-only",
            None => config.sandbox.mode == SandboxMode::ReadOnly,
        };
        if read_only {
            let message = "`--add-dir` has no effect: the sandbox is read-only";
            return Err(Hinted::misuse(message, "add `--sandbox workspace-write`"));
        }
        Ok(self.writable(&config.sandbox.writable_roots))
    }

    /// The folders that may be written, as a setting: those of the files and those of the flags.
    pub(crate) fn writable(&self, configured: &[PathBuf]) -> Option<String> {
        if self.add_dir.is_empty() {
            return None;
        }
        let here = std::env::current_dir().unwrap_or_default();
        let added = self.add_dir.iter().map(|folder| here.join(folder));
        let all = configured.iter().cloned().chain(added);
        let all: Vec<String> = all.map(|path| quoted(&path.to_string_lossy())).collect();
        Some(format!("sandbox_workspace_write.writable_roots=[{}]", all.join(",")))
    }

    /// All of it in the flags of `codex exec`.
    pub(crate) fn codex_exec(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut flag = |name: &str, value: &OsStr| args.extend([name.into(), value.into()]);
        self.config.iter().for_each(|setting| flag("--config", setting.as_ref()));
        self.profile.iter().for_each(|name| flag("--profile", name.as_ref()));
        self.provider_setting().iter().for_each(|setting| flag("--config", setting.as_ref()));
        self.add_dir.iter().for_each(|folder| flag("--add-dir", folder.as_ref()));
        args
    }

    /// The flag that was given and is no setting of a foreign agent.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let asked = [
            (!self.config.is_empty(), "`--config`"),
            (self.profile.is_some(), "`--profile`"),
            (self.provider.is_some(), "`--provider`"),
            (self.oss, "`--oss`"),
            (self.local_provider.is_some(), "`--local-provider`"),
            (!self.add_dir.is_empty(), "`--add-dir`"),
        ];
        asked.into_iter().find(|(given, _)| *given).map(|(_, what)| what)
    }

    fn provider_setting(&self) -> Option<String> {
        let local = self.local_provider.as_deref().or(self.oss.then_some("ollama"));
        let provider = self.provider.as_deref().or(local)?;
        Some(setting("model_provider", provider))
    }
}

/// `key="value"`.
pub(crate) fn setting(key: &str, value: &str) -> String {
    format!("{key}={}", quoted(value))
}

/// A feature switched on or off.
pub(crate) fn feature(name: &str, on: bool) -> String {
    format!("features.{name}={on}")
}

/// A TOML basic string; its escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_flags_are_added_to_those_of_files() {
        let flags = ConfigFlags { add_dir: vec!["/two".into()], ..ConfigFlags::default() };
        let want = "sandbox_workspace_write.writable_roots=[\"/one\",\"/two\"]";
        assert_eq!(flags.writable(&["/one".into()]).as_deref(), Some(want));
        assert_eq!(ConfigFlags::default().writable(&["/one".into()]), None);
    }
}
