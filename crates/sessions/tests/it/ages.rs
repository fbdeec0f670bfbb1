//! Files of every version, resumed by the newest Codex: it tells its model what we would.

use std::path::Path;

use bindery_testkit::codex::{Options as CodexOptions, RealCodex};
use bindery_testkit::model::{Model, Reply};
use serde_json::{Value, json};

use crate::corpus::{self, Entry};
use crate::resumed::{app_server, difference, load, told};

/// Puts a file of the corpus where Codex finds it; none for those that it cannot read.
fn place(home: &Path, entry: &Entry) -> Option<String> {
    let first = entry.bytes.split(|byte| *byte == b'\n').next()?;
    let first: Value = serde_json::from_slice(first).ok()?;
    let thread = first["payload"]["id"].as_str()?;
    let is_continued = first["payload"]["history_base"].is_object();
    let folder = home.join("sessions/2026/11/15");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("rollout-2026-11-15T20-14-38-{thread}.jsonl"));
    if path.exists() || is_continued {
        return None;
    }
    // 0.166 resumes no thread of another provider than the one it is set to.
    let text = String::from_utf8_lossy(&entry.bytes);
    let text = text.replace("\"model_provider\":\"mock\"", "\"model_provider\":\"scripted\"");
    std::fs::write(path, text).unwrap();
    Some(thread.to_owned())
}

/// Scenarios whose histories are of different sorts.
const SORTS: &[&str] = &[
    "agents.",
    "codemode_shell.",
    "compact",
    "ctxlen.",
    "image",
    "localshell.",
    "rollback",
    "resume.",
    "review",
    "sigkill.",
    "switch",
    "websearch.",
    "patch.",
    "mcp.",
    "reasoning.",
    "interrupt",
];

/// What is shown, by its sort, with what was said.
fn shown(turns: &[Value]) -> Vec<String> {
    let items = |turn: &Value| -> Vec<String> {
        let items = turn["items"].as_array().unwrap().iter();
        items
            .map(|item| {
                let text = item["text"].as_str().or(item["content"][0]["text"].as_str());
                let text = text.or(item["summary"][0].as_str()).unwrap_or_default();
                let text: String = text.chars().take(24).collect();
                format!("{} {text}", item["type"].as_str().unwrap())
            })
            .collect()
    };
    turns.iter().map(|turn| format!("{} {}", turn["status"], items(turn).join(", "))).collect()
}

/// What differs between our history and what Codex tells, for the files of a version.
async fn differences(version: &str) -> Vec<String> {
    let model = Model::start(vec![Reply::text("Fine").always()]);
    let codex = RealCodex::with(&model, &CodexOptions::unrestricted());
    let mut lines = app_server(&codex).await;
    let mut found = Vec::new();
    let prefix = format!("{version}/");
    let is_wanted = |entry: &&Entry| {
        let rest = entry.name.strip_prefix(&prefix);
        rest.is_some_and(|rest| SORTS.iter().any(|sort| rest.contains(sort)))
    };
    for entry in corpus::sessions().filter(is_wanted) {
        let Some(thread) = place(&codex.home(), entry) else { continue };
        let params = json!({
            "threadId": thread,
            "model": "gpt-5.5",
            "modelProvider": "scripted",
            "cwd": codex.project(),
        });
        let reply = lines.request("thread/resume", params).await;
        if reply["error"]["message"].to_string().contains("multi-agent v2 sub-agent") {
            continue;
        }
        if reply.get("error").is_some() {
            found.push(format!("{}: {reply:.300}", entry.name));
            continue;
        }
        let resumed = load(&codex.home(), &thread);
        let params = json!({ "threadId": thread, "includeTurns": true });
        let read = lines.request("thread/read", params).await;
        let theirs = shown(read["result"]["thread"]["turns"].as_array().unwrap());
        let ours = shown(&resumed.turns);
        // Codex puts turns inside a review before it, and shows none of a file without events.
        if ours != theirs && !entry.name.contains("review") && !theirs.is_empty() {
            found.push(format!("{}: {ours:?} is shown as {theirs:?}", entry.name));
        }
        let before = model.count();
        let end = lines.run_turn(&thread, "and now?").await;
        if model.count() == before {
            found.push(format!("{}: no request {end:.300}", entry.name));
        } else if let Some(difference) = difference(&resumed, &told(&model, before)) {
            found.push(format!("{}: {difference}", entry.name));
        }
    }
    lines.close().await;
    found
}

#[tokio::test]
async fn unnumbered_files_are_told_as_codex_tells_them() {
    let mut found = Vec::new();
    for version in ["0.36.0", "0.50.0", "0.72.0", "0.98.0", "0.144.4"] {
        found.extend(differences(version).await);
    }
    assert_eq!(found, [""; 0]);
}

#[tokio::test]
async fn numbered_files_are_told_as_codex_tells_them() {
    let mut found = Vec::new();
    for version in ["0.153.0", "0.166.0", "0.169.0", "0.166.0-migrated", "0.166.0-crossresume"] {
        found.extend(differences(version).await);
    }
    assert_eq!(found, [""; 0]);
}
