//! Live = persisted: the parts of a live run, folded, are what its file says.

use std::collections::BTreeMap;

use bindery_core::ids::{ApprovalId, ThreadId};
use bindery_core::item::{Body, Item, ToolSort};
use bindery_core::map::app_server_to_part::{TurnContext, TurnMapper};
use bindery_core::transcript::{Transcript, TurnRecord};
use bindery_core::wire::app_server::notification::{Body as Note, Notification};
use bindery_core::wire::app_server::request::ServerRequest;
use bindery_sessions::normalise::{Options, display_command};
use bindery_sessions::session::of_bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::corpus;

/// Versions of whose runs the live side was recorded as our client sees it.
const VERSIONS: [&str; 2] = ["0.166.0/", "0.169.0/"];

/// Runs whose live and persisted sides differ, with the reason.
const REASONS: &[(&str, &str)] = &[
    ("0.166.0/app_inject", "what a client injects is in the file and not told live"),
    ("0.166.0/app_legacy", "a patch that does not apply is a call without an item"),
    ("0.166.0/app_paginated", "a patch that does not apply is a call without an item"),
    ("0.166.0/app_live", "the recording of the live side ends before the turn does"),
    ("0.166.0/app_plan", "a plan is written before the answer around it, and begins after it"),
    ("0.166.0/app_revert", "the last turn is in the thread's next file"),
    ("0.166.0/app_review", "the prompt is written last, under the reviewer's own turn"),
    ("0.166.0/app_slow", "an answer that was cut short is not written"),
    ("0.169.0/agents2", "waiting for a sub-agent (v2) is a call without an item"),
    ("0.169.0/app_inject", "what a client injects is in the file and not told live"),
    ("0.169.0/app_revert", "the last turn is in the thread's next file"),
    ("0.169.0/app_review", "the prompt is written last, under the reviewer's own turn"),
];

#[test]
fn folding_live_parts_equals_normalising_the_file() {
    let (mut compared, mut breaches) = (0, Vec::new());
    let runs = corpus::all().iter().filter(|entry| entry.name.ends_with(".appserver.jsonl"));
    for run in runs.filter(|run| VERSIONS.iter().any(|version| run.name.starts_with(version))) {
        let base = run.name.trim_end_matches(".appserver.jsonl");
        let name = format!("{base}.rollout.jsonl");
        let Some(file) = corpus::all().iter().find(|entry| entry.name == name) else { continue };
        let session = of_bytes(&file.bytes, Options::default());
        let live = play(&run.bytes, session.head.id.as_ref().unwrap());
        let (live, kept) = (sketch(&live.turns), sketch(&session.transcript.turns));
        compared += 1;
        let excused = REASONS.iter().any(|(name, _)| *name == base);
        match live == kept {
            true => assert!(!excused, "{base} needs no reason any more"),
            false if excused => {}
            false => breaches.push(format!("{base}\n  live {live:#?}\n  file {kept:#?}")),
        }
    }
    assert!(breaches.is_empty(), "{} of {compared}\n{}", breaches.len(), breaches.join("\n"));
    assert!(compared > 15);
}

/// Plays what the server said about one thread.
fn play(output: &[u8], thread: &ThreadId) -> Transcript {
    let mut transcript = Transcript::default();
    let mut mapper: Option<TurnMapper> = None;
    for line in String::from_utf8_lossy(output).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let Some(method) = message["method"].as_str() else { continue };
        let params: Box<RawValue> = serde_json::from_value(message["params"].clone()).unwrap();
        let parts = if message.get("id").is_some() {
            let request = ServerRequest::decode(method, &params);
            let id = ApprovalId::new(message["id"].to_string());
            mapper.as_mut().map(|mapper| mapper.ask(&id, &request).0)
        } else {
            let note = Notification::decode(method, &params);
            let opens = matches!(note.body, Note::TurnStarted(_) | Note::ItemStarted(_));
            let is_ours = note.address.thread_id.as_ref() == Some(thread);
            let is_idle = mapper.as_ref().is_none_or(TurnMapper::is_finished);
            if let (true, true, true, Some(turn)) = (opens, is_ours, is_idle, &note.address.turn_id)
            {
                mapper = Some(TurnMapper::new(TurnContext::new(thread.clone(), turn.clone())));
            }
            mapper.as_mut().map(|mapper| mapper.notify(&note))
        };
        parts.iter().flatten().for_each(|part| transcript.apply(part));
    }
    transcript
}

/// What must be equal: who said what, what was done and how it ended, turn by turn.
fn sketch(turns: &[TurnRecord]) -> Vec<Vec<String>> {
    let turns = turns.iter().map(|turn| {
        let mut rows: Vec<String> = turn.items.iter().filter_map(row).collect();
        let finish = turn.finish.as_ref().map(|finish| format!("{:?}", finish.unified));
        rows.push(format!("= {}", finish.unwrap_or_default()));
        rows
    });
    turns.filter(|rows| rows.len() > 1).collect()
}

fn row(item: &Item) -> Option<String> {
    if item.agent.is_some() {
        return None;
    }
    Some(match &item.body {
        Body::User { text, attachments } => format!("user {text} +{}", attachments.len()),
        Body::Message { text, phase } => format!("said {text} {}", phase.as_deref().unwrap_or("")),
        Body::Reasoning { summary, raw } if !(summary.is_empty() && raw.is_empty()) => {
            format!("thought {summary:?} {raw:?}")
        }
        Body::Tool(tool) => {
            let what = match tool.sort {
                ToolSort::Bash => display_command(tool.input["command"].as_str().unwrap_or("?")),
                ToolSort::Edit => {
                    let changes = tool.changes();
                    let paths = changes.iter().map(|c| format!("{} {}", c.path, c.diff.len()));
                    paths.collect::<Vec<_>>().join(", ")
                }
                ToolSort::Client | ToolSort::Mcp => format!("{} {}", tool.name, tool.input),
                _ => String::new(),
            };
            let code = tool.exit_code;
            // What only the model sees: calls of its own tools that have no item.
            if matches!(tool.sort, ToolSort::Other | ToolSort::Question)
                || tool.name == "write_stdin"
            {
                return None;
            }
            format!("{:?} {what} {:?} {code:?}", tool.sort, item.status)
        }
        Body::Notice { topic, text, .. } if matches!(topic.as_str(), "compaction" | "review") => {
            format!("notice {topic} {text}")
        }
        _ => return None,
    })
}

#[test]
fn reasons_are_for_runs_that_exist() {
    let names: BTreeMap<_, _> = REASONS.iter().copied().collect();
    assert_eq!(names.len(), REASONS.len());
    for (name, reason) in names {
        assert!(!reason.is_empty());
        corpus::file(&format!("{name}.appserver.jsonl"));
    }
}
