//! Tables: aligned once all their rows are there.

use crate::view::row::{Paint, Row};
use crate::view::theme::Theme;
use crate::view::wrap::{Ink, wrap};

use super::inline::{Reading, inline};

/// The lines of a table as rows, or nothing if they are no table that fits.
pub(crate) fn rows(lines: &[String], theme: Theme, marks_hidden: bool) -> Option<Vec<Row>> {
    let (head, rest) = lines.split_first()?;
    let (rule, body) = rest.split_first()?;
    let head = cells(head);
    let sides = sides(rule)?;
    let columns = head.len().max(body.iter().map(|line| cells(line).len()).max().unwrap_or(0));
    let ink = |line: Vec<String>, base: Paint| -> Vec<Ink> {
        let reading = Reading { base, marks_hidden, ended: true };
        let mut row: Vec<Ink> = line.iter().map(|cell| inline(cell, reading).ink).collect();
        row.resize(columns, Ink::new());
        row
    };
    let mut table = vec![ink(head, Paint::BOLD)];
    table.extend(body.iter().map(|line| ink(cells(line), Paint::PLAIN)));
    let widths = widths(&table, columns, theme.cols)?;
    let mut shown = laid_out(&table[0], &widths, &sides, theme);
    shown.push(across(&widths, theme));
    shown.extend(table[1..].iter().flat_map(|row| laid_out(row, &widths, &sides, theme)));
    Some(shown)
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Middle,
    Right,
}

/// Cells of a line, without the bars at its ends; `\|` is no bar.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|');
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for ch in line.chars() {
        match ch {
            '|' if !escaped => cells.push(String::new()),
            ch => {
                let cell = cells.last_mut();
                if let Some(cell) = cell {
                    if ch == '|' {
                        cell.pop();
                    }
                    cell.push(ch);
                }
            }
        }
        escaped = ch == '\\' && !escaped;
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// The line below the head: `|---|:-:|--:|`.
fn sides(line: &str) -> Option<Vec<Side>> {
    let side = |cell: &String| {
        let dashes = cell.trim_start_matches(':').trim_end_matches(':');
        let rule = !dashes.is_empty() && dashes.chars().all(|ch| ch == '-');
        rule.then_some(match (cell.starts_with(':'), cell.ends_with(':')) {
            (true, true) => Side::Middle,
            (false, true) => Side::Right,
            _ => Side::Left,
        })
    };
    cells(line).iter().map(side).collect()
}

fn ink_width(ink: &[(char, Paint)]) -> usize {
    let text: String = ink.iter().map(|(ch, _)| *ch).collect();
    Row::of(Paint::PLAIN, &text).width()
}

/// A column narrower than this breaks words into bits.
const MIN_COLUMN: usize = 8;

/// Natural widths, the widest made narrower until all fit.
fn widths(table: &[Vec<Ink>], columns: usize, cols: usize) -> Option<Vec<usize>> {
    let natural = |column: usize| table.iter().map(|row| ink_width(&row[column])).max();
    let mut widths: Vec<usize> =
        (0..columns).map(|column| natural(column).unwrap_or(0).max(1)).collect();
    let room = cols.checked_sub(3 * columns.saturating_sub(1))?;
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max()?;
        if *widest <= MIN_COLUMN {
            return None;
        }
        *widest -= 1;
    }
    Some(widths)
}

fn laid_out(row: &[Ink], widths: &[usize], sides: &[Side], theme: Theme) -> Vec<Row> {
    let none = Row::new();
    let wrapped: Vec<Vec<Row>> = row
        .iter()
        .zip(widths)
        .map(|(ink, width)| {
            let rows = wrap(ink, &none, &none, *width);
            rows.into_iter().map(|wrapped| wrapped.row).collect()
        })
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let line = |index: usize| {
        let mut line = Row::new();
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                line = line.text(Paint::DIM, &format!(" {} ", theme.glyphs.bar));
            }
            let side = sides.get(column).copied().unwrap_or(Side::Left);
            let cell = wrapped[column].get(index).unwrap_or(&none);
            line = line.join(&aligned(cell, *width, side));
        }
        line
    };
    (0..height).map(line).collect()
}

fn aligned(cell: &Row, width: usize, side: Side) -> Row {
    let free = width.saturating_sub(cell.width());
    let left = match side {
        Side::Left => 0,
        Side::Middle => free / 2,
        Side::Right => free,
    };
    let padded = cell.behind(Paint::PLAIN, &" ".repeat(left));
    padded.text(Paint::PLAIN, &" ".repeat(free - left))
}

fn across(widths: &[usize], theme: Theme) -> Row {
    let rule = theme.glyphs.rule;
    let joint = format!("{rule}{}{rule}", theme.glyphs.cross);
    let bars: Vec<String> = widths.iter().map(|width| rule.repeat(*width)).collect();
    Row::of(Paint::DIM, &bars.join(&joint))
}
