//! A plan as a checklist.

use bindery::core::item::PlanStep;
use serde::Deserialize;
use serde_json::Value;

use crate::view::row::{Paint, Row};
use crate::view::theme::Theme;
use crate::view::wording::text_at;

use super::wrap_text;

/// The plan in an input: in one row if it fits, else a row for each step.
pub(crate) fn rows(theme: Theme, input: &Value) -> Vec<Row> {
    let steps = input.get("plan").and_then(|plan| Vec::<PlanStep>::deserialize(plan).ok());
    let steps: Vec<Row> = steps.unwrap_or_default().iter().map(|step| entry(theme, step)).collect();
    let mut rows = vec![Row::of(Paint::BOLD, "Plan")];
    let indent = Row::of(Paint::PLAIN, "  ");
    if let Some(why) = text_at(input, &["explanation"]) {
        rows.extend(wrap_text(why, Paint::DIM, &indent, &indent, theme.cols));
    }
    let gaps = 3 * steps.len().saturating_sub(1);
    let width = 2 + gaps + steps.iter().map(Row::width).sum::<usize>();
    if width <= theme.cols {
        let mut line = indent;
        for (index, step) in steps.iter().enumerate() {
            line = line.text(Paint::PLAIN, if index > 0 { "   " } else { "" }).join(step);
        }
        rows.push(line);
    } else {
        rows.extend(steps.iter().map(|step| theme.fit(step.behind(Paint::PLAIN, "  "))));
    }
    rows
}

fn entry(theme: Theme, step: &PlanStep) -> Row {
    let (glyph, paint) = match step.status.as_str() {
        "completed" => (theme.glyphs.done, Paint::DIM),
        "inProgress" => (theme.glyphs.doing, Paint::BOLD),
        _ => (theme.glyphs.todo, Paint::PLAIN),
    };
    Row::of(paint, &format!("{glyph} {}", step.step))
}
