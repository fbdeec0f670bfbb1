//! Hundreds of turns at once on processes that are killed again and again.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bindery_client::app_server::AppServer;
use bindery_client::error::Error;
use bindery_client::pool::{BackOff, Pool, PoolSettings, Spawn, Starter, Stats, WorkerKey};
use bindery_client::transport::stdio::Launch;
use bindery_core::ids::ThreadId;
use bindery_core::usage::Unified;
use bindery_testkit::app_server::crowd::Part;
use bindery_testkit::app_server::program;
use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::memory::{call, finish, settings};
use super::schedule::check;

/// Turns at a time.
const TURNS: usize = 200;

/// How long it goes on, in seconds; five minutes are run by hand.
const SECONDS: &str = "BINDERY_SOAK_SECONDS";

/// Tells a copy of this test program to be the one that is measured.
const ROLE: &str = "BINDERY_TEST_SOAK";

/// In a process of its own, so that its memory is no other test's.
#[test]
fn hundreds_of_turns_on_workers_that_are_killed() {
    program();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pool::soak::soak_alone", "--nocapture"])
        .env(ROLE, "1")
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_alone() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let soak = Arc::new(Soak::new());
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut callers = JoinSet::new();
    for number in 0..TURNS {
        callers.spawn(soak.clone().talk(number, end));
    }
    let warm_up = Duration::from_secs(seconds) / 3;
    let (killed, before) = tokio::join!(soak.kill_until(end), async {
        sleep(warm_up).await;
        resident()
    });
    let after = resident();
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    soak.pool.shutdown(Duration::from_secs(10)).await;
    assert_eq!(soak.pool.stats().turns + soak.pool.stats().workers, 0);
    let counts = soak.counts.each_ref().map(|count| count.load(Ordering::SeqCst));
    eprintln!(
        "{seconds} s: {} turns whole, {} cut, {} refused; {killed} workers killed; \
         RSS {before} KB after warm-up, {after} KB at the end",
        counts[0], counts[1], counts[2]
    );
    assert!(counts[0] > TURNS && killed > 0, "{counts:?}");
    assert!(after < before + before / 4 + 8 * 1024, "RSS grew from {before} to {after} KB");
}

struct Soak {
    pool: Pool,
    key: WorkerKey,
    processes: Arc<Recorded>,
    /// Turns that ended well, turns that were cut, calls that were refused.
    counts: [AtomicUsize; 3],
}

impl Soak {
    fn new() -> Self {
        let processes = Arc::new(Recorded::default());
        let limits = PoolSettings {
            workers: 4,
            turns_per_worker: 40,
            thread_idle: Duration::from_secs(3),
            warm: 2,
            back_off: BackOff { quick: Duration::ZERO, ..BackOff::default() },
            ..PoolSettings::default()
        };
        let pool = Pool::with_starter(limits, processes.clone());
        let mut launch = Launch::new(program());
        launch.args.push("--crowd".into());
        Self { pool, key: launch.into(), processes, counts: Default::default() }
    }

    /// One caller: a turn after the other, now on a new thread, now on the last.
    async fn talk(self: Arc<Self>, caller: usize, end: Instant) {
        let mut thread: Option<ThreadId> = None;
        for round in 0.. {
            if Instant::now() > end {
                return;
            }
            let part = Part {
                tag: format!("c{caller}r{round}"),
                say: (caller * 7 + round) % 24,
                ask: (caller + round) % 3,
                pause: (caller + round) as u64 % 12,
                ..Part::default()
            };
            let resumed = thread.take().filter(|_| round % 3 != 0);
            let model = self.pool.model(self.key.clone(), settings(resumed.as_ref()));
            match model.stream(&call(&part)).await {
                Ok(call) => {
                    let (known, told) = finish(call).await;
                    check(&part, &told);
                    self.count(if told.end() == Unified::Stop { 0 } else { 1 });
                    thread = Some(known);
                }
                Err(Error::Closed { .. } | Error::BackOff { .. } | Error::PoolBusy { .. }) => {
                    self.count(2);
                    sleep(Duration::from_millis(50)).await;
                }
                Err(err) => panic!("{}: {err}", err.code()),
            }
        }
    }

    async fn kill_until(&self, end: Instant) -> usize {
        let mut killed = 0;
        while Instant::now() + Duration::from_secs(1) < end {
            sleep(Duration::from_secs(1)).await;
            let Some(process) = self.processes.oldest() else { continue };
            let process = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
            let sent = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            killed += usize::from(sent.is_ok());
            let Stats { workers, turns, .. } = self.pool.stats();
            assert!(workers <= 4 && turns <= TURNS, "{:?}", self.pool.stats());
        }
        killed
    }

    fn count(&self, which: usize) {
        self.counts[which].fetch_add(1, Ordering::SeqCst);
    }
}

/// Starts processes and remembers their numbers.
#[derive(Default)]
struct Recorded {
    spawn: Spawn,
    processes: Arc<Mutex<Vec<u32>>>,
}

impl Recorded {
    fn oldest(&self) -> Option<u32> {
        let mut processes = self.processes.lock().unwrap();
        (!processes.is_empty()).then(|| processes.remove(0))
    }
}

impl Starter for Recorded {
    fn start(&self, key: &WorkerKey) -> BoxFuture<'static, Result<AppServer, Error>> {
        let (start, processes) = (self.spawn.start(key), self.processes.clone());
        Box::pin(async move {
            let server = start.await?;
            processes.lock().unwrap().extend(server.process());
            Ok(server)
        })
    }
}

/// Our own memory in KB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
