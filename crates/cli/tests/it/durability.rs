//! Turns end, and are told truly, although daemons, workers and disks fail them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use bindery_testkit::backend::Server;
use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Step, Usage};
use bindery_testkit::skipped::report_skipped;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::daemon::{Daemon, announced, end_workers, workers};
use crate::stage::{HANG, Stage};
use crate::web::{Heard, Web, text};

bindery_testkit::on_both! {
    a_deadline_that_passes_while_the_daemon_is_down_means_no,
    workers_that_die_again_and_again_make_turns_wait,
    a_turn_that_waits_for_a_worker_can_be_stopped,
    a_turn_that_many_stop_at_once_ends_once,
    the_tokens_of_a_turn_are_those_of_all_its_steps,
    the_tokens_of_a_turn_are_all_counted_when_the_daemon_ends_in_it,
    a_turn_that_a_full_disk_holds_goes_on_when_there_is_room,
    a_turn_that_a_full_disk_holds_can_be_stopped,
    a_turn_that_a_full_disk_holds_outlives_a_graceful_stop,
}

fn is(kind: &str) -> impl Fn(&Heard) -> bool {
    move |heard| heard.event == kind
}

/// The question that a turn asks next after these events.
async fn asked(web: &Web, turn: &str, after: u64) -> (String, u64) {
    let seen = web.follow(turn, after).await.until(is("interrupt")).await;
    let last = seen.last().unwrap();
    (last.data["token"].as_str().unwrap().to_owned(), last.id)
}

async fn allow(web: &Web, token: &str) -> (u16, Value) {
    let yes = json!({ "kind": "decision", "decision": "accept" });
    web.post(&format!("/v1/interrupts/{token}/answer"), yes).await
}

async fn a_deadline_that_passes_while_the_daemon_is_down_means_no() {
    let script = vec![
        Reply::text("fine").when_output_of("c1"),
        Reply::new([Step::exec("echo ran > ran", "c1")]),
    ];
    let mut daemon = Daemon::with(script, "[turns]\nanswer_seconds = 1");
    let thread = daemon.careful().await;
    let turn = daemon.say(&thread, "go").await;
    let (token, _) = asked(&daemon.web, &turn, 0).await;
    daemon.kill();
    wait_for_a_second().await;
    daemon.again();
    let all = daemon.web.follow(&turn, 0).await.rest().await;
    assert_eq!(all.last().unwrap().data["state"], "completed");
    assert_eq!(text(&all), "fine");
    assert!(!daemon.stage.codex.project().join("ran").exists());
    let (status, late) = allow(&daemon.web, &token).await;
    assert_eq!((status, &late["code"]), (409, &json!("interrupt_expired")));
}

/// The shortest deadline of a question passes; there is nobody who could tell.
async fn wait_for_a_second() {
    let begin = SystemTime::now();
    while begin.elapsed().unwrap() < Duration::from_millis(1100) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A daemon whose worker has died so many times soon after its start.
async fn bereft(deaths: usize) -> (Daemon, String) {
    let held = Reply::new([Step::gate("held"), Step::text("never")]).when_user("die").always();
    let daemon = Daemon::new(vec![held, Reply::text("fine").always()]);
    let thread = daemon.thread(json!({})).await;
    for death in 1..=deaths {
        let turn = daemon.say(&thread, "die").await;
        let begun = daemon.stage.model.wait_for_gate("held", death);
        tokio::time::timeout(HANG, begun).await.expect("the turn does not begin");
        kill_workers(&daemon);
        let all = daemon.web.follow(&turn, 0).await.rest().await;
        assert_eq!(all.last().unwrap().data["error"]["code"], "worker_gone", "{all:#?}");
    }
    (daemon, thread)
}

pub(crate) fn kill_workers(daemon: &Daemon) {
    for worker in daemon.workers() {
        // One that is gone already cannot be killed.
        let _ = kill_process(Pid::from_raw(worker).unwrap(), Signal::KILL);
    }
}

async fn workers_that_die_again_and_again_make_turns_wait() {
    let (daemon, thread) = bereft(3).await;
    let mut turns = vec![daemon.say(&thread, "live").await];
    for _ in 0..3 {
        let other = daemon.thread(json!({})).await;
        turns.push(daemon.say(&other, "live").await);
    }
    for turn in turns {
        let all = daemon.web.follow(&turn, 0).await.rest().await;
        assert_eq!(all.last().unwrap().data["state"], "completed", "{all:#?}");
        assert_eq!(text(&all), "fine");
    }
}

async fn a_turn_that_waits_for_a_worker_can_be_stopped() {
    let (daemon, thread) = bereft(4).await;
    let turn = daemon.say(&thread, "live").await;
    let (status, said) = daemon.web.post(&format!("/v1/turns/{turn}/interrupt"), json!({})).await;
    assert_eq!(status, 202, "{said}");
    let all = daemon.web.follow(&turn, 0).await.rest().await;
    assert_eq!(all.last().unwrap().data["state"], "interrupted", "{all:#?}");
    assert_eq!(text(&all), "");
}

/// Stopped while it waits, and just when its turn comes.
async fn a_turn_that_many_stop_at_once_ends_once() {
    let daemon = Daemon::new(vec![Reply::text("fine").always()]);
    let thread = daemon.thread(json!({})).await;
    for round in 0..12 {
        let first = daemon.say(&thread, "first").await;
        let waiting = daemon.say(&thread, "waits").await;
        if round % 2 == 1 {
            daemon.web.follow(&first, 0).await.rest().await;
        }
        let path = format!("/v1/turns/{waiting}/interrupt");
        let stop = || daemon.web.post(&path, json!({}));
        let stopped = tokio::join!(stop(), stop(), stop(), stop());
        for (status, said) in [stopped.0, stopped.1, stopped.2, stopped.3] {
            assert!(status == 202 || said["code"] == "turn_over", "{status} {said}");
        }
        let all = daemon.web.follow(&waiting, 0).await.rest().await;
        let ends = all.iter().filter(|heard| heard.event == "end").count();
        assert_eq!(ends, 1, "{all:#?}");
        daemon.web.follow(&first, 0).await.rest().await;
    }
}

async fn the_tokens_of_a_turn_are_those_of_all_its_steps() {
    count_tokens(false).await;
}

async fn the_tokens_of_a_turn_are_all_counted_when_the_daemon_ends_in_it() {
    count_tokens(true).await;
}

/// Two turns of three requests each, with a question after each of the first two.
async fn count_tokens(restart: bool) {
    let usage = |n: u64| {
        Step::Usage(Usage { input: 100 * n, cached: 10 * n, output: 20 * n, reasoning: 3 * n })
    };
    let run = |call: &str, n: u64| Reply::new([Step::exec("echo ran > ran", call), usage(n)]);
    let say = |n: u64| Reply::new([Step::text("fine"), usage(n)]);
    let script = vec![
        say(3).when_user("one").when_output_of("c2"),
        run("c2", 2).when_user("one").when_output_of("c1"),
        run("c1", 1).when_user("one"),
        say(30).when_user("two").when_output_of("c4"),
        run("c4", 20).when_user("two").when_output_of("c3"),
        run("c3", 10).when_user("two"),
    ];
    let mut daemon = Daemon::new(script);
    let thread = daemon.careful().await;
    for (word, factor) in [("one", 6), ("two", 60)] {
        let turn = daemon.say(&thread, word).await;
        let mut seen = 0;
        for _ in 0..2 {
            let (token, last) = asked(&daemon.web, &turn, seen).await;
            if restart {
                daemon.kill();
                daemon.again();
            }
            assert_eq!(allow(&daemon.web, &token).await.0, 200);
            seen = last;
        }
        daemon.web.follow(&turn, seen).await.rest().await;
        let (_, turn) = daemon.web.get(&format!("/v1/turns/{turn}")).await;
        assert_eq!(turn["state"], "completed", "{turn}");
        let (read, written) = (&turn["usage"]["inputTokens"], &turn["usage"]["outputTokens"]);
        let counts = [&read["total"], &read["cacheRead"], &written["total"], &written["reasoning"]];
        let want = [100, 10, 20, 3].map(|count| json!(count * factor));
        assert_eq!(counts, want.each_ref(), "{turn}");
    }
}

/// A daemon whose data lie on a small disk of their own.
struct SmallDisk {
    child: Child,
    web: Web,
    stage: Stage,
    data: PathBuf,
    folder: tempfile::TempDir,
}

/// Has this command run a daemon whose data lie in this folder.
fn serve_inside(mut command: Command, stage: &Stage, folder: &Path) -> (Child, Web) {
    let serve = stage.bindery(&["serve"]);
    command.arg(serve.get_program()).args(serve.get_args()).env_clear();
    command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(stage.codex.project()).arg("--data").arg(folder.join("data"));
    command.arg("--config").arg(folder.join("bindery.toml"));
    if Server::current() == Server::Engine {
        command.env_remove("BINDERY_CODEX").args(["--backend", "engine"]);
    }
    announced(command)
}

impl SmallDisk {
    /// None where no disk can be mounted.
    fn new(script: Vec<Reply>) -> Option<Self> {
        let stage = Stage::with(script, &Options::default());
        let folder = tempfile::TempDir::with_prefix("bindery-disk-").unwrap();
        let (data, config) = (folder.path().join("data"), folder.path().join("bindery.toml"));
        std::fs::create_dir(&data).unwrap();
        std::fs::write(&config, "[workers]\norphan_seconds = 10\n").unwrap();
        let mount = "mount -t tmpfs -o size=4m,mode=700 tmpfs \"$0\" && exec \"$@\"";
        let unshare = |args: &[&str]| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "--", "sh", "-c", mount]).arg(&data).args(args);
            command
        };
        if !unshare(&["true"]).status().is_ok_and(|status| status.success()) {
            report_skipped("a disk cannot be mounted in a namespace of its own");
            return None;
        }
        let (child, web) = serve_inside(unshare(&[]), &stage, folder.path());
        // As the daemon sees it.
        let seen = format!("/proc/{}/root{}", child.id(), data.display());
        Some(Self { child, web, stage, data: seen.into(), folder })
    }

    /// Asks the daemon to end, and waits. The disk stays as long as its workers do.
    fn terminate(&mut self) -> Option<i32> {
        let workers = workers(&self.data);
        let daemon = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(daemon, Signal::TERM).unwrap();
        let code = self.child.wait().unwrap().code();
        let worker = workers.first().expect("no worker runs");
        self.data =
            format!("/proc/{worker}/root{}", self.folder.path().join("data").display()).into();
        code
    }

    /// Starts it again on the same disk, which a worker of before still has.
    fn again(&mut self) {
        let worker = *workers(&self.data).first().expect("no worker runs");
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--mount=/proc/{worker}/ns/mnt"));
        inside.args(["--", "sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(self.stage.codex.project());
        (self.child, self.web) = serve_inside(inside, &self.stage, self.folder.path());
    }

    /// Fills the disk to its last byte.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.data.join("fill")).unwrap();
        for block in [65_536, 4096, 1] {
            while file.write_all(&vec![0; block]).is_ok() {}
        }
        assert!(std::fs::write(self.data.join("more"), [0; 8192]).is_err(), "there is room");
    }

    fn make_room(&self) {
        std::fs::remove_file(self.data.join("fill")).unwrap();
    }

    /// Starts a turn that says something, and fills the disk before it says more.
    async fn held_turn(&self) -> String {
        let (status, thread) = self.web.post("/v1/threads", json!({})).await;
        assert_eq!(status, 201, "{thread}");
        let path = format!("/v1/threads/{}/turns", thread["id"].as_str().unwrap());
        let (status, turn) = self.web.post(&path, json!({ "input": "go" })).await;
        assert_eq!(status, 201, "{turn}");
        let turn = turn["id"].as_str().unwrap().to_owned();
        let mut events = self.web.follow(&turn, 0).await;
        let is_it = |heard: &Heard| heard.data["delta"] == "first ";
        events.until(is_it).await;
        self.fill();
        self.stage.model.open("more");
        // Whoever reads is told, and so is whoever comes later.
        let held = events.held().await;
        assert_eq!(held["code"], "store_unwritable", "{held}");
        let again = self.web.follow(&turn, 0).await.held().await;
        assert_eq!(again["code"], "store_unwritable", "{again}");
        let (status, ready) = self.web.get("/readyz").await;
        assert_eq!((status, &ready["code"]), (503, &json!("store_unwritable")), "{ready}");
        let (_, row) = self.web.get(&format!("/v1/turns/{turn}")).await;
        assert_eq!(row["state"], "running");
        turn
    }

    async fn until_ready(&self) {
        let begin = Instant::now();
        while self.web.get("/readyz").await.0 != 200 {
            assert!(begin.elapsed() < HANG, "it is never ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        end_workers(&self.data);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A message whose second half is longer than what the disk still takes.
fn long_message() -> Vec<Reply> {
    let message = |text: &str| {
        json!({
            "type": "message", "role": "assistant", "id": "msg_long", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        })
    };
    let edge = |kind: &str, text: &str| Step::Event {
        event: json!({ "type": kind, "output_index": 0, "item": message(text) }),
    };
    let delta = |text: &str| Step::Event {
        event: json!({
            "type": "response.output_text.delta", "item_id": "msg_long", "output_index": 0,
            "content_index": 0, "delta": text,
        }),
    };
    let rest = rest();
    let mut steps = vec![edge("response.output_item.added", ""), delta("first ")];
    steps.push(Step::gate("more"));
    steps.push(delta(&rest));
    steps.push(Step::gate("end"));
    steps.push(edge("response.output_item.done", &format!("first {rest}")));
    vec![Reply::new(steps)]
}

fn rest() -> String {
    "more and ".repeat(20_000)
}

async fn a_turn_that_a_full_disk_holds_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::new(long_message()) else { return };
    let turn = disk.held_turn().await;
    disk.make_room();
    disk.stage.model.open("end");
    let all = disk.web.follow(&turn, 0).await.rest().await;
    assert_eq!(all.last().unwrap().data["state"], "completed");
    assert_eq!(text(&all), format!("first {}", rest()));
    disk.until_ready().await;
}

async fn a_turn_that_a_full_disk_holds_can_be_stopped() {
    let Some(disk) = SmallDisk::new(long_message()) else { return };
    let turn = disk.held_turn().await;
    let (status, said) = disk.web.post(&format!("/v1/turns/{turn}/interrupt"), json!({})).await;
    assert_eq!(status, 202, "{said}");
    // The model is hung up on although nothing can be written.
    disk.stage.model.wait_for_hang_ups(1).await;
    disk.make_room();
    let all = disk.web.follow(&turn, 0).await.rest().await;
    assert_eq!(all.last().unwrap().data["state"], "interrupted");
    disk.until_ready().await;
}

async fn a_turn_that_a_full_disk_holds_outlives_a_graceful_stop() {
    let Some(mut disk) = SmallDisk::new(long_message()) else { return };
    let turn = disk.held_turn().await;
    assert_eq!(disk.terminate(), Some(0));
    disk.make_room();
    disk.again();
    disk.stage.model.open("end");
    let all = disk.web.follow(&turn, 0).await.rest().await;
    assert_eq!(all.last().unwrap().data["state"], "completed", "{}", all.last().unwrap().data);
    assert_eq!(text(&all), format!("first {}", rest()));
    assert_eq!(disk.stage.model.requests().len(), 1, "the model is asked once");
    disk.until_ready().await;
}
