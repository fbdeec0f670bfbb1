//! The commands, one a file: its arguments, whose documentation is its help, and its run.

pub mod run;

pub mod review;

pub mod app_server;

pub mod map;

pub mod prompt;

pub mod doctor;

pub mod sessions;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Codex, bound into your app
#[derive(Debug, Parser)]
#[command(name = "bindery", version, propagate_version = true, arg_required_else_help = true)]
pub struct Bindery {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Run>),
    Review(review::Review),
    AppServer(app_server::AppServer),
    Map(map::Map),
    Prompt(prompt::Prompt),
    Doctor(doctor::Doctor),
    Sessions(sessions::Sessions),
}

impl Bindery {
    /// Runs the command and gives its exit code.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(run) => run.run().await,
            Command::Review(review) => review.run().await,
            Command::AppServer(server) => server.run().await,
            Command::Map(map) => map.run(),
            Command::Prompt(prompt) => prompt.run(),
            Command::Doctor(doctor) => doctor.run().await,
            Command::Sessions(sessions) => sessions.run(),
        }
    }
}
