//! One turn, ours against a bare JSON-RPC loop: the real Codex, a model that answers at once.
//!
//! Every client has a Codex process and home of its own, because stdin and stdout serve only one.
//! What two equal processes differ by is therefore measured too: a second raw client is the noise.
//! The model is a process of its own, so that the CPU time of this one is the clients' alone.

pub(super) mod model;

pub(super) mod ours;

pub(super) mod raw;

use std::time::{Duration, Instant};

use bindery_testkit::codex::{Options, RealCodex};

use self::model::ModelProcess;
use self::ours::{Ours, Threads};
use self::raw::Raw;
use super::report::{Report, Table, Target};
use super::samples::{Plan, Ratio, Samples, interleave};
use super::{Bench, Setup, cpu};
use crate::{codex, need};

pub use model::serve as serve_model;

/// The bench as the list has it.
pub const BENCH: Bench =
    Bench { name: "turn", about: "a turn: ours against a bare JSON-RPC loop", run };

/// Rounds thrown away: the first turn of a process loads what later ones share.
const WARM_UP: usize = 3;

/// Rounds kept, unless asked otherwise.
const ROUNDS: usize = 31;

/// Turns an open thread serves before a new one takes its place, for all variants at once.
const THREAD_LIFE: usize = 8;

/// Codex still writes its session file when it has said that a turn is over; the next variant
/// should not pay for that.
const SETTLE: Duration = Duration::from_millis(30);

/// The most a turn of ours may take, measured by the raw one.
const MOST_RATIO: f64 = 1.03;

/// The most CPU time of our own a turn may take, in milliseconds, whatever the runtime.
const MOST_CPU: f64 = 2.0;

/// What the user says.
pub(super) const QUESTION: &str = "What is there to say?";

/// What is measured, in the order of the report. Neighbours are compared, so they run one after
/// the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    RawNew,
    OursNew,
    ModelNew,
    ManyNew,
    NoiseNew,
    RawOpen,
    OursOpen,
    ManyOpen,
    NoiseOpen,
}

use Variant::{
    ManyNew, ManyOpen, ModelNew, NoiseNew, NoiseOpen, OursNew, OursOpen, RawNew, RawOpen,
};

impl Variant {
    const ALL: [Self; 9] =
        [RawNew, OursNew, ModelNew, ManyNew, NoiseNew, RawOpen, OursOpen, ManyOpen, NoiseOpen];

    fn name(self) -> &'static str {
        match self {
            RawNew => "raw, new thread",
            OursNew => "`start_thread` + `start_turn`, new thread",
            ModelNew => "`LanguageModel::stream`, new thread",
            ManyNew => "the same on a runtime of many threads, new thread",
            NoiseNew => "raw again in a second process, new thread",
            RawOpen => "raw, open thread",
            OursOpen => "`start_turn`, open thread",
            ManyOpen => "the same on a runtime of many threads, open thread",
            NoiseOpen => "raw again in a second process, open thread",
        }
    }

    fn floor(self) -> Self {
        match self {
            RawNew | OursNew | ModelNew | ManyNew | NoiseNew => RawNew,
            RawOpen | OursOpen | ManyOpen | NoiseOpen => RawOpen,
        }
    }
}

/// When the answer's first text came and when the turn was over, counted from the first request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) text: Duration,
    pub(crate) finish: Duration,
}

/// One turn as measured.
#[derive(Clone, Copy, Debug)]
struct Measured {
    marks: Marks,
    cpu: Duration,
}

fn run(setup: &Setup) -> anyhow::Result<Report> {
    need::path(&setup.root, &codex::NEED)?;
    let plan = Plan { warm_up: WARM_UP, rounds: setup.rounds.unwrap_or(ROUNDS) };
    let mut cast = Cast::start()?;
    let mut measured = vec![Vec::new(); Variant::ALL.len()];
    interleave(plan, Variant::ALL.len(), |index| {
        let turn = cast.measure(Variant::ALL[index], measured[index].len())?;
        measured[index].push(turn);
        Ok(turn.marks.finish)
    })?;
    measured.iter_mut().for_each(|turns| drop(turns.drain(..plan.warm_up)));
    report(&measured)
}

/// Everybody who takes part.
struct Cast {
    raw: Raw,
    noise: Raw,
    ours: Ours,
    model: Ours,
    many: Ours,
    /// Ends last: the Codex processes speak to it.
    _provider: ModelProcess,
}

impl Cast {
    fn start() -> anyhow::Result<Self> {
        let provider = ModelProcess::start()?;
        let codex = || RealCodex::on(provider.base_url(), &Options::unrestricted());
        Ok(Self {
            raw: Raw::start(codex())?,
            noise: Raw::start(codex())?,
            ours: Ours::start(codex(), Threads::One)?,
            model: Ours::start(codex(), Threads::One)?,
            many: Ours::start(codex(), Threads::Many)?,
            _provider: provider,
        })
    }

    fn measure(&mut self, variant: Variant, round: usize) -> anyhow::Result<Measured> {
        if round.is_multiple_of(THREAD_LIFE) {
            self.renew(variant)?;
        }
        std::thread::sleep(SETTLE);
        let before = cpu::precise()?;
        let marks = self.turn(variant, Instant::now())?;
        let cpu = cpu::precise()?.saturating_sub(before);
        Ok(Measured { marks, cpu })
    }

    fn turn(&mut self, variant: Variant, start: Instant) -> anyhow::Result<Marks> {
        match variant {
            RawNew => self.raw.new_thread(start),
            NoiseNew => self.noise.new_thread(start),
            RawOpen => self.raw.open_thread(start),
            NoiseOpen => self.noise.open_thread(start),
            OursNew => self.ours.new_thread(start),
            OursOpen => self.ours.open_thread(start),
            ManyNew => self.many.new_thread(start),
            ManyOpen => self.many.open_thread(start),
            ModelNew => self.model.stream(start),
        }
    }

    /// Opens the next thread, with a first turn on it: an open thread is one that was used.
    fn renew(&mut self, variant: Variant) -> anyhow::Result<()> {
        match variant {
            RawOpen => self.raw.renew(),
            NoiseOpen => self.noise.renew(),
            OursOpen => self.ours.renew(),
            ManyOpen => self.many.renew(),
            RawNew | OursNew | ModelNew | ManyNew | NoiseNew => Ok(()),
        }
    }
}

fn report(measured: &[Vec<Measured>]) -> anyhow::Result<Report> {
    let column = |variant: Variant, value: fn(&Measured) -> Duration| {
        let index = Variant::ALL.iter().position(|&one| one == variant).unwrap_or_default();
        Samples::from_times(&measured[index].iter().map(value).collect::<Vec<_>>())
    };
    let finish = |variant| column(variant, |turn| turn.marks.finish);
    let text = |variant| column(variant, |turn| turn.marks.text);
    let own = |variant| column(variant, |turn| turn.cpu);
    let mut table = Table::new(&[
        "variant",
        "first text ms",
        "p95",
        "finish ms",
        "p95",
        "finish ÷ raw",
        "middle half",
        "own CPU ms",
    ]);
    for variant in Variant::ALL {
        let ratio = Ratio::paired(&finish(variant)?, &finish(variant.floor())?)?;
        let (text, finish) = (text(variant)?, finish(variant)?);
        table.rows.push(vec![
            variant.name().to_owned(),
            format!("{:.1}", text.median()),
            format!("{:.1}", text.p95()),
            format!("{:.1}", finish.median()),
            format!("{:.1}", finish.p95()),
            format!("{:.3}", ratio.median),
            format!("{:.2}–{:.2}", ratio.low, ratio.high),
            format!("{:.2}", own(variant)?.mean()),
        ]);
    }
    let ratio = |name: &str, ours: Variant| -> anyhow::Result<Target> {
        let ratio = Ratio::paired(&finish(ours)?, &finish(ours.floor())?)?;
        Ok(Target::ratio(name, ratio.median, MOST_RATIO))
    };
    let busiest = |variants: &[Variant]| -> anyhow::Result<f64> {
        variants.iter().try_fold(0.0, |most, &variant| Ok(own(variant)?.mean().max(most)))
    };
    Ok(Report {
        title: format!("A turn ({} rounds)", measured[0].len()),
        tables: vec![table],
        targets: vec![
            ratio("new thread, ÷ raw", OursNew)?,
            ratio("open thread, ÷ raw", OursOpen)?,
            ratio("new thread on many threads, ÷ raw", ManyNew)?,
            ratio("open thread on many threads, ÷ raw", ManyOpen)?,
            Target::milliseconds(
                "own CPU a turn",
                busiest(&[OursNew, ModelNew, OursOpen])?,
                MOST_CPU,
            ),
            Target::milliseconds(
                "own CPU a turn on many threads",
                busiest(&[ManyNew, ManyOpen])?,
                MOST_CPU,
            ),
        ],
    })
}
