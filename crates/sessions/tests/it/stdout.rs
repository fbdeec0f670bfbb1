//! What `codex exec --json` printed, and what the file of the same run says.

use std::collections::BTreeMap;

use bindery_core::item::{Body, Status, ToolSort};
use bindery_sessions::normalise::{Options, display_command};
use bindery_sessions::session::of_bytes;
use serde_json::Value;

use crate::corpus;

/// Differences that have a reason; the reason stands beside each.
///
/// Versions, scenario, reason.
const REASONS: &[(&str, &str, &str)] = &[
    ("0.98.0 0.110.0", "agents", "exec mixes the sub-agent's rows in; they are in its own file"),
    ("0.72.0", "sigint", "the file tells of an abort, and not of exit code -1"),
    ("0.20.0 0.25.0", "sigint", "written only after the tool ended, so there is nothing"),
    ("0.20.0 0.25.0", "sigkill", "written only after the tool ended, so there is nothing"),
    ("0.36.0 0.42.0 0.50.0 0.58.0", "sigint", "the call is written only after the tool ended"),
    ("0.36.0 0.42.0 0.58.0", "sigkill", "the call is written only after the tool ended"),
    ("0.20.0 0.25.0 0.36.0 0.42.0 0.50.0", "image", "exec hides the first turn, of images only"),
    ("0.36.0 0.42.0 0.50.0 0.58.0", "compact", "`Compact task completed` is a notice, no answer"),
    ("0.58.0", "compactremote", "`Compact task completed` is a notice, no answer"),
];

#[test]
fn transcripts_say_what_exec_printed() {
    let (mut same, mut breaches) = (0, Vec::new());
    for entry in corpus::all().iter().filter(|entry| entry.name.ends_with(".stdout.jsonl")) {
        let base = entry.name.trim_end_matches(".stdout.jsonl");
        let name = format!("{base}.rollout.jsonl");
        let Some(file) = corpus::all().iter().find(|entry| entry.name == name) else { continue };
        let (mut printed, mut written) = (printed(&entry.bytes), written(&file.bytes));
        // Exec prints parallel commands as they begin; the file has them as they were called.
        if base.ends_with("parallel") {
            printed.sort();
            written.sort();
        }
        let (version, scenario) = base.split_once('/').unwrap();
        let excused = REASONS.iter().any(|(versions, name, _)| {
            *name == scenario && versions.split(' ').any(|known| known == version)
        });
        match printed == written {
            true => {
                same += 1;
                assert!(!excused, "{base} needs no reason any more");
            }
            false if excused => {}
            false => breaches.push(format!("{base}\n  printed {printed:?}\n  written {written:?}")),
        }
    }
    assert!(
        breaches.is_empty(),
        "{} of {}\n{}",
        breaches.len(),
        same + breaches.len(),
        breaches.join("\n")
    );
}

/// Messages and commands with exit codes, in the order in which they began.
fn printed(stdout: &[u8]) -> Vec<String> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut base = 0;
    for line in String::from_utf8_lossy(stdout).lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        // A resumed run is a process of its own: its ids begin anew.
        base += usize::from(event["type"] == "thread.started");
        let (id, text, is_end) = match new_words(&event).or_else(|| old_words(&event)) {
            Some(row) => row,
            None => continue,
        };
        let key = format!("{base}/{id}");
        match rows.iter_mut().find(|(known, _)| *known == key && !id.is_empty()) {
            Some((_, row)) if is_end && text.starts_with('→') => {
                *row = row.replace("→ ?", &text);
            }
            Some((_, row)) if is_end => *row = text,
            Some(_) => {}
            None => rows.push((key, text)),
        }
    }
    rows.into_iter().map(|(_, text)| text).collect()
}

fn command_row(command: &str, code: Option<i64>) -> String {
    let code = code.map_or("?".to_owned(), |code| code.to_string());
    format!("$ {} → {code}", display_command(command))
}

fn new_words(event: &Value) -> Option<(String, String, bool)> {
    let kind = event["type"].as_str()?;
    if !kind.starts_with("item.") {
        return None;
    }
    let (item, is_end) = (&event["item"], kind == "item.completed");
    let id = item["id"].as_str().unwrap_or_default().to_owned();
    match item["type"].as_str().or(item["item_type"].as_str())? {
        "agent_message" | "assistant_message" if is_end => {
            Some((id, format!("> {}", item["text"].as_str()?.trim()), true))
        }
        "command_execution" => {
            let row = command_row(item["command"].as_str()?, item["exit_code"].as_i64());
            Some((id, row, is_end))
        }
        _ => None,
    }
}

fn old_words(event: &Value) -> Option<(String, String, bool)> {
    let message = &event["msg"];
    let kind = message["type"].as_str()?;
    match kind {
        "agent_message" => {
            Some((String::new(), format!("> {}", message["message"].as_str()?.trim()), true))
        }
        "exec_command_begin" | "exec_command_end" => {
            let words = message["command"].as_array();
            let words: Vec<String> =
                words.into_iter().flatten().map(|w| w.as_str().unwrap().to_owned()).collect();
            let id = message["call_id"].as_str()?.to_owned();
            let code = message["exit_code"].as_i64();
            let row = command_row(&bindery_sessions::normalise::join_command(&words), code);
            // The end does not repeat the command.
            let row = match code {
                Some(code) if words.is_empty() => format!("→ {code}"),
                _ => row,
            };
            Some((id, row, kind == "exec_command_end"))
        }
        _ => None,
    }
}

fn written(bytes: &[u8]) -> Vec<String> {
    let session = of_bytes(bytes, Options::default());
    let mut rows = Vec::new();
    for item in session.transcript.turns.iter().flat_map(|turn| &turn.items) {
        match &item.body {
            Body::Message { text, .. } if !text.trim().is_empty() => {
                rows.push(format!("> {}", text.trim()))
            }
            Body::Tool(tool) if tool.sort == ToolSort::Bash && tool.name != "write_stdin" => {
                let command = tool.input["command"].as_str().unwrap_or_default();
                let code = tool.exit_code.or((item.status == Status::Declined).then_some(-1));
                rows.push(command_row(command, code));
            }
            _ => {}
        }
    }
    rows
}

#[test]
fn reasons_are_for_runs_that_exist() {
    let mut seen = BTreeMap::new();
    for (versions, name, reason) in REASONS {
        assert!(!reason.is_empty());
        for version in versions.split(' ') {
            assert!(seen.insert((version, name), reason).is_none(), "{name} twice");
            corpus::file(&format!("{version}/{name}.stdout.jsonl"));
        }
    }
}
