//! The daemon: how soon it is there, what it weighs, and what a call through it costs beside the
//! client called in process. A scripted app-server stands in for Codex, so that only we are slow.

mod acp;

mod delay;

mod peer;

mod web;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bindery_client::model::ModelSettings;
use bindery_client::pool::{Pool, PoolSettings, PooledModel};
use bindery_client::transport::stdio::Launch;
use bindery_core::call::CallOptions;
use bindery_core::prompt::Prompt;
use bindery_testkit::app_server::crowd::Part;
use bindery_testkit::codex::{Options, RealCodex};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::peer::{Bare, Peer};
use self::web::{Called, Web};
use super::report::{Report, Table, Target};
use super::samples::{Plan, Samples, interleave};
use super::turn::QUESTION;
use super::turn::model::{LENGTH, ModelProcess, PIECE, PIECES};
use super::{Bench, Setup, cpu, map, memory};
use crate::need;
pub use acp::serve as serve_acp;

/// The bench as the list has it.
pub const BENCH: Bench = Bench {
    name: "serve",
    about: "the daemon: start, memory, what HTTP and SSE add to a call, parts per CPU second",
    run,
};

/// Milliseconds from start to ready.
const READY: f64 = 50.0;

/// Megabytes when nothing runs.
const IDLE: f64 = 15.0;

/// Milliseconds that HTTP and SSE add to a call.
const ADDED: f64 = 0.5;

/// Parts that one CPU second must be enough for.
const PACE: f64 = 50_000.0;

/// Pieces of text of a short one.
const SHORT: usize = 40;

fn run(setup: &Setup) -> anyhow::Result<Report> {
    let bindery = map::build(&setup.root)?;
    let folder = setup.root.join("target/bindery-bench/serve");
    fs::create_dir_all(&folder)?;
    let rounds = setup.rounds.unwrap_or(101);
    let mut ours = ours(&bindery, &folder, rounds)?;
    let peer = need::path(&setup.root, &peer::NEED)?;
    let theirs = theirs(&peer, &folder.join("home"), rounds)?;
    ours.title = format!("The daemon ({rounds} rounds)");
    ours.tables.extend(theirs);
    Ok(ours)
}

fn ours(bindery: &Path, folder: &Path, rounds: usize) -> anyhow::Result<Report> {
    let codex = stand_in(folder)?;
    let starts = starts(rounds, || {
        // The engine needs nobody to say its version.
        Ok(Daemon::start(bindery, &["--backend", "engine"])?.took)
    })?;
    let daemon = Daemon::start(bindery, &["--codex", &codex.display().to_string()])?;
    let idle = memory::resident(daemon.child.id())?;
    let mut web = Web::connect(&daemon.url, &daemon.token)?;
    let own = Own::start(&codex, folder)?;
    let (body, options) = (body(SHORT, folder), question(SHORT));
    let times = interleave(Plan { warm_up: 10, rounds }, 2, |variant| match variant {
        0 => own.call(&options),
        _ => Ok(web.call(&body)?.time),
    })?;
    let delays = delay::measure(&daemon.url, &daemon.token, folder)?;
    let call = daemon.pace(|| web.call(&self::body(PIECES, folder)))?;
    let turn = log_pace(bindery)?;
    let mut report = report(&starts, idle, &times, [call, turn]);
    report.tables.push(delay::table(&delays));
    Ok(report)
}

/// The pace of a turn's log, kept before it is shown, to one reader. The worker is the engine: one
/// that outlives the daemon is reached in another way than a stand-in for Codex can be.
fn log_pace(bindery: &Path) -> anyhow::Result<f64> {
    let model = ModelProcess::start()?;
    let home = RealCodex::on(model.base_url(), &Options::unrestricted());
    let daemon = Daemon::start_in(bindery, &["--backend", "engine"], home.env())?;
    let mut web = Web::connect(&daemon.url, &daemon.token)?;
    // The first one starts the worker.
    turn(&mut web, QUESTION)?;
    daemon.pace(|| turn(&mut web, LENGTH))
}

/// A turn of a new thread, read by one reader as it comes.
fn turn(web: &mut Web, input: &str) -> anyhow::Result<Called> {
    let id = |made: &Value| made["id"].as_str().map(str::to_owned).context("it has no id");
    let thread = id(&web.ask("/v1/threads", &json!({}))?)?;
    let turn = web.ask(&format!("/v1/threads/{thread}/turns"), &json!({ "input": input }))?;
    web.read_all("GET", &format!("/v1/turns/{}/events", id(&turn)?), None)
}

/// The same of `sandbox-agent`.
fn theirs(program: &Path, home: &Path, rounds: usize) -> anyhow::Result<Vec<Table>> {
    let starts = starts(rounds, || Ok(Peer::start(program, home)?.took))?;
    let peer = Peer::start(program, home)?;
    let idle = peer.megabytes()?;
    let (mut talk, mut bare) = (peer.converse()?, Bare::start()?);
    let times = interleave(Plan { warm_up: 10, rounds }, 2, |variant| match variant {
        0 => bare.prompt(SHORT),
        _ => talk.prompt(SHORT),
    })?;
    let pace = peer.pace(&mut talk, PIECES)?;
    let mut table = Table::of_times();
    table.times("`sandbox-agent`, start to ready", &starts);
    table.times("its agent on a bare pipe, a prompt", &times[0]);
    table.times("the same through `sandbox-agent`", &times[1]);
    let mut sizes = Table::new(&["`sandbox-agent`", ""]);
    sizes.rows.push(vec!["idle MB".to_owned(), format!("{idle:.1}")]);
    sizes.rows.push(vec!["pieces a CPU second".to_owned(), format!("{pace:.0}")]);
    Ok(vec![table, sizes])
}

fn starts(
    rounds: usize,
    start: impl FnMut() -> anyhow::Result<Duration>,
) -> anyhow::Result<Samples> {
    let times: Vec<Duration> =
        std::iter::repeat_with(start).take(rounds.min(21)).collect::<Result<_, _>>()?;
    Samples::from_times(&times)
}

/// A program that can stand where Codex would.
fn stand_in(folder: &Path) -> anyhow::Result<PathBuf> {
    let program = bindery_testkit::app_server::program();
    let path = folder.join("codex");
    fs::write(&path, format!("#!/bin/sh\nexec '{}' --crowd\n", program.display()))?;
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(path)
}

/// A daemon that ends with this.
struct Daemon {
    child: Child,
    url: String,
    token: String,
    took: Duration,
}

impl Daemon {
    fn start(bindery: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        Self::start_in(bindery, arguments, Vec::new())
    }

    fn start_in(
        bindery: &Path,
        arguments: &[&str],
        environment: Vec<(String, String)>,
    ) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let mut command = Command::new(bindery);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--exit-with-parent", "--ephemeral"])
            .arg("--announce")
            .args(arguments)
            .envs(environment)
            .env("BINDERY_LOG", "error")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start `bindery serve`")?;
        let mut line = String::new();
        let output = child.stdout.take().context("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let took = begun.elapsed();
        let told: Value = serde_json::from_str(&line).context("it announced nothing")?;
        let word = |name: &str| told[name].as_str().map(str::to_owned).context("not announced");
        Ok(Self { url: word("url")?, token: word("token")?, child, took })
    }

    /// How many pieces of a long answer a CPU second of its is enough for.
    fn pace(&self, answer: impl FnOnce() -> anyhow::Result<Called>) -> anyhow::Result<f64> {
        let before = cpu::live_threads(self.child.id())?;
        let answer = answer()?;
        let spent = cpu::live_threads(self.child.id())?.saturating_sub(before);
        let pieces = answer.count(PIECE);
        ensure!(pieces == PIECES, "{pieces} pieces came instead of {PIECES}");
        Ok(pieces as f64 / spent.as_secs_f64())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The client, called in process.
struct Own {
    model: PooledModel,
    runtime: Runtime,
}

impl Own {
    fn start(codex: &Path, folder: &Path) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let settings = PoolSettings { workers: 1, ..PoolSettings::default() };
        let pool = runtime.block_on(async { Pool::new(settings) });
        let mut launch = Launch::new(codex);
        launch.cwd = Some(folder.to_owned());
        Ok(Self { model: pool.model(launch, ModelSettings::default()), runtime })
    }

    fn call(&self, options: &CallOptions) -> anyhow::Result<Duration> {
        self.runtime.block_on(async {
            let begun = Instant::now();
            let mut turn = self.model.stream(options).await?.turn;
            while turn.next().await.is_some() {}
            Ok(begun.elapsed())
        })
    }
}

fn piece(say: usize) -> Part {
    Part { tag: "piece".to_owned(), say, ..Part::default() }
}

fn question(say: usize) -> CallOptions {
    CallOptions { prompt: Prompt::user(piece(say).prompt()), ..CallOptions::default() }
}

fn body(say: usize, folder: &Path) -> Value {
    asking(&piece(say), folder)
}

fn asking(part: &Part, folder: &Path) -> Value {
    let text = part.prompt();
    let prompt = json!([{ "role": "user", "content": [{ "type": "text", "text": text }] }]);
    json!({
        "specification": "v3",
        "options": { "prompt": prompt },
        "settings": { "thread": { "cwd": folder.display().to_string() } },
    })
}

fn report(starts: &Samples, idle: f64, times: &[Samples], paces: [f64; 2]) -> Report {
    let mut table = Table::of_times();
    table.times("start to ready", starts);
    table.times("a call, in process", &times[0]);
    table.times("a call, HTTP and SSE", &times[1]);
    let [call, turn] = paces;
    let mut sizes = Table::new(&["", ""]);
    sizes.rows.push(vec!["idle MB".to_owned(), format!("{idle:.1}")]);
    sizes.rows.push(vec!["pieces a CPU second, a call".to_owned(), format!("{call:.0}")]);
    sizes.rows.push(vec!["pieces a CPU second, a turn's log".to_owned(), format!("{turn:.0}")]);
    let added = times[1].median() - times[0].median();
    let budget = |pace: f64| PACE / pace * 1000.0;
    let targets = vec![
        Target::milliseconds("start to ready", starts.median(), READY),
        Target::megabytes("idle memory", idle, IDLE),
        Target::milliseconds("added by HTTP and SSE", added, ADDED),
        Target::milliseconds("CPU time for 50,000 pieces of a call", budget(call), 1000.0),
        Target::milliseconds("CPU time for 50,000 pieces of a turn", budget(turn), 1000.0),
    ];
    Report { title: String::new(), tables: vec![table, sizes], targets }
}
