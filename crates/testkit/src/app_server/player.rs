//! Plays a script over a pair of halves.

use std::future::pending;
use std::io::Write as _;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream,
};
use tokio::task::JoinHandle;

use super::filling::Filling;
use super::script::{Script, Step};

const MAX_LINE: u64 = 256 * 1024 * 1024;

/// Messages kept for the test to look at.
const KEPT: usize = 4096;

/// How much either side of a connection in memory may have under way.
const BUFFER: usize = 64 * 1024;

/// A scripted app-server in memory; dropping it ends it.
#[derive(Debug)]
pub struct AppServer {
    task: Option<JoinHandle<Outcome>>,
}

/// What a play came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The messages received; a line that was not JSON is a string.
    pub received: Vec<Value>,
}

/// How a play ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The script was played and the input ended.
    Finished,
    /// The script said to crash, with this code or by abort.
    Crashed(Option<i32>),
    /// Something else came than the script expects.
    Failed(String),
}

impl AppServer {
    /// Starts to play; gives what the client reads from and what it writes to.
    ///
    /// They are two pipes and not the halves of one, so that dropping either closes it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(script: Script) -> (Self, DuplexStream, DuplexStream) {
        let (to, client_from) = tokio::io::duplex(BUFFER);
        let (client_to, from) = tokio::io::duplex(BUFFER);
        let task = tokio::spawn(async move { play(&script, from, to).await });
        (Self { task: Some(task) }, client_from, client_to)
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// If the player itself panicked.
    pub async fn outcome(mut self) -> Outcome {
        let task = self.task.as_mut().expect("taken only here");
        task.await.expect("the player does not panic")
    }
}

impl Drop for AppServer {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// Plays a script over these halves, to its end.
pub async fn play(
    script: &Script,
    from: impl AsyncRead + Send + Unpin,
    to: impl AsyncWrite + Send + Unpin,
) -> Outcome {
    let record = script.record.as_ref().and_then(|path| std::fs::File::create(path).ok());
    let mut player = Player {
        from: BufReader::new(from),
        to: Some(to),
        filling: Filling { round: 1, ..Filling::default() },
        received: Vec::new(),
        record,
    };
    let end = match player.steps(&script.steps).await {
        Ok(()) => player.drain().await,
        Err(end) => end,
    };
    Outcome { end, received: player.received }
}

struct Player<R, W> {
    from: BufReader<R>,
    to: Option<W>,
    filling: Filling,
    received: Vec<Value>,
    record: Option<std::fs::File>,
}

type Played<'a> = Pin<Box<dyn Future<Output = Result<(), End>> + Send + 'a>>;

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin> Player<R, W> {
    /// Boxed, because steps may hold steps.
    fn steps<'a>(&'a mut self, steps: &'a [Step]) -> Played<'a> {
        Box::pin(async move {
            for step in steps {
                self.step(step).await?;
            }
            Ok(())
        })
    }

    async fn step(&mut self, step: &Step) -> Result<(), End> {
        match step {
            Step::Expect { .. }
            | Step::Await { .. }
            | Step::ExpectAnswer { .. }
            | Step::Receive { .. } => self.listen(step).await,
            Step::Delay { ms } => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                Ok(())
            }
            Step::CloseOutput => self.close_output().await,
            Step::Crash { code } => Err(End::Crashed(*code)),
            Step::Silence => Err(self.drain().await),
            Step::Hang => pending().await,
            Step::Repeat { times, steps } => self.repeat(*times, steps).await,
            step => self.speak(step).await,
        }
    }

    async fn listen(&mut self, step: &Step) -> Result<(), End> {
        match step {
            Step::Expect { method } => {
                let message = self.receive(method).await?;
                same(method, message["method"].as_str(), &message)
            }
            Step::Await { method } => {
                while self.receive(method).await?["method"] != method.as_str() {}
                Ok(())
            }
            Step::ExpectAnswer { id } => {
                let wanted = format!("an answer to {id}");
                let message = self.receive(&wanted).await?;
                let fits = message.get("method").is_none() && message["id"] == *id;
                same(&wanted, fits.then_some(wanted.as_str()), &message)
            }
            Step::Receive { count } => {
                for _ in 0..*count {
                    self.receive("a message").await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn speak(&mut self, step: &Step) -> Result<(), End> {
        match step {
            Step::Reply { result } => {
                self.send(&json!({ "id": "$id", "result": result })).await;
            }
            Step::Refuse { code, message } => {
                let error = json!({ "code": code, "message": message });
                self.send(&json!({ "error": error, "id": "$id" })).await;
            }
            Step::Send { message } => self.send(message).await,
            Step::Huge { message, bytes } => {
                self.filling.filler = "x".repeat(*bytes);
                self.send(message).await;
                self.filling.filler = String::new();
            }
            Step::Bytes { bytes } => self.write(bytes.as_slice()).await,
            Step::Stderr { text } => {
                let _ = writeln!(std::io::stderr(), "{text}");
            }
            _ => {}
        }
        Ok(())
    }

    /// An endless loop ends well where its next round would begin with the end of the input.
    async fn repeat(&mut self, times: Option<u32>, steps: &[Step]) -> Result<(), End> {
        let outer = self.filling.round;
        for round in 1..=times.unwrap_or(u32::MAX) {
            if times.is_none() && self.ended().await {
                break;
            }
            self.filling.round = round;
            self.steps(steps).await?;
        }
        self.filling.round = outer;
        Ok(())
    }

    async fn ended(&mut self) -> bool {
        self.from.fill_buf().await.is_ok_and(<[u8]>::is_empty)
    }

    async fn receive(&mut self, wanted: &str) -> Result<Value, End> {
        let message = self.next().await;
        message.ok_or_else(|| End::Failed(format!("expected {wanted}, but the input ended")))
    }

    async fn next(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        let read = (&mut self.from).take(MAX_LINE).read_until(b'\n', &mut line).await;
        if read.ok()? == 0 {
            return None;
        }
        let message = serde_json::from_slice(&line)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
        if let Some(file) = &mut self.record {
            let _ = writeln!(file, "{message}");
        }
        if self.received.len() < KEPT {
            self.received.push(message.clone());
        }
        self.filling.last = message.clone();
        Some(message)
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{}\n", self.filling.fill(message));
        self.write(line.as_bytes()).await;
    }

    /// A client that is gone shows as the end of the input, so a failed write is let be.
    async fn write(&mut self, bytes: &[u8]) {
        if let Some(to) = &mut self.to {
            let _ = to.write_all(bytes).await;
            let _ = to.flush().await;
        }
    }

    async fn close_output(&mut self) -> Result<(), End> {
        if let Some(mut to) = self.to.take() {
            let _ = to.shutdown().await;
        }
        Ok(())
    }

    async fn drain(&mut self) -> End {
        while self.next().await.is_some() {}
        End::Finished
    }
}

fn same(wanted: &str, got: Option<&str>, message: &Value) -> Result<(), End> {
    if got == Some(wanted) {
        return Ok(());
    }
    let message: String = message.to_string().chars().take(500).collect();
    Err(End::Failed(format!("expected {wanted}, got {message}")))
}
