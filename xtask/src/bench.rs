//! Benches: each measures something against a floor or a target, and says if it is met.
//!
//! A bench is a module here and one line in [`BENCHES`]. It interleaves its variants in one run
//! ([`samples::interleave`]), so that a busy machine slows all of them alike.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use crate::arguments::BenchOptions;
use crate::{step, workspace};

use report::Report;

pub mod samples;

pub mod cpu;

pub mod memory;

mod files;

pub mod report;

pub mod turn;

pub mod pool;

pub mod map;

mod sessions;

mod engine;

pub mod serve;

mod starts;

mod ai_sdk;

/// All benches.
pub const BENCHES: &[Bench] = &[
    turn::BENCH,
    pool::BENCH,
    Bench {
        name: "map",
        about: "`bindery map` on a long stream: CPU time and memory, beside a Node script",
        run: map::run,
    },
    sessions::BENCH,
    engine::BENCH,
    serve::BENCH,
    starts::BENCH,
    ai_sdk::BENCH,
];

/// One bench.
pub struct Bench {
    /// The word after `cargo xtask bench`.
    pub name: &'static str,
    /// What it measures, in a line.
    pub about: &'static str,
    /// Measures.
    pub run: fn(&Setup) -> anyhow::Result<Report>,
}

/// What a bench is given.
pub struct Setup {
    /// The workspace's root; outside programs come from [`crate::need::path`].
    pub root: PathBuf,
    /// Rounds asked for on the command line.
    pub rounds: Option<usize>,
}

/// The benches, a line each.
pub fn list(benches: &[Bench]) -> String {
    let lines = benches.iter().map(|bench| format!("{:<12} {}", bench.name, bench.about));
    let lines = lines.collect::<Vec<_>>().join("\n");
    if lines.is_empty() { "no benches yet".to_owned() } else { lines }
}

/// Runs the benches asked for; fails when a target is not met.
pub fn run(root: &Path, options: &BenchOptions) -> anyhow::Result<ExitCode> {
    let benches = chosen(BENCHES, options.name.as_deref())?;
    if cfg!(debug_assertions) {
        return run_optimised(root, options);
    }
    let setup = Setup { root: root.to_path_buf(), rounds: options.rounds };
    let mut met = true;
    for bench in benches {
        let report = step::timed(&format!("bench {}", bench.name), || (bench.run)(&setup))?;
        report.print()?;
        met &= report.met();
    }
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Does the same in an optimised build: numbers of a debug build say nothing about the product.
fn run_optimised(root: &Path, options: &BenchOptions) -> anyhow::Result<ExitCode> {
    let mut command = workspace::cargo(root);
    command.args(["run", "--release", "--quiet", "--package", "xtask", "--", "bench"]);
    command.args(&options.name);
    if let Some(rounds) = options.rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    let status = step::status(&mut command)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen<'a>(benches: &'a [Bench], name: Option<&str>) -> anyhow::Result<Vec<&'a Bench>> {
    let found: Vec<_> =
        benches.iter().filter(|bench| name.is_none_or(|name| name == bench.name)).collect();
    match name {
        Some(name) if found.is_empty() => bail!("no bench `{name}`\n{}", list(benches)),
        _ if found.is_empty() => bail!("{}", list(benches)),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(name: &'static str) -> Bench {
        Bench { name, about: "something", run: |_| bail!("not run here") }
    }

    #[test]
    fn benches_are_chosen_by_name_or_all() {
        let benches = [bench("one"), bench("two")];
        let names = |name| {
            let found = chosen(&benches, name).unwrap();
            found.iter().map(|bench| bench.name).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["one", "two"]);
        assert_eq!(names(Some("two")), ["two"]);
        let error = chosen(&benches, Some("three")).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "no bench `three`\none          something\ntwo          something");
    }

    #[test]
    fn an_empty_list_says_so() {
        assert_eq!(list(&[]), "no benches yet");
    }
}
