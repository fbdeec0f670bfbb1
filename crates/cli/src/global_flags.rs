//! Flags that stand before the command, where clients of Codex put them.

use crate::config_flags::{feature, setting};
use crate::failure::Hinted;

/// What may be said before the command; each says the same as after it.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GlobalFlags {
    /// A setting over those of `config.toml`
    #[arg(
        id = "global_config",
        long = "config",
        short = 'c',
        value_name = "KEY=VALUE",
        hide = true
    )]
    config: Vec<String>,

    /// Switch a feature on
    #[arg(id = "global_enable", long = "enable", value_name = "FEATURE", hide = true)]
    enable: Vec<String>,

    /// Switch a feature off
    #[arg(id = "global_disable", long = "disable", value_name = "FEATURE", hide = true)]
    disable: Vec<String>,

    /// The model
    #[arg(id = "global_model", long = "model", short = 'm', value_name = "NAME", hide = true)]
    model: Option<String>,

    /// Lay `NAME.config.toml` of the Codex home over the settings
    #[arg(id = "global_profile", long = "profile", short = 'p', value_name = "NAME", hide = true)]
    profile: Option<String>,
}

/// Where a command keeps what it was told of its settings.
pub(crate) struct CommandSettings<'a> {
    /// As `key=value`; what comes later wins.
    pub(crate) config: &'a mut Vec<String>,
    /// The profile; none where the command takes none.
    pub(crate) profile: Option<&'a mut Option<String>>,
}

impl GlobalFlags {
    /// Gives them to the command. What stands nearer to it wins; what it cannot take is refused.
    pub(crate) fn hand_over(self, command: Option<CommandSettings<'_>>) -> anyhow::Result<()> {
        let Some(given) = self.given() else { return Ok(()) };
        let Some(command) = command else { return Err(misplaced(given)) };
        if let Some(name) = &self.profile {
            let profile = command.profile.ok_or_else(|| misplaced("--profile"))?;
            profile.get_or_insert_with(|| name.clone());
        }
        command.config.splice(..0, self.settings());
        Ok(())
    }

    fn settings(&self) -> Vec<String> {
        let on = self.enable.iter().map(|name| feature(name, true));
        let off = self.disable.iter().map(|name| feature(name, false));
        let model = self.model.iter().map(|name| setting("model", name));
        self.config.iter().cloned().chain(on).chain(off).chain(model).collect()
    }

    /// The first that was given.
    fn given(&self) -> Option<&'static str> {
        let asked = [
            (!self.config.is_empty(), "--config"),
            (!self.enable.is_empty(), "--enable"),
            (!self.disable.is_empty(), "--disable"),
            (self.model.is_some(), "--model"),
            (self.profile.is_some(), "--profile"),
        ];
        asked.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
    }
}

fn misplaced(flag: &str) -> anyhow::Error {
    let with = match flag {
        "--profile" => "`run`, `exec`, `review`, `models` and `doctor --model`",
        _ => "`run`, `exec`, `review`, `app-server`, `models` and `doctor --model`",
    };
    let message = format!("`{flag}` before the command goes with {with}");
    Hinted::misuse(message, "give it to one of these, or leave it out")
}
