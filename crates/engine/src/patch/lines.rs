//! A file as lines that remember how they end, and a file's new content out of its changes.

use super::parse::{Chunk, Line};
use super::seek::seek;

/// Why a change does not fit a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The line above it is not there.
    Context(String),
    /// The old lines are not there.
    Lines(String),
}

/// The content after all changes. Lines that stay keep every byte; new ones end as the file's
/// first line does; the last one ends too.
pub(super) fn changed(content: &str, chunks: &[Chunk]) -> Result<String, Misfit> {
    let rows = rows(content);
    let texts: Vec<&str> = rows.iter().map(|row| row.text).collect();
    let mut edits = Vec::new();
    let mut cursor = 0;
    for chunk in chunks {
        let edit = edit(&texts, chunk, &mut cursor)?;
        edits.push(edit);
    }
    // Stable: what is put at the end of the file stays in the patch's order.
    edits.sort_by_key(|edit| edit.at);
    Ok(written(&rows, &edits))
}

struct Row<'a> {
    text: &'a str,
    end: &'a str,
}

struct Edit<'a> {
    at: usize,
    lines: Vec<&'a Line>,
    /// An old line that is not in the file, yet not dropped: it is written as a new one.
    extra: Option<usize>,
}

fn edit<'a>(texts: &[&str], chunk: &'a Chunk, cursor: &mut usize) -> Result<Edit<'a>, Misfit> {
    if let Some(context) = &chunk.context {
        let found = seek(texts, &[context], *cursor, false);
        *cursor = found.ok_or_else(|| Misfit::Context(context.clone()))? + 1;
    }
    let mut lines: Vec<&Line> = chunk.lines.iter().collect();
    let old: Vec<&str> = lines.iter().filter_map(|line| old(line)).collect();
    if old.is_empty() {
        return Ok(Edit { at: texts.len(), lines, extra: None });
    }
    if let Some(at) = seek(texts, &old, *cursor, chunk.at_end) {
        *cursor = at + old.len();
        return Ok(Edit { at, lines, extra: None });
    }
    let misfit = || Misfit::Lines(old.join("\n"));
    let (last, fewer) = old.split_last().ok_or_else(misfit)?;
    if !last.is_empty() {
        return Err(misfit());
    }
    let at = seek(texts, fewer, *cursor, chunk.at_end).ok_or_else(misfit)?;
    *cursor = at + fewer.len();
    let extra = without_blank(&mut lines);
    Ok(Edit { at, lines, extra })
}

/// Takes the last old line away, which is blank and stands for the end of the file, and a blank
/// last new line with it.
fn without_blank(lines: &mut Vec<&Line>) -> Option<usize> {
    let blank = lines.iter().rposition(|line| old(line).is_some())?;
    let removed = matches!(lines[blank], Line::Remove(_));
    if removed {
        lines.remove(blank);
    }
    let last = lines.iter().rposition(|line| new(line).is_some());
    let last = last.filter(|&last| new(lines[last]) == Some(""));
    if let Some(last) = last {
        lines.remove(last);
    }
    (!removed && last != Some(blank)).then_some(blank)
}

fn written(rows: &[Row<'_>], edits: &[Edit<'_>]) -> String {
    let end = rows.first().map_or("\n", |row| row.end);
    let end = if end.is_empty() { "\n" } else { end };
    let mut out = String::new();
    let mut push = |text: &str, own: &str| {
        out.push_str(text);
        out.push_str(if own.is_empty() { end } else { own });
    };
    let mut at = 0;
    for edit in edits {
        rows[at..edit.at].iter().for_each(|row| push(row.text, row.end));
        at = edit.at;
        for (index, line) in edit.lines.iter().enumerate() {
            match line {
                Line::Insert(text) => push(text, end),
                Line::Keep(text) if edit.extra == Some(index) => push(text, end),
                Line::Keep(_) => {
                    push(rows[at].text, rows[at].end);
                    at += 1;
                }
                Line::Remove(_) => at += 1,
            }
        }
    }
    rows[at..].iter().for_each(|row| push(row.text, row.end));
    out
}

fn old(line: &Line) -> Option<&str> {
    match line {
        Line::Keep(text) | Line::Remove(text) => Some(text),
        Line::Insert(_) => None,
    }
}

fn new(line: &Line) -> Option<&str> {
    match line {
        Line::Keep(text) | Line::Insert(text) => Some(text),
        Line::Remove(_) => None,
    }
}

/// Lines end with `\n`, `\r\n` or a lone `\r`.
fn rows(content: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let text = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(text);
        let end = if tail.starts_with("\r\n") { 2 } else { tail.len().min(1) };
        let (end, tail) = tail.split_at(end);
        rows.push(Row { text, end });
        rest = tail;
    }
    rows
}
