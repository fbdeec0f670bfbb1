//! A command that a client runs beside all threads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Cx, Refused, Served};
use crate::exec::{Command, Processes};
use crate::service::supply::Wish;
use crate::thread::Sandbox;

/// How long a command may take when nobody says otherwise, as in Codex.
const USUAL: Duration = Duration::from_secs(10);

/// How long one may take that has no limit.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// `command/exec`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandExec {
    command: Vec<String>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    env: Option<BTreeMap<String, Option<String>>>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    disable_timeout: bool,
    #[serde(default)]
    sandbox_policy: Option<Sandbox>,
    #[serde(default)]
    tty: bool,
    #[serde(default)]
    stream_stdin: bool,
    #[serde(default)]
    stream_stdout_stderr: bool,
}

/// Runs it to its end. What it writes comes as `stdout`, its errors among it: they share a pipe,
/// so that their order is kept.
pub(super) async fn exec(cx: &Cx, params: CommandExec) -> Served {
    if params.tty || params.stream_stdin || params.stream_stdout_stderr {
        let why = "command/exec with a terminal or with streams is not served by the built-in \
                   engine";
        return Err(Refused::invalid(why));
    }
    if params.command.is_empty() {
        return Err(Refused::invalid("command must not be empty"));
    }
    let limit = match (params.disable_timeout, params.timeout_ms) {
        (true, _) => LONGEST,
        (false, Some(millis)) => Duration::from_millis(millis).min(LONGEST),
        (false, None) => USUAL,
    };
    let command = fenced(cx, params)?;
    let processes = Processes::new();
    let started = processes.start(command).map_err(|err| Refused::internal(chain(&err)))?;
    let (process, deltas) = started;
    drop(deltas);
    let ran = processes.finish(&process, limit, &CancellationToken::new()).await;
    let (code, output) = (ran.ending.exit_code, ran.ending.output);
    Ok(json!({ "exitCode": code, "stdout": output, "stderr": "" }).into())
}

/// Puts it behind the fence that was asked for, else the configured one. None runs without a
/// fence unless full access was asked for by name.
fn fenced(cx: &Cx, params: CommandExec) -> Result<Command, Refused> {
    let supplied = cx.inner.supply.thread(&Wish { cwd: params.cwd, ..Wish::default() })?;
    let sandbox = params.sandbox_policy.unwrap_or(supplied.standing.sandbox);
    cx.inner.supply.bound().map_or(Ok(()), |bound| bound.check_sandbox(&sandbox))?;
    let mut env = supplied.environment.apply(std::env::vars_os());
    for (name, value) in params.env.unwrap_or_default() {
        match value {
            Some(value) => env.insert(name.into(), value.into()),
            None => env.remove(std::ffi::OsStr::new(&name)),
        };
    }
    // As in Codex, the server's own folder is the workspace. Another one is given as a root of the
    // policy, not by running there.
    let workspace = std::env::current_dir().map_err(|err| Refused::internal(err.to_string()))?;
    let argv = params.command.into_iter().map(Into::into).collect();
    let cwd = supplied.standing.cwd;
    let command = Command {
        argv,
        cwd,
        env,
        tty: false,
        enclosed: false,
        placeholders: Vec::new(),
        egress: None,
    };
    match sandbox.is_full_access() {
        true => Ok(command),
        false => supplied.guard.fence(command, &sandbox, &workspace).map_err(|why| {
            let hint = "ask with the sandboxPolicy {\"type\":\"dangerFullAccess\"} to run it so";
            Refused::invalid(format!("{why}; {hint}"))
        }),
    }
}

fn chain(err: &dyn std::error::Error) -> String {
    let cause = err.source().map(|cause| format!(": {cause}"));
    format!("{err}{}", cause.unwrap_or_default())
}
