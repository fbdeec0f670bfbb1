//! `bindery prompt`: what the engine would send, and the user's own prompts.

mod expand;

mod filled;

mod list;

mod settings;

mod show;

use std::io::Write;
use std::process::ExitCode;

pub(super) use self::filled::{called, filled};

/// Show what the engine would send to a model, and fill in custom prompts
///
/// Nothing is sent: settings, `AGENTS.md` files and the repository are read, and that is all.
#[derive(Debug, clap::Args)]
pub struct Prompt {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Show(Box<show::Show>),
    List(list::List),
    Expand(expand::Expand),
}

impl Prompt {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
        match self.verb {
            Verb::Show(show) => show.run(&mut out, &mut err)?,
            Verb::List(list) => list.run(&mut out)?,
            Verb::Expand(expand) => expand.run(&mut out)?,
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}
