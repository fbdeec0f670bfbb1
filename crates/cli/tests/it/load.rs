//! Many turns, many readers, and workers that die: nothing is lost, doubled or kept.
//!
//! The daemon is a process of its own and its workers are others, so that its memory is its alone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use bindery_testkit::app_server;
use bindery_testkit::app_server::crowd::Part;
use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::daemon::{announced, end_workers, workers};
use crate::stage::HANG;
use crate::web::{Heard, Web};

const TENANTS: usize = 4;
const TURNS: usize = 50;
const READERS: usize = 5;
const SAY: usize = 20;

/// Turns of a tenant at a time where there are few.
const AT_ONCE: usize = 2;

/// Turns of a round where there are few at a time.
const TRICKLE: usize = 240;

/// Bytes that may stay of a turn, once all is warm. The allocator's own unrest is less than half of
/// it; a turn that is not forgotten is twice as much.
const MOST_KEPT: i64 = 4 * 1024;

/// KB by which the memory may grow after the second round: peaks differ from round to round by a
/// third of it, and one reader in three that is not forgotten is more.
const MOST_GROWTH: i64 = 16 * 1024;

/// A daemon whose workers say what their prompts tell them.
struct Daemon {
    child: Child,
    web: Web,
    folder: TempDir,
}

impl Daemon {
    fn start() -> Self {
        let folder = TempDir::with_prefix("bindery-load-").unwrap();
        let worker = folder.path().join("codex");
        let program = app_server::program().display();
        std::fs::write(&worker, format!("#!/bin/sh\nexec '{program}' --crowd \"$@\"\n")).unwrap();
        std::fs::set_permissions(&worker, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = bindery(&folder);
        command.arg("serve").arg("--data").arg(folder.path().join("data"));
        command.arg("--codex").arg(worker).env("BINDERY_LOG", "warn,bindery_daemon=error");
        let (child, web) = announced(command);
        Self { child, web, folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Another tenant, with room for all its turns.
    fn user(&self, number: usize) -> Web {
        let file = self.folder.path().join("tenant.toml");
        let limits = format!("[limits]\nturns = {TURNS}\nrequests_per_minute = 100000\n");
        std::fs::write(&file, limits).unwrap();
        let mut command = bindery(&self.folder);
        command.args(["tenant", "add", &format!("user-{number}"), "--settings"]).arg(file);
        let output = command.arg("--data").arg(self.data()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.web.with(&String::from_utf8(output.stdout).unwrap())
    }

    /// Ends one of its workers without a word.
    fn kill_worker(&self, number: usize) {
        let pids = workers(&self.data());
        let pid = pids.get(number % pids.len().max(1)).and_then(|pid| Pid::from_raw(*pid));
        // It may have ended by itself.
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
    }

    /// Its own memory in KB: all of it, and what of that is no file's.
    fn memory(&self) -> Memory {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        Memory { resident: field("VmRSS:"), anonymous: field("RssAnon:") }
    }
}

/// The memory of a process, in KB.
#[derive(Clone, Copy, Debug)]
struct Memory {
    resident: i64,
    /// Without the pages of the program itself.
    anonymous: i64,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        end_workers(&self.data());
    }
}

fn bindery(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindery"));
    command.env_clear().env("HOME", folder.path()).current_dir(folder.path());
    command.envs(std::env::vars().filter(|(name, _)| name == "PATH"));
    command
}

/// Runs a turn with so many readers; gives what each of them read, and how late that was.
async fn turn(user: &Web, part: Part, readers: usize) -> (Part, Vec<Vec<Read>>) {
    let post = async |path: &str, body: Value| {
        let (status, said) = user.post(path, body).await;
        assert!((200..300).contains(&status), "{path}: {status} {said}");
        said["id"].as_str().unwrap().to_owned()
    };
    let thread = post("/v1/threads", json!({})).await;
    let path = format!("/v1/threads/{thread}/turns");
    let turn = post(&path, json!({ "input": part.prompt() })).await;
    let readers = (0..readers).map(|_| read(user, &turn));
    (part, join_all(readers).await)
}

async fn read(user: &Web, turn: &str) -> Vec<Read> {
    let mut events = user.follow(turn, 0).await;
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        let (ages, text) = Part::unstamped(event.data["delta"].as_str().unwrap_or_default());
        all.push(Read { event, text, ages });
    }
    all
}

/// An event as a reader got it.
struct Read {
    event: Heard,
    /// Its text, without the times at which the worker said it.
    text: String,
    /// How long before that was, for each piece.
    ages: Vec<Duration>,
}

/// Checks what the readers of a turn read; true if it ended well.
fn check(part: &Part, readers: &[Vec<Read>]) -> bool {
    let events: Vec<&Heard> = readers[0].iter().map(|read| &read.event).collect();
    for other in readers {
        assert!(other.iter().map(|read| &read.event).eq(events.iter().copied()), "readers differ");
    }
    let numbers: Vec<_> = events.iter().map(|event| event.id).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let ends: Vec<_> = events.iter().filter(|event| event.event == "end").collect();
    assert_eq!((ends.len(), events.last().unwrap().event.as_str()), (1, "end"));
    let deltas = readers[0].iter().filter(|read| read.event.data["type"] == "text-delta");
    let text: String = deltas.map(|read| read.text.as_str()).collect();
    let well = ends[0].data["state"] == "completed";
    if well {
        assert_eq!(text, part.text());
    } else {
        assert!(part.text().starts_with(&text), "{text}");
        assert_eq!(ends[0].data["resumable"], true, "{}", ends[0].data);
    }
    well
}

/// Does something while workers die.
async fn while_workers_die<T>(daemon: &Daemon, first: usize, work: impl Future<Output = T>) -> T {
    let over = CancellationToken::new();
    let killing = over.run_until_cancelled(async {
        for (number, pause) in (first..).zip((0..6).cycle()) {
            sleep(Duration::from_millis(300 + 170 * pause)).await;
            daemon.kill_worker(number);
        }
    });
    let working = async {
        let done = work.await;
        over.cancel();
        done
    };
    tokio::join!(working, killing).0
}

/// All turns at once, while workers die; gives how long each piece of text took from the worker to
/// each reader, and how many turns ended well.
async fn wave(daemon: &Daemon, users: &[Web], wave: usize) -> (Vec<Duration>, usize) {
    let part = |user, turn| {
        let tag = format!("w{wave}u{user}t{turn}");
        Part { tag, say: SAY, pause: 20, stamp: true, ..Part::default() }
    };
    let turns = users.iter().enumerate().flat_map(|(number, user)| {
        (0..TURNS).map(move |count| turn(user, part(number, count), READERS))
    });
    let done = while_workers_die(daemon, wave, join_all(turns)).await;
    let well = done.iter().filter(|(part, readers)| check(part, readers)).count();
    let reads = done.into_iter().flat_map(|(_, readers)| readers).flatten();
    (reads.flat_map(|read| read.ages).collect(), well)
}

/// So many turns of each tenant, few at a time, while workers die.
async fn trickle(daemon: &Daemon, users: &[Web], turns: usize) {
    let lines = users.iter().flat_map(|user| (0..AT_ONCE).map(move |_| user));
    let lines = lines.map(|user| async move {
        for count in 0..turns / AT_ONCE {
            // As much text as an answer has: what is kept of one shows.
            let part = Part { tag: format!("{count:0>200}"), say: SAY, ..Part::default() };
            let (part, readers) = turn(user, part, 2).await;
            check(&part, &readers);
        }
    });
    while_workers_die(daemon, 0, join_all(lines)).await;
}

/// How often this is done, unless somebody wants to know more.
fn rounds(usual: usize) -> usize {
    let told = std::env::var("BINDERY_LOAD_ROUNDS").ok();
    told.and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
}

fn stage() -> (Daemon, Vec<Web>) {
    let daemon = Daemon::start();
    let users = (0..TENANTS).map(|number| daemon.user(number)).collect();
    (daemon, users)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_when_many_turns_run_and_workers_die() {
    let (daemon, users) = stage();
    let (mut delays, mut well, mut memory) = (Vec::new(), 0, Vec::new());
    for number in 0..rounds(3) {
        let ran = timeout(HANG, wave(&daemon, &users, number)).await.expect("it hangs");
        delays.extend(ran.0);
        well += ran.1;
        memory.push(daemon.memory().resident);
    }
    delays.sort();
    let at = |percent: usize| delays[(delays.len() - 1) * percent / 100];
    let (turns, readers) = (TENANTS * TURNS, TENANTS * TURNS * READERS);
    eprintln!(
        "{well} of {} turns ended well, {turns} at once with {readers} readers; from the worker to \
         a reader a piece of text took {:?} (p50), {:?} (p99); RSS {memory:?} KB",
        memory.len() * turns,
        at(50),
        at(99)
    );
    assert!(well > 0);
    let grown = memory[memory.len() - 1] - memory[1];
    assert!(grown <= MOST_GROWTH, "RSS grows: {memory:?} KB");
}

/// Few turns at a time leave little free memory behind, in which a leak could hide.
#[tokio::test(flavor = "multi_thread")]
async fn memory_stays_as_it_is_from_turn_to_turn() {
    let (daemon, users) = stage();
    let mut memory = Vec::new();
    for _ in 0..rounds(4) {
        let ran = trickle(&daemon, &users, TRICKLE / TENANTS);
        timeout(2 * HANG, ran).await.expect("it hangs");
        memory.push(daemon.memory().anonymous);
    }
    eprintln!("{TRICKLE} turns a round, {} at a time: {memory:?} KB", TENANTS * AT_ONCE);
    // What is kept of turns grows with every round; caches that fill do not.
    let least = memory.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
    let turns = i64::try_from(TRICKLE).unwrap();
    assert!(least * 1024 <= MOST_KEPT * turns, "turns are not forgotten: {memory:?} KB");
}
