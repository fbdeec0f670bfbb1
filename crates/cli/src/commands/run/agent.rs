//! A turn on a command-line agent: `codex exec`, Gemini CLI, or any that is described.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use bindery::client::run_chat::codex::CodexAgent;
use bindery::client::run_chat::described::DescribedAgent;
use bindery::client::run_chat::gemini::GeminiAgent;
use bindery::client::run_chat::{
    ChatAgent, ChatRequest, Form, Joined, Output, RunOptions, run_chat,
};
use bindery::core::map::exec_to_ndjson::{Cause, Exit};
use bindery::core::ndjson::{Dialect, Event};
use bindery::core::part::Part;
use bindery::core::usage::Unified;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::call::attached;
use super::{Approve, Format, Run};
use crate::failure::Hinted;
use crate::server::folder;
use crate::terminal::Style;
use crate::view::View;

/// Outputs that may wait for a slow terminal or pipe; beyond that the agent waits.
const QUEUE: usize = 64;

/// How often the moving line moves.
const TICK: Duration = Duration::from_millis(100);

/// The exit code of a command that ctrl-c ended.
const INTERRUPTED: u8 = 130;

/// Runs the turn and gives the exit code.
pub(super) async fn run(run: &Run) -> anyhow::Result<ExitCode> {
    let cwd = folder(run.cwd.as_deref())?;
    let agent = find(run)?;
    let request = ChatRequest {
        message: message(run)?,
        session_id: run.resume.clone(),
        model: run.model.clone(),
        cwd: Some(cwd.clone()),
        env: Vec::new(),
    };
    let options = RunOptions {
        form: form(run),
        artifacts: run.artifacts.as_ref().map(|folder| cwd.join(folder)),
        deadline: run.timeout.map(Duration::from_secs),
        ..RunOptions::default()
    };
    let (abort, (sender, outputs)) = (CancellationToken::new(), mpsc::channel(QUEUE));
    let show = Show::new(run, &cwd);
    let running = run_chat(&*agent, &request, &options, &abort, sender);
    let (exit, shown) = tokio::join!(running, show.run(outputs, &abort));
    let shown = shown?;
    if run.json {
        let mut summary = serde_json::to_value(Event::Result(exit.result()))?;
        if shown.failed {
            summary["status"] = "error".into();
        }
        writeln!(std::io::stderr().lock(), "{summary}")?;
    }
    Ok(code(&exit, &shown))
}

/// Codex up to 0.42 exits with 0 from a turn that failed, so its words count too.
fn code(exit: &Exit, shown: &Shown) -> ExitCode {
    match (exit.cause, exit.code) {
        (Some(Cause::Aborted), _) if shown.presses > 0 => INTERRUPTED.into(),
        (None, Some(0)) if !shown.failed => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What was seen of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    /// How often ctrl-c was pressed.
    presses: u32,
    /// The run called itself failed.
    failed: bool,
}

fn form(run: &Run) -> Form {
    match run.format {
        Format::Ndjson if run.compat => Form::Ndjson(Dialect::Compat),
        Format::Ndjson => Form::Ndjson(Dialect::Full),
        Format::Text | Format::Parts => Form::Parts,
    }
}

/// The agent by its name: one of ours, or one the user described.
fn find(run: &Run) -> anyhow::Result<Box<dyn ChatAgent>> {
    let unfit = |what: &str| {
        let hint = "use `--backend codex`, which speaks with Codex instead of reading its output";
        Err(Hinted::misuse(format!("{what} cannot be had from a command-line agent"), hint))
    };
    let is_codex = matches!(run.agent.as_deref(), None | Some("codex"));
    if let Some(what) = missing(run, is_codex) {
        return unfit(what);
    }
    match run.agent.as_deref().unwrap_or("codex") {
        "codex" => {
            let agent = CodexAgent::new(run.codex.locate()?);
            Ok(Box::new(CodexAgent { args: codex_args(run), ..agent }))
        }
        // Its own stream is the normalised one, and passes as it is.
        "gemini" if run.format == Format::Ndjson => Ok(Box::new(GeminiAgent::default())),
        "gemini" => Err(Hinted::misuse(
            "Gemini CLI gives the normalised stream only",
            "add `--format ndjson`",
        )),
        name => Ok(Box::new(described(name)?)),
    }
}

/// The words, after the files that go along: an agent takes one text.
fn message(run: &Run) -> anyhow::Result<String> {
    let mut texts = run.file.iter().map(|file| attached(file)).collect::<Result<Vec<_>, _>>()?;
    texts.push(run.words()?);
    Ok(texts.join("\n\n"))
}

/// What was asked for and no agent of this kind can do: nothing is passed over in silence.
fn missing(run: &Run, is_codex: bool) -> Option<&'static str> {
    let asked = [
        (run.fork, "`--fork`"),
        (run.resume.as_deref() == Some("last"), "`--resume last`"),
        (matches!(run.approve, Approve::Untrusted | Approve::Accept), "`--approve`"),
        (run.idle_timeout.is_some(), "`--idle-timeout`"),
        (!is_codex && run.sandbox.is_some(), "`--sandbox`"),
        (!is_codex && run.effort.is_some(), "`--effort`"),
        (!is_codex && run.output_schema.is_some(), "`--output-schema`"),
        (!is_codex && !run.image.is_empty(), "`--image`"),
        (!is_codex && run.ephemeral, "`--ephemeral`"),
    ];
    let asked = asked.into_iter().find(|(given, _)| *given).map(|(_, what)| what);
    asked.or_else(|| if is_codex { None } else { run.settings.given() })
}

/// What `bindery run` can ask for, in the words of `codex exec`.
fn codex_args(run: &Run) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--skip-git-repo-check".into()];
    if let Some(sandbox) = run.sandbox {
        args.extend(["--sandbox".into(), sandbox.name().into()]);
    }
    if let Some(effort) = &run.effort {
        args.extend(["--config".into(), format!("model_reasoning_effort={effort:?}").into()]);
    }
    if let Some(schema) = &run.output_schema {
        args.extend(["--output-schema".into(), schema.into()]);
    }
    for image in &run.image {
        args.extend(["--image".into(), image.into()]);
    }
    if run.ephemeral {
        args.push("--ephemeral".into());
    }
    args.extend(run.settings.codex_exec());
    args
}

/// Descriptions lie in the user's own folder only: one in a project could run anything.
fn described(name: &str) -> anyhow::Result<DescribedAgent> {
    let path = match name.ends_with(".toml") {
        true => PathBuf::from(name),
        false => agents_folder().join(format!("{name}.toml")),
    };
    let toml = std::fs::read_to_string(&path).map_err(|err| {
        let message = format!("no agent `{name}`: cannot read `{}`: {err}", path.display());
        Hinted::misuse(message, "`codex`, `gemini`, or the path of a description, `agent.toml`")
    })?;
    let agent = DescribedAgent::parse(&toml);
    agent.with_context(|| format!("cannot use `{}`", path.display()))
}

fn agents_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let config = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")));
    config.unwrap_or_default().join("bindery/agents")
}

/// Where the run is shown.
struct Show {
    joined: Joined,
    /// For people; none where lines are written.
    view: Option<Box<View>>,
    moving: bool,
    started: Instant,
    shown: Shown,
}

impl Show {
    fn new(run: &Run, cwd: &Path) -> Self {
        let style = Style::here();
        let text = run.format == Format::Text;
        Self {
            joined: Joined::new(run.spec.into()),
            view: text.then(|| Box::new(View::new(style, &cwd.display().to_string()))),
            moving: text && style.err.moving,
            started: Instant::now(),
            shown: Shown::default(),
        }
    }

    /// Shows everything. Leaving early ends the run.
    async fn run(
        mut self,
        mut outputs: mpsc::Receiver<Output>,
        abort: &CancellationToken,
    ) -> anyhow::Result<Shown> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => {
                    self.shown.presses += 1;
                    abort.cancel();
                    if self.shown.presses > 1 {
                        return Ok(self.shown);
                    }
                    self.interrupting()?;
                }
                output = outputs.recv() => match output {
                    Some(output) => self.show(&output)?,
                    None => break,
                },
                _ = ticks.tick(), if self.moving => self.tick()?,
            }
        }
        if let Some(view) = &mut self.view {
            view.finish().print()?;
        }
        Ok(self.shown)
    }

    fn show(&mut self, output: &Output) -> anyhow::Result<()> {
        let now = self.now();
        self.shown.failed |= is_failure(output);
        match (&mut self.view, output) {
            (Some(view), Output::Parts(parts)) => {
                let _ = view.tick(now);
                parts.iter().try_for_each(|part| view.push(part).print())?;
            }
            // An agent whose words nobody reads speaks for itself.
            (_, output) => {
                let mut out = std::io::stdout().lock();
                out.write_all(&self.joined.push(output))?;
                out.flush()?;
            }
        }
        Ok(())
    }

    fn interrupting(&mut self) -> anyhow::Result<()> {
        match &mut self.view {
            Some(view) => Ok(view.interrupting().print()?),
            None => Ok(()),
        }
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let now = self.now();
        match &mut self.view {
            Some(view) => Ok(view.tick(now).print()?),
            None => Ok(()),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Whether these are the words with which a failed run ends.
fn is_failure(output: &Output) -> bool {
    match output {
        Output::Parts(parts) => parts.iter().any(|part| {
            matches!(part, Part::Finish { finish_reason, .. }
                if finish_reason.unified == Unified::Error)
        }),
        Output::Lines(lines) => lines.split(|byte| *byte == b'\n').any(|line| {
            line.starts_with(br#"{"type":"result""#)
                && serde_json::from_slice::<serde_json::Value>(line)
                    .is_ok_and(|result| result["status"] == "error")
        }),
        _ => false,
    }
}
