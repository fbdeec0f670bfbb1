//! `bindery sessions show`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bindery::core::transcript::TurnRecord;
use bindery::sessions::find::{self, SessionFile};
use bindery::sessions::normalise::{Event, Options};
use bindery::sessions::record::{self, Limits, Records};
use bindery::sessions::render::{self, Density};
use bindery::sessions::session;
use bindery::sessions::summary::{Reader, Summary};

use super::pager::Pager;
use super::screen::{ScreenLayout, WriteTime};
use super::{Context, Roots};
use crate::failure::Hinted;
use crate::terminal::Style;
use crate::view::clean::visible;

/// Show a session
///
/// Turns as cards: what was asked, what was done, what was answered. What Bindery does not
/// understand is shown as a card, too; nothing is left out in silence.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// The session: its id, the beginning or the end of it, or a path
    session: String,

    #[command(flatten)]
    roots: Roots,

    /// How much to show
    #[arg(long, short, value_enum, default_value_t)]
    density: Amount,

    /// Show this turn only, counted from 1
    #[arg(long, value_name = "N", conflicts_with = "last")]
    turn: Option<u64>,

    /// Show the last turns only; of a long session nothing else is read
    #[arg(long, value_name = "N", num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "1")]
    last: Option<usize>,

    /// Show the lines of the file as they are
    #[arg(long)]
    raw: bool,

    /// Do not begin with what a fork's parent said
    #[arg(long)]
    own: bool,

    /// Write straight to the terminal
    #[arg(long)]
    no_pager: bool,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Amount {
    /// What was said; failures
    Conversation,
    /// What was done, too, a row each
    #[default]
    Activity,
    /// Outputs, thoughts and setup, too
    Everything,
}

/// Columns of rules and rows where there is no screen.
const PIPE_WIDTH: usize = 100;

impl Show {
    fn page<'a>(&self, style: &Style, screen: Option<&'a ScreenLayout>) -> Page<'a> {
        let width = screen.map_or(PIPE_WIDTH, ScreenLayout::columns);
        let density = self.density.into();
        let (colour, unicode) = (style.out.colour, style.unicode);
        Page { style: render::Style { density, colour, unicode, width }, screen }
    }

    pub(super) fn run(self, cx: Context<'_>) -> anyhow::Result<ExitCode> {
        let roots = self.roots.paths();
        let file = find::resolve(&self.session, &roots)?;
        let mut pager = match cx.style.out.terminal && !self.no_pager {
            true => Pager::start(),
            false => None,
        };
        let out: &mut dyn Write = match &mut pager {
            Some(pager) => pager.input(),
            None => cx.out,
        };
        let result = if self.raw {
            raw(&file.path, out)
        } else {
            self.draw(&file, &roots, &cx.style, (cx.now, cx.write_time), out)
        };
        if let Some(pager) = pager {
            pager.wait();
        }
        // Whoever leaves the pager has seen enough.
        match result {
            Err(error) if is_closed(&error) => Ok(ExitCode::SUCCESS),
            other => other.map(|()| ExitCode::SUCCESS),
        }
    }

    fn draw(
        &self,
        file: &SessionFile,
        roots: &[PathBuf],
        style: &Style,
        (now, write_time): (i64, WriteTime),
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let options = Options { live: now.saturating_sub(file.modified_ms) < 120_000 };
        let screen = style.out.terminal.then(|| ScreenLayout::new(style, write_time));
        if let Some(screen) = &screen {
            for row in screen.heading(&summary(file, roots)?) {
                writeln!(out, "{row}")?;
            }
        }
        let page = self.page(style, screen.as_ref());
        if let Some(count) = self.last {
            let tail = session::tail(&file.path, count, options)?;
            for turn in &tail.transcript.turns {
                page.draw(out, None, turn)?;
            }
            return Ok(());
        }
        let chain = match self.own {
            true => Vec::new(),
            false => {
                let files = around(file, roots);
                let chain = session::chain(&file.path, &files);
                if let Some(id) = session::missing_base(&chain, &files) {
                    let id = visible(&id).into_owned();
                    writeln!(out, "note: what it continues, thread {id}, is not here\n")?;
                }
                chain
            }
        };
        let (mut failure, mut last, mut found) = (None, 0, false);
        let emit = |event: Event| {
            let Event::Turn { number, turn, .. } = event else { return };
            last = last.max(number);
            if failure.is_none() && self.turn.is_none_or(|wanted| wanted == number) {
                found = true;
                failure = page.draw(out, Some(number), &turn).err();
            }
        };
        match chain.is_empty() {
            true => session::stream(&file.path, options, emit)?,
            false => session::stream_chain(&chain, options, emit)?,
        };
        if let Some(error) = failure {
            return Err(error.into());
        }
        match self.turn {
            Some(wanted) if !found => Err(Hinted::misuse(
                format!("no turn {wanted}: the session has {last}"),
                "turns are counted from 1; `--last` shows the last one",
            )),
            _ => Ok(()),
        }
    }
}

/// How turns are drawn: for this screen, or the same for every pipe and file.
struct Page<'a> {
    style: render::Style,
    screen: Option<&'a ScreenLayout>,
}

impl Page<'_> {
    fn draw(
        &self,
        out: &mut dyn Write,
        number: Option<u64>,
        turn: &TurnRecord,
    ) -> std::io::Result<()> {
        match self.screen {
            Some(screen) => render::terminal_with(out, number, turn, self.style, screen),
            None => render::terminal(out, number, turn, self.style),
        }
    }
}

/// What a list would show of the session, with the name that it was given.
fn summary(file: &SessionFile, roots: &[PathBuf]) -> anyhow::Result<Summary> {
    let mut summary = Reader::default().summary(file, false)?;
    let mut names = find::names(roots);
    let name = summary.id.as_ref().and_then(|id| names.remove(id));
    summary.title = name.or(summary.title);
    Ok(summary)
}

/// Files among which a fork's parent may be: those of the homes, and those beside it.
pub(super) fn around(file: &SessionFile, roots: &[PathBuf]) -> Vec<SessionFile> {
    let mut places: Vec<_> = roots.iter().filter(|root| root.exists()).cloned().collect();
    let inside = places.iter().any(|root| file.path.starts_with(root));
    if !inside {
        places.extend(file.path.parent().filter(|p| p.is_dir()).map(Path::to_owned));
    }
    find::files(&places).unwrap_or_default()
}

/// The lines as they are, except that the terminal is not steered by them: what could is written
/// as JSON writes it, so that a line still means the same.
fn raw(path: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut records = Records::new(record::open(path)?, Limits::none());
    while let Some(record) = records.next()? {
        let text = String::from_utf8_lossy(record.raw);
        let mut rest = text.as_ref();
        while let Some(at) = rest.find(steers) {
            out.write_all(&rest.as_bytes()[..at])?;
            let letter = rest[at..].chars().next().unwrap_or_default();
            write!(out, "\\u{:04x}", u32::from(letter))?;
            rest = &rest[at + letter.len_utf8()..];
        }
        writeln!(out, "{rest}")?;
    }
    Ok(())
}

fn steers(letter: char) -> bool {
    letter != '\t' && visible(letter.encode_utf8(&mut [0; 4])).len() != letter.len_utf8()
}

fn is_closed(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

impl From<Amount> for Density {
    fn from(amount: Amount) -> Self {
        match amount {
            Amount::Conversation => Self::Conversation,
            Amount::Activity => Self::Activity,
            Amount::Everything => Self::Everything,
        }
    }
}
