//! Runs a command that must end in time and takes the processes it started with it.

use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Child;
use tokio::sync::mpsc;

use super::shown;

/// How long a process group has between the polite signal and the one it cannot refuse.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// How long output is read after the command's end: a process it left behind may hold the pipe.
const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// Runs a command to its end, at most for `limit`, passes its output on to stderr as it comes,
/// and shows each line of it to `each_line`.
///
/// A command with a limit has a process group of its own, which ends with it in any case: at the
/// limit, on Ctrl-C, and when the command itself is done.
pub fn supervise(
    mut command: Command,
    limit: Option<Duration>,
    each_line: &mut dyn FnMut(&str),
) -> anyhow::Result<ExitStatus> {
    let words = shown(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    if limit.is_some() {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut command = tokio::process::Command::from(command);
        let spawned = command.kill_on_drop(true).spawn();
        let mut child = spawned.with_context(|| format!("cannot start `{words}`"))?;
        let group = child.id().filter(|_| limit.is_some());
        let mut lines = output_lines(&mut child);
        let status = wait(&mut child, &mut lines, limit, each_line).await;
        if let Some(group) = group {
            end_group(group, &mut child).await;
        }
        while let Ok(Some(line)) = tokio::time::timeout(DRAIN_GRACE, lines.recv()).await {
            pass_on(&line, each_line);
        }
        status
    })
}

async fn wait(
    child: &mut Child,
    lines: &mut mpsc::Receiver<String>,
    limit: Option<Duration>,
    each_line: &mut dyn FnMut(&str),
) -> anyhow::Result<ExitStatus> {
    let deadline = tokio::time::sleep(limit.unwrap_or(Duration::MAX));
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            Some(line) = lines.recv() => pass_on(&line, each_line),
            status = child.wait() => return Ok(status?),
            () = &mut deadline => {
                let seconds = limit.unwrap_or_default().as_secs();
                bail!("did not end within {seconds} s and was stopped")
            }
            // Without a group of its own the command hears of it by itself.
            signal = stop_signal(), if limit.is_some() => {
                signal?;
                bail!("interrupted")
            }
        }
    }
}

fn output_lines(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(256);
    if let Some(stdout) = child.stdout.take() {
        tokio::spawn(read_lines(stdout, sender.clone()));
    }
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(read_lines(stderr, sender));
    }
    receiver
}

async fn read_lines(pipe: impl AsyncRead + Unpin, sender: mpsc::Sender<String>) {
    let mut reader = BufReader::new(pipe);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes).await.is_ok_and(|count| count > 0) {
        let line = String::from_utf8_lossy(&bytes).into_owned();
        bytes.clear();
        if sender.send(line).await.is_err() {
            return;
        }
    }
}

fn pass_on(line: &str, each_line: &mut dyn FnMut(&str)) {
    // A closed stderr is no reason to stop the work.
    let _ = std::io::stderr().write_all(line.as_bytes());
    each_line(line.trim_end());
}

/// Ctrl-C, or being asked to end by whoever started us.
async fn stop_signal() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Ends whatever is left of the process group that the command led.
#[cfg(unix)]
async fn end_group(group: u32, child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
    let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    let empty = async {
        loop {
            // A leader that nobody waited for would keep its group alive.
            let _ = child.try_wait();
            if test_kill_process_group(group).is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(KILL_GRACE, empty).await.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait().await;
    }
}

#[cfg(not(unix))]
async fn end_group(_group: u32, child: &mut Child) {
    let _ = child.kill().await;
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn each_line_of_both_streams_is_seen() {
        let mut lines = Vec::new();
        let status =
            supervise(shell("echo one; echo two >&2; printf three; exit 3"), None, &mut |line| {
                lines.push(line.to_owned());
            });
        assert_eq!(status.unwrap().code(), Some(3));
        lines.sort();
        assert_eq!(lines, ["one", "three", "two"]);
    }

    #[test]
    fn at_the_limit_the_whole_group_ends_even_where_it_ignores_the_polite_signal() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!(
            "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! > '{}'; wait; wait",
            pid.display()
        );
        let limit = Some(Duration::from_millis(700));
        let error = supervise(shell(&script), limit, &mut |_| ()).unwrap_err().to_string();
        assert!(error.starts_with("did not end within"), "{error}");
        let child = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        let child = rustix::process::Pid::from_raw(child).unwrap();
        while rustix::process::test_kill_process(child).is_ok() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_finished_command_left_behind_ends_with_it() {
        let mut pid = String::new();
        let limit = Some(Duration::from_secs(60));
        let command = shell("sleep 600 & echo $!");
        assert!(supervise(command, limit, &mut |line| pid.push_str(line)).unwrap().success());
        let left = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        while rustix::process::test_kill_process(left).is_ok() {
            std::thread::yield_now();
        }
    }
}
