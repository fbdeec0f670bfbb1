//! File changes: their sizes and their folded diffs.

use bindery::core::item::{ChangeKind, FileChange};
use serde::Deserialize;
use serde_json::Value;

use crate::view::row::{Paint, Row};
use crate::view::theme::Theme;

use super::command::End;
use super::explore::below;

/// Lines of a diff that are shown.
const FOLD: usize = 40;

/// The changes in an input or a result; none if there are none that can be read.
pub(crate) fn changes(value: &Value) -> Option<Vec<FileChange>> {
    Vec::<FileChange>::deserialize(value.get("changes")?).ok()
}

/// Finished changes, each with its diff.
pub(crate) fn rows(theme: Theme, changes: &[FileChange], result: &Value, cwd: &str) -> Vec<Row> {
    let end = End::of(result);
    let note = end.note(result);
    let rows = changes.iter().flat_map(|change| {
        let title = title(theme, change, &end, cwd);
        let head = theme.headline(title, &note, "");
        let diff = if end == End::Declined { Vec::new() } else { diff(theme, change, Some(FOLD)) };
        [head].into_iter().chain(diff)
    });
    rows.collect()
}

/// `✎ src/parse.rs  +14 −2`
pub(crate) fn title(theme: Theme, change: &FileChange, end: &End, cwd: &str) -> Row {
    let (glyph, paint) = match end {
        End::Ok => (theme.glyphs.edit, Paint::CYAN),
        _ => (theme.glyphs.bad, Paint::RED),
    };
    let title = Row::of(paint, glyph).text(Paint::PLAIN, " ");
    title.join(&summary(theme, change, cwd))
}

/// `src/parse.rs  +14 −2`
pub(crate) fn summary(theme: Theme, change: &FileChange, cwd: &str) -> Row {
    let mut row = Row::of(Paint::BOLD, &below(&change.path, cwd));
    if let ChangeKind::Update { move_path: Some(path) } = &change.kind {
        let moved = format!(" {} {}", theme.glyphs.arrow, below(path, cwd));
        row = row.text(Paint::BOLD, &moved);
    }
    let (added, removed) = size(change);
    row = row.text(Paint::PLAIN, "  ");
    if added > 0 || removed == 0 {
        row = row.text(Paint::GREEN, &format!("+{added}"));
    }
    if removed > 0 {
        let gap = if added > 0 { " " } else { "" };
        row = row.text(Paint::RED, &format!("{gap}{}{removed}", theme.glyphs.minus));
    }
    match change.kind {
        ChangeKind::Add => row.text(Paint::DIM, "  new"),
        ChangeKind::Delete => row.text(Paint::DIM, "  deleted"),
        ChangeKind::Update { .. } => row,
    }
}

/// The diff, folded to `limit` lines if there is a limit; then its lines are cut to the columns.
pub(crate) fn diff(theme: Theme, change: &FileChange, limit: Option<usize>) -> Vec<Row> {
    let lines: Vec<(Paint, String)> = lines(change).collect();
    let shown = match limit {
        // A fold that hides a single line saves nothing.
        Some(limit) if lines.len() > limit + 1 => limit,
        _ => lines.len(),
    };
    let row = |(paint, line): &(Paint, String)| {
        let row = Row::of(Paint::PLAIN, "  ").text(*paint, line);
        if limit.is_some() { theme.fit(row) } else { row }
    };
    let mut rows: Vec<Row> = lines[..shown].iter().map(row).collect();
    if shown < lines.len() {
        let hidden = theme.left_out(lines.len() - shown);
        rows.push(Row::of(Paint::DIM, &format!("  {hidden}")));
    }
    rows
}

/// Lines added and removed.
fn size(change: &FileChange) -> (usize, usize) {
    let starting = |sign: char| lines(change).filter(|(_, line)| line.starts_with(sign)).count();
    (starting('+'), starting('-'))
}

/// An added or deleted file comes as its content, an updated one as hunks.
fn lines(change: &FileChange) -> impl Iterator<Item = (Paint, String)> + '_ {
    let whole = match change.kind {
        ChangeKind::Add => Some((Paint::GREEN, '+')),
        ChangeKind::Delete => Some((Paint::RED, '-')),
        ChangeKind::Update { .. } => None,
    };
    let note = whole.is_none().then_some("Moved to: ");
    // Codex 0.166 adds a note of a move to the hunks; our title says it. No line of a hunk begins
    // with a letter, so nothing else is left out.
    let is_note = move |line: &str| note.is_some_and(|note| line.starts_with(note));
    change.diff.lines().filter(move |line| !is_note(line)).map(move |line| match whole {
        Some((paint, sign)) => (paint, format!("{sign}{line}")),
        None => (hunk_paint(line), line.to_owned()),
    })
}

fn hunk_paint(line: &str) -> Paint {
    match line.chars().next() {
        Some('+') => Paint::GREEN,
        Some('-') => Paint::RED,
        Some('@') => Paint::CYAN,
        _ => Paint::DIM,
    }
}
