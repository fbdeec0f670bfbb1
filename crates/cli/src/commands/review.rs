//! `bindery review`: a review of changes in the terminal.

mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bindery::core::wire::app_server::params::{ThreadSettings, ThreadStart};
use bindery::core::wire::app_server::reply::ThreadOpened;
use bindery::{Deadlines, Turn, TurnRequest};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::run::ask::Desk;
use super::run::show::Screen;
use super::run::{Sandbox, call, header};
use crate::config_flags::ConfigFlags;
use crate::server::{Running, Start, WhichCodex, folder};
use crate::terminal::Style;

/// Review changes and tell what is wrong with them
///
/// Without a target it reviews what is not committed. Findings go to stdout, with a priority from
/// P0 (stops everything) to P3 (would be nice); nobody is asked and nothing is changed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Review {
    /// What to review, in your own words; `-` reads them from stdin
    #[arg(group = "target")]
    prompt: Option<String>,

    /// What is staged, changed or new, and not committed
    #[arg(long, group = "target")]
    uncommitted: bool,

    /// What this branch changes against another
    #[arg(long, value_name = "BRANCH", group = "target")]
    base: Option<String>,

    /// One commit
    #[arg(long, value_name = "SHA", group = "target")]
    commit: Option<String>,

    /// With `--commit`: its first line, for the reviewer
    #[arg(long, requires = "commit", conflicts_with_all = ["prompt", "uncommitted", "base"])]
    title: Option<String>,

    /// The model, instead of the configured one
    #[arg(long, short)]
    model: Option<String>,

    /// What commands of the reviewer may touch
    #[arg(long, value_enum)]
    sandbox: Option<Sandbox>,

    /// What runs the review [default: codex, or engine where there is none]
    #[arg(long, value_enum)]
    backend: Option<Backend>,

    /// The folder to work in
    #[arg(long, short = 'C', value_name = "FOLDER")]
    cwd: Option<PathBuf>,

    /// Write the findings as one JSON object
    #[arg(long)]
    json: bool,

    /// End the review after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,

    #[command(flatten)]
    pub(super) settings: ConfigFlags,

    #[command(flatten)]
    codex: WhichCodex,
}

const EXAMPLES: &str = "\
Examples:
  bindery review
  bindery review --base main
  bindery review --commit HEAD~1 --json | jq '.findings[] | select(.priority <= 1)'
  bindery review \"is the retry in src/http.rs bounded?\"";

/// What runs the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// The Codex app-server
    Codex,
    /// The engine that is built in
    Engine,
}

impl Review {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let cwd = folder(self.cwd.as_deref())?;
        let target = self.target()?;
        let mode = self.sandbox.map(Sandbox::name);
        let start = Start { cwd: &cwd, settings: &self.settings, mode };
        let running = match self.backend {
            Some(Backend::Engine) => start.engine().await?,
            Some(Backend::Codex) => start.codex(&self.codex).await?,
            None => start.any(&self.codex).await?,
        };
        let code = self.show(&running, target, &cwd).await;
        running.close().await;
        code
    }

    async fn show(&self, running: &Running, target: Value, cwd: &Path) -> anyhow::Result<ExitCode> {
        let opened = running.server.start_thread(&self.thread(cwd)).await?;
        let (desk, questions) = Desk::open(false);
        let mut request = TurnRequest::new(opened.thread.id.clone(), "");
        request.input.clear();
        request.model = Some(opened.model.clone());
        request.deadlines = self.deadlines();
        if !self.json {
            request.answerer = std::sync::Arc::new(desk);
        }
        let turn = running.server.start_review(request, target).await?;
        match self.json {
            true => report::run(turn).await,
            false => draw(turn, running, &opened, cwd, questions).await,
        }
    }

    fn target(&self) -> anyhow::Result<Value> {
        Ok(match (&self.base, &self.commit, &self.prompt) {
            (Some(branch), ..) => json!({ "type": "baseBranch", "branch": branch }),
            (_, Some(sha), _) => json!({ "type": "commit", "sha": sha, "title": self.title }),
            (.., Some(words)) => {
                json!({ "type": "custom", "instructions": call::prompt_text(Some(words))? })
            }
            _ => json!({ "type": "uncommittedChanges" }),
        })
    }

    fn thread(&self, cwd: &Path) -> ThreadStart {
        let settings = ThreadSettings {
            model: self.model.clone(),
            cwd: Some(cwd.display().to_string()),
            sandbox: self.sandbox.map(|sandbox| sandbox.name().to_owned()),
            ..ThreadSettings::default()
        };
        ThreadStart { settings, ..ThreadStart::default() }
    }

    fn deadlines(&self) -> Deadlines {
        Deadlines { whole: self.timeout.map(Duration::from_secs), ..Deadlines::default() }
    }
}

async fn draw(
    turn: Turn,
    running: &Running,
    opened: &ThreadOpened,
    cwd: &Path,
    questions: tokio::sync::mpsc::Receiver<super::run::ask::Question>,
) -> anyhow::Result<ExitCode> {
    let header = header::facts(&running.name, Some(opened), cwd).await;
    let control = turn.control();
    let screen = Screen::new(Style::here(), running.asker(), cwd, None);
    screen.run(turn, control, &header, questions).await
}
