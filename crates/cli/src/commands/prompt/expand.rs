//! `bindery prompt expand`.

use std::io::Write;

use bindery::engine::config::Home;

use super::filled::filled;

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
        let text = filled(&self.name, &self.arguments, &Home::here()?)?;
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            writeln!(out)?;
        }
        Ok(())
    }
}
