//! Many turns at once on one process: memory, and turns for a second of CPU time.

use std::time::Instant;

use bindery_testkit::codex::RealCodex;

use super::Stage;
use crate::bench::cpu::CpuTime;
use crate::bench::memory;
use crate::bench::report::{Report, Table, Target};
use crate::bench::turn::model::{ModelProcess, WAIT};
use crate::bench::turn::raw::Raw;

/// Threads, all under way together.
const THREADS: usize = 200;

/// The most megabytes the engine may have had.
const MOST_MEMORY: f64 = 150.0;

/// How many turns of the engine's one of Codex's is to cost at least.
const LEAD: f64 = 20.0;

pub(super) fn measure(stage: &mut Stage, report: &mut Report) -> anyhow::Result<()> {
    let codex = crowd(stage.codex(), &mut stage.model)?;
    let engine = crowd(stage.engine(), &mut stage.model)?;
    let head = format!("{THREADS} turns at once on {THREADS} threads");
    let mut table = Table::new(&[head.as_str(), "turns a CPU second", "peak RSS MB", "wall s"]);
    for (name, crowd) in [("Codex", &codex), ("engine", &engine)] {
        table.rows.push(vec![
            name.to_owned(),
            format!("{:.1}", crowd.pace),
            format!("{:.1}", crowd.peak),
            format!("{:.2}", crowd.seconds),
        ]);
    }
    report.tables.push(table);
    let lead = codex.pace * LEAD / engine.pace;
    report.targets.push(Target::megabytes("peak RSS of the crowd", engine.peak, MOST_MEMORY));
    report.targets.push(Target::ratio("20 × Codex's turns a CPU second, by ours", lead, 1.0));
    Ok(())
}

struct Crowd {
    pace: f64,
    peak: f64,
    seconds: f64,
}

/// From the first thread's start to the end of the last turn, none of which ends before all have
/// begun to answer.
fn crowd(server: RealCodex, model: &mut ModelProcess) -> anyhow::Result<Crowd> {
    let mut raw = Raw::start(server)?;
    let (before, begun) = (CpuTime::of(raw.pid())?, Instant::now());
    raw.together(THREADS, WAIT, || model.open(THREADS))?;
    let wall = begun.elapsed();
    let used = CpuTime::of(raw.pid())?.since(before).own.as_secs_f64();
    // The kernel counts in steps of 10 ms; less than one step is no number to divide by.
    let pace = THREADS as f64 / used.max(0.01);
    Ok(Crowd { pace, peak: memory::peak(raw.pid())?, seconds: wall.as_secs_f64() })
}
