//! The process of a run: started, fed, read, and ended with all it started.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use bindery_core::map::exec_to_ndjson::{Cause, Exit};
use bindery_core::ndjson::Event;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::agent::{ChatAgent, ChatCommand};
use super::artifacts::Before;
use super::stderr::Stderr;
use super::{Output, RunOptions, Stream, not_started};
use crate::error::Error;
use crate::transport::group::{self, Group};
use crate::transport::stdio::{self, Launch};

/// How long to read on once the process is dead; somebody it left behind may hold a pipe open.
const LEFTOVERS: Duration = Duration::from_millis(500);

/// The most that can still be in the pipes of a dead process.
const PIPES: usize = 2 * 1024 * 1024;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// Runs the command; all but the result is sent when it returns.
pub(super) async fn run(
    agent: &dyn ChatAgent,
    command: &ChatCommand,
    options: &RunOptions,
    abort: &CancellationToken,
    stream: &mut Stream,
) -> Exit {
    let before = options.artifacts.as_deref().map(Before::look);
    let mut running = match Running::start(command) {
        Ok(running) => running,
        Err(err) => return not_started(&err),
    };
    tracing::debug!(agent = agent.name(), pid = running.group.leader(), "agent started");
    stream.send(Output::Started { pid: running.group.leader() }).await;
    let signs = Signs::new(abort);
    let mut stderr = Stderr::new(agent, options.stderr_limit);
    let (stdin, out, err) = running.pipes();
    let reader = Reader { signs: &signs, limit: options.stdout_limit };
    let ((status, cause), (), ()) = tokio::join!(
        running.keep(options, &signs),
        feed(stdin, &command.stdin, &signs),
        reader.run(out, err, &mut stderr, stream),
    );
    // The last line counts even if it was not ended; the artifacts come after it.
    let mut left = stream.mapper.as_mut().map(|mapper| mapper.last_line()).unwrap_or_default();
    for artifact in before.iter().flat_map(Before::changed) {
        left.extend(stream.event(&Event::Artifact(artifact)));
    }
    stream.send_all(left).await;
    let exit = exit(status, cause, stderr.why());
    tracing::debug!(agent = agent.name(), ?exit, "agent ended");
    exit
}

fn exit(status: io::Result<ExitStatus>, cause: Option<Cause>, why: Option<String>) -> Exit {
    match status {
        Ok(status) => Exit {
            code: status.code(),
            signal: group::signal(status),
            cause,
            detail: why.filter(|_| cause.is_none() && status.code().is_some_and(|code| code != 0)),
        },
        Err(err) => Exit { cause, detail: Some(err.to_string()), ..Exit::default() },
    }
}

/// What the parts of a run tell each other.
struct Signs<'a> {
    /// The caller wants to stop.
    abort: &'a CancellationToken,
    /// Nobody reads any more.
    unwanted: CancellationToken,
    /// More was printed than may be.
    over: CancellationToken,
    /// The process is dead.
    gone: CancellationToken,
}

impl<'a> Signs<'a> {
    fn new(abort: &'a CancellationToken) -> Self {
        let [unwanted, over, gone] = std::array::from_fn(|_| CancellationToken::new());
        Self { abort, unwanted, over, gone }
    }
}

/// A process and its group.
struct Running {
    child: Child,
    group: Arc<Group>,
    ended: bool,
}

impl Running {
    fn start(command: &ChatCommand) -> Result<Self, Error> {
        let program = command.program.display().to_string();
        let failed = |source| Error::Spawn { program: program.clone(), source };
        let launch = Launch {
            args: command.args.clone(),
            env: command.env.clone(),
            env_remove: command.env_remove.clone(),
            cwd: command.cwd.clone(),
            ..Launch::new(&command.program)
        };
        let child = stdio::command(&launch).map_err(failed)?.spawn().map_err(failed)?;
        let leader = child.id().ok_or_else(|| failed(io::Error::other("it has no process id")))?;
        Ok(Self { child, group: Arc::new(Group::new(leader)), ended: false })
    }

    fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the end, or brings it about.
    async fn keep(
        &mut self,
        options: &RunOptions,
        signs: &Signs<'_>,
    ) -> (io::Result<ExitStatus>, Option<Cause>) {
        let deadline = async {
            match options.deadline {
                Some(deadline) => sleep(deadline).await,
                None => std::future::pending().await,
            }
        };
        let cause = tokio::select! {
            biased;
            status = self.child.wait() => {
                self.release(signs);
                return (status, None);
            }
            () = signs.abort.cancelled() => Cause::Aborted,
            () = signs.unwanted.cancelled() => Cause::Aborted,
            () = signs.over.cancelled() => Cause::Limit,
            () = deadline => Cause::Deadline,
        };
        self.group.terminate();
        let status = match timeout(options.grace, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                self.group.kill();
                self.child.wait().await
            }
        };
        self.release(signs);
        (status, Some(cause))
    }

    fn release(&mut self, signs: &Signs<'_>) {
        self.group.release();
        self.ended = true;
        signs.gone.cancel();
    }
}

impl Drop for Running {
    /// Reached before the end only when the run itself is dropped.
    fn drop(&mut self) {
        if !self.ended {
            self.group.kill();
        }
    }
}

/// Writes the prompt and closes stdin; an agent may well end without reading it.
async fn feed(stdin: Option<ChildStdin>, text: &[u8], signs: &Signs<'_>) {
    let Some(mut stdin) = stdin else { return };
    let written = tokio::select! {
        written = stdin.write_all(text) => written,
        () = signs.gone.cancelled() => Ok(()),
    };
    if let Err(err) = written {
        tracing::debug!(%err, "the agent did not read its stdin");
    }
}

struct Reader<'a> {
    signs: &'a Signs<'a>,
    limit: u64,
}

impl Reader<'_> {
    /// Reads both pipes to their ends.
    async fn run(
        &self,
        mut out: Option<ChildStdout>,
        mut err: Option<ChildStderr>,
        stderr: &mut Stderr<'_>,
        stream: &mut Stream,
    ) {
        let (mut out_chunk, mut err_chunk) = (vec![0; CHUNK], vec![0; CHUNK / 8]);
        let (mut seen, mut wanted, mut late) = (0, true, 0);
        while late <= PIPES && (out.is_some() || err.is_some()) {
            let outputs = tokio::select! {
                biased;
                read = read(&mut out, &mut out_chunk) => {
                    seen += read as u64;
                    late += self.late(read);
                    self.stdout(&out_chunk[..read], seen, stream)
                }
                read = read(&mut err, &mut err_chunk) => {
                    late += self.late(read);
                    let (mut outputs, bytes) = (Vec::new(), &err_chunk[..read]);
                    stderr.push(bytes, &mut |event| outputs.extend(stream.event(event)));
                    outputs
                }
                () = self.leftovers() => break,
            };
            if wanted && !stream.send_all(outputs).await {
                wanted = false;
                self.signs.unwanted.cancel();
            }
        }
        let mut outputs = Vec::new();
        stderr.finish(&mut |event| outputs.extend(stream.event(event)));
        stream.send_all(outputs).await;
    }

    /// What comes after the limit is read, so that the process can end, and dropped.
    fn stdout(&self, bytes: &[u8], seen: u64, stream: &mut Stream) -> Vec<Output> {
        let over = usize::try_from(seen.saturating_sub(self.limit)).unwrap_or(usize::MAX);
        if over > 0 {
            self.signs.over.cancel();
        }
        let kept = bytes.len().saturating_sub(over);
        if kept == 0 { Vec::new() } else { stream.stdout(&bytes[..kept]) }
    }

    /// Bytes that came from whoever outlived the process.
    fn late(&self, read: usize) -> usize {
        if self.signs.gone.is_cancelled() { read } else { 0 }
    }

    async fn leftovers(&self) {
        self.signs.gone.cancelled().await;
        sleep(LEFTOVERS).await;
    }
}

/// Reads from a pipe, and forgets it at its end; one that is forgotten never has anything.
async fn read<R: AsyncRead + Unpin>(pipe: &mut Option<R>, chunk: &mut [u8]) -> usize {
    let Some(open) = pipe else { return std::future::pending().await };
    match open.read(chunk).await {
        Ok(read @ 1..) => read,
        Ok(0) | Err(_) => {
            *pipe = None;
            0
        }
    }
}
