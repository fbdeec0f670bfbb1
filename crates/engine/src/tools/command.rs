//! A command on its way: shown, allowed or not, started, watched to its end.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::approve::{self, CommandAsk, Verdict};
use super::session::Watched;
use super::{Cx, Ended};
use crate::exec::{self, Deltas, Process, text};
use crate::guard::{Asked, Decision};
use crate::safety::rules::is_broad;
use crate::safety::{ProgramIdentity, ProgramSearch};
use crate::turn::voice::{Begun, Voice};

/// Bytes of live output that are told of one command; all of it is kept within its own bounds.
const LIVE: usize = 1 << 20;

/// Why a command does not run although a person said yes.
const CHANGED: &str = "a file that it runs or names changed while it was asked about; ask again";

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
    let fenced = match allow(&wanted, id, &shown, cx).await {
        Ok(fenced) => fenced,
        Err(Refused::Cancelled) => {
            finish(begun, "declined", cx);
            return Err(Ended::Cancelled);
        }
        Err(Refused::Because(why)) => {
            finish(begun, "declined", cx);
            return Err(Ended::text(text::rejected(&wanted.script, &why)));
        }
    };
    match spawn(&wanted, fenced, cx) {
        Ok((process, deltas)) => Ok(watched(process, deltas, fenced, begun, cx)),
        Err(why) => {
            finish(begun, "failed", cx);
            Err(Ended::text(format!("exec_command failed: {why}")))
        }
    }
}

fn spawn(wanted: &Wanted, fenced: bool, cx: &Cx) -> Result<(Arc<Process>, Deltas), String> {
    let mut command = exec::Command {
        argv: wanted.argv.iter().map(Into::into).collect(),
        cwd: wanted.cwd.clone(),
        env: cx.command_env(),
        tty: wanted.tty,
        enclosed: false,
        placeholders: Vec::new(),
        egress: None,
    };
    if fenced {
        command = cx.guard.fence(command, &cx.standing.sandbox, &cx.standing.cwd)?;
    }
    cx.session.processes.start(command).map_err(|error| error.to_string())
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

/// Whether it may run, and whether behind the fence.
async fn allow(wanted: &Wanted, id: &str, shown: &str, cx: &Cx) -> Result<bool, Refused> {
    cx.verify_roots().map_err(Refused::Because)?;
    let env = cx.command_env();
    let path = env.get(OsStr::new("PATH")).map(OsString::as_os_str);
    let mut unvouched = cx.writable_folders();
    unvouched.push(wanted.cwd.clone());
    let search = ProgramSearch::new(path, &unvouched);
    let asked = Asked {
        argv: &wanted.argv,
        cwd: &wanted.cwd,
        escalated: wanted.escalated,
        approval: cx.standing.approval,
        sandbox: &cx.standing.sandbox,
        proposed: wanted.prefix_rule.as_deref(),
        search: &search,
    };
    let identify = || ProgramIdentity::of(&wanted.argv, &wanted.cwd, &search);
    let runs = identify();
    let (reason, prefix, fenced) = match cx.guard.decide(&asked) {
        Decision::Allow { fenced } => return Ok(fenced),
        Decision::Forbid { reason } => return Err(Refused::Because(reason)),
        Decision::Ask { fenced, .. }
            if cx.session.is_allowed(wanted, fenced, &search, runs.as_ref()) =>
        {
            return Ok(fenced);
        }
        Decision::Ask { reason, prefix, fenced } => (reason, prefix, fenced),
    };
    let ask = CommandAsk {
        item_id: id,
        kind: "command",
        command: shown,
        cwd: &wanted.cwd.to_string_lossy(),
        reason: wanted.justification.as_deref().or(reason.as_deref()),
        rule: prefix.as_deref(),
    };
    let verdict = approve::command(ask, cx).await;
    // The person was asked about what it ran then.
    let is_yes = matches!(verdict, Verdict::Yes | Verdict::ForSession | Verdict::Always(_));
    if is_yes && !fenced && identify() != runs {
        return Err(Refused::Because(CHANGED.to_owned()));
    }
    match verdict {
        Verdict::Yes => Ok(fenced),
        Verdict::ForSession => {
            cx.session.allow(wanted, fenced, runs);
            Ok(fenced)
        }
        Verdict::Always(rule) => {
            always(rule, fenced, cx);
            Ok(fenced)
        }
        Verdict::No(why) => Err(Refused::Because(why)),
        Verdict::Cancel => Err(Refused::Cancelled),
    }
}

/// What cannot be kept for good holds for this thread, and the person is told.
fn always(rule: Vec<String>, fenced: bool, cx: &Cx) {
    if is_broad(&rule) {
        cx.voice.warn("the rule would allow nearly anything; only this command was allowed");
        return;
    }
    if let Err(why) = cx.guard.remember(&rule) {
        cx.voice.warn(&format!("the rule could not be kept: {why}"));
    }
    cx.session.allow_prefix(rule, fenced);
}

/// Tells a command's output as it comes and completes its item when it ends, be it after the turn.
fn watched(
    process: Arc<Process>,
    deltas: Deltas,
    fenced: bool,
    mut begun: Begun,
    cx: &Cx,
) -> Started {
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
    let turn_id = cx.voice.turn_id().to_owned();
    let running = Watched { process: Arc::clone(&process), turn_id, item_id: id, fenced, done };
    let done = running.done.clone();
    cx.session.watch(running, task);
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

/// The folder a command runs in. It gives the command no right to write there.
pub(super) fn folder(wish: Option<&Path>, cx: &Cx) -> PathBuf {
    wish.map_or_else(|| cx.standing.cwd.clone(), |wish| cx.standing.cwd.join(wish))
}
