//! `cargo xtask`: reads the task from the command line and does it.

use std::io::Write;
use std::process::ExitCode;

use xtask::arguments::{self, Task};
use xtask::{bench, codex, need, npm, step, test_run, workspace};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            step::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let root = workspace::root()?;
    match arguments::parse(std::env::args().skip(1))? {
        Task::Help => print(arguments::USAGE),
        Task::Codex => print(&need::path(&root, &codex::NEED)?.display().to_string()),
        Task::Npm => test_run::npm_alone(&root),
        Task::NpmPack => {
            let tarballs = npm::pack(&root)?;
            print(&tarballs.map(|path| path.display().to_string()).join("\n"))
        }
        Task::Test(options) => test_run::run(&root, &options),
        Task::ServeModel => bench::turn::serve_model().map(|()| ExitCode::SUCCESS),
        Task::ServeAcp => bench::serve::serve_acp().map(|()| ExitCode::SUCCESS),
        Task::BenchList => print(&bench::list(bench::BENCHES)),
        Task::Bench(options) => bench::run(&root, &options),
    }
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stdout(), "{}", text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
