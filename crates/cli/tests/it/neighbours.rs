//! What one thread or tenant does to a worker, its neighbours do not notice; what it leaves behind
//! is cleared away.
#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Script, Step};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::daemon::Daemon;
use crate::mcp::{no_python, with_toy};
use crate::stage::HANG;

bindery_testkit::on_both! {
    an_idle_thread_is_unloaded_with_its_mcp_server_and_goes_on_later,
    an_archived_thread_is_unloaded_at_once,
    a_worker_over_its_memory_limit_is_replaced_when_its_turns_are_over,
    a_prompt_that_is_too_long_is_refused_and_the_turn_beside_it_ends_well,
}

/// Waits until this holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(HANG, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// The processes below this one that run the small MCP server.
fn servers_below(root: i32) -> usize {
    let mut parents = HashMap::new();
    let mut servers = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
        let mut fields = after.split(' ');
        let (state, parent) = (fields.next(), fields.next().and_then(|word| word.parse().ok()));
        parents.insert(pid, parent.unwrap_or(0));
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if state != Some("Z") && String::from_utf8_lossy(&line).contains("mcp_server.py") {
            servers.push(pid);
        }
    }
    let below = |mut pid: i32| {
        while pid > 1 && pid != root {
            pid = parents.get(&pid).copied().unwrap_or(0);
        }
        pid == root
    };
    servers.into_iter().filter(|pid| below(*pid)).count()
}

/// Runs a turn to its end, which is good.
async fn run(daemon: &Daemon, thread: &str, text: &str) {
    let turn = daemon.say(thread, text).await;
    let events = daemon.web.follow(&turn, 0).await.rest().await;
    assert_eq!(events.last().unwrap().data["state"], "completed", "{:?}", events.last());
}

async fn an_idle_thread_is_unloaded_with_its_mcp_server_and_goes_on_later() {
    if no_python() {
        return;
    }
    let options = with_toy(Options::default(), &[]);
    let settings = "[workers]\nidle_thread_seconds = 1\n";
    let daemon = Daemon::with_options(Script::always("Hi."), settings, &options);
    let threads = [daemon.thread(json!({})).await, daemon.thread(json!({})).await];
    for thread in &threads {
        run(&daemon, thread, "go").await;
    }
    let worker = daemon.workers()[0];
    until("the servers of idle threads end", || servers_below(worker) == 0).await;
    for thread in &threads {
        run(&daemon, thread, "go on").await;
    }
    assert_eq!(daemon.workers(), [worker], "it was the worker that ended");
    let last = daemon.stage.model.bodies().pop().unwrap().to_string();
    assert!(last.contains("go on") && last.contains("Hi."), "the thread has forgotten: {last}");
}

async fn an_archived_thread_is_unloaded_at_once() {
    if no_python() {
        return;
    }
    let options = with_toy(Options::default(), &[]);
    let daemon = Daemon::with_options(Script::always("Hi."), "", &options);
    let thread = daemon.thread(json!({})).await;
    run(&daemon, &thread, "go").await;
    let worker = daemon.workers()[0];
    until("its server runs", || servers_below(worker) > 0).await;
    let (status, _) = daemon.web.post(&format!("/v1/threads/{thread}/archive"), json!({})).await;
    assert_eq!(status, 200);
    until("its server ends", || servers_below(worker) == 0).await;
    let (status, _) = daemon.web.post(&format!("/v1/threads/{thread}/unarchive"), json!({})).await;
    assert_eq!(status, 200);
    run(&daemon, &thread, "go on").await;
}

async fn a_worker_over_its_memory_limit_is_replaced_when_its_turns_are_over() {
    let slow = Reply::new([Step::begin("A"), Step::gate("later"), Step::text("B")]);
    let script = Script::new([slow.when_user("slow"), Reply::text("Hi.").always()]);
    // Less than any worker uses.
    let daemon = Daemon::with(script, "[workers]\nmemory_limit = 1\n");
    let (first, second) = (daemon.thread(json!({})).await, daemon.thread(json!({})).await);
    let slow = daemon.say(&first, "slow").await;
    let mut events = daemon.web.follow(&slow, 0).await;
    events.until(|heard| heard.data["type"] == "text-delta").await;
    let worker = daemon.workers()[0];
    let admin = daemon.web.clone();
    let drained = async {
        loop {
            let (_, lines) = admin.text("/metrics").await;
            if lines.contains("bindery_refused_total{why=\"worker_memory\"}") {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(HANG, drained).await.expect("it is not measured");
    // It waits for the next worker, and is not lost.
    let waiting = daemon.say(&second, "go").await;
    assert_eq!(daemon.workers(), [worker], "a turn ran in it, and it was ended");
    daemon.stage.model.open("later");
    let slow = events.rest().await;
    assert_eq!(slow.last().unwrap().data["state"], "completed");
    let ended = daemon.web.follow(&waiting, 0).await.rest().await;
    assert_eq!(ended.last().unwrap().data["state"], "completed", "{:?}", ended.last());
    until("the worker is replaced", || !daemon.workers().contains(&worker)).await;
    // The thread of the old worker goes on in the new one.
    run(&daemon, &first, "go").await;
}

async fn a_prompt_that_is_too_long_is_refused_and_the_turn_beside_it_ends_well() {
    let slow = Reply::new([Step::begin("A"), Step::gate("later"), Step::text("B")]);
    let script = Script::new([slow.when_user("slow"), Reply::text("Hi.").always()]);
    let daemon = Daemon::new(script);
    let (first, second) = (daemon.thread(json!({})).await, daemon.thread(json!({})).await);
    let slow = daemon.say(&first, "slow").await;
    let mut events = daemon.web.follow(&slow, 0).await;
    events.until(|heard| heard.data["type"] == "text-delta").await;
    let long = "a".repeat((16 << 20) + 1);
    for _ in 0..2 {
        let path = format!("/v1/threads/{second}/turns");
        let (status, problem) = daemon.web.post(&path, json!({ "input": long })).await;
        assert_eq!((status, &problem["code"]), (413, &json!("message_too_long")), "{problem}");
        let path = format!("/v1/turns/{slow}/steer");
        let (status, problem) = daemon.web.post(&path, json!({ "input": long })).await;
        assert_eq!((status, &problem["code"]), (413, &json!("message_too_long")), "{problem}");
    }
    daemon.stage.model.open("later");
    let slow = events.rest().await;
    assert_eq!(slow.last().unwrap().data["state"], "completed", "{:?}", slow.last());
    run(&daemon, &second, "go").await;
}

/// Stands between a daemon and its worker, and cuts their connections. A process of the worker's own
/// group: the daemon speaks to no other.
struct Relay {
    folder: TempDir,
}

impl Relay {
    fn new() -> Self {
        Self { folder: TempDir::with_prefix("bindery-relay-").unwrap() }
    }

    /// A Codex that listens beside where it is told to; the relay listens there.
    fn program(&self, codex: &Path) -> PathBuf {
        let (folder, codex) = (self.folder.path(), codex.display());
        let relay = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/relay.py");
        let script = format!(
            "#!/bin/bash\nargs=(\"$@\")\nlast=$((${{#args[@]}} - 1))\n\
             case \"${{args[$last]}}\" in unix://*)\n\
             python3 '{}' \"${{args[$last]#unix://}}\" '{}' &\n\
             args[$last]=\"${{args[$last]}}.real\" ;;\n\
             esac\nexec '{codex}' \"${{args[@]}}\"\n",
            relay.display(),
            folder.display(),
        );
        let program = folder.join("codex");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    fn connections(&self) -> u64 {
        std::fs::metadata(self.folder.path().join("connections")).map_or(0, |file| file.len())
    }

    fn cut(&self) {
        let cuts = self.folder.path().join("cuts");
        let mut cuts = std::fs::File::options().create(true).append(true).open(cuts).unwrap();
        cuts.write_all(b".").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_lost_while_its_worker_lives_is_dialled_again() {
    if no_python() {
        return;
    }
    let relay = Relay::new();
    let slow = Reply::new([Step::begin("A"), Step::gate("later"), Step::text("B")]);
    let script = Script::new([slow.when_user("slow"), Reply::text("Hi.").always()]);
    let daemon = Daemon::with_program(script, |codex| relay.program(codex));
    let thread = daemon.thread(json!({})).await;
    let slow = daemon.say(&thread, "slow").await;
    let mut events = daemon.web.follow(&slow, 0).await;
    events.until(|heard| heard.data["type"] == "text-delta").await;
    let worker = daemon.workers();
    for _ in 0..4 {
        let before = relay.connections();
        relay.cut();
        until("somebody dials again", || relay.connections() > before).await;
        // Whoever only looks whether somebody listens is a connection, too.
        let before = daemon.web.get(&format!("/v1/turns/{slow}")).await.1;
        assert_eq!(before["state"], "running", "{before}");
    }
    daemon.stage.model.open("later");
    let ended = events.rest().await;
    assert_eq!(ended.last().unwrap().data["state"], "completed", "{:?}", ended.last());
    assert_eq!(daemon.workers(), worker);
}
