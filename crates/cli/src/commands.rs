//! The commands, one a file: its arguments, whose documentation is its help, and its run.

pub mod run;

pub mod exec;

pub mod review;

pub mod app_server;

pub mod map;

pub mod prompt;

pub mod doctor;

pub mod sessions;

pub mod serve;

pub mod tenant;

#[cfg(unix)]
pub mod guard;

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
    Exec(Box<exec::Exec>),
    Review(review::Review),
    AppServer(app_server::AppServer),
    Map(map::Map),
    Prompt(prompt::Prompt),
    Doctor(doctor::Doctor),
    Sessions(sessions::Sessions),
    Serve(serve::Serve),
    Tenant(tenant::Tenant),
    #[cfg(unix)]
    #[command(hide = true)]
    Guard(guard::Guard),
}

impl Bindery {
    /// Runs the command and gives its exit code.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(run) => run.run().await,
            Command::Exec(exec) => exec.run().await,
            Command::Review(review) => review.run().await,
            Command::AppServer(server) => server.run().await,
            Command::Map(map) => map.run(),
            Command::Prompt(prompt) => prompt.run(),
            Command::Doctor(doctor) => doctor.run().await,
            Command::Sessions(sessions) => sessions.run(),
            Command::Serve(serve) => serve.run(),
            Command::Tenant(tenant) => tenant.run().await,
            #[cfg(unix)]
            Command::Guard(guard) => guard.run(),
        }
    }
}
