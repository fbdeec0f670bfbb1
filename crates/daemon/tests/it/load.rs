//! Many turns, many readers, and workers that die: nothing is lost, doubled or kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error;
use bindery_client::pool::{Starter, WorkerKey};
use bindery_client::transport::{self, LINE_LIMIT};
use bindery_daemon::tenant::{Limits, TenantSettings};
use bindery_testkit::app_server::crowd::{Crowd, Part};
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::stage::{Events, HANG, Stage, value};

const TENANTS: usize = 4;
const TURNS: usize = 50;
const READERS: usize = 5;
const SAY: usize = 20;
const WAVES: usize = 3;

/// Workers in memory, one home for each tenant, that can be killed.
#[derive(Default)]
struct Workers {
    homes: Mutex<HashMap<WorkerKey, Crowd>>,
    running: Arc<Mutex<Vec<CancellationToken>>>,
}

impl Workers {
    /// Ends the oldest worker without a word.
    fn kill(&self) {
        let mut running = self.running.lock().unwrap();
        if !running.is_empty() {
            running.remove(0).cancel();
        }
    }
}

impl Starter for Workers {
    fn start(&self, key: &WorkerKey) -> BoxFuture<'static, Result<AppServer, Error>> {
        let crowd = self.homes.lock().unwrap().entry(key.clone()).or_default().clone();
        let (kill, running) = (CancellationToken::new(), self.running.clone());
        Box::pin(async move {
            running.lock().unwrap().push(kill.clone());
            let (to, ours_from) = tokio::io::duplex(16 * 1024);
            let (ours_to, from) = tokio::io::duplex(16 * 1024);
            tokio::spawn(async move { kill.run_until_cancelled(crowd.serve(from, to)).await });
            let transport = transport::over(ours_from, ours_to, LINE_LIMIT);
            AppServer::connect(transport, &ConnectOptions::default()).await
        })
    }
}

/// One of the tenants.
struct User {
    token: String,
}

impl User {
    async fn post(&self, stage: &Stage, path: &str, body: &Value) -> Value {
        let request = stage.client.post(format!("{}{path}", stage.url)).bearer_auth(&self.token);
        let request = request.header("content-type", "application/json").body(body.to_string());
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.status());
        value(response).await
    }

    /// Runs a turn with all its readers; gives what each of them read, and how late that was.
    async fn turn(&self, stage: &Stage, part: Part) -> (Part, Vec<Vec<Read>>) {
        let thread = self.post(stage, "/v1/threads", &json!({})).await;
        let path = format!("/v1/threads/{}/turns", thread["id"].as_str().unwrap());
        let turn = self.post(stage, &path, &json!({ "input": part.prompt() })).await;
        let path = format!("/v1/turns/{}/events", turn["id"].as_str().unwrap());
        let readers = (0..READERS).map(|_| self.read(stage, &path));
        (part, join_all(readers).await)
    }

    async fn read(&self, stage: &Stage, path: &str) -> Vec<Read> {
        let request = stage.client.get(format!("{}{path}", stage.url)).bearer_auth(&self.token);
        let mut events = Events::of(request.send().await.unwrap());
        let mut all = Vec::new();
        while let Some(event) = events.next().await {
            let data = event.json();
            let (ages, text) = Part::unstamped(data["delta"].as_str().unwrap_or_default());
            let event = json!({ "id": event.id, "event": event.name, "data": data });
            all.push(Read { event, text, ages });
        }
        all
    }
}

/// An event as a reader got it.
struct Read {
    event: Value,
    /// Its text, without the times at which the worker said it.
    text: String,
    /// How long before that was, for each piece.
    ages: Vec<Duration>,
}

/// Checks what the readers of a turn read; true if it ended well.
fn check(part: &Part, readers: &[Vec<Read>]) -> bool {
    let events: Vec<&Value> = readers[0].iter().map(|read| &read.event).collect();
    for other in readers {
        assert!(other.iter().map(|read| &read.event).eq(events.iter().copied()), "readers differ");
    }
    let numbers: Vec<_> = events.iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let ends: Vec<_> = events.iter().filter(|event| event["event"] == "end").collect();
    assert_eq!((ends.len(), &events.last().unwrap()["event"]), (1, &json!("end")));
    let deltas = readers[0].iter().filter(|read| read.event["data"]["type"] == "text-delta");
    let text: String = deltas.map(|read| read.text.as_str()).collect();
    let well = ends[0]["data"]["state"] == "completed";
    if well {
        assert_eq!(text, part.text());
    } else {
        assert!(part.text().starts_with(&text), "{text}");
        assert_eq!(ends[0]["data"]["resumable"], true, "{}", ends[0]);
    }
    well
}

async fn user(stage: &Stage, root: &std::path::Path, number: usize) -> User {
    let own = root.join(number.to_string());
    std::fs::create_dir_all(&own).unwrap();
    let mut settings = TenantSettings::new(own.clone(), own);
    settings.limits = Limits { turns: TURNS, requests_per_minute: 100_000, ..Limits::default() };
    let tenant = stage.app.tenants.add(&format!("user-{number}"), settings).await.unwrap();
    User { token: stage.app.tenants.token(&tenant, "", false).await.unwrap() }
}

/// All turns at once, while workers die; gives how long each piece of text took from the worker to
/// each reader, and how many turns ended well.
async fn wave(
    stage: &Stage,
    users: &[User],
    workers: &Workers,
    wave: usize,
) -> (Vec<Duration>, usize) {
    let tag = |user, turn| format!("w{wave}u{user}t{turn}");
    let part = |user, turn| {
        let (tag, pause, stamp) = (tag(user, turn), 20, true);
        Part { tag, say: SAY, pause, stamp, ..Part::default() }
    };
    let turns = users.iter().enumerate().flat_map(|(number, user)| {
        (0..TURNS).map(move |turn| user.turn(stage, part(number, turn)))
    });
    let over = CancellationToken::new();
    let killing = over.run_until_cancelled(async {
        for pause in (0..6).cycle() {
            sleep(Duration::from_millis(300 + 170 * pause)).await;
            workers.kill();
        }
    });
    let running = async {
        let done = join_all(turns).await;
        over.cancel();
        done
    };
    let (done, _) = tokio::join!(running, killing);
    let well = done.iter().filter(|(part, readers)| check(part, readers)).count();
    let reads = done.into_iter().flat_map(|(_, readers)| readers).flatten();
    (reads.flat_map(|read| read.ages).collect(), well)
}

/// Our own memory in KB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_when_many_turns_run_and_workers_die() {
    let folder = tempfile::tempdir().unwrap();
    let workers = Arc::new(Workers::default());
    let stage = Stage::on_workers(workers.clone(), folder.path().to_owned()).await;
    let users = join_all((0..TENANTS).map(|number| user(&stage, folder.path(), number))).await;
    let (mut delays, mut well, mut memory) = (Vec::new(), 0, Vec::new());
    for number in 0..WAVES {
        let ran = timeout(HANG, wave(&stage, &users, &workers, number)).await.expect("it hangs");
        delays.extend(ran.0);
        well += ran.1;
        memory.push(resident());
    }
    delays.sort();
    let at = |percent: usize| delays[(delays.len() - 1) * percent / 100];
    let (turns, readers) = (TENANTS * TURNS, TENANTS * TURNS * READERS);
    eprintln!(
        "{well} of {} turns ended well, {turns} at once with {readers} readers; from the worker to \
         a reader a piece of text took {:?} (p50), {:?} (p99); RSS {memory:?} KB",
        WAVES * turns,
        at(50),
        at(99)
    );
    assert!(well > 0);
    assert!(memory[WAVES - 1] <= memory[0] + memory[0] / 2 + 32 * 1024, "RSS grows: {memory:?}");
    stage.end().await;
}
