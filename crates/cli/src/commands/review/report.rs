//! A review as one JSON object.

use std::io::Write;
use std::process::ExitCode;

use bindery::core::review::Review;
use bindery::core::spec::codex_of;
use bindery::core::usage::Unified;
use bindery::{Part, Turn};
use serde_json::{Value, json};

/// The exit code of a command that ctrl-c ended.
const INTERRUPTED: u8 = 130;

/// What was seen of a review.
#[derive(Debug, Default)]
struct Seen {
    /// The review's text, once the reviewer is done.
    review: Option<String>,
    error: Option<Value>,
    usage: Value,
    end: Option<Unified>,
    pressed: bool,
}

/// Waits for the review's end and writes it; gives the exit code.
pub(super) async fn run(mut turn: Turn) -> anyhow::Result<ExitCode> {
    let (control, mut seen) = (turn.control(), Seen::default());
    loop {
        tokio::select! {
            part = turn.next() => match part {
                Some(part) => seen.take(part),
                None => break,
            },
            pressed = tokio::signal::ctrl_c(), if !seen.pressed => {
                pressed?;
                seen.pressed = true;
                control.interrupt();
            }
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", seen.report(turn.thread_id().as_str()))?;
    Ok(seen.code())
}

impl Seen {
    fn take(&mut self, part: Part) {
        match part {
            Part::Custom { kind, provider_metadata } if kind == "codex.review" => {
                let data = codex_of(provider_metadata.as_ref());
                let at = |key: &str| data.and_then(|data| data.get(key)?.as_str());
                if at("phase") == Some("exited") {
                    self.review = at("review").map(str::to_owned);
                }
            }
            Part::Error { error } => self.error = Some(error),
            Part::Finish { usage, finish_reason, .. } => {
                self.usage = serde_json::to_value(usage).unwrap_or_default();
                self.end = Some(finish_reason.unified);
            }
            _ => {}
        }
    }

    fn is_whole(&self) -> bool {
        self.end == Some(Unified::Stop)
    }

    /// A review that did not come to its end has no findings, however it was left.
    fn report(&self, thread: &str) -> Value {
        let text = self.review.as_deref().filter(|_| self.is_whole());
        let review = text.map(Review::read_text).unwrap_or_default();
        json!({
            "status": if self.is_whole() { "completed" } else { "failed" },
            "threadId": thread,
            "findings": review.findings,
            "explanation": review.explanation,
            "error": self.error,
            "usage": self.usage,
        })
    }

    fn code(&self) -> ExitCode {
        match self.end {
            Some(Unified::Stop) => ExitCode::SUCCESS,
            Some(Unified::Interrupted) if self.pressed => INTERRUPTED.into(),
            _ => ExitCode::FAILURE,
        }
    }
}
