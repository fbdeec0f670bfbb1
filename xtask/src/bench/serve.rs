//! The daemon: how soon it is there, what it weighs, and what a call through it costs beside the
//! client called in process. A scripted app-server stands in for Codex, so that only we are slow.

mod web;

mod delay;

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
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::web::Web;
use super::report::{Report, Table, Target};
use super::samples::{Plan, Samples, interleave};
use super::{Bench, Setup, cpu, map};

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

/// Pieces of text of the long answer.
const LONG: usize = 100_000;

/// Pieces of text of a short one.
const SHORT: usize = 40;

fn run(setup: &Setup) -> anyhow::Result<Report> {
    let bindery = map::build(&setup.root)?;
    let folder = setup.root.join("target/bindery-bench/serve");
    fs::create_dir_all(&folder)?;
    let codex = stand_in(&folder)?;
    let rounds = setup.rounds.unwrap_or(101);
    let starts = starts(&bindery, rounds.min(21))?;
    let daemon = Daemon::start(&bindery, &["--codex", &codex.display().to_string()])?;
    let idle = daemon.megabytes()?;
    let mut web = Web::connect(&daemon.url, &daemon.token)?;
    let own = Own::start(&codex, &folder)?;
    let (body, options) = (body(SHORT, &folder), question(SHORT));
    let times = interleave(Plan { warm_up: 10, rounds }, 2, |variant| match variant {
        0 => own.call(&options),
        _ => Ok(web.call(&body)?.time),
    })?;
    let delays = delay::measure(&daemon.url, &daemon.token, &folder)?;
    let before = cpu::live_threads(daemon.child.id())?;
    let long = web.call(&self::body(LONG, &folder))?;
    let spent = cpu::live_threads(daemon.child.id())?.saturating_sub(before);
    ensure!(long.parts > LONG, "only {} parts came", long.parts);
    let mut report = report(&starts, idle, &times, long.parts as f64 / spent.as_secs_f64())?;
    report.tables.push(delay::table(&delays));
    Ok(report)
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

fn starts(bindery: &Path, rounds: usize) -> anyhow::Result<Samples> {
    // The engine needs nobody to say its version.
    let start = |_| Ok(Daemon::start(bindery, &["--backend", "engine"])?.took);
    let times: Vec<Duration> = (0..rounds).map(start).collect::<anyhow::Result<_>>()?;
    Samples::from_times(&times)
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
        let begun = Instant::now();
        let mut command = Command::new(bindery);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--exit-with-parent", "--ephemeral"])
            .arg("--announce")
            .args(arguments)
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

    fn megabytes(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kilobytes.context("no memory counts")? / 1024.0)
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

fn report(starts: &Samples, idle: f64, times: &[Samples], pace: f64) -> anyhow::Result<Report> {
    let mut table = Table::of_times();
    table.times("start to ready", starts);
    table.times("a call, in process", &times[0]);
    table.times("a call, HTTP and SSE", &times[1]);
    let added = times[1].median() - times[0].median();
    let budget = format!("CPU time for {PACE} parts ({pace:.0} a second)");
    Ok(Report {
        title: format!("The daemon ({} rounds, {idle:.1} MB idle)", times[0].values().len()),
        tables: vec![table],
        targets: vec![
            Target::milliseconds("start to ready", starts.median(), READY),
            Target { name: "idle memory".to_owned(), value: idle, limit: IDLE, unit: " MB" },
            Target::milliseconds("added by HTTP and SSE", added, ADDED),
            Target::milliseconds(&budget, PACE / pace * 1000.0, 1000.0),
        ],
    })
}
