//! What people use from npm, in a Node process that stays.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bindery_testkit::codex::RealCodex;

use crate::bench::turn::QUESTION;
use crate::step;

/// The packages compared with, and what they need: version 7 of the AI SDK wants Node 22.
const PACKAGES: [&str; 4] =
    ["ai@7", "ai-sdk-provider-codex-cli@2.2.1", "@openai/codex-sdk@0.163.0", "node@22"];

/// A way to use Codex from Node.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// As the table names it.
    pub(super) name: &'static str,
    word: &'static str,
}

/// The ways there are.
pub(super) const KINDS: &[Kind] = &[
    Kind { name: "`ai-sdk-provider-codex-cli`, app-server", word: "provider" },
    Kind { name: "`@openai/codex-sdk`", word: "sdk" },
];

/// Asked for a number on stdin, it has so many conversations at once and prints milliseconds.
const SCRIPT: &str = r#"import { createInterface } from 'node:readline';

const [kind, codexPath, cwd, prompt] = process.argv.slice(2);

async function provider() {
  const { streamText } = await import('ai');
  const { createCodexAppServer } = await import('ai-sdk-provider-codex-cli');
  const codex = createCodexAppServer({ defaultSettings: { codexPath, cwd } });
  return async () => {
    const result = streamText({ model: codex('gpt-5.5'), prompt });
    let text = '';
    for await (const part of result.fullStream) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'text-delta') text += part.text;
    }
    if (!text) throw new Error('no text');
  };
}

async function sdk() {
  const { Codex } = await import('@openai/codex-sdk');
  const codex = new Codex({ codexPathOverride: codexPath });
  return async () => {
    const thread = codex.startThread({ workingDirectory: cwd });
    const turn = await thread.run(prompt);
    if (!turn.finalResponse) throw new Error('no text');
  };
}

const talk = await (kind === 'sdk' ? sdk() : provider());
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const begin = performance.now();
  try {
    await Promise.all(Array.from({ length: Number(line) }, talk));
    console.log(String(performance.now() - begin));
  } catch (error) {
    console.log('error ' + String(error?.message ?? error).replaceAll('\n', ' '));
  }
}
process.exit(0);
"#;

/// The installed packages, or why there are none.
pub(super) struct Peers {
    folder: Result<PathBuf, String>,
}

impl Peers {
    /// Installs them once, under `target/bindery-test`.
    pub(super) fn install(root: &Path) -> Self {
        let folder = root.join("target/bindery-test/peers");
        Self { folder: install(&folder).map(|()| folder).map_err(|err| format!("{err:#}")) }
    }

    /// Starts one, on this Codex.
    pub(super) fn start(&self, kind: Kind, codex: RealCodex) -> anyhow::Result<Peer> {
        let folder = self.folder.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
        let mut child = Command::new(folder.join("node_modules/.bin/node"))
            .arg(folder.join("peer.mjs"))
            .arg(kind.word)
            .arg(codex.program())
            .arg(codex.project())
            .arg(QUESTION)
            .env_clear()
            .envs(codex.env())
            .current_dir(codex.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start Node")?;
        let stdout = BufReader::new(child.stdout.take().context("Node has no stdout")?);
        let stdin = child.stdin.take();
        let mut peer = Peer { child, stdin, stdout, _codex: codex };
        let ready = peer.line()?;
        ensure!(ready == "ready", "it said `{ready}`");
        Ok(peer)
    }
}

/// A running Node process; dropping it ends it.
pub(super) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Ends last: its folders are Codex's home.
    _codex: RealCodex,
}

impl Peer {
    /// So many conversations at once; gives when the last was over.
    pub(super) fn many(&mut self, count: usize) -> anyhow::Result<Duration> {
        writeln!(self.stdin.as_mut().context("Node has no stdin")?, "{count}")?;
        let line = self.line()?;
        let Ok(milliseconds) = line.parse::<f64>() else { bail!("{line}") };
        Ok(Duration::from_secs_f64(milliseconds / 1000.0))
    }

    /// The next line that is ours; packages may print as well.
    fn line(&mut self) -> anyhow::Result<String> {
        loop {
            let mut line = String::new();
            ensure!(self.stdout.read_line(&mut line)? > 0, "Node has left");
            let line = line.trim();
            if line == "ready" || line.starts_with("error ") || line.parse::<f64>().is_ok() {
                return Ok(line.to_owned());
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn install(folder: &Path) -> anyhow::Result<()> {
    let stamp = folder.join(".installed");
    let wanted = PACKAGES.join(" ");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(std::fs::write(folder.join("peer.mjs"), SCRIPT)?);
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("package.json"), "{\"private\": true, \"type\": \"module\"}\n")?;
    std::fs::write(folder.join("peer.mjs"), SCRIPT)?;
    let mut command = Command::new("npm");
    command
        .args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", "--prefix"])
        .arg(folder)
        .args(PACKAGES)
        .stdout(Stdio::null());
    let status = step::status(&mut command)?;
    ensure!(status.success(), "npm could not install `{wanted}` ({status})");
    Ok(std::fs::write(stamp, wanted)?)
}
