//! `bindery map`: what an agent printed, in one form for all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bindery::core::map::exec_to_ndjson::{Baseline, ExecMapper, Exit, Options};
use bindery::core::map::exec_to_part::EventParts;
use bindery::core::ndjson::{self, Dialect, Event, Status, Tokens};
use bindery::core::spec::Spec;
use clap::ValueEnum;
use serde_json::json;

use crate::failure::Hinted;
use crate::terminal::Style;
use crate::view::View;
use crate::view::output::Output;

/// Map what `codex exec --json` prints to one form for all agents and versions
///
/// Reads a file or stdin and writes as it reads. Lines nobody understands are told, not dropped.
/// The exit code is 1 if the run failed, as far as its lines and `--exit-code` tell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Map {
    /// A recorded run; without one, stdin is read
    file: Option<PathBuf>,

    /// What is read
    #[arg(long, value_enum, default_value_t)]
    from: From,

    /// What is written
    #[arg(long, value_enum, default_value_t)]
    to: To,

    /// With `--to ndjson`: only the words that readers of the original vocabulary know
    #[arg(long)]
    compat: bool,

    /// Write a summary to stderr at the end, as one JSON object
    #[arg(long)]
    json: bool,

    /// How the agent's process ended, for the result
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    exit_code: Option<i32>,

    /// The model, which `codex exec` does not say
    #[arg(long, short)]
    model: Option<String>,

    /// The run went on with a thread, so that tokens count from `--baseline`, or are not known
    #[arg(long)]
    resumed: bool,

    /// The thread's tokens before the run: the `total` of its last `usage` event, as JSON
    #[arg(long, value_name = "JSON")]
    baseline: Option<String>,

    /// With `--to parts`: the AI SDK specification to write
    #[arg(long, value_enum, default_value_t, value_name = "VERSION")]
    spec: SpecName,
}

const EXAMPLES: &str = "\
Examples:
  codex exec --json \"why does the build fail?\" | bindery map --from exec --to ndjson
  codex exec --json \"list the modules\" | bindery map --to text
  bindery map --to parts --exit-code 1 run.jsonl";

/// What is read.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum From {
    /// `codex exec --json`, of any version
    #[default]
    Exec,
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum To {
    /// The normalised stream, one JSON object a line
    #[default]
    Ndjson,
    /// AI SDK stream parts, one JSON object a line
    Parts,
    /// Text for people: the answer to stdout, all else to stderr
    Text,
}

/// A version of the AI SDK's language-model contract.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum SpecName {
    /// ai@6
    V3,
    /// ai@7
    #[default]
    V4,
}

impl Map {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let From::Exec = self.from;
        let input: Box<dyn Read> = match &self.file {
            Some(path) => Box::new(
                File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?,
            ),
            None => Box::new(io::stdin().lock()),
        };
        let exit = Exit { code: self.exit_code, ..Exit::default() };
        let mapper = ExecMapper::new(self.options()?);
        let summary = run(input, mapper, &exit, self.writer(), io::stdout().lock())?;
        if self.json {
            writeln!(io::stderr().lock(), "{}", summary.to_json())?;
        }
        Ok(if summary.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn options(&self) -> anyhow::Result<Options> {
        let baseline = match (&self.baseline, self.resumed) {
            (Some(text), _) => Baseline::Known(tokens(text)?),
            (None, true) => Baseline::Unknown,
            (None, false) => Baseline::New,
        };
        // The dialect also says when errors are told.
        let dialect = if self.compat { Dialect::Compat } else { Dialect::Full };
        Ok(Options { dialect, model: self.model.clone(), baseline, ..Options::default() })
    }

    fn writer(&self) -> Writer {
        match self.to {
            To::Ndjson if self.compat => Writer::Ndjson(Dialect::Compat),
            To::Ndjson => Writer::Ndjson(Dialect::Full),
            To::Parts => Writer::Parts(EventParts::default(), self.spec.into()),
            To::Text => {
                let view = View::new(Style::here(), "");
                Writer::Text(EventParts::default(), Box::new(view), Vec::new())
            }
        }
    }
}

fn tokens(text: &str) -> anyhow::Result<Tokens> {
    serde_json::from_str(text).map_err(|err| {
        let hint = "give the `total` of a `usage` event: '{\"input_tokens\":200,…}'";
        Hinted::misuse(format!("`--baseline` is no token count: {err}"), hint)
    })
}

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;

/// Maps everything that `input` has.
fn run(
    mut input: impl Read,
    mut mapper: ExecMapper,
    exit: &Exit,
    mut writer: Writer,
    mut out: impl Write,
) -> anyhow::Result<Summary> {
    let mut summary = Summary::default();
    let mut chunk = vec![0; CHUNK];
    let mut buffer = Vec::with_capacity(CHUNK);
    loop {
        let read = match input.read(&mut chunk) {
            Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
            read => read.context("cannot read the stream")?,
        };
        summary.bytes += read as u64;
        let mut take = |event: &Event<'_>| {
            summary.count(event);
            writer.write(event, &mut buffer);
        };
        match read {
            0 => mapper.end(exit, &mut take),
            _ => mapper.feed(&chunk[..read], &mut take),
        }
        writer.pass_on(&mut buffer, &mut out)?;
        if read == 0 {
            return Ok(summary);
        }
    }
}

/// One of the forms to write.
enum Writer {
    Ndjson(Dialect),
    Parts(EventParts, Spec),
    Text(EventParts, Box<View>, Vec<Output>),
}

impl Writer {
    fn write(&mut self, event: &Event<'_>, buffer: &mut Vec<u8>) {
        let mut parts = Vec::new();
        match self {
            Self::Ndjson(dialect) => ndjson::write(event, *dialect, buffer),
            Self::Parts(mapper, spec) => {
                mapper.take(event, &mut parts);
                for json in parts.iter().filter_map(|part| part.to_json(*spec)) {
                    buffer.extend_from_slice(json.to_string().as_bytes());
                    buffer.push(b'\n');
                }
            }
            Self::Text(mapper, view, shown) => {
                mapper.take(event, &mut parts);
                shown.extend(parts.iter().map(|part| view.push(part)));
            }
        }
    }

    /// Writes what is ready, and empties the buffer.
    fn pass_on(&mut self, buffer: &mut Vec<u8>, out: &mut impl Write) -> anyhow::Result<()> {
        match self {
            Self::Text(_, _, shown) => shown.drain(..).try_for_each(|output| output.print())?,
            _ => out.write_all(buffer)?,
        }
        buffer.clear();
        Ok(out.flush()?)
    }
}

/// What was mapped.
#[derive(Default)]
struct Summary {
    bytes: u64,
    events: BTreeMap<&'static str, u64>,
    failed: bool,
}

impl Summary {
    fn count(&mut self, event: &Event<'_>) {
        *self.events.entry(event.name()).or_default() += 1;
        if let Event::Result(result) = event {
            self.failed = result.status == Status::Error;
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let status = if self.failed { "error" } else { "success" };
        json!({ "status": status, "bytes": self.bytes, "events": self.events })
    }
}

impl std::convert::From<SpecName> for Spec {
    fn from(name: SpecName) -> Self {
        match name {
            SpecName::V3 => Self::V3,
            SpecName::V4 => Self::V4,
        }
    }
}
