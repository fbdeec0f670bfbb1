//! The `bindery` command.

use std::process::ExitCode;

use bindery::engine::sandbox;
use bindery_cli::commands::Bindery;
use bindery_cli::failure;
use clap::Parser;

fn main() -> ExitCode {
    // Started by ourselves, to become a command with limits: nothing else may be done before.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == sandbox::SUBCOMMAND) {
        sandbox::enter(arguments);
    }
    let bindery = Bindery::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(bindery.run()),
        Err(err) => Err(anyhow::Error::new(err).context("cannot start the runtime")),
    };
    result.unwrap_or_else(|err| failure::report(&err))
}
