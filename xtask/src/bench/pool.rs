//! New conversations: the pool against a bare JSON-RPC loop and what people use from npm, on the
//! real Codex with a model answering at once.
//!
//! One at a time, on processes that stay; then 32 at once, on fresh ones. The model is a process
//! of its own, so that the memory of this one is the clients' alone.

mod ours;

mod peer;

use std::time::{Duration, Instant};

use anyhow::Context;
use bindery_core::call::CallOptions;
use bindery_core::prompt::Prompt;
use bindery_testkit::codex::{Options, RealCodex};

use serde_json::json;

use self::ours::Pooled;
use self::peer::{Kind, Peer, Peers};
use super::report::{Report, Table, Target};
use super::samples::{Plan, Ratio, interleave};
use super::turn::QUESTION;
use super::turn::model::ModelProcess;
use super::turn::raw::Raw;
use super::{Bench, Setup, memory};
use crate::{codex, need, step};

/// The bench as the list has it.
pub const BENCH: Bench = Bench {
    name: "pool",
    about: "new conversations, one at a time and 32 at once: the pool, bare loops, npm packages",
    run,
};

/// Rounds thrown away: the first turn of a process loads what later ones share.
const WARM_UP: usize = 3;

/// Rounds of single conversations kept, unless asked otherwise.
const ROUNDS: usize = 31;

/// Rounds of many at once.
const BURSTS: usize = 15;

/// The same of the npm packages, which take long.
const PEER_BURSTS: usize = 3;

/// Conversations at once.
const CROWD: usize = 32;

/// What the better of the raw loops admits at a time.
const FEW: usize = 4;

/// Codex goes on behind its replies: it writes the session file after a turn, and has a shell look
/// at its environment after a thread was started. The next variant should not pay for that.
const SETTLE: Duration = Duration::from_millis(100);

/// The most megabytes of our own.
const MOST_MEMORY: f64 = 40.0;

fn run(setup: &Setup) -> anyhow::Result<Report> {
    need::path(&setup.root, &codex::NEED)?;
    let provider = ModelProcess::start()?;
    let peers = Peers::install(&setup.root);
    let house = House { provider, peers };
    let rounds = setup.rounds.unwrap_or(ROUNDS);
    let (one, one_targets) = house.one_at_a_time(Plan { warm_up: WARM_UP, rounds })?;
    let bursts = setup.rounds.map_or(BURSTS, |rounds| rounds.min(BURSTS));
    let (many, many_targets) = house.many_at_once(bursts)?;
    let mut targets = one_targets;
    targets.extend(many_targets);
    let own = memory::peak(std::process::id())?;
    targets.push(Target::megabytes("own memory at its peak", own, MOST_MEMORY));
    let title = format!("Pool ({rounds} rounds, {bursts} of {CROWD} at once)");
    Ok(Report { title, tables: vec![one, many], targets })
}

/// What all variants share.
struct House {
    /// The Codex processes speak to it.
    provider: ModelProcess,
    peers: Peers,
}

/// Somebody who has conversations.
enum Client {
    Raw(Raw),
    /// The raw loop on a thread that is open.
    Open(Raw),
    Pooled(Box<Pooled>),
    Peer(Peer),
}

impl Client {
    /// One conversation.
    fn one(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        match self {
            Self::Raw(raw) => Ok(raw.new_thread(start)?.finish),
            Self::Open(raw) => Ok(raw.open_thread(start)?.finish),
            Self::Pooled(pooled) => pooled.one(start),
            Self::Peer(peer) => peer.many(1),
        }
    }

    /// Many at once.
    fn many(&mut self, at_a_time: usize) -> anyhow::Result<Duration> {
        match self {
            Self::Raw(raw) | Self::Open(raw) => raw.burst(CROWD, at_a_time, Instant::now()),
            Self::Pooled(pooled) => pooled.many(CROWD, Instant::now()),
            Self::Peer(peer) => peer.many(CROWD),
        }
    }

    /// Replaces what was used up, then waits until Codex is quiet.
    fn settle(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Open(raw) => raw.renew()?,
            Self::Pooled(pooled) => pooled.settle()?,
            Self::Raw(_) | Self::Peer(_) => {}
        }
        std::thread::sleep(SETTLE);
        Ok(())
    }
}

impl House {
    fn codex(&self) -> RealCodex {
        RealCodex::on(self.provider.base_url(), &Options::unrestricted())
    }

    fn raw(&self) -> anyhow::Result<Client> {
        Ok(Client::Raw(Raw::start(self.codex())?))
    }

    fn pooled(&self, warm: usize) -> anyhow::Result<Client> {
        let pooled = Pooled::start(self.codex(), warm, question())?;
        Ok(Client::Pooled(Box::new(pooled)))
    }

    /// As `ai-sdk-provider-codex-cli` has its threads.
    fn ephemeral(&self, warm: usize) -> anyhow::Result<Client> {
        let mut question = question();
        let codex = json!({ "codex": { "ephemeral": true } });
        question.provider_options = Some(serde_json::from_value(codex)?);
        let pooled = Pooled::start(self.codex(), warm, question)?;
        Ok(Client::Pooled(Box::new(pooled)))
    }

    fn peer(&self, kind: Kind) -> anyhow::Result<Client> {
        let mut client = Client::Peer(self.peers.start(kind, self.codex())?);
        client.one()?;
        Ok(client)
    }

    fn one_at_a_time(&self, plan: Plan) -> anyhow::Result<(Table, Vec<Target>)> {
        let open = || anyhow::Ok(Client::Open(Raw::start(self.codex())?));
        let mut missing = Vec::new();
        let mut clients = vec![
            ("raw: `thread/start` + `turn/start`".to_owned(), self.raw()?),
            ("pool, spare threads".to_owned(), self.pooled(2)?),
            ("pool, no spare threads".to_owned(), self.pooled(0)?),
            ("pool, spare threads without a session file".to_owned(), self.ephemeral(2)?),
            ("raw, open thread".to_owned(), open()?),
            ("raw again in a second process".to_owned(), self.raw()?),
        ];
        for &kind in peer::KINDS {
            match self.peer(kind) {
                Ok(client) => clients.push((kind.name.to_owned(), client)),
                Err(err) => missing.push(format!("{}: {err:#}", kind.name)),
            }
        }
        let samples = interleave(plan, clients.len(), |index| {
            let client = &mut clients[index].1;
            client.settle()?;
            client.one().with_context(|| clients[index].0.clone())
        })?;
        let head = ["new conversation, one at a time", "median ms", "p95", "÷ raw", "middle half"];
        let mut table = Table::new(&head);
        for ((name, _), times) in clients.iter().zip(&samples) {
            let ratio = Ratio::paired(times, &samples[0])?;
            table.rows.push(vec![
                name.clone(),
                format!("{:.1}", times.median()),
                format!("{:.1}", times.p95()),
                format!("{:.3}", ratio.median),
                format!("{:.2}–{:.2}", ratio.low, ratio.high),
            ]);
        }
        mention(&mut table, missing);
        let warm = Ratio::paired(&samples[1], &samples[0])?;
        let target = Target::ratio("new conversation with spare threads, ÷ raw", warm.median, 0.78);
        Ok((table, vec![target]))
    }

    fn many_at_once(&self, rounds: usize) -> anyhow::Result<(Table, Vec<Target>)> {
        let kinds: Vec<Kind> =
            peer::KINDS.iter().copied().filter(|&kind| self.peer(kind).is_ok()).collect();
        let mut names = vec![
            "raw, all at once".to_owned(),
            format!("raw, {FEW} at a time"),
            "pool, no spare threads".to_owned(),
            "pool, no spare threads, no session files".to_owned(),
        ];
        let plan = Plan { warm_up: 0, rounds };
        let mut samples = interleave(plan, names.len(), |index| {
            let mut client = match index {
                2 => self.pooled(0)?,
                3 => self.ephemeral(0)?,
                _ => self.raw()?,
            };
            client.one()?;
            client.settle()?;
            client.many(if index == 1 { FEW } else { CROWD })
        })?;
        let plan = Plan { warm_up: 0, rounds: rounds.min(PEER_BURSTS) };
        samples
            .extend(interleave(plan, kinds.len(), |index| self.peer(kinds[index])?.many(CROWD))?);
        names.extend(kinds.iter().map(|kind| kind.name.to_owned()));
        let better = samples[0].median().min(samples[1].median());
        let head = [&format!("{CROWD} at once"), "median ms", "fastest", "slowest", "÷ better raw"];
        let mut table = Table::new(&head.map(AsRef::as_ref));
        for (name, times) in names.iter().zip(&samples) {
            table.rows.push(vec![
                name.clone(),
                format!("{:.0}", times.median()),
                format!("{:.0}", times.percentile(0.0)),
                format!("{:.0}", times.percentile(100.0)),
                format!("{:.3}", times.median() / better),
            ]);
        }
        let name = format!("{CROWD} at once without spare threads, ÷ better raw");
        Ok((table, vec![Target::ratio(&name, samples[2].median() / better, 1.0)]))
    }
}

fn question() -> CallOptions {
    CallOptions { prompt: Prompt::user(QUESTION), ..CallOptions::default() }
}

/// A row for each variant that could not be run.
fn mention(table: &mut Table, missing: Vec<String>) {
    for why in missing {
        step::say(&format!("    not measured: {why}"));
        let mut row = vec![String::from("–"); table.head.len()];
        row[0] = format!("not measured: {why}");
        table.rows.push(row);
    }
}
