//! The `bindery` command.

use std::process::ExitCode;

use bindery::engine::sandbox;
use bindery_cli::{command_line, failure, helper};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The engine starts this program again to put a command into a sandbox.
    if arguments.next().is_some_and(|first| first == sandbox::SUBCOMMAND) {
        sandbox::enter(arguments);
    }
    if let Ok(program) = std::env::current_exe() {
        helper::offer(program);
    }
    let bindery = command_line::parse(std::env::args_os()).unwrap_or_else(|error| error.exit());
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
