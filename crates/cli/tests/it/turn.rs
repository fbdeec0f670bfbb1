//! A scripted turn with a bit of everything, and ways to look at it.

use bindery::core::part::Part;
use bindery_cli::terminal::{Sink, Style};
use bindery_cli::view::View;
use bindery_cli::view::output::Stream;
use serde_json::Value;

/// The parts of the turn.
pub(crate) fn parts() -> Vec<Part> {
    let lines = include_str!("turn.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("parts")).collect()
}

/// Parts given as JSON.
pub(crate) fn from_json(parts: Value) -> Vec<Part> {
    serde_json::from_value(parts).expect("parts")
}

/// Everything that was written: to stdout, to stderr, and to both in order.
pub(crate) struct Shown {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) both: String,
}

/// Plays parts in a style, with a clock that ticks between them.
pub(crate) fn play(style: Style, parts: &[Part]) -> Shown {
    let mut view = View::new(style, "/home/dev/almanac");
    let facts = ["codex 0.166.0", "gpt-5.4", "workspace-write", "~/almanac (main, 2 changed)"];
    let mut outputs = vec![view.header(&facts)];
    for (index, part) in parts.iter().enumerate() {
        outputs.push(view.push(part));
        outputs.push(view.tick(index as u64 * 130));
    }
    outputs.push(view.finish());
    let pieces = || outputs.iter().flat_map(|output| &output.pieces);
    let of = |stream: Stream| {
        let pieces = pieces().filter(|(to, _)| *to == stream);
        pieces.map(|(_, text)| text.as_str()).collect()
    };
    let both = pieces().map(|(_, text)| text.as_str()).collect();
    Shown { out: of(Stream::Out), err: of(Stream::Err), both }
}

/// A terminal on which nothing can be taken away again.
pub(crate) fn paper(width: usize, unicode: bool) -> Style {
    let sink = Sink { terminal: true, colour: false, moving: false };
    Style { width, unicode, out: sink, err: sink }
}
