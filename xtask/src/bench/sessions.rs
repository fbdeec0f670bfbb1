//! Sessions: listing a gigabyte of them, reading a long one, checking it, and how much memory
//! that takes; against Node's bare `JSON.parse` and Codex's own list.

mod corpus;

mod exports;

mod peers;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use bindery::sessions::catalogue::Catalogue;
use bindery::sessions::normalise::Options;
use bindery::sessions::{render, session, validate};

use super::report::{Report, Table, Target};
use super::samples::{Plan, Samples, interleave};
use super::{Bench, Setup};
use super::{cpu, memory};
use crate::step;

/// The bench.
pub(super) const BENCH: Bench =
    Bench { name: "sessions", about: "list, read, validate sessions; against Node and Codex", run };

fn run(setup: &Setup) -> anyhow::Result<Report> {
    let folder = setup.root.join("target/bindery-bench/sessions");
    let pool = setup.root.join("fixtures/sessions/pool.zst");
    let data = step::timed("make the sessions", || corpus::make(&pool, &folder))?;
    let rounds = setup.rounds.unwrap_or(5);
    let mut report = Report { title: "Sessions".to_owned(), ..Report::default() };
    lists(setup, &data, rounds, &mut report)?;
    reading(&data, rounds, &mut report)?;
    exports::run(&folder, &mut report)?;
    huge(&data, &folder, &mut report)?;
    Ok(report)
}

/// One variant's time, processor time and peak memory.
struct Cost {
    wall: Duration,
    cpu: Duration,
    peak_mb: f64,
}

fn measure(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Cost> {
    // Linux forgets the peak when it is told to.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let me = std::process::id();
    let (cpu, begun) = (cpu::live_threads(me)?, Instant::now());
    work()?;
    let wall = begun.elapsed();
    let cpu = cpu::live_threads(me)?.saturating_sub(cpu);
    Ok(Cost { wall, cpu, peak_mb: memory::peak(me)? })
}

/// A list without anything kept, with what was kept, and Codex's.
fn lists(
    setup: &Setup,
    data: &corpus::Data,
    rounds: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let program = crate::need::path(&setup.root, &crate::codex::NEED)?;
    let mut codex =
        step::timed("start codex app-server", || peers::Codex::start(&program, &data.home))?;
    let kept = data.home.with_extension("catalogue.json");
    let roots = [data.home.clone()];
    let mut warm = Catalogue::default();
    let found = warm.list(&roots, false)?.len();
    anyhow::ensure!(found == corpus::SESSIONS, "{found} sessions listed");
    warm.save(&kept)?;
    let mut peak: f64 = 0.0;
    let plan = Plan { warm_up: 1, rounds };
    let samples = interleave(plan, 3, |variant| match variant {
        0 => {
            let cost = measure(|| Ok(Catalogue::default().list(&roots, false).map(drop)?))?;
            peak = peak.max(cost.peak_mb);
            Ok(cost.wall)
        }
        1 => Ok(measure(|| Ok(Catalogue::open(&kept).list(&roots, false).map(drop)?))?.wall),
        _ => codex.list(),
    })?;
    let mut table = Table::of_times();
    table.times("list, nothing kept", &samples[0]);
    table.times("list, summaries kept", &samples[1]);
    table.times("codex thread/list, 100 rows", &samples[2]);
    report.tables.push(table);
    let ratio = super::samples::Ratio::paired(&samples[0], &samples[2])?.median;
    report.targets.push(Target::ratio("list cold / codex thread/list", ratio, 0.3));
    report.targets.push(Target::milliseconds("list warm", samples[1].median(), 20.0));
    report.targets.push(peak_of("list", peak));
    Ok(())
}

/// The long session: all of it, its last page, checked; and Node's bare parse.
fn reading(data: &corpus::Data, rounds: usize, report: &mut Report) -> anyhow::Result<()> {
    let path = data.long.as_path();
    let megabytes = fs::metadata(path)?.len() as f64 / 1e6;
    let mut peak: f64 = 0.0;
    let mut pages = Vec::new();
    let plan = Plan { warm_up: 1, rounds };
    let samples = interleave(plan, 5, |variant| {
        if variant >= 3 {
            return peers::node_parse(path, variant == 4);
        }
        let cost = measure(|| match variant {
            0 => Ok(session::stream(path, Options::default(), drop).map(drop)?),
            1 => Ok(validate::Report::default().check(path)?),
            _ => last_page(path),
        })?;
        peak = peak.max(cost.peak_mb);
        if variant == 2 {
            pages.push(cost.wall);
        }
        Ok(cost.cpu)
    })?;
    let rate = |samples: &Samples| megabytes / (samples.median() / 1_000.0);
    let mut table = Table::new(&["200 MB session", "MB per CPU s", "CPU ms"]);
    let names = [
        "normalise all of it",
        "validate",
        "last page",
        "node: readline, JSON.parse",
        "node: byte blocks, JSON.parse",
    ];
    for (name, samples) in names.iter().zip(&samples) {
        let speed =
            if *name == "last page" { "–".to_owned() } else { format!("{:.0}", rate(samples)) };
        table.rows.push(vec![(*name).to_owned(), speed, format!("{:.1}", samples.median())]);
    }
    report.tables.push(table);
    let pages = Samples::from_times(&pages)?;
    let node = super::samples::Ratio::paired(&samples[0], &samples[3])?.median;
    report.targets.extend([
        Target::ratio("350 MB per CPU second / normalise", 350.0 / rate(&samples[0]), 1.0),
        Target::ratio("normalise / node readline and JSON.parse, CPU", node, 1.0 / 3.0),
        Target::ratio("400 MB per CPU second / validate", 400.0 / rate(&samples[1]), 1.0),
        Target::milliseconds("last page on screen", pages.median(), 50.0),
        peak_of("reading", peak),
    ]);
    Ok(())
}

fn last_page(path: &Path) -> anyhow::Result<()> {
    let tail = session::tail(path, 1, Options::default())?;
    let mut page = Vec::new();
    for turn in &tail.transcript.turns {
        render::terminal(&mut page, None, turn, render::Style::default())?;
    }
    anyhow::ensure!(!page.is_empty(), "an empty page");
    Ok(())
}

/// Four gigabytes with lines of 40 MB: made, read, and taken away again.
fn huge(data: &corpus::Data, folder: &Path, report: &mut Report) -> anyhow::Result<()> {
    let path: PathBuf = folder.join("huge.jsonl");
    step::timed("make 4 GB", || corpus::make_huge(&data.long, &path))?;
    let bytes = fs::metadata(&path).context("the huge session")?.len();
    let mut lines = 0;
    let read = measure(|| {
        let (_, ledger) = session::stream(&path, Options::default(), drop)?;
        lines = ledger.lines();
        anyhow::ensure!(ledger.missing().is_empty(), "lines were lost");
        Ok(())
    });
    let checked = measure(|| Ok(validate::Report::default().check(&path)?));
    fs::remove_file(&path)?;
    let (read, checked) = (read?, checked?);
    let mut table = Table::new(&["4 GB, lines of 40 MB", "MB per CPU s", "wall s", "peak MB"]);
    for (name, cost) in [("normalise", &read), ("validate", &checked)] {
        let speed = bytes as f64 / 1e6 / cost.cpu.as_secs_f64();
        table.rows.push(vec![
            format!("{name} ({lines} lines)"),
            format!("{speed:.0}"),
            format!("{:.1}", cost.wall.as_secs_f64()),
            format!("{:.0}", cost.peak_mb),
        ]);
    }
    report.tables.push(table);
    report.targets.push(peak_of("4 GB", read.peak_mb.max(checked.peak_mb)));
    Ok(())
}

fn peak_of(what: &str, peak_mb: f64) -> Target {
    Target::megabytes(&format!("peak memory, {what}"), peak_mb, 150.0)
}
