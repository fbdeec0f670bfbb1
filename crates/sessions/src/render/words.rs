//! Words and numbers as people read them.

use bindery_core::item::{Body, ChangeKind, Item, Status, Tool, ToolSort};
use bindery_core::transcript::TurnRecord;
use serde_json::Value;

use super::diff::counts;
use crate::normalise::display_command;

/// `0.2 s`, `12 s`, `3 min 5 s`, `2 h 10 min`.
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, millis % 1_000 / 100),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// `812`, `38 k`, `9.8 M`, `1.2 G`.
pub fn quantity(number: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let tenths = number * 10 / unit;
        match tenths {
            0..100 => format!("{}.{} {name}", tenths / 10, tenths % 10),
            _ => format!("{} {name}", tenths / 10),
        }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => scaled(1_000, "k"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "M"),
        _ => scaled(1_000_000_000, "G"),
    }
}

/// `960 B`, `3.1 kB`, `1.2 GB`.
pub fn bytes(number: u64) -> String {
    let text = quantity(number);
    if number < 1_000 { format!("{text} B") } else { format!("{text}B") }
}

/// A path as seen from the folder; whole if it is not below it.
pub fn relative_path<'a>(path: &'a str, folder: &str) -> &'a str {
    let folder = folder.trim_end_matches('/');
    let inside = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    match inside {
        Some(inside) if !folder.is_empty() && !inside.is_empty() => inside,
        _ => path,
    }
}

/// What a tool call did, in a line: `$ cargo test`, `src/parse.rs +14 −2`.
pub fn describe(tool: &Tool) -> String {
    describe_in(tool, "")
}

/// The same with paths as seen from a folder. Commands stay as they were given.
pub fn describe_in(tool: &Tool, folder: &str) -> String {
    let word = |key: &str| tool.input.get(key).and_then(Value::as_str).unwrap_or_default();
    match tool.sort {
        ToolSort::Bash if tool.name == "write_stdin" => format!("stdin {:?}", word("chars")),
        ToolSort::Bash => format!("$ {}", display_command(word("command"))),
        ToolSort::Edit => edit(tool, folder),
        ToolSort::WebSearch => format!("searched the web: {}", word("query")),
        ToolSort::Plan => "plan".to_owned(),
        ToolSort::Image if tool.name.contains("generation") => {
            format!("made an image: {}", word("prompt"))
        }
        ToolSort::Image => format!("looked at {}", relative_path(word("path"), folder)),
        ToolSort::Agent => format!("{} {}", tool.name, word("prompt").trim()),
        ToolSort::Question => "asked the user".to_owned(),
        ToolSort::Mcp | ToolSort::Client | ToolSort::Other => {
            format!("{} {}", tool.name, compact(&tool.input))
        }
    }
}

fn edit(tool: &Tool, folder: &str) -> String {
    let changes = tool.changes();
    if changes.is_empty() {
        return "patch".to_owned();
    }
    let each = changes.iter().map(|change| {
        let (added, removed) = counts(change);
        let sign = match &change.kind {
            ChangeKind::Add => "A ",
            ChangeKind::Delete => "D ",
            ChangeKind::Update { .. } => "",
        };
        let path = relative_path(&change.path, folder);
        match &change.kind {
            ChangeKind::Update { move_path: Some(to) } => {
                format!("{path} → {} +{added} −{removed}", relative_path(to, folder))
            }
            _ => format!("{sign}{path} +{added} −{removed}"),
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

fn compact(input: &Value) -> String {
    match input {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// What came with a prompt: its kind, and all of it if we do not know the kind.
pub(super) fn attached(attachment: &Value) -> String {
    let word = |key: &str| attachment.get(key).and_then(Value::as_str);
    match word("type") {
        Some(kind @ ("image" | "audio" | "input_image" | "encrypted_content")) => kind.to_owned(),
        Some(kind @ ("localImage" | "localAudio" | "mention" | "skill")) => {
            let name = word("path").or(word("name"));
            name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"))
        }
        Some(kind) => format!("{kind} {attachment}"),
        None => format!("attachment {attachment}"),
    }
}

/// What began a turn, unless a person's prompt did.
pub(super) fn begun_by(turn: &TurnRecord) -> Option<String> {
    let trigger = turn.trigger.as_deref().filter(|trigger| *trigger != "exec")?;
    Some(format!("begun by {trigger}"))
}

/// How a call ended, in Codex's word.
pub(super) fn unknown_status(tool: &Tool) -> String {
    let word = tool.output.as_ref().and_then(|output| output.get("status")?.as_str());
    match word {
        Some("completed" | "unknown") | None => "unknown end".to_owned(),
        Some(word) => format!("unknown end `{word}`"),
    }
}

/// What was done in some items, in a sentence; empty if nothing was.
pub fn activity(items: &[&Item]) -> String {
    let tools: Vec<(&Item, &Tool)> = items
        .iter()
        .filter_map(|item| match &item.body {
            Body::Tool(tool) => Some((*item, tool)),
            _ => None,
        })
        .collect();
    let of = |sort: ToolSort| tools.iter().filter(move |(_, tool)| tool.sort == sort).count();
    let failed = |sort: ToolSort| {
        let bad =
            |status: Status| !matches!(status, Status::Ok | Status::Pending | Status::Unknown);
        tools.iter().filter(|(item, tool)| tool.sort == sort && bad(item.status)).count()
    };
    let mut parts = Vec::new();
    let ran = of(ToolSort::Bash);
    if ran > 0 {
        let failed = failed(ToolSort::Bash);
        let note = if failed > 0 { format!(" ({failed} failed)") } else { String::new() };
        parts.push(format!("ran {ran}{note}"));
    }
    let changes: Vec<_> = tools.iter().flat_map(|(_, tool)| tool.changes()).collect();
    if !changes.is_empty() {
        let (added, removed) =
            changes.iter().map(counts).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let plural = if changes.len() == 1 { "" } else { "s" };
        parts.push(format!("edited {} file{plural} +{added} −{removed}", changes.len()));
    }
    let searched = of(ToolSort::WebSearch);
    if searched > 0 {
        parts.push(format!("searched the web {searched}×"));
    }
    let others = tools.len() - ran - searched - of(ToolSort::Edit);
    if others > 0 {
        parts.push(format!("{others} other call{}", if others == 1 { "" } else { "s" }));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let durations = [240, 4_100, 31_000, 185_000, 7_800_000].map(duration);
        assert_eq!(durations, ["0.2 s", "4.1 s", "31 s", "3 min 5 s", "2 h 10 min"]);
        let numbers = [812, 38_000, 412_345, 9_800_000, 1_200_000_000].map(quantity);
        assert_eq!(numbers, ["812", "38 k", "412 k", "9.8 M", "1.2 G"]);
    }
}
