//! The commands, one a file: its arguments, whose documentation is its help, and its run.

pub mod run;

pub mod exec;

pub mod review;

pub mod app_server;

pub mod map;

pub mod prompt;

pub mod doctor;

pub mod models;

pub mod sessions;

pub mod serve;

pub mod tenant;

#[cfg(unix)]
pub mod guard;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::global_flags::{CommandSettings, GlobalFlags};
use crate::lazy::Lazy;

/// Codex, bound into your app
#[derive(Debug, Parser)]
#[command(name = "bindery", version, propagate_version = true, arg_required_else_help = true)]
pub struct Bindery {
    #[command(flatten)]
    flags: GlobalFlags,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one turn and stream it
    Run(Lazy<Box<run::Run>>),
    /// Run one turn without questions, as `codex exec` does
    Exec(Lazy<Box<exec::Exec>>),
    /// Review changes and tell what is wrong with them
    Review(Lazy<review::Review>),
    /// Serve the built-in engine as an app-server
    AppServer(Lazy<app_server::AppServer>),
    /// Map what `codex exec --json` prints to one form for all agents and versions
    Map(Lazy<map::Map>),
    /// Show what the engine would send to a model, and fill in custom prompts
    Prompt(Lazy<prompt::Prompt>),
    /// Check what Bindery needs and say what to do
    Doctor(Lazy<doctor::Doctor>),
    /// List the models that the configured server offers
    Models(Lazy<models::Models>),
    /// List, show, export and check Codex sessions
    Sessions(Lazy<sessions::Sessions>),
    /// Serve Codex to many users over HTTP
    Serve(Lazy<serve::Serve>),
    /// Add, list and revoke the users of `bindery serve`
    Tenant(Lazy<tenant::Tenant>),
    #[cfg(unix)]
    #[command(hide = true)]
    Guard(Lazy<guard::Guard>),
}

impl Bindery {
    /// Runs the command and gives its exit code.
    pub async fn run(mut self) -> anyhow::Result<ExitCode> {
        self.flags.hand_over(self.command.settings())?;
        match self.command {
            Command::Run(Lazy(run)) => run.run().await,
            Command::Exec(Lazy(exec)) => exec.run().await,
            Command::Review(Lazy(review)) => review.run().await,
            Command::AppServer(Lazy(server)) => server.run().await,
            Command::Map(Lazy(map)) => map.run(),
            Command::Prompt(Lazy(prompt)) => prompt.run(),
            Command::Doctor(Lazy(doctor)) => doctor.run().await,
            Command::Models(Lazy(models)) => models.run().await,
            Command::Sessions(Lazy(sessions)) => sessions.run(),
            Command::Serve(Lazy(serve)) => serve.run(),
            Command::Tenant(Lazy(tenant)) => tenant.run().await,
            #[cfg(unix)]
            Command::Guard(Lazy(guard)) => guard.run(),
        }
    }
}

impl Command {
    /// Where a command keeps its settings, if it has any.
    fn settings(&mut self) -> Option<CommandSettings<'_>> {
        match self {
            Self::Run(Lazy(run)) => Some(run.settings.settings()),
            Self::Exec(Lazy(exec)) => Some(exec.settings()),
            Self::Review(Lazy(review)) => Some(review.settings.settings()),
            Self::AppServer(Lazy(server)) => {
                Some(CommandSettings { config: &mut server.config, profile: None })
            }
            Self::Models(Lazy(models)) => Some(models.server.settings()),
            Self::Doctor(Lazy(doctor)) => doctor.settings(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_list_says_of_each_command_what_it_says_of_itself() {
        let mut built = Bindery::command();
        built.build();
        for command in Bindery::command().get_subcommands().filter(|command| !command.is_hide_set())
        {
            let itself = built.find_subcommand(command.get_name()).unwrap();
            let [list, own] = [command, itself].map(|command| command.get_about().unwrap());
            assert_eq!(list.to_string(), own.to_string());
        }
    }
}
