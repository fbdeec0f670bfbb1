//! The npm provider beside a bare JSON-RPC loop and the providers that people have today: the real
//! Codex, a model that answers at once. All of Node's side runs in one process, interleaved.

mod near;

mod node;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bindery_testkit::codex::{Options, RealCodex};

use self::near::Near;
use self::node::{Answer, Node, Workshop};
use super::files::Quiet;
use super::report::{Report, Table, Target};
use super::samples::{Plan, Ratio, Samples, interleave};
use super::turn::model::ModelProcess;
use super::turn::raw::Raw;
use super::{Bench, Setup};

/// The bench as the list has it.
pub(super) const BENCH: Bench =
    Bench { name: "ai-sdk", about: "the npm provider: a call beside raw JSON-RPC and peers", run };

/// Rounds thrown away: so many calls until Node has compiled what it runs, as in an app that stays.
const WARM_UP: usize = 15;

/// Rounds kept, unless asked otherwise.
const ROUNDS: usize = 21;

/// Calls in a row for the CPU time of Node, in a process that makes no others; and how many it
/// makes before, to have compiled what it runs.
const CPU_CALLS: usize = 60;

const CPU_WARM_UP: usize = 300;

/// Crowds of 32, each variant.
const CROWDS: usize = 5;

/// Turns of an open thread before the next one takes its place.
const THREAD_LIFE: usize = 8;

/// A spare thread is started 250 ms after one was taken; nobody should pay for it but its round.
const SETTLE: Duration = Duration::from_millis(400);

/// The most a new conversation may take where a spare thread waits, measured by the raw one.
const MOST_RATIO: f64 = 0.8;

/// The most CPU time of Node's that a call may take, in milliseconds.
const MOST_CPU: f64 = 4.0;

const VARIANTS: [(&str, &str); 11] = [
    ("raw-new", "raw JSON-RPC, new thread"),
    ("raw-warm", "raw JSON-RPC, new thread that was started ahead"),
    ("ours-new", "ours, new thread"),
    ("ours-warm", "ours, new thread that was kept warm"),
    ("ours-generate", "ours, the same by generateText"),
    ("ours-older", "ours, the same with its history in the older form"),
    ("ours-ephemeral", "ours, the same without a session file"),
    ("cli", "ai-sdk-provider-codex-cli, new thread without a session file"),
    ("sdk", "@openai/codex-sdk, new thread"),
    ("raw-open", "raw JSON-RPC, open thread"),
    ("ours-open", "ours, open thread"),
];

/// Those that are asked for 32 conversations at once, each in a fresh process.
const CROWDED: [(&str, &str); 4] = [
    ("ours-warm", "ours"),
    ("ours-ephemeral", "ours, without session files"),
    ("cli", "ai-sdk-provider-codex-cli, without session files"),
    ("sdk", "@openai/codex-sdk"),
];

fn run(setup: &Setup) -> anyhow::Result<Report> {
    let workshop = Workshop::prepare(&setup.root)?;
    let quiet = Quiet::wait()?;
    let homes = Homes::new()?;
    let measured = measure(setup, &workshop, &homes)?;
    let near = Near::measure(homes.raw()?, homes.node(&workshop)?)?;
    let cpu = cpu(homes.node(&workshop)?)?;
    let crowds = crowds(&workshop, &homes)?;
    report(&measured, &near, &cpu, &crowds, &quiet)
}

/// Homes of Codex, kept to the end: after many files were removed, new ones cost time on some
/// disks, and every new thread makes some.
struct Homes {
    model: ModelProcess,
    kept: RefCell<Vec<Arc<RealCodex>>>,
}

impl Homes {
    fn new() -> anyhow::Result<Self> {
        Ok(Self { model: ModelProcess::start()?, kept: RefCell::default() })
    }

    fn make(&self) -> Arc<RealCodex> {
        let home = RealCodex::on(self.model.base_url(), &Options::unrestricted());
        let home = Arc::new(home);
        self.kept.borrow_mut().push(Arc::clone(&home));
        home
    }

    fn raw(&self) -> anyhow::Result<Raw> {
        Raw::start(self.make())
    }

    /// A fresh Node, with a home for each provider.
    fn node(&self, workshop: &Workshop) -> anyhow::Result<Node> {
        Node::start(workshop, &["ours", "cli", "sdk"].map(|name| (name, self.make())))
    }
}

/// The calls of each of [`VARIANTS`], taken in turns.
fn measure(setup: &Setup, workshop: &Workshop, homes: &Homes) -> anyhow::Result<Vec<Vec<Answer>>> {
    let (mut raw, mut node) = (homes.raw()?, homes.node(workshop)?);
    let plan = Plan { warm_up: WARM_UP, rounds: setup.rounds.unwrap_or(ROUNDS) };
    let mut measured: Vec<Vec<Answer>> = vec![Vec::new(); VARIANTS.len()];
    interleave(plan, VARIANTS.len(), |index| {
        let renew = measured[index].len().is_multiple_of(THREAD_LIFE);
        let answer = call(VARIANTS[index].0, renew, &mut raw, &mut node)?;
        measured[index].push(answer);
        Ok(Duration::from_secs_f64(answer.finish / 1000.0))
    })?;
    measured.iter_mut().for_each(|calls| drop(calls.drain(..plan.warm_up)));
    node.end()?;
    Ok(measured)
}

/// CPU time of calls, in milliseconds.
fn cpu(mut node: Node) -> anyhow::Result<Samples> {
    for _ in 0..CPU_WARM_UP {
        node.ask("run ours-warm")?;
    }
    let mut calls = Vec::new();
    for _ in 0..CPU_CALLS {
        std::thread::sleep(SETTLE);
        calls.push(node.ask("run ours-warm")?.cpu);
    }
    node.end()?;
    Samples::new(calls)
}

/// The answers of each of [`CROWDED`], taken in turns.
fn crowds(workshop: &Workshop, homes: &Homes) -> anyhow::Result<Vec<Vec<Answer>>> {
    let mut crowds = vec![Vec::new(); CROWDED.len()];
    for _ in 0..CROWDS {
        for (index, (name, _)) in CROWDED.iter().enumerate() {
            crowds[index].push(crowd(name, homes.node(workshop)?)?);
        }
    }
    Ok(crowds)
}

fn crowd(name: &str, mut node: Node) -> anyhow::Result<Answer> {
    // The first conversation starts what the others share.
    node.ask(&format!("run {name}"))?;
    std::thread::sleep(SETTLE);
    let answer = node.ask(&format!("crowd {name}"))?;
    node.end()?;
    Ok(answer)
}

fn call(name: &str, renew: bool, raw: &mut Raw, node: &mut Node) -> anyhow::Result<Answer> {
    match name {
        "raw-open" if renew => raw.renew()?,
        "ours-open" if renew => drop(node.ask("renew")?),
        "raw-warm" => raw.prepare()?,
        _ => {}
    }
    std::thread::sleep(SETTLE);
    let start = Instant::now();
    let marks = match name {
        "raw-new" => raw.new_thread(start)?,
        "raw-warm" => raw.spare_thread(start)?,
        "raw-open" => raw.open_thread(start)?,
        other => return node.ask(&format!("run {other}")),
    };
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    Ok(Answer { text: ms(marks.text), finish: ms(marks.finish), ..Answer::default() })
}

fn report(
    measured: &[Vec<Answer>],
    near: &Near,
    cpu: &Samples,
    crowds: &[Vec<Answer>],
    quiet: &Quiet,
) -> anyhow::Result<Report> {
    let column = |name: &str, value: fn(&Answer) -> f64| {
        let index = VARIANTS.iter().position(|(variant, _)| *variant == name);
        let calls = &measured[index.context("a variant of that name")?];
        Samples::new(calls.iter().map(value).collect())
    };
    let finish = |name| column(name, |answer| answer.finish);
    let floor = finish("raw-new")?;
    let mut calls =
        Table::new(&["variant", "first text ms", "finish ms", "p95", "÷ raw new", "Node CPU ms"]);
    for (name, words) in VARIANTS {
        let (text, finish) = (column(name, |answer| answer.text)?, finish(name)?);
        let cpu = column(name, |answer| answer.cpu)?.median();
        calls.rows.push(vec![
            words.to_owned(),
            format!("{:.1}", text.median()),
            format!("{:.1}", finish.median()),
            format!("{:.1}", finish.p95()),
            format!("{:.2}", Ratio::paired(&finish, &floor)?.median),
            if name.starts_with("raw") { "–".to_owned() } else { format!("{cpu:.1}") },
        ]);
    }
    let (table, times) = crowd_table(crowds)?;
    let warm = finish("ours-warm")?;
    let against = |name| anyhow::Ok(Ratio::paired(&warm, &finish(name)?)?.median);
    // Like with like: that provider keeps no session files.
    let cli = Ratio::paired(&finish("ours-ephemeral")?, &finish("cli")?)?.median;
    let time = |ours: usize, theirs: usize| times[ours].0 / times[theirs].0;
    let memory = |ours: usize, theirs: usize| times[ours].1 / times[theirs].1;
    let targets = vec![
        Target::ratio("warm new thread ÷ raw", near.ratio()?, MOST_RATIO),
        Target::ratio("the same without a session file ÷ ai-sdk-provider-codex-cli", cli, 1.0),
        Target::ratio("warm new thread ÷ @openai/codex-sdk", against("sdk")?, 1.0),
        Target::milliseconds("Node CPU of a call, in a process of many", cpu.median(), MOST_CPU),
        Target::ratio("32 at once without session files, time ÷ codex-cli", time(1, 2), 1.0),
        Target::ratio("32 at once, time ÷ codex-sdk", time(0, 3), 1.0),
        Target::ratio("32 at once without session files, memory ÷ codex-cli", memory(1, 2), 1.0),
        Target::ratio("32 at once, memory ÷ codex-sdk", memory(0, 3), 1.0),
    ];
    let title =
        format!("The npm provider: a call, and 32 at once (a file costs {:.3} ms)", quiet.cost);
    Ok(Report { title, tables: vec![calls, near.table()?, table], targets })
}

/// The table of the crowds, and milliseconds and memory of each.
fn crowd_table(crowds: &[Vec<Answer>]) -> anyhow::Result<(Table, Vec<(f64, f64)>)> {
    let median = |index: usize, value: fn(&Answer) -> f64| {
        Samples::new(crowds[index].iter().map(value).collect()).map(|samples| samples.median())
    };
    let mut table = Table::new(&["32 conversations at once", "all over, ms", "memory, MiB"]);
    let mut found = Vec::new();
    for (index, (_, words)) in CROWDED.iter().enumerate() {
        let (time, memory) = (median(index, |a| a.finish)?, median(index, |a| a.mib)?);
        found.push((time, memory));
        table.rows.push(vec![(*words).to_owned(), format!("{time:.0}"), format!("{memory:.0}")]);
    }
    Ok((table, found))
}
