//! `bindery prompt show` in a large repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::bench::Setup;
use crate::bench::report::{Report, Table, Target};
use crate::bench::samples::Samples;

/// Files in the repository.
const FILES: usize = 50_000;

/// Files in one folder of it.
const A_FOLDER: usize = 100;

/// The most milliseconds it may take.
const MOST: f64 = 50.0;

pub(super) fn measure(setup: &Setup, bindery: &Path, report: &mut Report) -> anyhow::Result<()> {
    let repository = repository(&super::folder(&setup.root))?;
    let rounds = setup.rounds.unwrap_or(super::ROUNDS);
    // One more, thrown away: the disk is then warm for all of them.
    let times: Result<Vec<_>, _> = (0..=rounds).map(|_| show(bindery, &repository)).collect();
    let times = Samples::new(times?.split_off(1))?;
    let mut table = Table::of_times();
    table.times("`bindery prompt show` among 50,000 files", &times);
    report.tables.push(table);
    report.targets.push(Target::milliseconds("`prompt show`", times.median(), MOST));
    Ok(())
}

fn show(bindery: &Path, repository: &Path) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut command = Command::new(bindery);
    command.args(["prompt", "show", "--json"]).current_dir(repository);
    // A home with nothing in it: the machine's own settings are not what is measured.
    command.env("CODEX_HOME", repository.join(".git")).env("HOME", repository.join(".git"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().context("cannot start bindery")?;
    ensure!(status.success(), "`bindery prompt show` failed: {status}");
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}

/// Makes the repository, unless it is there whole.
fn repository(folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join("large-repository");
    if path.join("AGENTS.md").is_file() {
        return Ok(path);
    }
    if path.exists() {
        fs::remove_dir_all(&path)?;
    }
    for index in 0..FILES {
        let below = path.join(format!("src/{:03}", index / A_FOLDER));
        if index % A_FOLDER == 0 {
            fs::create_dir_all(&below)?;
        }
        fs::write(below.join(format!("file-{index}.txt")), format!("file {index}\n"))?;
    }
    git(&path, &["init", "--quiet", "--initial-branch=main"])?;
    git(&path, &["add", "--all"])?;
    let who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
    git(&path, &[&who[..], &["commit", "--quiet", "--message=Many files"]].concat())?;
    // Last, so that it says the rest is there; and a change that git has to find.
    fs::write(path.join("AGENTS.md"), "Many small files live here.\n")?;
    Ok(path)
}

fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("git").args(arguments).current_dir(folder).status()?;
    ensure!(status.success(), "`git {}` failed: {status}", arguments.join(" "));
    Ok(())
}
