//! The `bindery` command.

use std::process::ExitCode;

use bindery_cli::commands::Bindery;
use bindery_cli::failure;
use clap::Parser;

fn main() -> ExitCode {
    let bindery = Bindery::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(bindery.run());
            // A thread may still wait for standard input; nobody waits for it.
            runtime.shutdown_background();
            result
        }
        Err(err) => Err(anyhow::Error::new(err).context("cannot start the runtime")),
    };
    result.unwrap_or_else(|err| failure::report(&err))
}
