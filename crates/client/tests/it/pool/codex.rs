//! The pool over the real Codex.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bindery_client::model::ModelSettings;
use bindery_client::pool::{Pool, PoolSettings, PooledModel, WorkerKey};
use bindery_client::transport::stdio::Launch;
use bindery_core::call::CallOptions;
use bindery_core::ids::ThreadId;
use bindery_core::map::prompt_to_turn::ThreadSource;
use bindery_core::part::Part;
use bindery_core::prompt::Prompt;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::ThreadSettings;
use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::model::{Model, Reply, Step};
use futures_util::future::join_all;

use super::memory::finish;
use crate::server::LONG;
use crate::stage::{heard, launch};
use crate::stdio::{assert_dies, lives};

/// A pool, the Codex it starts, and the model behind that.
struct House {
    pool: Pool,
    key: WorkerKey,
    codex: RealCodex,
    model: Model,
}

impl House {
    fn new(script: Vec<Reply>, settings: PoolSettings) -> Self {
        let model = Model::start(script);
        let codex = RealCodex::with(&model, &Options::unrestricted());
        let (pool, key) = (Pool::new(settings), launch(&codex).into());
        Self { pool, key, codex, model }
    }

    fn user(&self, thread: Option<&ThreadId>) -> PooledModel {
        let cwd = Some(self.codex.project().display().to_string());
        let thread_settings = ThreadSettings { cwd, ..ThreadSettings::default() };
        let mut settings = ModelSettings { thread: thread_settings, ..ModelSettings::default() };
        if let Some(thread) = thread {
            settings.plan.thread = ThreadSource::Given(thread.clone());
        }
        self.pool.model(self.key.clone(), settings)
    }

    /// The session files there are.
    fn sessions(&self) -> usize {
        files(&self.codex.home().join("sessions"))
            + files(&self.codex.home().join("archived_sessions"))
    }

    async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !is(self) {
            assert!(begin.elapsed() < LONG, "never {what}: {:?}", self.pool.stats());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

fn cold() -> PoolSettings {
    PoolSettings { warm: 0, ..PoolSettings::default() }
}

fn says(text: &str) -> CallOptions {
    CallOptions { prompt: Prompt::user(text), ..CallOptions::default() }
}

async fn three_users_on_one_worker_never_see_each_other() {
    let users = ["ann", "bob", "eve"];
    let script = users.map(|user| {
        let step = |part: &str| Step::text(&format!("{user} {part} "));
        let steps = [step("one"), Step::gate(user), step("two"), Step::gate(user), step("three")];
        Reply::new(steps).when_user(user)
    });
    let house = House::new(script.into(), cold());
    let calls = users.map(|user| {
        let model = house.user(None);
        async move { finish(model.stream(&says(user)).await.unwrap()).await }
    });
    let turns = tokio::spawn(join_all(calls));
    for user in users {
        house.model.wait_for_gate(user, 1).await;
    }
    // The second and the third speak before the first goes on.
    for user in ["eve", "bob", "ann", "bob", "ann", "eve"] {
        house.model.open(user);
    }
    let mut threads = Vec::new();
    for (user, (thread, told)) in users.iter().zip(turns.await.unwrap()) {
        assert_eq!(
            told.text(),
            ["one", "two", "three"].map(|part| format!("{user} {part} ")).join("|")
        );
        assert_eq!((told.end(), told.errors().len()), (Unified::Stop, 0));
        threads.push(thread);
    }
    threads.dedup();
    assert_eq!((threads.len(), house.pool.stats().workers), (3, 1));
    assert!(house.model.unanswered().is_empty());
    house.pool.shutdown(LONG).await;
}

async fn a_killed_worker_ends_only_its_turns_and_its_threads_are_resumed() {
    let script = vec![
        Reply::new([Step::begin("half of it"), Step::gate("never")]).when_user("doomed"),
        Reply::new([Step::text("safe "), Step::gate("safe"), Step::text("and sound")])
            .when_user("lucky"),
        Reply::text("back again").when_user("again"),
    ];
    let one_each = PoolSettings { workers: 2, turns_per_worker: 1, ..cold() };
    let house = House::new(script, one_each);
    let doomed = house.user(None).stream(&says("doomed")).await.unwrap();
    let lucky = house.user(None).stream(&says("lucky")).await.unwrap();
    house.model.wait_for_gate("never", 1).await;
    house.model.wait_for_gate("safe", 1).await;
    let process = |thread: &ThreadId| house.pool.worker_for(&house.key, thread).unwrap().process();
    let victim = process(doomed.turn.thread_id()).unwrap();
    assert_ne!(Some(victim), process(lucky.turn.thread_id()));
    kill(victim);
    let (thread, told) = finish(doomed).await;
    assert_eq!((told.end(), told.errors().len()), (Unified::Error, 1));
    assert!(told.errors()[0].to_string().contains("signal 9"), "{:?}", told.errors());
    house.model.open("safe");
    let (_, told) = finish(lucky).await;
    assert_eq!((told.end(), told.text().as_str()), (Unified::Stop, "safe |and sound"));
    house.until("noticed", |house| house.pool.stats().workers == 1).await;
    let again = house.user(Some(&thread)).stream(&says("again")).await.unwrap();
    let (same, told) = finish(again).await;
    assert_eq!((same, told.text().as_str()), (thread, "back again"));
    let last = house.model.bodies().pop().unwrap();
    assert!(heard(&last).iter().any(|line| line.contains("doomed")), "{:?}", heard(&last));
    assert_eq!(house.pool.stats().restarts, 1);
    house.pool.shutdown(LONG).await;
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

async fn spare_threads_serve_new_conversations_and_leave_no_trace() {
    let warm_idle = Duration::from_secs(3);
    let house = House::new(
        vec![Reply::text("hello").always()],
        PoolSettings { warm: 2, warm_idle, ..PoolSettings::default() },
    );
    let model = house.user(None);
    model.prepare(&says("hi")).await.unwrap();
    assert_eq!(house.pool.stats().warm, 2);
    let (first, second) = (says("one"), says("two"));
    let (first, second) = tokio::join!(model.stream(&first), model.stream(&second));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(house.pool.stats().threads, 2);
    let (first, second) = tokio::join!(finish(first), finish(second));
    assert_ne!(first.0, second.0);
    assert_eq!((first.1.text().as_str(), second.1.text().as_str()), ("hello", "hello"));
    house.until("refilled", |house| house.pool.stats().warm == 2).await;
    // Asking for more spares does not start any that are there.
    model.prepare(&says("hi")).await.unwrap();
    // They are renewed when they get old; the old ones are deleted.
    tokio::time::sleep(warm_idle + Duration::from_secs(2)).await;
    house.until("renewed", |house| house.pool.stats().warm == 2).await;
    let server = house.pool.worker_for(&house.key, &first.0).unwrap();
    let empty = serde_json::Map::new();
    let loaded: serde_json::Value = server.request("thread/loaded/list", &empty).await.unwrap();
    assert!(loaded["data"].as_array().unwrap().len() <= 5, "{loaded}");
    house.pool.shutdown(LONG).await;
    assert_eq!(house.sessions(), 2);
}

async fn an_idle_thread_is_unsubscribed_and_heard_again_after_it() {
    let house = House::new(
        vec![Reply::text("hello").always()],
        PoolSettings { thread_idle: Duration::from_millis(300), ..cold() },
    );
    let (thread, _) = finish(house.user(None).stream(&says("one")).await.unwrap()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let call = house.user(Some(&thread)).stream(&says("two")).await.unwrap();
    // It was resumed; Codex would have run the turn of an unsubscribed thread in silence.
    assert!(call.opened.is_some());
    let (same, told) = finish(call).await;
    assert_eq!((same, told.text().as_str()), (thread, "hello"));
    house.pool.shutdown(LONG).await;
}

async fn a_thread_in_another_process_is_said_to_be_held() {
    let house = House::new(vec![Reply::text("hello").always()], cold());
    let (thread, _) = finish(house.user(None).stream(&says("one")).await.unwrap()).await;
    let other = Pool::new(cold());
    let mut settings = ModelSettings::default();
    settings.plan.thread = ThreadSource::Given(thread);
    let model = other.model(house.key.clone(), settings);
    assert_eq!(model.stream(&says("two")).await.unwrap_err().code(), "thread_held");
    house.pool.shutdown(LONG).await;
    assert_eq!(finish(model.stream(&says("two")).await.unwrap()).await.1.text(), "hello");
    other.shutdown(LONG).await;
}

#[tokio::test]
async fn a_missing_program_is_told_to_everybody_who_waits() {
    let pool = Pool::new(cold());
    let model = pool.model(Launch::new("/no/such/codex"), ModelSettings::default());
    let hi = says("hi");
    let calls = (0..3).map(|_| async { model.stream(&hi).await.map(drop).unwrap_err() });
    for error in join_all(calls).await {
        assert_eq!(error.code(), "spawn", "{error}");
        assert_eq!(error.to_string(), "cannot start `/no/such/codex`");
        assert!(error.hint().is_some());
    }
}

/// Tells a copy of this test program to be the host that is killed, and where to write.
const ROLE: &str = "BINDERY_TEST_POOL_REPORT";

const WORKERS: usize = 3;

#[tokio::test]
async fn when_our_own_process_is_killed_no_worker_remains() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("processes");
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pool::codex::host_until_killed"])
        .env(ROLE, &report)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while !report.exists() {
        assert!(begin.elapsed() < LONG, "the host did not start its workers");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let text = std::fs::read_to_string(&report).unwrap();
    let processes: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(processes.len(), WORKERS);
    assert!(processes.iter().all(|&process| lives(process)));
    host.kill().unwrap();
    host.wait().unwrap();
    for process in processes {
        assert_dies(process).await;
    }
}

/// The other half of the test above, which runs it in a process of its own: workers mid-turn.
#[tokio::test]
async fn host_until_killed() {
    let Some(report) = std::env::var_os(ROLE).map(PathBuf::from) else { return };
    let script = vec![Reply::new([Step::begin("so far"), Step::gate("never")]).always()];
    let settings = PoolSettings { workers: WORKERS, turns_per_worker: 1, ..cold() };
    let house = House::new(script, settings);
    let (model, go) = (house.user(None), says("go"));
    let calls = join_all((0..WORKERS).map(|_| async { model.stream(&go).await.unwrap() }));
    let mut turns: Vec<_> = calls.await.into_iter().map(|call| call.turn).collect();
    house.model.wait_for_gate("never", WORKERS).await;
    let process = |thread| house.pool.worker_for(&house.key, thread).unwrap().process().unwrap();
    let lines = turns.iter().map(|turn| process(turn.thread_id()).to_string());
    let lines = lines.collect::<Vec<_>>().join("\n");
    let draft = report.with_extension("draft");
    std::fs::write(&draft, lines).unwrap();
    std::fs::rename(&draft, &report).unwrap();
    while !matches!(turns[0].next().await, None | Some(Part::Finish { .. })) {}
}

crate::backend::on_both! {
    three_users_on_one_worker_never_see_each_other,
    a_killed_worker_ends_only_its_turns_and_its_threads_are_resumed,
    spare_threads_serve_new_conversations_and_leave_no_trace,
    an_idle_thread_is_unsubscribed_and_heard_again_after_it,
    a_thread_in_another_process_is_said_to_be_held,
}
