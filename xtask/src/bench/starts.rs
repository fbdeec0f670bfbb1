//! Turns whose daemon ends within half a second of their start: none may be lost or run twice.
//!
//! The test of the same name does it with fewer; this asks it for more and shows what it counts.

use anyhow::{Context, ensure};

use super::report::{Report, Table, Target};
use super::{Bench, Setup};
use crate::{codex, need, step, workspace};

/// The bench as the list has it.
pub(super) const BENCH: Bench = Bench {
    name: "starts",
    about: "turns whose daemon ends as they start: lost or run twice",
    run,
};

/// Turns in all, unless asked otherwise.
const STARTS: usize = 1000;

/// Two backends, each killed and asked to end.
const CASES: usize = 4;

fn run(setup: &Setup) -> anyhow::Result<Report> {
    let starts = setup.rounds.unwrap_or(STARTS).div_ceil(CASES);
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let mut command = workspace::cargo(&setup.root);
    command.args(["test", "--quiet", "--package", "bindery-cli", "--test", "it"]);
    command.args(["start_turns_run_once", "--", "--test-threads", "2"]);
    command.env("BINDERY_STARTS", starts.to_string()).env("BINDERY_STARTS_TABLE", &results);
    command.env(codex::NEED.variable, need::path(&setup.root, &codex::NEED)?);
    let status = step::status(&mut command)?;
    let results = std::fs::read_to_string(&results).context("the tests counted nothing")?;
    let mut table = Table::new(&["backend, signal", "turns", "lost or run twice"]);
    let mut faults = 0;
    for row in results.lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        let [server, signal, count, wrong] = cells[..] else { anyhow::bail!("no row: {row}") };
        faults += wrong.parse::<u32>()?;
        table.rows.push(vec![format!("{server}, {signal}"), count.to_owned(), wrong.to_owned()]);
    }
    ensure!(table.rows.len() == CASES, "{} of {CASES} cases were counted", table.rows.len());
    ensure!(status.success() == (faults == 0), "the tests failed for another reason");
    let target = Target {
        name: "turns lost or run twice".to_owned(),
        value: f64::from(faults),
        limit: 0.0,
        unit: "",
    };
    Ok(Report { title: "Starts".to_owned(), tables: vec![table], targets: vec![target] })
}
