//! The daemon ends within half a second of a turn's start, killed or asked to: no turn is lost, and
//! none runs twice.
//!
//! `cargo xtask bench starts` runs the same with more turns.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_testkit::backend::Server;
use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Step, last_user_text};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::daemon::Daemon;
use crate::durability::kill_workers;
use crate::web::{Web, text};

bindery_testkit::on_both! {
    killed_within_half_a_second_of_their_start_turns_run_once,
    asked_to_end_within_half_a_second_of_their_start_turns_run_once,
    killed_with_their_workers_turns_end_and_their_threads_go_on,
    a_compaction_is_found_again_after_a_kill,
    a_review_is_found_again_after_a_kill,
}

bindery_testkit::on_older_codex! {
    killed_within_half_a_second_of_their_start_turns_run_once,
}

/// Turns of one signal on one backend, where nobody says how many.
const STARTS: usize = 40;

/// Turns that are started before the daemon ends.
const BATCH: usize = 10;

/// Batches on one daemon; the first of them finds no worker.
const LIFE: usize = 4;

/// Within this time before the daemon's end the turns of a batch are started.
const SPREAD: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
enum Signal {
    Kill,
    /// Its workers, too.
    KillAll,
    Terminate,
}

async fn killed_within_half_a_second_of_their_start_turns_run_once() {
    run(Signal::Kill).await;
}

async fn asked_to_end_within_half_a_second_of_their_start_turns_run_once() {
    run(Signal::Terminate).await;
}

/// A turn whose worker dies too has run once or not at all, and says so; its thread goes on.
async fn killed_with_their_workers_turns_end_and_their_threads_go_on() {
    let mut daemon = Daemon::with_options(Vec::new(), "", &Options::unrestricted());
    let (mut random, mut threads) = (Random(0xdead), Vec::new());
    for batch in 0..3 {
        let prefix = format!("w{batch}");
        let signal = Signal::KillAll;
        let asked = batch_of(&mut daemon, signal, &prefix, BATCH, &threads, &mut random).await;
        for one in &asked {
            let all = daemon.web.follow(&one.id, 0).await.rest().await;
            let end = &all.last().unwrap().data;
            let gone = end["error"]["code"] == "worker_gone" && end["resumable"] == true;
            assert!(end["state"] == "completed" || gone, "{end}");
            let marker = one.marker.replacen('m', "n", 1);
            daemon.stage.model.push(replies(&marker));
            let next = daemon.say(&one.thread, &format!("do {marker}")).await;
            let all = daemon.web.follow(&next, 0).await.rest().await;
            assert_eq!(text(&all), format!("done {marker}"), "{:?}", all.last());
        }
        let runs = std::fs::read_to_string(daemon.stage.codex.project().join("runs")).unwrap();
        for one in &asked {
            let lines = runs.lines().filter(|line| *line == one.marker).count();
            assert!(lines <= 1, "{}: {lines} runs", one.marker);
        }
        threads = asked.into_iter().map(|asked| asked.thread).collect();
    }
}

async fn a_compaction_is_found_again_after_a_kill() {
    for at_once in [true, false] {
        run_beside_prompts("compact", json!({}), at_once).await;
    }
}

async fn a_review_is_found_again_after_a_kill() {
    for at_once in [true, false] {
        let target = json!({ "target": { "type": "custom", "instructions": "look around" } });
        run_beside_prompts("review", target, at_once).await;
    }
}

/// A turn of another kind, its daemon killed at once or when the model is asked: it runs once.
async fn run_beside_prompts(kind: &str, body: Value, at_once: bool) {
    let held = Reply::new([Step::gate("held"), Step::text("all of it")]).always();
    let mut daemon = Daemon::new(vec![Reply::text("hi").when_user("hello"), held]);
    let thread = daemon.thread(json!({})).await;
    let first = daemon.say(&thread, "hello").await;
    daemon.web.follow(&first, 0).await.rest().await;
    let (status, turn) = daemon.web.post(&format!("/v1/threads/{thread}/{kind}"), body).await;
    assert_eq!(status, 201, "{turn}");
    if !at_once {
        daemon.stage.reached("held").await;
    }
    daemon.kill();
    daemon.again();
    daemon.stage.reached("held").await;
    daemon.stage.model.open("held");
    let turn = turn["id"].as_str().unwrap();
    let all = daemon.web.follow(turn, 0).await.rest().await;
    let end = &all.last().unwrap().data;
    assert_eq!(end["state"], "completed", "{end}");
    assert_eq!(daemon.stage.model.count(), 2);
}

/// A turn that was asked for.
struct Asked {
    marker: String,
    thread: String,
    id: String,
}

async fn run(signal: Signal) {
    let wanted = std::env::var("BINDERY_STARTS").ok().map(|count| count.parse().unwrap());
    let (count, mut faults) = (wanted.unwrap_or(STARTS), Vec::new());
    let mut random = Random(0x5eed ^ count as u64);
    for life in 0..count.div_ceil(BATCH * LIFE) {
        let mut daemon = Daemon::with_options(Vec::new(), "", &Options::unrestricted());
        let mut threads = Vec::new();
        let left = (count - life * BATCH * LIFE).min(BATCH * LIFE);
        for batch in 0..left.div_ceil(BATCH) {
            let size = (left - batch * BATCH).min(BATCH);
            let prefix = format!("{life}x{batch}");
            let asked = batch_of(&mut daemon, signal, &prefix, size, &threads, &mut random).await;
            faults.extend(faults_of(&daemon, &asked).await);
            threads = asked.into_iter().map(|asked| asked.thread).collect();
        }
    }
    record(signal, count, &faults);
    assert!(faults.is_empty(), "{} of {count}: {faults:#?}", faults.len());
}

/// Starts turns, half of them in threads that ran before, ends the daemon among them, and starts it
/// again. Who got no answer asks again under the same key.
async fn batch_of(
    daemon: &mut Daemon,
    signal: Signal,
    prefix: &str,
    size: usize,
    known: &[String],
    random: &mut Random,
) -> Vec<Asked> {
    let mut asked = Vec::new();
    for at in 0..size {
        let marker = format!("m{prefix}x{at}.");
        daemon.stage.model.push(replies(&marker));
        let thread = match known.get(at).filter(|_| at % 2 == 0) {
            Some(thread) => thread.clone(),
            None => daemon.thread(json!({})).await,
        };
        asked.push(Asked { marker, thread, id: String::new() });
    }
    let end = Instant::now() + SPREAD + Duration::from_millis(20);
    let mut tasks = Vec::new();
    for one in &asked {
        let before = Duration::from_micros(random.below(SPREAD.as_micros() as u64));
        let (web, path) = (daemon.web.clone(), format!("/v1/threads/{}/turns", one.thread));
        let marker = one.marker.clone();
        tasks.push(tokio::spawn(async move {
            sleep_until(end - before).await;
            start(&web, &path, &marker).await
        }));
    }
    sleep_until(end).await;
    match signal {
        Signal::Kill => daemon.kill(),
        Signal::KillAll => {
            daemon.kill();
            kill_workers(daemon);
        }
        Signal::Terminate => assert_eq!(daemon.terminate(), Some(0)),
    }
    daemon.again();
    for (one, task) in asked.iter_mut().zip(tasks) {
        let path = format!("/v1/threads/{}/turns", one.thread);
        let id = match task.await.unwrap() {
            Some(id) => id,
            None => start(&daemon.web, &path, &one.marker).await.expect("a daemon that lives"),
        };
        one.id = id;
    }
    asked
}

/// The name of the turn, if the daemon has said it.
async fn start(web: &Web, path: &str, marker: &str) -> Option<String> {
    let body = json!({ "input": format!("do {marker}") });
    let (status, turn) = web.try_post(path, &body, &[("idempotency-key", marker)]).await?;
    if status == 503 {
        return None;
    }
    assert!(status == 201 || status == 200, "{status} {turn}");
    Some(turn["id"].as_str().unwrap().to_owned())
}

/// A command that leaves a line, then an answer; as often as the model is asked.
fn replies(marker: &str) -> [Reply; 2] {
    let command = format!("echo {marker} >> runs");
    [
        Reply::text(&format!("done {marker}")).when_user(marker).when_after_tool(true).always(),
        Reply::new([Step::exec(&command, &format!("c-{marker}"))]).when_user(marker).always(),
    ]
}

/// What is wrong with the turns of a batch, a line each.
async fn faults_of(daemon: &Daemon, asked: &[Asked]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut ends = Vec::new();
    for one in asked {
        let all = daemon.web.follow(&one.id, 0).await.rest().await;
        ends.push((all.last().map(|last| last.data.clone()).unwrap_or_default(), text(&all)));
    }
    let runs = std::fs::read_to_string(daemon.stage.codex.project().join("runs"));
    let runs = runs.unwrap_or_default();
    let requests = requests(&daemon.stage.model.bodies());
    for (one, (end, said)) in asked.iter().zip(ends) {
        let lines = runs.lines().filter(|line| *line == one.marker).count();
        let asked = requests.get(&one.marker).copied().unwrap_or_default();
        let whole = end["state"] == "completed" && said == format!("done {}", one.marker);
        if !whole || lines != 1 || asked != (1, 1) {
            let marker = &one.marker;
            faults.push(format!("{marker}: {lines} runs, {asked:?} requests, `{said}`, {end}"));
        }
    }
    faults
}

/// How often the model was asked for each marker, before and after its command.
fn requests(bodies: &[Value]) -> BTreeMap<String, (usize, usize)> {
    let mut counts = BTreeMap::<_, (usize, usize)>::new();
    for body in bodies {
        let user = last_user_text(body);
        let Some(marker) = user.split_whitespace().last() else { continue };
        let (first, second) = counts.entry(marker.to_owned()).or_default();
        let output = format!("c-{marker}");
        let items = body["input"].as_array().into_iter().flatten();
        match items.into_iter().any(|item| is_output(item, &output)) {
            true => *second += 1,
            false => *first += 1,
        }
    }
    counts
}

fn is_output(item: &Value, call: &str) -> bool {
    item["type"] == "function_call_output" && item["call_id"] == call
}

/// Adds a row to the table that the bench shows.
fn record(signal: Signal, count: usize, faults: &[String]) {
    let Some(path) = std::env::var_os("BINDERY_STARTS_TABLE") else { return };
    let server = Server::current();
    let row = format!("{server:?}\t{signal:?}\t{count}\t{}\n", faults.len());
    let file = std::fs::File::options().create(true).append(true).open(path);
    std::io::Write::write_all(&mut file.unwrap(), row.as_bytes()).unwrap();
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
