//! `bindery sessions export`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use bindery::sessions::find;
use bindery::sessions::messages;
use bindery::sessions::normalise::{Event, Options};
use bindery::sessions::render;
use bindery::sessions::session::{self, Segment};
use serde_json::json;

use super::destination::Destination;
use super::show::around;
use super::turn_writer::TurnWriter;
use super::{Context, Roots};

/// Write a session in another form
#[derive(Debug, clap::Args)]
pub(super) struct Export {
    /// The session: its id, the beginning or the end of it, or a path
    session: String,

    #[command(flatten)]
    roots: Roots,

    /// The form
    #[arg(long, short, value_enum, default_value_t)]
    format: Format,

    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Messages: keep instructions and context that the model was given
    #[arg(long)]
    setup: bool,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Format {
    /// Markdown
    #[default]
    Md,
    /// The transcript as one JSON value
    Json,
    /// Messages with tool_use and tool_result blocks, a JSON array
    Messages,
    /// One item a line
    Ndjson,
}

impl Export {
    pub(super) fn run(self, cx: Context<'_>) -> anyhow::Result<ExitCode> {
        let roots = self.roots.paths();
        let file = find::resolve(&self.session, &roots)?;
        let files = around(&file, &roots);
        let chain = session::chain(&file.path, &files);
        if let Some(id) = session::missing_base(&chain, &files) {
            let id = crate::view::clean::visible(&id).into_owned();
            writeln!(cx.err, "note: what it continues, thread {id}, is not here")?;
        }
        match &self.output {
            Some(path) => {
                let inputs: Vec<_> = chain.iter().map(|segment| segment.path.as_path()).collect();
                let mut destination = Destination::open(path, &inputs, &roots)?;
                self.write(&chain, destination.out())?;
                destination.keep()?;
            }
            None => self.write(&chain, cx.out)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write(&self, chain: &[Segment], out: &mut dyn Write) -> anyhow::Result<()> {
        match self.format {
            Format::Json => self.json(chain, out),
            Format::Messages => self.messages(chain, out),
            Format::Md | Format::Ndjson => self.stream(chain, Options::default(), out),
        }
    }

    /// The transcript, of which a piece of a turn is in memory.
    fn json(&self, chain: &[Segment], out: &mut dyn Write) -> anyhow::Result<()> {
        let mut failure = None;
        let mut turns = TurnWriter::default();
        write!(out, "{{\"turns\":[")?;
        let emit = |event: Event| {
            if failure.is_none() {
                failure = turns.take(event, out).err();
            }
        };
        let (head, _) = session::stream_chain(chain, Options::default(), emit)?;
        if let Some(error) = failure {
            return Err(error);
        }
        write!(out, "]")?;
        if let Some(id) = head.id {
            write!(out, ",\"threadId\":{}", serde_json::to_string(&id)?)?;
        }
        Ok(writeln!(out, "}}")?)
    }

    /// The messages, of which those of a piece of a turn are in memory.
    fn messages(&self, chain: &[Segment], out: &mut dyn Write) -> anyhow::Result<()> {
        let options = messages::Options { setup: self.setup };
        let (mut failure, mut is_first) = (None, true);
        write!(out, "[")?;
        let emit = |event: Event| {
            let Event::Turn { more, mut turn, .. } = event else { return };
            if more {
                // How a turn ended is told with its last piece.
                turn.errors.clear();
            }
            for entry in messages::of_turn(&turn, options) {
                if failure.is_some() {
                    return;
                }
                let comma = if std::mem::take(&mut is_first) { "\n" } else { ",\n" };
                failure = (write!(out, "{comma}").map_err(anyhow::Error::from))
                    .and_then(|()| Ok(serde_json::to_writer_pretty(&mut *out, &entry)?))
                    .err();
            }
        };
        session::stream_chain(chain, Options::default(), emit)?;
        if let Some(error) = failure {
            return Err(error);
        }
        Ok(writeln!(out, "\n]")?)
    }

    /// Turn by turn, so that a session of any length can be written.
    fn stream(
        &self,
        chain: &[Segment],
        options: Options,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let mut failure = None;
        let emit = |event: Event| {
            if failure.is_some() {
                return;
            }
            let result = match (&event, self.format) {
                (Event::Turn { number, turn, .. }, Format::Md) => {
                    render::markdown(out, *number, turn)
                }
                (Event::Turn { number, turn, .. }, _) => turn.items.iter().try_for_each(|item| {
                    let line = json!({ "turn": number, "turnId": turn.id, "item": item });
                    writeln!(out, "{line}")
                }),
                (Event::RollBack(turns), Format::Md) => {
                    writeln!(out, "*{turns} turns before this were taken back*\n")
                }
                (Event::RollBack(turns), _) => writeln!(out, "{}", json!({ "rolledBack": turns })),
            };
            failure = result.err();
        };
        session::stream_chain(chain, options, emit)?;
        failure.map_or(Ok(()), |error| Err(error.into()))
    }
}
