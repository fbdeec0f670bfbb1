//! A command on its way: shown, allowed or not, started, watched to its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::approve::{self, CommandAsk, Verdict};
use super::{Cx, Ended};
use crate::exec::{self, Deltas, Process, text};
use crate::thread::Approval;
use crate::turn::voice::{Begun, Voice};

/// Bytes of live output that are told of one command; all of it is kept within its own bounds.
const LIVE: usize = 1 << 20;

/// A command that the model wants.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The program and its arguments.
    pub(super) argv: Vec<String>,
    /// The words the model gave.
    pub(super) script: String,
    /// Where.
    pub(super) cwd: PathBuf,
    /// Whether it gets a terminal.
    pub(super) tty: bool,
    /// Whether the model asks for it to run without a sandbox.
    pub(super) escalated: bool,
    /// Why the model asks for that.
    pub(super) justification: Option<String>,
    /// What the model proposes to allow from now on.
    pub(super) prefix_rule: Option<Vec<String>>,
}

/// A command that was started.
pub(super) struct Started {
    pub(super) process: Arc<Process>,
    /// True once its item is completed.
    done: watch::Receiver<bool>,
}

/// Shows a command, asks for it where it must, starts it. An `Err` is what the model is told.
pub(super) async fn start(wanted: Wanted, id: &str, cx: &Cx) -> Result<Started, Ended> {
    let shown = shown(&wanted.argv);
    let begun = cx.voice.begin(item(id, &shown, &wanted));
    match allow(&wanted, id, &shown, cx).await {
        Ok(()) => {}
        Err(Refused::Cancelled) => {
            finish(begun, "declined", cx);
            return Err(Ended::Cancelled);
        }
        Err(Refused::Because(why)) => {
            finish(begun, "declined", cx);
            return Err(Ended::text(text::rejected(&wanted.script, &why)));
        }
    }
    let command = exec::Command {
        argv: wanted.argv.iter().map(Into::into).collect(),
        cwd: wanted.cwd.clone(),
        env: super::env::of_commands(),
        tty: wanted.tty,
        enclosed: false,
    };
    match cx.session.processes.start(command) {
        Ok((process, deltas)) => Ok(watched(process, deltas, begun, cx)),
        Err(error) => {
            finish(begun, "failed", cx);
            Err(Ended::text(format!("exec_command failed: {error}")))
        }
    }
}

/// What is said of a program and its arguments.
pub(super) fn shown(argv: &[String]) -> String {
    shlex::try_join(argv.iter().map(String::as_str)).unwrap_or_else(|_| argv.join(" "))
}

fn item(id: &str, shown: &str, wanted: &Wanted) -> Value {
    json!({
        "type": "commandExecution",
        "id": id,
        "pluginId": null,
        "scriptPath": null,
        "command": shown,
        "cwd": wanted.cwd.to_string_lossy(),
        "processId": null,
        "source": "agent",
        "status": "inProgress",
        "commandActions": [{ "type": "unknown", "command": wanted.script }],
        "aggregatedOutput": null,
        "exitCode": null,
        "durationMs": null,
    })
}

fn finish(mut begun: Begun, status: &str, cx: &Cx) {
    begun.item["status"] = json!(status);
    cx.voice.complete(begun);
}

enum Refused {
    Cancelled,
    Because(String),
}

/// Commands are not fenced in, so each one is asked for, whatever the policy says, unless full
/// access was given by name or a person has said yes to it before.
async fn allow(wanted: &Wanted, id: &str, shown: &str, cx: &Cx) -> Result<(), Refused> {
    if cx.standing.sandbox.is_full_access() || cx.session.is_allowed(wanted) {
        return Ok(());
    }
    if cx.standing.approval == Approval::Never {
        let why = "commands are not sandboxed here, and nobody may be asked";
        return Err(Refused::Because(why.to_owned()));
    }
    let ask = CommandAsk {
        item_id: id,
        kind: "command",
        command: shown,
        cwd: &wanted.cwd.to_string_lossy(),
        reason: wanted.justification.as_deref(),
        rule: wanted.prefix_rule.as_deref(),
    };
    match approve::command(ask, cx).await {
        Verdict::Yes => Ok(()),
        Verdict::ForSession => {
            cx.session.allow(wanted);
            Ok(())
        }
        Verdict::Always(rule) => {
            cx.session.allow_prefix(rule);
            Ok(())
        }
        Verdict::No(why) => Err(Refused::Because(why)),
        Verdict::Cancel => Err(Refused::Cancelled),
    }
}

/// Tells a command's output as it comes and completes its item when it ends, be it after the turn.
fn watched(process: Arc<Process>, deltas: Deltas, mut begun: Begun, cx: &Cx) -> Started {
    let (tell, done) = watch::channel(false);
    begun.item["processId"] = json!(process.session().to_string());
    begun.item["source"] = json!("unifiedExecStartup");
    let id = begun.item["id"].as_str().unwrap_or_default().to_owned();
    let watcher = Watcher { process: Arc::clone(&process), voice: cx.voice.clone(), begun };
    let task = async move {
        watcher.run(deltas).await;
        // Nobody may wait for it any more.
        let _ = tell.send(true);
    };
    cx.session.watch(Arc::clone(&process), (cx.voice.turn_id(), &id), done.clone(), task);
    Started { process, done }
}

struct Watcher {
    process: Arc<Process>,
    voice: Voice,
    begun: Begun,
}

impl Watcher {
    async fn run(self, mut deltas: Deltas) {
        let Self { process, voice, mut begun } = self;
        let id = begun.item["id"].as_str().unwrap_or_default().to_owned();
        let mut room = LIVE;
        while let Some(delta) = deltas.next().await {
            tell_live(&voice, &id, &delta, &mut room);
        }
        let ending = process.ended().await;
        let status = if ending.exit_code == 0 { "completed" } else { "failed" };
        begun.item["status"] = json!(status);
        begun.item["exitCode"] = json!(ending.exit_code);
        let millis = i64::try_from(ending.duration.as_millis()).unwrap_or(i64::MAX);
        begun.item["durationMs"] = json!(millis);
        begun.item["aggregatedOutput"] = json!(ending.output);
        voice.complete(begun);
    }
}

fn tell_live(voice: &Voice, id: &str, delta: &exec::Delta, room: &mut usize) {
    const METHOD: &str = "item/commandExecution/outputDelta";
    if *room == 0 {
        return;
    }
    let fits = delta.text.floor_char_boundary(*room);
    voice.delta(METHOD, id, &delta.text[..fits]);
    *room -= fits;
    if delta.left_out > 0 || fits < delta.text.len() {
        *room = 0;
        voice.delta(METHOD, id, "\n[more output follows and is not shown live]\n");
    }
}

impl Started {
    /// Waits until the end was told; the model hears of it after the client.
    pub(super) async fn told(mut self) {
        // An error means that the watcher is gone, and with it everything to wait for.
        let _ = self.done.wait_for(|done| *done).await;
    }
}

/// The folder a command runs in.
pub(super) fn folder(wish: Option<&Path>, cx: &Cx) -> PathBuf {
    wish.map_or_else(|| cx.standing.cwd.clone(), |wish| cx.standing.cwd.join(wish))
}
