//! The closing lines: how the turn ended, what it cost, how to go on.

use bindery::core::spec::{Metadata, codex_of};
use bindery::core::usage::{FinishReason, Unified, Usage};

use super::row::{Paint, Row};
use super::theme::Theme;
use super::wording::{count, duration};
use super::wrap::wrap_text;

/// What is known of a turn's end beside its own words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) usage: &'a Usage,
    pub(crate) reason: &'a FinishReason,
    pub(crate) metadata: Option<&'a Metadata>,
    /// How long we saw it run, for want of Codex's own number.
    pub(crate) seen_ms: u64,
}

/// `done in 31 s · 12,480 in (9,216 cached) · 1,204 out · 62 % context left`, and how to resume.
pub(crate) fn rows(theme: Theme, end: End<'_>) -> Vec<Row> {
    let number = |key: &str| codex_of(end.metadata)?.get(key)?.as_f64();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
    let whole = |key: &str| number(key).map(|number| number.round().max(0.0) as u64);
    let took = duration(whole("durationMs").unwrap_or(end.seen_ms));
    let (paint, word) = outcome(end.reason);
    let facts = [
        Some(format!("{word} {took}")),
        tokens_in(end.usage),
        end.usage.output_tokens.total.map(|tokens| format!("{} out", count(tokens))),
        whole("contextLeftPercent").map(|percent| format!("{percent} % context left")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let thread = codex_of(end.metadata).and_then(|codex| codex.get("threadId")?.as_str());
    let resume = thread.map(|thread| resume(theme, thread));
    let none = Row::new();
    let mut rows = wrap_text(&theme.facts(&facts), paint, &none, &none, theme.prose);
    rows.extend(resume);
    rows
}

/// The whole id: threads begun within a minute share their first letters. It is never cut either,
/// since somebody will copy it.
fn resume(theme: Theme, thread: &str) -> Row {
    Row::of(
        Paint::DIM,
        &format!("resume with: bindery run --resume {thread} \"{}\"", theme.glyphs.more),
    )
}

fn tokens_in(usage: &Usage) -> Option<String> {
    let total = count(usage.input_tokens.total?);
    Some(match usage.input_tokens.cache_read {
        Some(cached) if cached > 0 => format!("{total} in ({} cached)", count(cached)),
        _ => format!("{total} in"),
    })
}

fn outcome(reason: &FinishReason) -> (Paint, &'static str) {
    match (reason.unified, reason.raw.as_deref()) {
        (Unified::Stop, _) => (Paint::DIM, "done in"),
        (Unified::Interrupted, _) | (Unified::Other, Some("interrupted")) => {
            (Paint::YELLOW, "interrupted after")
        }
        (Unified::Error, _) => (Paint::RED, "failed after"),
        (Unified::Length, _) => (Paint::YELLOW, "stopped at the length limit after"),
        (Unified::ContentFilter, _) => (Paint::YELLOW, "stopped by a content filter after"),
        (Unified::ToolCalls, _) => (Paint::YELLOW, "waiting for answers after"),
        (Unified::Other, _) => (Paint::YELLOW, "ended after"),
    }
}
