//! The floor: a hand-written client that does nothing but write lines and look at lines.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bindery_testkit::codex::RealCodex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Marks, QUESTION};

/// The notification that brings text.
const FIRST_WORD: &str = "item/agentMessage/delta";

/// A Codex of its own, and blocking reads and writes on its pipes.
pub(in crate::bench) struct Raw {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    next: u64,
    open: String,
    /// Started ahead, and not used yet.
    spare: String,
    codex: Arc<RealCodex>,
}

/// As much of a line as the loop looks at; the rest is skipped unread.
#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<&'a str>,
}

impl Raw {
    /// Starts Codex and greets it. Its home goes with it, unless somebody else has it, too.
    pub(in crate::bench) fn start(codex: impl Into<Arc<RealCodex>>) -> anyhow::Result<Self> {
        let codex = codex.into();
        let mut command = codex.command(&["app-server"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start Codex")?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("Codex has no stdout")?;
        let stdout = BufReader::with_capacity(64 * 1024, stdout);
        let (line, open, spare) = (Vec::new(), String::new(), String::new());
        let mut raw = Self { child, stdin, stdout, line, next: 1, open, spare, codex };
        let hello = raw.send(
            "initialize",
            &json!({
                "clientInfo": { "name": "bench", "title": "Bench", "version": "0.1.0" },
                "capabilities": { "experimentalApi": true },
            }),
        )?;
        raw.reply(hello)?;
        raw.write(&json!({ "method": "initialized" }))?;
        Ok(raw)
    }

    /// The server's process.
    pub(in crate::bench) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A turn on a new thread.
    pub(in crate::bench) fn new_thread(&mut self, start: Instant) -> anyhow::Result<Marks> {
        let thread = self.start_thread()?;
        self.turn(&thread, start)
    }

    /// A turn on the open thread.
    pub(in crate::bench) fn open_thread(&mut self, start: Instant) -> anyhow::Result<Marks> {
        let thread = self.open.clone();
        self.turn(&thread, start)
    }

    /// Starts a thread for [`Self::spare_thread`].
    pub(in crate::bench) fn prepare(&mut self) -> anyhow::Result<()> {
        self.spare = self.start_thread()?;
        Ok(())
    }

    /// The first turn on a thread that was started ahead.
    pub(in crate::bench) fn spare_thread(&mut self, start: Instant) -> anyhow::Result<Marks> {
        let thread = std::mem::take(&mut self.spare);
        self.turn(&thread, start)
    }

    /// Opens another thread for [`Self::open_thread`], and uses it once.
    pub(in crate::bench) fn renew(&mut self) -> anyhow::Result<()> {
        self.open = self.start_thread()?;
        self.open_thread(Instant::now()).map(drop)
    }

    /// So many conversations, at most `at_a_time` of them under way; gives when the last was over.
    pub(in crate::bench) fn burst(
        &mut self,
        count: usize,
        at_a_time: usize,
        start: Instant,
    ) -> anyhow::Result<Duration> {
        let mut waiting = BTreeSet::new();
        let (mut begun, mut done) = (0, 0);
        while done < count {
            while begun < count && begun - done < at_a_time {
                let cwd = self.codex.project();
                waiting.insert(self.send("thread/start", &json!({ "cwd": cwd }))?);
                begun += 1;
            }
            let Envelope { id, method } = self.next()?;
            done += usize::from(method == Some("turn/completed"));
            if id.is_some_and(|id| method.is_none() && waiting.remove(&id)) {
                let thread = self.thread()?;
                let input = json!([{ "type": "text", "text": QUESTION }]);
                self.send("turn/start", &json!({ "threadId": thread, "input": input }))?;
            }
        }
        Ok(start.elapsed())
    }

    /// A turn on each of so many new threads. All have begun to answer before `go` lets them end.
    pub(in crate::bench) fn together(
        &mut self,
        count: usize,
        question: &str,
        go: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let threads: Vec<String> =
            (0..count).map(|_| self.start_thread()).collect::<Result<_, _>>()?;
        let mut silent: BTreeSet<&str> = threads.iter().map(String::as_str).collect();
        for thread in &threads {
            let input = json!([{ "type": "text", "text": question }]);
            // One after the other: a server may refuse more than it can queue.
            let id = self.send("turn/start", &json!({ "threadId": thread, "input": input }))?;
            while !self.heard(id, &mut silent)? {}
        }
        while !silent.is_empty() {
            self.heard(0, &mut silent)?;
        }
        go()?;
        let mut running = count;
        while running > 0 {
            running -= usize::from(self.next()?.method == Some("turn/completed"));
        }
        Ok(())
    }

    /// Reads a line; whose first words it has is no longer silent. Says if it is that reply.
    fn heard(&mut self, id: u64, silent: &mut BTreeSet<&str>) -> anyhow::Result<bool> {
        let Envelope { id: found, method } = self.next()?;
        let (reply, word) = (found == Some(id) && method.is_none(), method == Some(FIRST_WORD));
        if word {
            let message: Value = serde_json::from_slice(&self.line)?;
            silent.remove(message["params"]["threadId"].as_str().unwrap_or_default());
        }
        Ok(reply)
    }

    fn start_thread(&mut self) -> anyhow::Result<String> {
        let cwd = self.codex.project();
        let id = self.send("thread/start", &json!({ "cwd": cwd }))?;
        self.reply(id)?;
        self.thread()
    }

    /// The thread in the reply that was just read.
    fn thread(&self) -> anyhow::Result<String> {
        let reply: Value = serde_json::from_slice(&self.line)?;
        let thread = reply["result"]["thread"]["id"].as_str();
        Ok(thread.with_context(|| format!("no thread in {reply}"))?.to_owned())
    }

    fn turn(&mut self, thread: &str, start: Instant) -> anyhow::Result<Marks> {
        let input = json!([{ "type": "text", "text": QUESTION }]);
        self.send("turn/start", &json!({ "threadId": thread, "input": input }))?;
        let mut text = None;
        loop {
            match self.next()?.method {
                Some(FIRST_WORD) if text.is_none() => text = Some(start.elapsed()),
                Some("turn/completed") => break,
                _ => {}
            }
        }
        let text = text.context("the turn had no text")?;
        Ok(Marks { text, finish: start.elapsed() })
    }

    fn send(&mut self, method: &str, params: &Value) -> anyhow::Result<u64> {
        let id = self.next;
        self.next += 1;
        self.write(&json!({ "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    fn write(&mut self, message: &Value) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        Ok(self.stdin.as_mut().context("Codex has no stdin")?.write_all(&line)?)
    }

    /// Skips to a reply and leaves it in `line`.
    fn reply(&mut self, id: u64) -> anyhow::Result<()> {
        loop {
            let envelope = self.next()?;
            if envelope.id == Some(id) && envelope.method.is_none() {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> anyhow::Result<Envelope<'_>> {
        self.line.clear();
        let read = self.stdout.read_until(b'\n', &mut self.line)?;
        ensure!(read > 0, "Codex has left");
        serde_json::from_slice(&self.line).context("a line that is no message")
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // Codex ends when its stdin does.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
