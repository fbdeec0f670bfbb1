//! `bindery prompt list`.

use std::io::Write;

use bindery::engine::config::Home;
use bindery::engine::prompt::custom::{self, CustomPrompt};
use serde_json::json;

use crate::view::clean::visible;

/// List your own prompts, from `prompts/*.md` in the Codex home
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Write JSON, one prompt a line
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(self, out: &mut dyn Write) -> anyhow::Result<()> {
        let folder = custom::folder(&Home::here()?.codex);
        let prompts = custom::list(&folder);
        if self.json {
            for prompt in &prompts {
                let mut line = json!(prompt);
                line["names"] = json!(prompt.names());
                writeln!(out, "{line}")?;
            }
            return Ok(());
        }
        if prompts.is_empty() {
            writeln!(out, "no prompts in {}", folder.display())?;
            return Ok(());
        }
        let call = |prompt: &CustomPrompt| format!("/prompts:{} {}", prompt.name, hint(prompt));
        let calls: Vec<String> = prompts.iter().map(call).collect();
        let width = calls.iter().map(|call| call.chars().count()).max().unwrap_or_default();
        for (call, prompt) in calls.iter().zip(&prompts) {
            let description = prompt.description.as_deref().unwrap_or_default();
            let line = format!("{call:<width$}  {description}");
            writeln!(out, "{}", visible(line.trim_end()))?;
        }
        Ok(())
    }
}

/// What to write after the name: the author's words, else the names in the text.
fn hint(prompt: &CustomPrompt) -> String {
    let names = || prompt.names().iter().map(|name| format!("{name}=…")).collect::<Vec<_>>();
    prompt.argument_hint.clone().unwrap_or_else(|| names().join(" "))
}
