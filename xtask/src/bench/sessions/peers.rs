//! What others take for the same: Node's `JSON.parse`, and Codex's own list.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

/// As one writes it: lines of a stream.
const USUAL: &str = "
const fs = require('fs'), readline = require('readline');
const begun = process.cpuUsage();
let lines = 0;
const reader = readline.createInterface({ input: fs.createReadStream(process.argv[1]) });
reader.on('line', (line) => { JSON.parse(line); lines++; });
reader.on('close', () => {
  const used = process.cpuUsage(begun);
  console.log(JSON.stringify({ lines, micros: used.user + used.system }));
});
";

/// As fast as we could make it: lines found in blocks of bytes.
const TUNED: &str = "
const fs = require('fs');
const begun = process.cpuUsage();
const file = fs.openSync(process.argv[1], 'r');
const block = Buffer.alloc(1 << 20);
let tail = Buffer.alloc(0), lines = 0;
for (let read; (read = fs.readSync(file, block, 0, block.length, null)) > 0; ) {
  let data = Buffer.concat([tail, block.subarray(0, read)]), from = 0;
  for (let at; (at = data.indexOf(10, from)) >= 0; from = at + 1) {
    JSON.parse(data.toString('utf8', from, at));
    lines++;
  }
  tail = data.subarray(from);
}
const used = process.cpuUsage(begun);
console.log(JSON.stringify({ lines, micros: used.user + used.system }));
";

/// CPU time of a Node loop that parses every line and keeps nothing.
pub(super) fn node_parse(path: &Path, tuned: bool) -> anyhow::Result<Duration> {
    let script = if tuned { TUNED } else { USUAL };
    let output = Command::new("node").args(["-e", script]).arg(path).output();
    let output = output.context("cannot start `node`")?;
    ensure!(output.status.success(), "node: {}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Duration::from_micros(told["micros"].as_u64().context("no time")?))
}

/// A `codex app-server` on the bench's home.
pub(super) struct Codex {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Codex {
    /// Starts it and waits until it has taken in all sessions.
    pub(super) fn start(program: &Path, home: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .arg("app-server")
            .env("CODEX_HOME", home)
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start codex")?;
        let input = child.stdin.take().context("a pipe")?;
        let output = BufReader::new(child.stdout.take().context("a pipe")?);
        let mut codex = Self { child, input, output, next: 1 };
        let client = json!({ "clientInfo": { "name": "bench", "version": "0" } });
        codex.ask("initialize", client)?;
        writeln!(codex.input, "{}", json!({ "method": "initialized" }))?;
        // It takes its sessions in while it runs; the list is full when it is done.
        for _ in 0..600 {
            if codex.rows()? >= 100 {
                return Ok(codex);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("codex lists no sessions");
    }

    /// The time of one call that lists 100 sessions.
    pub(super) fn list(&mut self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let rows = self.rows()?;
        ensure!(rows >= 100, "{rows} rows");
        Ok(begun.elapsed())
    }

    fn rows(&mut self) -> anyhow::Result<usize> {
        // Without these, sessions of `codex exec` and of other providers are not listed.
        let params = json!({ "limit": 100, "sourceKinds": ["exec"], "modelProviders": [] });
        let result = self.ask("thread/list", params)?;
        Ok(result["data"].as_array().map_or(0, Vec::len))
    }

    fn ask(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.next;
        self.next += 1;
        writeln!(self.input, "{}", json!({ "id": id, "method": method, "params": params }))?;
        self.input.flush()?;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.output.read_line(&mut line)? > 0, "codex is gone");
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id && message.get("method").is_none() {
                ensure!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return Ok(message["result"].clone());
            }
        }
    }
}

impl Drop for Codex {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
