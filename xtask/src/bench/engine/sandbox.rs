//! What a sandbox adds to a command that does nothing, by every mechanism that works here.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bindery::engine::exec::{Command, Processes};
use bindery::engine::sandbox::{Mechanism, Policy, Sandbox};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::bench::Setup;
use crate::bench::report::{Report, Table, Target};
use crate::bench::samples::{Plan, interleave};
use crate::{codex, need};

/// The most milliseconds that a sandbox may add.
const MOST: f64 = 10.0;

/// Commands, each in every sandbox.
const ROUNDS: usize = 51;

/// Long enough for a command that does nothing.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn measure(setup: &Setup, bindery: &Path, report: &mut Report) -> anyhow::Result<()> {
    let mechanisms = mechanisms(setup, bindery)?;
    let sandboxes: Vec<Sandbox> = mechanisms
        .iter()
        .map(|one| Sandbox::with(one.clone(), bindery.to_owned(), Vec::new()))
        .collect();
    let folder = super::folder(&setup.root).join("sandbox");
    std::fs::create_dir_all(folder.join(".git"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let plan = Plan { warm_up: 3, rounds: setup.rounds.unwrap_or(ROUNDS) };
    let times = interleave(plan, sandboxes.len() + 1, |variant| {
        let command = nothing(&folder);
        let begun = Instant::now();
        let command = match variant.checked_sub(1) {
            None => command,
            Some(index) => sandboxes[index].wrap(command, &Policy::workspace_write())?,
        };
        run(&runtime, command)?;
        Ok(begun.elapsed())
    })?;
    let mut table = Table::of_times();
    table.times("a command that does nothing", &times[0]);
    for (mechanism, times) in mechanisms.iter().zip(&times[1..]) {
        table.times(&format!("the same within {}", mechanism.name()), times);
    }
    report.tables.push(table);
    for (mechanism, limited) in mechanisms.iter().zip(&times[1..]) {
        let added = limited.median() - times[0].median();
        let what = format!("added by {}", mechanism.name());
        report.targets.push(Target::milliseconds(&what, added, MOST));
    }
    Ok(())
}

/// Those that work here, with the bubblewrap that comes with Codex where there is no other.
fn mechanisms(setup: &Setup, bindery: &Path) -> anyhow::Result<Vec<Mechanism>> {
    let mut found = Sandbox::all(bindery);
    if !found.iter().any(|one| matches!(one, Mechanism::Bubblewrap { .. })) {
        let program = need::path(&setup.root, &codex::BUBBLEWRAP)?;
        found.insert(0, Mechanism::Bubblewrap { program, own_proc: true });
    }
    ensure!(!found.is_empty(), "no sandbox works here");
    Ok(found)
}

fn nothing(folder: &Path) -> Command {
    Command {
        argv: ["/bin/sh", "-c", ":"].map(Into::into).into(),
        cwd: folder.to_owned(),
        env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        tty: false,
        enclosed: false,
        placeholders: Vec::new(),
        egress: None,
    }
}

fn run(runtime: &Runtime, command: Command) -> anyhow::Result<()> {
    runtime.block_on(async {
        let processes = Processes::new();
        let (process, _) = processes.start(command).context("cannot start the command")?;
        let ended = processes.finish(&process, LIMIT, &CancellationToken::new()).await.ending;
        ensure!(ended.exit_code == 0, "the command failed: {}", ended.output);
        Ok(())
    })
}
