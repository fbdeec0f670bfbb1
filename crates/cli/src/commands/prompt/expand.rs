//! `bindery prompt expand`.

use std::io::Write;

use bindery::engine::config::Home;
use bindery::engine::prompt::custom;

use crate::failure::Hinted;

/// Print one of your own prompts, filled in
///
/// Arguments are taken by place (`$1` to `$9`, `$ARGUMENTS`), or, where the prompt has names in
/// it, as `KEY=value`.
#[derive(Debug, clap::Args)]
pub(super) struct Expand {
    /// The prompt, as `bindery prompt list` shows it; `/prompts:` before it is not needed
    name: String,

    /// What is filled in
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Expand {
    pub(super) fn run(self, out: &mut dyn Write) -> anyhow::Result<()> {
        let prompts = custom::list(&custom::folder(&Home::here()?.codex));
        let name = self.name.strip_prefix(custom::CALL).unwrap_or(&self.name);
        let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
            let names: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
            let hint = match names.is_empty() {
                true => "write one: `prompts/NAME.md` in the Codex home".to_owned(),
                false => format!("there are {}", names.join(", ")),
            };
            return Err(Hinted::misuse(format!("no prompt `{name}`"), hint));
        };
        let text = prompt.expand(&self.arguments)?;
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            writeln!(out)?;
        }
        Ok(())
    }
}
