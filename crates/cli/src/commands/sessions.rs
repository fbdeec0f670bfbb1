//! `bindery sessions`: what Codex has left on disk, listed, shown, exported, checked.

mod destination;

mod export;

mod list;

mod pager;

mod screen;

mod show;

mod turn_writer;

mod validate;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use bindery::sessions::find;

use crate::terminal::Style;

/// List, show, export and check Codex sessions
///
/// Reads the session files of every Codex version, in any folder, packed or not, and never
/// writes into a Codex home. Where a session is asked for, its id, the beginning (or the end) of
/// its id, or a path will do.
#[derive(Debug, clap::Args)]
pub struct Sessions {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    List(list::List),
    Show(show::Show),
    Export(export::Export),
    Validate(validate::Validate),
}

/// Where to look for sessions.
#[derive(Clone, Debug, Default, clap::Args)]
struct Roots {
    /// A Codex home or any folder with sessions [default: CODEX_HOME, else ~/.codex]
    #[arg(long = "home", value_name = "FOLDER")]
    homes: Vec<PathBuf>,
}

impl Roots {
    fn paths(&self) -> Vec<PathBuf> {
        if !self.homes.is_empty() {
            return self.homes.clone();
        }
        let (codex_home, home) = (std::env::var_os("CODEX_HOME"), std::env::var_os("HOME"));
        find::default_roots(codex_home.as_deref(), home.as_deref())
    }
}

/// What a command is given, so that tests can run it in process.
struct Context<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    style: Style,
    /// Milliseconds since 1970.
    now: i64,
    /// Where summaries are kept between runs.
    cache: Option<PathBuf>,
    /// How times are written for people.
    write_time: screen::WriteTime,
}

impl Sessions {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let style = Style::here();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
        let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
        let cx = Context {
            out: &mut out,
            err: &mut err,
            style,
            now: i64::try_from(now)?,
            cache: cache_path(),
            write_time: screen::write_local_time,
        };
        self.run_in(cx)
    }

    fn run_in(self, cx: Context<'_>) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::List(list) => list.run(cx),
            Verb::Show(show) => show.run(cx),
            Verb::Export(export) => export.run(cx),
            Verb::Validate(validate) => validate.run(cx),
        }
    }
}

/// `$XDG_CACHE_HOME/bindery/sessions.json`, never a place of Codex's.
fn cache_path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = set("XDG_CACHE_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))?;
    Some(folder.join("bindery").join("sessions.json"))
}

#[cfg(test)]
mod tests;
