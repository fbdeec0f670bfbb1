//! Starts a command within limits, or says which sandboxes work here.
//!
//! For programs that use the engine as a library and cannot be started for it themselves;
//! `bindery` is its own.

use std::ffi::OsStr;
use std::process::ExitCode;

use bindery_engine::sandbox::{self, Mechanism, Sandbox};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == OsStr::new(sandbox::SUBCOMMAND) => sandbox::enter(arguments),
        _ => report(),
    }
}

#[expect(clippy::print_stdout, reason = "the report is the output")]
fn report() -> ExitCode {
    let Ok(own) = std::env::current_exe() else { return ExitCode::FAILURE };
    let found = Sandbox::all(&own);
    let bubblewrap = found.iter().any(|one| matches!(one, Mechanism::Bubblewrap { .. }));
    let says =
        |works: bool| if works { "works" } else { "DOES NOT WORK HERE, its tests do nothing" };
    println!("bubblewrap: {}", says(bubblewrap));
    println!("Landlock: {}", says(found.contains(&Mechanism::Landlock)));
    ExitCode::SUCCESS
}
