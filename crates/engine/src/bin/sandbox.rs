//! Starts a command within limits, or says which sandboxes work here.
//!
//! For programs that use the engine as a library and cannot be started for it themselves;
//! `bindery` is its own.

use std::ffi::OsStr;
use std::process::ExitCode;

use bindery_engine::sandbox::{self, Sandbox};

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
    for name in ["bubblewrap", "namespaces", "landlock"] {
        match found.iter().find(|one| one.name() == name) {
            Some(mechanism) => println!("{name}: works; {mechanism:?}"),
            None => println!("{name}: DOES NOT WORK HERE"),
        }
    }
    let required = std::env::var(sandbox::REQUIRE).unwrap_or_default();
    let missing = sandbox::missing(&found, &required);
    if missing.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("required by {} and missing: {}", sandbox::REQUIRE, missing.join(", "));
    ExitCode::FAILURE
}
