//! `bindery run`: one turn in the terminal.

mod agent;

pub(super) mod ask;

pub(super) mod call;

pub(super) mod header;

mod kept_sandbox;

mod resume;

pub(super) mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bindery::core::spec::Spec;
use bindery::engine::config::Home;
use bindery::{Deadlines, LanguageModel, ModelSettings};
use clap::ValueEnum;

use self::ask::Desk;
use self::show::Screen;
use super::prompt::{called, filled};
use crate::config_flags::ConfigFlags;
use crate::failure::Hinted;
use crate::server::{Running, Start, WhichCodex, folder};
use crate::terminal::Style;

/// Run one turn and stream it
///
/// The answer goes to stdout, everything else to stderr. Without a terminal nobody can be asked,
/// so what needs an approval is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// What to do; `-`, or nothing with a pipe, reads it from stdin
    prompt: Option<String>,

    /// One of your own prompts, filled in: its name, then `KEY=value` or values by place
    #[arg(long = "prompt", value_name = "NAME", num_args = 1.., conflicts_with = "prompt")]
    custom: Vec<String>,

    /// Go on with a thread: its id, the beginning of it, or `last` for the newest of this folder
    #[arg(long, value_name = "ID|last")]
    resume: Option<String>,

    /// Go on in a copy of the resumed thread, and leave the thread as it is
    #[arg(long, requires = "resume")]
    fork: bool,

    /// The model, instead of the configured one
    #[arg(long, short)]
    model: Option<String>,

    /// Reasoning effort, as the model names it: `low`, `medium`, `high` …
    #[arg(long)]
    effort: Option<String>,

    /// What commands may touch
    #[arg(long, value_enum)]
    sandbox: Option<Sandbox>,

    /// Who decides when Codex asks
    #[arg(long, value_enum, default_value_t)]
    approve: Approve,

    /// What runs the turn [default: codex, or engine where there is none]
    #[arg(long, value_enum)]
    backend: Option<Backend>,

    /// A command-line agent to run instead: `codex`, `gemini`, or a description in TOML
    #[arg(long, value_name = "NAME|FILE")]
    agent: Option<String>,

    #[command(flatten)]
    pub(super) settings: ConfigFlags,

    /// With `--agent` or `--backend exec`: tell the files that are new in this folder afterwards
    #[arg(long, value_name = "FOLDER")]
    artifacts: Option<PathBuf>,

    /// With `--format ndjson`: only the words that readers of the original vocabulary know
    #[arg(long)]
    compat: bool,

    /// With `--agent` or `--backend exec`: write how it ended to stderr, as one JSON object
    #[arg(long)]
    json: bool,

    /// The folder to work in
    #[arg(long, short = 'C', value_name = "FOLDER")]
    cwd: Option<PathBuf>,

    /// An image to show to the model; may be given several times
    #[arg(long, short, value_name = "FILE")]
    image: Vec<PathBuf>,

    /// A text file to give along; may be given several times
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// A JSON Schema file that the answer must fit
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,

    /// Keep no session file
    #[arg(long, conflicts_with = "resume")]
    ephemeral: bool,

    /// How the turn is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// With `--format parts`: the AI SDK specification to write
    #[arg(long, value_enum, default_value_t, value_name = "VERSION")]
    spec: SpecName,

    /// End the turn after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,

    /// End the turn after so many seconds without progress [default: 1800]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    idle_timeout: Option<u64>,

    #[command(flatten)]
    codex: WhichCodex,
}

const EXAMPLES: &str = "\
Examples:
  bindery run \"why does the build fail?\"
  git diff | bindery run - --sandbox read-only
  bindery run --resume last \"now fix it\"
  bindery run --prompt ticket ID=42
  bindery run --format parts \"list the modules\" | jq -r 'select(.type==\"text-delta\").delta'";

/// What commands may touch.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Sandbox {
    /// Read files, write nothing
    ReadOnly,
    /// Write inside the folder
    WorkspaceWrite,
    /// Everything: no sandbox
    DangerFullAccess,
}

/// Who decides when Codex asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Approve {
    /// You, at this terminal, whenever Codex wants more than the sandbox allows
    #[default]
    Ask,
    /// You, at this terminal, for every command that is not known to be harmless
    Untrusted,
    /// Nobody: Codex does not ask, and what it may not do fails
    Never,
    /// Nobody: every question is answered with yes
    Accept,
}

/// What runs the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// The Codex app-server
    Codex,
    /// The engine that is built in
    Engine,
    /// `codex exec`: no questions, no deltas, nothing but what it prints
    Exec,
}

/// How the turn is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// AI SDK stream parts, one JSON object a line
    Parts,
    /// The normalised stream of command-line agents, one JSON object a line
    Ndjson,
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

impl Run {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        if self.agent.is_some() || self.backend == Some(Backend::Exec) {
            return agent::run(&self).await;
        }
        if self.format == Format::Ndjson {
            let message = "`--format ndjson` is the stream of command-line agents";
            return Err(Hinted::misuse(message, "add `--backend exec`, or use `--format parts`"));
        }
        let cwd = folder(self.cwd.as_deref())?;
        let text = self.words()?;
        let mut options = call::options(&self, &text)?;
        let running = self.start(&cwd).await?;
        let server = running.server.clone();
        let mut kept = None;
        if let Some(wanted) = &self.resume {
            let thread = resume::find(&server, wanted, &cwd).await?;
            call::resume(&mut options, &thread, self.fork);
            if self.sandbox.is_none() {
                kept = kept_sandbox::read(&server, &thread).await?;
            }
        }
        let mut thread = call::thread_settings(&self, &cwd);
        if let Some(kept) = kept {
            thread.sandbox = kept.mode.map(str::to_owned);
            call::keep_policy(&mut options, kept.policy);
        }
        let style = Style::here();
        let (desk, questions) = Desk::open(self.approve == Approve::Accept);
        let settings = ModelSettings {
            thread,
            deadlines: self.deadlines(),
            answerer: std::sync::Arc::new(desk),
            ..ModelSettings::default()
        };
        let call = LanguageModel::new(server.clone(), settings).stream(&options).await;
        let call = call.map_err(|err| resume::explained(err, self.resume.as_deref()))?;
        running.warn();
        let header = header::facts(&running.name, call.opened.as_ref(), &cwd).await;
        let parts = (self.format == Format::Parts).then_some(self.spec.into());
        let screen = Screen::new(style, running.asker(), &cwd, parts);
        let control = call.turn.control();
        let code = screen.run(call.turn, control, &header, questions).await;
        drop(server);
        running.close().await;
        code
    }

    /// What the model is told.
    fn words(&self) -> anyhow::Result<String> {
        match self.custom.split_first() {
            Some((name, arguments)) => filled(name, arguments, &Home::here()?),
            None => {
                let words = call::prompt_text(self.prompt.as_deref())?;
                Ok(called(&words, &Home::here()?)?.unwrap_or(words))
            }
        }
    }

    async fn start(&self, cwd: &Path) -> anyhow::Result<Running> {
        let mode = self.sandbox.map(Sandbox::name);
        let start = Start { cwd, settings: &self.settings, mode };
        match self.backend {
            Some(Backend::Engine) => start.engine().await,
            Some(_) => start.codex(&self.codex).await,
            None => start.any(&self.codex).await,
        }
    }

    fn deadlines(&self) -> Deadlines {
        let usual = Deadlines::default();
        let idle = self.idle_timeout.map(Duration::from_secs);
        Deadlines {
            idle: idle.unwrap_or(usual.idle),
            whole: self.timeout.map(Duration::from_secs),
            ..usual
        }
    }
}

impl Sandbox {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }
}

impl Approve {
    /// Codex's policy; none leaves the configured one in force.
    fn policy(self) -> Option<&'static str> {
        match self {
            Self::Ask | Self::Accept => None,
            Self::Untrusted => Some("untrusted"),
            Self::Never => Some("never"),
        }
    }
}

impl From<SpecName> for Spec {
    fn from(name: SpecName) -> Self {
        match name {
            SpecName::V3 => Self::V3,
            SpecName::V4 => Self::V4,
        }
    }
}
