//! Exports of one long turn: how much of it is in memory, against the size of its file.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use bindery::sessions::normalise::{Event, Options};
use bindery::sessions::{messages, render, session, validate};
use serde_json::json;

use super::super::report::{Report, Table, Target};
use super::{Cost, measure};
use crate::step;

/// Bytes of the file, all of one turn.
const FILE_BYTES: usize = 400_000_000;

/// Bytes of one output.
const OUTPUT_BYTES: usize = 200_000;

/// Peak memory over the size of the file that is allowed.
const MAX_RATIO: f64 = 0.35;

pub(super) fn run(folder: &Path, report: &mut Report) -> anyhow::Result<()> {
    let path = folder.join("one-turn.jsonl");
    step::timed("make one long turn", || write_turn(&path))?;
    let megabytes = fs::metadata(&path)?.len() as f64 / 1e6;
    let costs = costs(&path);
    fs::remove_file(&path)?;
    let mut table = Table::new(&["one turn of 400 MB", "wall s", "peak MB", "peak / file"]);
    for (name, cost) in costs? {
        let ratio = cost.peak_mb / megabytes;
        table.rows.push(vec![
            name.to_owned(),
            format!("{:.1}", cost.wall.as_secs_f64()),
            format!("{:.0}", cost.peak_mb),
            format!("{ratio:.2}"),
        ]);
        report.targets.push(Target::ratio(
            &format!("{name}: peak memory / file"),
            ratio,
            MAX_RATIO,
        ));
    }
    report.tables.push(table);
    Ok(())
}

fn costs(path: &Path) -> anyhow::Result<Vec<(&'static str, Cost)>> {
    let messages = || {
        let options = messages::Options { setup: false };
        let mut out = std::io::sink();
        each_piece(path, |turn| {
            let entries = messages::of_turn(turn, options);
            entries.iter().try_for_each(|entry| Ok(serde_json::to_writer(&mut out, entry)?))
        })
    };
    let markdown = || each_piece(path, |turn| Ok(render::markdown(&mut std::io::sink(), 1, turn)?));
    let style = render::Style { density: render::Density::Everything, ..render::Style::default() };
    let page =
        || each_piece(path, |turn| Ok(render::terminal(&mut std::io::sink(), None, turn, style)?));
    Ok(vec![
        ("messages", measure(messages)?),
        ("Markdown", measure(markdown)?),
        ("show everything", measure(page)?),
        ("validate", measure(|| Ok(validate::Report::default().check(path)?))?),
    ])
}

fn each_piece(
    path: &Path,
    mut work: impl FnMut(&bindery::core::transcript::TurnRecord) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut result = Ok(());
    session::stream(path, Options::default(), |event| {
        if let (Event::Turn { turn, .. }, true) = (event, result.is_ok()) {
            result = work(&turn);
        }
    })?;
    result
}

/// A turn of calls whose outputs make up the file.
fn write_turn(path: &Path) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let line = |payload: serde_json::Value| {
        let time = "2026-02-01T10:00:00.000Z";
        json!({ "timestamp": time, "type": "response_item", "payload": payload })
    };
    let words = "line of output\n".repeat(OUTPUT_BYTES / 15);
    for number in 0..FILE_BYTES / OUTPUT_BYTES {
        let id = format!("call_{number}");
        let call = json!({ "type": "function_call", "name": "shell", "arguments": "{}",
            "call_id": id });
        let output = json!({ "type": "function_call_output", "call_id": id, "output": words });
        writeln!(out, "{}\n{}", line(call), line(output))?;
    }
    Ok(out.flush()?)
}
