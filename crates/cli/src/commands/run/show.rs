//! The loop between a turn and the terminal: parts, questions, ctrl-c and the moving line.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bindery::core::spec::Spec;
use bindery::core::usage::Unified;
use bindery::{Ask, Part, TurnControl};
use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::ask::Question;
use crate::approval::{self, Asker};
use crate::terminal::Style;
use crate::terminal::quiet::Quiet;
use crate::view::View;
use crate::view::clean::revealed;
use crate::view::shell::unwrapped;

/// How often the moving line moves.
const TICK: Duration = Duration::from_millis(100);

/// Parts held back while somebody is asked; beyond that the turn waits.
const HELD: usize = 4096;

/// The exit code of a command that ctrl-c ended.
const INTERRUPTED: u8 = 130;

/// Where a turn is shown.
pub(in crate::commands) struct Screen {
    style: Style,
    asker: Asker,
    view: View,
    /// Parts are written as they are.
    raw: Option<Spec>,
    started: Instant,
    end: Option<Unified>,
    presses: u32,
}

enum Wake {
    Part(Option<Part>),
    Question(Question),
    Tick,
    Press,
}

impl Screen {
    /// A screen for work in `cwd`; with a specification, parts are written as JSON lines.
    pub(in crate::commands) fn new(
        style: Style,
        asker: Asker,
        cwd: &Path,
        raw: Option<Spec>,
    ) -> Self {
        let view = View::new(style, &cwd.display().to_string());
        Self { style, asker, view, raw, started: Instant::now(), end: None, presses: 0 }
    }

    /// Shows the turn to its end and gives the exit code.
    pub(in crate::commands) async fn run(
        mut self,
        mut turn: impl Stream<Item = Part> + Unpin,
        control: TurnControl,
        header: &[String],
        mut questions: mpsc::Receiver<Question>,
    ) -> anyhow::Result<ExitCode> {
        // One listener for the whole turn: a signal that came between two would be lost.
        let mut presses = presses()?;
        let moving = self.raw.is_none() && (self.style.err.moving || self.style.out.moving);
        let _quiet = moving.then(Quiet::enter).flatten();
        if self.raw.is_none() {
            self.view.header(header).print()?;
        }
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let wake = tokio::select! {
                biased;
                Some(()) = presses.recv() => Wake::Press,
                Some(question) = questions.recv() => Wake::Question(question),
                part = turn.next() => Wake::Part(part),
                _ = ticks.tick(), if moving => Wake::Tick,
            };
            match wake {
                Wake::Part(Some(part)) => self.part(&part)?,
                Wake::Part(None) => break,
                Wake::Question(question) => self.question(question, &mut turn, &control).await?,
                Wake::Tick => self.tick()?,
                Wake::Press if self.press(&control)? => {
                    self.close()?;
                    return Ok(INTERRUPTED.into());
                }
                Wake::Press => {}
            }
        }
        self.close()
    }

    fn part(&mut self, part: &Part) -> anyhow::Result<()> {
        if let Part::Finish { finish_reason, .. } = part {
            self.end = Some(finish_reason.unified);
        }
        if let Some(spec) = self.raw {
            if let Some(json) = part.to_json(spec) {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{json}")?;
                out.flush()?;
            }
            return Ok(());
        }
        let _ = self.view.tick(self.now());
        Ok(self.view.push(part).print()?)
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let style = self.style.refreshed();
        if style != self.style {
            self.style = style;
            self.view.resize(&style).print()?;
        }
        Ok(self.view.tick(self.now()).print()?)
    }

    /// Once interrupts the turn; twice ends the command.
    fn press(&mut self, control: &TurnControl) -> anyhow::Result<bool> {
        self.presses += 1;
        control.interrupt();
        if self.raw.is_none() {
            self.view.interrupting().print()?;
        }
        Ok(self.presses > 1)
    }

    async fn question(
        &mut self,
        question: Question,
        turn: &mut (impl Stream<Item = Part> + Unpin),
        control: &TurnControl,
    ) -> anyhow::Result<()> {
        let Question { interrupt, mut reply } = question;
        if self.raw.is_some() || !self.style.err.terminal || !std::io::stdin().is_terminal() {
            // Dropping the way back is a no.
            self.remark(&refusal(&interrupt.ask))?;
            return Ok(());
        }
        self.view.pause().print()?;
        let mut held = Vec::new();
        let outcome = {
            let asking = approval::ask(&interrupt, self.asker, &self.style, reply.closed());
            tokio::pin!(asking);
            loop {
                tokio::select! {
                    outcome = &mut asking => break outcome,
                    Some(part) = turn.next(), if held.len() < HELD => held.push(part),
                }
            }
        };
        match outcome {
            Ok(Some(outcome)) => {
                // A question that was withdrawn meanwhile needs no answer.
                let _ = reply.send(Some(outcome.answer));
                if outcome.stop {
                    control.interrupt();
                }
            }
            Ok(None) => {}
            Err(err) => self.remark(&format!("{} ({err})", refusal(&interrupt.ask)))?,
        }
        held.iter().try_for_each(|part| self.part(part))
    }

    fn remark(&mut self, text: &str) -> anyhow::Result<()> {
        match self.raw {
            Some(_) => writeln!(std::io::stderr().lock(), "bindery: {text}")?,
            None => self.view.remark(text).print()?,
        }
        Ok(())
    }

    fn close(mut self) -> anyhow::Result<ExitCode> {
        if self.raw.is_none() {
            self.view.finish().print()?;
        }
        Ok(match self.end {
            Some(Unified::Stop | Unified::ToolCalls) => ExitCode::SUCCESS,
            Some(Unified::Interrupted) if self.presses > 0 => INTERRUPTED.into(),
            _ => ExitCode::FAILURE,
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(unix)]
fn presses() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn presses() -> std::io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

/// Why nobody was asked, and which flag changes that.
fn refusal(ask: &Ask) -> String {
    let what = match ask {
        Ask::Command { command, .. } => {
            format!("the agent wanted to run `{}`", quoted(&unwrapped(command)))
        }
        Ask::FileChange { changes, .. } => match changes.as_slice() {
            [change] => format!("the agent wanted to change `{}`", quoted(&change.path)),
            changes => format!("the agent wanted to change {} files", changes.len()),
        },
        Ask::Permissions { .. } => "the agent wanted more permissions".to_owned(),
        Ask::UserInput { .. } => "the agent had a question".to_owned(),
        Ask::Elicitation { server, .. } => {
            format!("the MCP server `{}` had a question", quoted(server))
        }
        Ask::ToolCall { tool, .. } => format!("the agent called the tool `{}`", quoted(tool)),
    };
    format!("{what}; without a terminal the answer is no (see --approve and --sandbox)")
}

/// Foreign text within a line of ours.
fn quoted(text: &str) -> String {
    revealed(text).replace('\n', "\\n")
}
