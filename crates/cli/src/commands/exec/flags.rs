//! The flags of `codex exec`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::config_flags::{ConfigFlags, feature, setting};

/// What may be said before and after the verb.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Flags {
    #[command(flatten)]
    pub(super) settings: ConfigFlags,

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
        self.enable.extend(after.enable);
        self.disable.extend(after.disable);
        self.image.extend(after.image);
        self.file.extend(after.file);
        Self {
            settings: self.settings.and(after.settings),
            strict_config: self.strict_config || after.strict_config,
            model: after.model.or(self.model),
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
        let mut said = self.settings.overrides();
        said.extend(self.enable.iter().map(|name| feature(name, true)));
        said.extend(self.disable.iter().map(|name| feature(name, false)));
        let named = [("model", self.model.as_deref()), ("sandbox_mode", self.mode())];
        let named = named.into_iter().filter_map(|(key, value)| Some((key, value?)));
        said.extend(named.map(|(key, value)| setting(key, value)));
        said
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(setting: &str) -> ConfigFlags {
        ConfigFlags { config: vec![setting.to_owned()], ..ConfigFlags::default() }
    }

    #[test]
    fn flags_after_the_verb_are_nearer_and_lists_grow() {
        let before = Flags {
            settings: said("a=1"),
            model: Some("one".to_owned()),
            full_auto: true,
            ..Flags::default()
        };
        let after = Flags {
            settings: said("b=2"),
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
}
