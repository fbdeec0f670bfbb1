//! The native engine beside the real Codex: the same scripted model, the same bare client.
//!
//! Both are app-servers on stdio, so one hand-written loop drives either. The model is a process
//! of its own; what is counted of the servers is theirs alone.

mod crowd;

mod prompt;

mod sandbox;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_testkit::codex::{Options, RealCodex};

use super::cpu;
use super::files::Quiet;
use super::report::{Report, Table, Target};
use super::samples::{Plan, Ratio, Samples, interleave};
use super::turn::model::ModelProcess;
use super::turn::raw::Raw;
use super::{Bench, Setup, map, memory};
use crate::{codex, need};

/// The bench as the list has it.
pub(super) const BENCH: Bench =
    Bench { name: "engine", about: "the native engine beside the real Codex", run };

const WARM_UP: usize = 2;

const ROUNDS: usize = 15;

/// Codex goes on for a while after a turn is over; nobody should pay for it but its own turn.
const SETTLE: Duration = Duration::from_millis(100);

/// What the engine leaves for later has been done by then.
const AFTERWARDS: Duration = Duration::from_millis(1500);

/// The most that a turn of ours may take of Codex's, from the start of the process and on a warm
/// one.
const MOST_RATIO: f64 = 0.08;

/// The most CPU time of the engine's a turn may take, in milliseconds.
const MOST_CPU: f64 = 3.0;

/// The most megabytes the engine may have after its start.
const MOST_MEMORY: f64 = 20.0;

/// What is measured, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    CodexStart,
    EngineStart,
    CodexNew,
    EngineNew,
    CodexOpen,
    EngineOpen,
}

use Variant::{CodexNew, CodexOpen, CodexStart, EngineNew, EngineOpen, EngineStart};

impl Variant {
    const ALL: [Self; 6] = [CodexStart, EngineStart, CodexNew, EngineNew, CodexOpen, EngineOpen];

    fn name(self) -> &'static str {
        match self {
            CodexStart => "Codex, process start to turn finished",
            EngineStart => "engine, process start to turn finished",
            CodexNew => "Codex, warm process, new thread",
            EngineNew => "engine, warm process, new thread",
            CodexOpen => "Codex, open thread",
            EngineOpen => "engine, open thread",
        }
    }
}

fn run(setup: &Setup) -> anyhow::Result<Report> {
    need::path(&setup.root, &codex::NEED)?;
    let bindery = map::build(&setup.root)?;
    let quiet = Quiet::wait()?;
    let plan = Plan { warm_up: WARM_UP, rounds: setup.rounds.unwrap_or(ROUNDS) };
    let mut stage = Stage { model: ModelProcess::start()?, bindery };
    let mut cast = Cast::start(&stage)?;
    let (mut own_new, mut own_open) = (Vec::new(), Vec::new());
    let mut begun = None;
    let times = interleave(plan, Variant::ALL.len(), |index| {
        let variant = Variant::ALL[index];
        std::thread::sleep(SETTLE);
        let before = cpu::live_threads(cast.engine.pid())?;
        if own_new.len().min(own_open.len()) == plan.warm_up {
            begun.get_or_insert(before);
        }
        let time = cast.measure(&stage, variant)?;
        let own = cpu::live_threads(cast.engine.pid())?.saturating_sub(before);
        match variant {
            EngineNew => own_new.push(own),
            EngineOpen => own_open.push(own),
            CodexStart | EngineStart | CodexNew | CodexOpen => {}
        }
        Ok(time)
    })?;
    let own = [own_new, own_open].map(|times| Samples::from_times(&times[plan.warm_up..]));
    let [own_new, own_open] = own;
    std::thread::sleep(AFTERWARDS);
    let end = cpu::live_threads(cast.engine.pid())?;
    let all = end.saturating_sub(begun.unwrap_or_default()).as_secs_f64() * 1000.0;
    #[expect(clippy::cast_precision_loss, reason = "a few dozen")]
    let own = Own { new: own_new?, open: own_open?, all: all / (2 * plan.rounds) as f64 };
    let mut report = report(&times, &own, &cast)?;
    report.tables.push(costs(&own, &quiet));
    drop(cast);
    crowd::measure(&mut stage, &mut report)?;
    prompt::measure(setup, &stage.bindery, &mut report)?;
    sandbox::measure(setup, &stage.bindery, &mut report)?;
    Ok(report)
}

/// CPU time of the engine's, in milliseconds.
struct Own {
    new: Samples,
    open: Samples,
    /// For a turn of either, with all that comes after it.
    all: f64,
}

/// What the servers are started on.
struct Stage {
    model: ModelProcess,
    bindery: PathBuf,
}

impl Stage {
    fn codex(&self) -> RealCodex {
        RealCodex::on(self.model.base_url(), &Options::unrestricted())
    }

    /// The same home, project and settings, served by the engine.
    fn engine(&self) -> RealCodex {
        self.codex().served_by(&self.bindery)
    }
}

/// Warm servers of both kinds.
struct Cast {
    codex: Raw,
    engine: Raw,
    /// Megabytes right after the start.
    at_start: [f64; 2],
    /// Of servers that are gone. Where they were removed, making files costs more for some minutes:
    /// the next turns would pay for it ([`super::files`]).
    homes: Vec<Arc<RealCodex>>,
}

impl Cast {
    fn start(stage: &Stage) -> anyhow::Result<Self> {
        let mut codex = Raw::start(stage.codex())?;
        let mut engine = Raw::start(stage.engine())?;
        let at_start = [memory::resident(codex.pid())?, memory::resident(engine.pid())?];
        codex.renew()?;
        engine.renew()?;
        Ok(Self { codex, engine, at_start, homes: Vec::new() })
    }

    fn measure(&mut self, stage: &Stage, variant: Variant) -> anyhow::Result<Duration> {
        // Homes and projects are made before the clock starts.
        let fresh = match variant {
            CodexStart => Some(Arc::new(stage.codex())),
            EngineStart => Some(Arc::new(stage.engine())),
            CodexNew | EngineNew | CodexOpen | EngineOpen => None,
        };
        self.homes.extend(fresh.clone());
        let start = Instant::now();
        if let Some(server) = fresh {
            return Ok(Raw::start(server)?.new_thread(start)?.finish);
        }
        let marks = match variant {
            CodexStart | EngineStart | CodexNew => self.codex.new_thread(start)?,
            EngineNew => self.engine.new_thread(start)?,
            CodexOpen => self.codex.open_thread(start)?,
            EngineOpen => self.engine.open_thread(start)?,
        };
        Ok(marks.finish)
    }
}

fn report(times: &[Samples], own: &Own, cast: &Cast) -> anyhow::Result<Report> {
    let mut table = Table::of_times();
    for (variant, samples) in Variant::ALL.iter().zip(times) {
        table.times(variant.name(), samples);
    }
    let ratio = |engine: Variant, codex: Variant| {
        let of = |variant| Variant::ALL.iter().position(|&one| one == variant).unwrap_or_default();
        Ratio::paired(&times[of(engine)], &times[of(codex)]).map(|ratio| ratio.median)
    };
    let [codex_memory, engine_memory] = cast.at_start;
    let mut sizes = Table::new(&["after the start", "RSS MB"]);
    sizes.rows.push(vec!["Codex".to_owned(), format!("{codex_memory:.1}")]);
    sizes.rows.push(vec!["engine".to_owned(), format!("{engine_memory:.1}")]);
    Ok(Report {
        title: "The native engine".to_owned(),
        tables: vec![table, sizes],
        targets: vec![
            Target::ratio(
                "process start to turn finished",
                ratio(EngineStart, CodexStart)?,
                MOST_RATIO,
            ),
            Target::ratio(
                "turn on a warm process, new thread",
                ratio(EngineNew, CodexNew)?,
                MOST_RATIO,
            ),
            Target::ratio("turn on an open thread", ratio(EngineOpen, CodexOpen)?, MOST_RATIO),
            Target::milliseconds("CPU of a turn on an open thread", own.open.median(), MOST_CPU),
            Target::milliseconds("CPU of a thread and its turn", own.new.median(), MOST_CPU),
            Target::milliseconds("CPU of both, with what is left for later", own.all, MOST_CPU),
            Target::megabytes("RSS after the start", engine_memory, MOST_MEMORY),
        ],
    })
}

/// What a turn takes, and what a file does that a new thread has to make.
fn costs(own: &Own, quiet: &Quiet) -> Table {
    let mut table = Table::new(&["CPU of the engine", "median ms", "p95"]);
    for (name, samples) in [("new thread and turn", &own.new), ("open thread", &own.open)] {
        let cells = [samples.median(), samples.p95()].map(|value| format!("{value:.2}"));
        table.rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    let file = format!("{:.3}", quiet.cost);
    table.rows.push(vec!["a file of this bench's own".to_owned(), file, "–".to_owned()]);
    table
}

/// A folder of this bench's under `target`.
fn folder(root: &Path) -> PathBuf {
    root.join("target/bindery-bench")
}
