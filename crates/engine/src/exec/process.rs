//! One running command: a task that owns it, and the handle others hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::delta::{self, Deltas, Tap};
use super::family::Family;
use super::head_tail::HeadTail;
use super::spawn::{Spawned, spawn};
use super::{Chunk, Command, ExecError, Session, State, text};

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long output is waited for after the command's own process has ended: something it started
/// may hold the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(250);

/// Input that waits for a command to read it, at most.
const INPUT: usize = 256 * 1024;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Its exit code; 128 and the signal's number if a signal ended it.
    pub exit_code: i32,
    /// All it wrote, beginning and end.
    pub output: String,
    /// How long it ran.
    pub duration: Duration,
    /// How many bytes it wrote.
    pub total_bytes: u64,
    /// How many lines it wrote.
    pub total_lines: u64,
}

/// A command that was started.
#[derive(Debug)]
pub struct Process {
    session: Session,
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    ended: watch::Receiver<bool>,
    stop: CancellationToken,
    tty: bool,
}

#[derive(Debug)]
struct Shared {
    record: Mutex<Record>,
    started: Instant,
}

#[derive(Debug, Default)]
struct Record {
    /// Since the last call.
    unread: HeadTail,
    /// Since the start.
    whole: HeadTail,
    ending: Option<(i32, Duration)>,
    /// Input on its way.
    pending: usize,
}

#[derive(Debug)]
enum Order {
    Write(Vec<u8>),
    Interrupt,
}

pub(super) fn start(
    session: Session,
    command: Command,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> Result<(Process, Deltas), ExecError> {
    let tty = command.tty;
    let started = Instant::now();
    let spawned = spawn(command)?;
    let shared = Arc::new(Shared { record: Mutex::default(), started });
    let (orders, inbox) = mpsc::channel(16);
    let (tell, ended) = watch::channel(false);
    let (tap, deltas) = delta::channel();
    let keeper = Keeper { shared: Arc::clone(&shared), tap, tell };
    tasks.spawn(attend(spawned, inbox, keeper, stop.clone()));
    Ok((Process { session, shared, orders, ended, stop, tty }, deltas))
}

impl Process {
    /// Its name for the model.
    pub fn session(&self) -> Session {
        self.session
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.shared.record().ending.is_some()
    }

    /// Waits for its end.
    pub async fn ended(&self) -> Ending {
        let mut ended = self.ended.clone();
        // The task cannot go without telling an end first, short of a panic.
        let _ = ended.wait_for(|ended| *ended).await;
        self.shared.ending()
    }

    /// Asks it to end, and ends it soon after; with it, all it started.
    pub fn end(&self) {
        self.stop.cancel();
    }

    /// All it wrote so far, beginning and end.
    pub fn output(&self) -> String {
        self.shared.record().whole.text()
    }

    /// Sends text. Without a terminal only an interrupt can be sent.
    pub(super) fn write(&self, chars: &str) -> Result<(), ExecError> {
        let full = |_| ExecError::InputFull(self.session);
        if !self.tty {
            let only_interrupts = chars.bytes().all(|byte| byte == 3);
            let order = only_interrupts.then_some(Order::Interrupt);
            let order = order.ok_or(ExecError::NoInput(self.session))?;
            return self.send(order).map_err(full);
        }
        {
            let mut record = self.shared.record();
            if record.pending + chars.len() > INPUT {
                return Err(ExecError::InputFull(self.session));
            }
            record.pending += chars.len();
        }
        self.send(Order::Write(chars.as_bytes().to_vec())).map_err(|()| {
            self.shared.record().pending -= chars.len();
            ExecError::InputFull(self.session)
        })
    }

    /// One that has ended takes everything.
    fn send(&self, order: Order) -> Result<(), ()> {
        match self.orders.try_send(order) {
            Err(mpsc::error::TrySendError::Full(_)) => Err(()),
            _ => Ok(()),
        }
    }

    pub(super) fn take(&self, wall: Duration) -> Chunk {
        let mut record = self.shared.record();
        let unread = std::mem::take(&mut record.unread);
        let state = match record.ending {
            Some((code, _)) => State::Exited(code),
            None => State::Running(self.session),
        };
        drop(record);
        Chunk {
            id: text::id(),
            wall,
            state,
            output: unread.text(),
            total_bytes: unread.total(),
            omitted: unread.omitted(),
        }
    }
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ending(&self) -> Ending {
        let record = self.record();
        let (exit_code, duration) = record.ending.unwrap_or((-1, self.started.elapsed()));
        Ending {
            exit_code,
            output: record.whole.text(),
            duration,
            total_bytes: record.whole.total(),
            total_lines: record.whole.lines(),
        }
    }
}

/// Writes down what happens. Dropped, it tells the end, whatever the reason.
struct Keeper {
    shared: Arc<Shared>,
    tap: Tap,
    tell: watch::Sender<bool>,
}

impl Keeper {
    fn output(&self, bytes: &[u8]) {
        let mut record = self.shared.record();
        record.unread.push(bytes);
        record.whole.push(bytes);
        drop(record);
        self.tap.push(bytes);
    }

    fn written(&self, count: usize) {
        let mut record = self.shared.record();
        record.pending = record.pending.saturating_sub(count);
    }

    fn end(&self, code: i32) {
        let duration = self.shared.started.elapsed();
        self.shared.record().ending = Some((code, duration));
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.record().ending.get_or_insert((-1, self.shared.started.elapsed()));
        self.tell.send_replace(true);
    }
}

/// Attends a command to its end, then ends what it left behind.
async fn attend(
    mut spawned: Spawned,
    inbox: mpsc::Receiver<Order>,
    keeper: Keeper,
    stop: CancellationToken,
) {
    let code = follow(&mut spawned, inbox, &keeper, &stop).await;
    keeper.end(code);
    drop(keeper);
    // Who waits has the result; what follows is only tidying.
    drop(spawned.output);
    drop(spawned.input);
    let asked_already = stop.is_cancelled();
    let ended = tokio::task::spawn_blocking(move || end_rest(spawned.family, asked_already));
    if ended.await.is_err() {
        tracing::warn!("what a command left behind may still run");
    }
    drop((spawned.placeholders, spawned.egress));
}

/// Looks and waits; not for the runtime's own threads.
fn end_rest(mut family: Family, asked_already: bool) {
    let deadline = Instant::now() + GRACE;
    while !asked_already && Instant::now() < deadline {
        if !family.signal_rest(Signal::TERM) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    family.signal_rest(Signal::KILL);
}

/// Where a command is on its way out.
enum Phase {
    Running,
    /// Asked to end; at this time it is made to.
    Asked(tokio::time::Instant),
    /// Its own process ended; so long its output is waited for.
    Drained(tokio::time::Instant, i32),
}

impl Phase {
    fn deadline(&self) -> Option<tokio::time::Instant> {
        match self {
            Self::Running => None,
            Self::Asked(at) | Self::Drained(at, _) => Some(*at),
        }
    }
}

async fn follow(
    spawned: &mut Spawned,
    mut inbox: mpsc::Receiver<Order>,
    keeper: &Keeper,
    stop: &CancellationToken,
) -> i32 {
    let Spawned { child, family, output, input, .. } = spawned;
    let mut phase = Phase::Running;
    let mut buffer = vec![0; 64 * 1024];
    let (mut open, mut reachable) = (true, true);
    let mut pending = Vec::new();
    loop {
        let deadline = phase.deadline();
        tokio::select! {
            count = output.read(&mut buffer), if open => {
                keeper.output(&buffer[..count]);
                open = count > 0;
            }
            status = child.wait(), if !matches!(phase, Phase::Drained(..)) => {
                let at = tokio::time::Instant::now() + DRAIN;
                phase = Phase::Drained(at, status.map_or(-1, exit_code));
            }
            order = inbox.recv(), if reachable => match order {
                Some(Order::Write(bytes)) => pending.extend(bytes),
                Some(Order::Interrupt) => family.signal(Signal::INT),
                None => reachable = false,
            },
            count = write_some(input, &pending), if !pending.is_empty() => {
                pending.drain(..count);
                keeper.written(count);
            }
            () = stop.cancelled(), if matches!(phase, Phase::Running) => {
                family.signal(Signal::TERM);
                phase = Phase::Asked(tokio::time::Instant::now() + GRACE);
            }
            () = until(deadline) => {
                if let Phase::Drained(_, code) = phase {
                    return code;
                }
                family.signal(Signal::KILL);
                phase = Phase::Asked(tokio::time::Instant::now() + GRACE);
            }
        }
        if let (Phase::Drained(_, code), false) = (&phase, open) {
            return *code;
        }
    }
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Writes what the terminal takes. If nobody reads any more, all counts as taken.
async fn write_some(input: &mut Option<pty_process::OwnedWritePty>, bytes: &[u8]) -> usize {
    match input {
        Some(terminal) => terminal.write(bytes).await.unwrap_or(bytes.len()),
        None => bytes.len(),
    }
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}
