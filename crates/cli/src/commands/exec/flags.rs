//! The flags of `codex exec`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// What may be said before and after the verb.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Flags {
    /// A setting over those of `config.toml`: TOML, or else text; may be given several times
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(super) config: Vec<String>,

    /// Switch a feature on; `-c features.NAME=true`
    #[arg(long, value_name = "FEATURE")]
    pub(super) enable: Vec<String>,

    /// Switch a feature off; `-c features.NAME=false`
    #[arg(long, value_name = "FEATURE")]
    pub(super) disable: Vec<String>,

    /// Fail when `config.toml` has settings that the engine has no use for
    #[arg(long)]
    pub(super) strict_config: bool,

    /// Images to show to the model; put the prompt before them, or `--` between
    #[arg(long, short, value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub(super) image: Vec<PathBuf>,

    /// The model
    #[arg(long, short)]
    pub(super) model: Option<String>,

    /// Use a model on this machine
    #[arg(long)]
    pub(super) oss: bool,

    /// Which server of this machine `--oss` uses: `ollama` or `lmstudio`
    #[arg(long, value_name = "PROVIDER")]
    pub(super) local_provider: Option<String>,

    /// Lay `NAME.config.toml` of the Codex home over the settings
    #[arg(long, short, value_name = "NAME")]
    pub(super) profile: Option<String>,

    /// What commands may touch
    #[arg(long, short, value_enum, value_name = "MODE")]
    pub(super) sandbox: Option<Mode>,

    /// The same as `--sandbox workspace-write`; Codex had it once
    #[arg(long, hide = true, conflicts_with = "sandbox")]
    pub(super) full_auto: bool,

    /// Run everything at once and without a sandbox. Dangerous
    #[arg(long, visible_alias = "yolo", conflicts_with_all = ["sandbox", "full_auto"])]
    pub(super) dangerously_bypass_approvals_and_sandbox: bool,

    /// Accepted for Codex's sake: the engine runs no hooks
    #[arg(long, hide = true)]
    pub(super) dangerously_bypass_hook_trust: bool,

    /// The folder to work in
    #[arg(long, short = 'C', value_name = "FOLDER", visible_alias = "cwd")]
    pub(super) cd: Option<PathBuf>,

    /// Another folder that may be written; may be given several times
    #[arg(long, value_name = "FOLDER")]
    pub(super) add_dir: Vec<PathBuf>,

    /// Accepted for Codex's sake: the engine does not sort threads by who asked for them
    #[arg(long, value_name = "SOURCE", hide = true)]
    pub(super) thread_source: Option<String>,

    /// Run outside a Git repository too
    #[arg(long)]
    pub(super) skip_git_repo_check: bool,

    /// Trust this project from now on; recorded in `bindery.toml`. A project that is recorded as
    /// untrusted stays so
    #[arg(long)]
    pub(super) trust: bool,

    /// Keep no session file
    #[arg(long)]
    pub(super) ephemeral: bool,

    /// Leave `config.toml` unread
    #[arg(long)]
    pub(super) ignore_user_config: bool,

    /// Leave the rules about commands unread
    #[arg(long)]
    pub(super) ignore_rules: bool,

    /// A JSON Schema file that the answer must fit
    #[arg(long, value_name = "FILE")]
    pub(super) output_schema: Option<PathBuf>,

    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(super) color: Option<Colour>,

    /// Print events as JSON, one a line
    #[arg(long, visible_alias = "experimental-json")]
    pub(super) json: bool,

    /// Write the answer to this file too
    #[arg(long, short, value_name = "FILE")]
    pub(super) output_last_message: Option<PathBuf>,

    /// A text file to give along; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(super) file: Vec<PathBuf>,

    /// One of your own prompts, filled in: its name, then `KEY=value` or values by place
    #[arg(long = "prompt", value_name = "NAME", num_args = 1.., conflicts_with = "prompt")]
    pub(super) custom: Vec<String>,
}

/// What commands may touch.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Mode {
    /// Read files, write nothing
    ReadOnly,
    /// Write inside the folder
    WorkspaceWrite,
    /// Everything: no sandbox
    DangerFullAccess,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Colour {
    /// Always
    Always,
    /// Never
    Never,
    /// On a terminal
    Auto,
}

impl Flags {
    /// What was said before the verb and after it; the latter is nearer.
    pub(super) fn and(mut self, after: Self) -> Self {
        let lists = [
            (&mut self.config, after.config),
            (&mut self.enable, after.enable),
            (&mut self.disable, after.disable),
        ];
        lists.into_iter().for_each(|(list, more)| list.extend(more));
        self.image.extend(after.image);
        self.add_dir.extend(after.add_dir);
        self.file.extend(after.file);
        Self {
            strict_config: self.strict_config || after.strict_config,
            model: after.model.or(self.model),
            oss: self.oss || after.oss,
            local_provider: after.local_provider.or(self.local_provider),
            profile: after.profile.or(self.profile),
            sandbox: after.sandbox.or(self.sandbox),
            full_auto: self.full_auto || after.full_auto,
            dangerously_bypass_approvals_and_sandbox: self.dangerously_bypass_approvals_and_sandbox
                || after.dangerously_bypass_approvals_and_sandbox,
            dangerously_bypass_hook_trust: self.dangerously_bypass_hook_trust
                || after.dangerously_bypass_hook_trust,
            cd: after.cd.or(self.cd),
            thread_source: after.thread_source.or(self.thread_source),
            skip_git_repo_check: self.skip_git_repo_check || after.skip_git_repo_check,
            trust: self.trust || after.trust,
            ephemeral: self.ephemeral || after.ephemeral,
            ignore_user_config: self.ignore_user_config || after.ignore_user_config,
            ignore_rules: self.ignore_rules || after.ignore_rules,
            output_schema: after.output_schema.or(self.output_schema),
            color: after.color.or(self.color),
            json: self.json || after.json,
            output_last_message: after.output_last_message.or(self.output_last_message),
            custom: if after.custom.is_empty() { self.custom } else { after.custom },
            ..self
        }
    }

    /// The flags that are settings, as `key=value`: those with a name of their own last, so that
    /// they win.
    pub(super) fn overrides(&self) -> Vec<String> {
        let mut said = self.config.clone();
        let feature = |name: &String, on: bool| format!("features.{name}={on}");
        said.extend(self.enable.iter().map(|name| feature(name, true)));
        said.extend(self.disable.iter().map(|name| feature(name, false)));
        let local = self.local_provider.as_deref().or(self.oss.then_some("ollama"));
        let named = [
            ("profile", self.profile.as_deref()),
            ("model_provider", local),
            ("model", self.model.as_deref()),
            ("sandbox_mode", self.mode()),
        ];
        let named = named.into_iter().filter_map(|(key, value)| Some((key, value?)));
        said.extend(named.map(|(key, value)| format!("{key}={}", quoted(value))));
        said
    }

    /// The folders that may be written, as a setting: those of the files and those of the flags.
    pub(super) fn writable(&self, configured: &[PathBuf]) -> Option<String> {
        let here = std::env::current_dir().unwrap_or_default();
        let added = self.add_dir.iter().map(|folder| here.join(folder));
        let all: Vec<PathBuf> = configured.iter().cloned().chain(added).collect();
        if self.add_dir.is_empty() {
            return None;
        }
        let all: Vec<String> = all.iter().map(|path| quoted(&path.to_string_lossy())).collect();
        Some(format!("sandbox_workspace_write.writable_roots=[{}]", all.join(",")))
    }

    /// Whether a turn may run in this folder. Outside a repository nothing can be taken back.
    pub(super) fn may_run_in(&self, folder: &Path) -> bool {
        self.skip_git_repo_check
            || self.trust
            || self.dangerously_bypass_approvals_and_sandbox
            || folder.ancestors().any(|folder| folder.join(".git").exists())
    }

    fn mode(&self) -> Option<&'static str> {
        if self.dangerously_bypass_approvals_and_sandbox {
            return Some("danger-full-access");
        }
        match self.sandbox {
            Some(Mode::ReadOnly) => Some("read-only"),
            Some(Mode::WorkspaceWrite) => Some("workspace-write"),
            Some(Mode::DangerFullAccess) => Some("danger-full-access"),
            None => self.full_auto.then_some("workspace-write"),
        }
    }
}

/// A TOML basic string; its escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_after_the_verb_are_nearer_and_lists_grow() {
        let before = Flags {
            config: vec!["a=1".to_owned()],
            model: Some("one".to_owned()),
            full_auto: true,
            ..Flags::default()
        };
        let after = Flags {
            config: vec!["b=2".to_owned()],
            model: Some("two \"x\"".to_owned()),
            disable: vec!["f".to_owned()],
            ..Flags::default()
        };
        let said = before.and(after).overrides();
        let want = [
            "a=1",
            "b=2",
            "features.f=false",
            "model=\"two \\\"x\\\"\"",
            "sandbox_mode=\"workspace-write\"",
        ];
        assert_eq!(said, want);
    }

    #[test]
    fn folders_of_flags_are_added_to_those_of_files() {
        let flags = Flags { add_dir: vec!["/two".into()], ..Flags::default() };
        let want = "sandbox_workspace_write.writable_roots=[\"/one\",\"/two\"]";
        assert_eq!(flags.writable(&["/one".into()]).as_deref(), Some(want));
        assert_eq!(Flags::default().writable(&["/one".into()]), None);
    }
}
