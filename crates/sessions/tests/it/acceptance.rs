//! The acceptance scenarios for rendering persisted sessions, by name.

use bindery_core::item::{Body, Status, ToolSort};
use bindery_sessions::messages::{self, messages};
use bindery_sessions::normalise::Options;
use bindery_sessions::session::{Session, of_bytes};
use bindery_sessions::validate::Report;
use serde_json::Value;

use crate::corpus;

const META: &str = concat!(
    r#"{"timestamp":"2026-02-01T10:00:00.000Z","type":"session_meta","payload":{"id":"t1","cwd":"/w","#,
    r#""originator":"codex_exec","cli_version":"0.98.0","source":"exec"}}"#,
);

fn line(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-02-01T10:00:01.000Z","type":"{kind}","payload":{payload}}}"#)
}

fn item(payload: &str) -> String {
    line("response_item", payload)
}

fn event(payload: &str) -> String {
    line("event_msg", payload)
}

fn text(lines: &[String]) -> String {
    let lines: Vec<&str> = std::iter::once(META).chain(lines.iter().map(String::as_str)).collect();
    lines.join("\n") + "\n"
}

fn session(lines: &[String]) -> Session {
    of_bytes(text(lines).as_bytes(), Options::default())
}

fn user(text: &str) -> [String; 2] {
    [
        item(&format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
        )),
        event(&format!(r#"{{"type":"user_message","message":"{text}","images":[]}}"#)),
    ]
}

/// `role block` for each block, with what ties it to others.
fn sketch(session: &Session) -> Vec<String> {
    let mut rows = Vec::new();
    for message in messages(&session.transcript, messages::Options::default()) {
        let role = message["type"].as_str().unwrap();
        if role == "system" {
            rows.push(format!("system {}", message["subtype"].as_str().unwrap()));
            continue;
        }
        for block in message["message"]["content"].as_array().unwrap() {
            let word = |key: &str| block[key].as_str().unwrap_or_default();
            rows.push(match block["type"].as_str().unwrap() {
                "tool_use" => format!("{role} tool_use {} {}", word("id"), word("name")),
                "tool_result" => format!(
                    "{role} tool_result {} {:?} error={}",
                    word("tool_use_id"),
                    word("content"),
                    block["is_error"]
                ),
                kind => format!("{role} {kind} {}", word("text")),
            });
        }
    }
    rows
}

#[test]
fn scenario_1_tool_pairing_fidelity() {
    let [prompt, echo] = user("go");
    let session = session(&[
        prompt,
        echo,
        item(
            r#"{"type":"function_call","name":"shell_command","arguments":"{\"command\":\"ls\"}","call_id":"c1"}"#,
        ),
        item(
            r#"{"type":"function_call_output","call_id":"c1","output":"Exit code: 0\nWall time: 0.1 seconds\nOutput:\nREADME.md"}"#,
        ),
        item(
            r#"{"type":"custom_tool_call","status":"completed","name":"apply_patch","input":"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch","call_id":"c2"}"#,
        ),
        item(
            r#"{"type":"custom_tool_call_output","call_id":"c2","output":"{\"output\":\"Success.\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"}"#,
        ),
    ]);
    assert_eq!(
        sketch(&session),
        [
            "user text go",
            "assistant tool_use c1 Bash",
            "user tool_result c1 \"README.md\" error=false",
            "assistant tool_use c2 Edit",
            "user tool_result c2 \"Success.\" error=false",
        ]
    );
    let items = &session.transcript.turns[0].items;
    assert!(
        items[1..].iter().all(|item| item.status == Status::Ok && item.origin.lines.len() == 2)
    );
}

#[test]
fn scenario_2_schema_acceptance_for_known_persisted_variants() {
    let lines = [
        item(
            r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}"#,
        ),
        item(
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}"#,
        ),
        item(
            r#"{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}"#,
        ),
        item(
            r#"{"type":"custom_tool_call","status":"completed","call_id":"c","name":"apply_patch","input":"x"}"#,
        ),
        item(r#"{"type":"custom_tool_call_output","call_id":"c","output":"done"}"#),
        event(r#"{"type":"turn_aborted","reason":"interrupted"}"#),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    std::fs::write(&path, text(&lines)).unwrap();
    let mut report = Report::default();
    report.check(&path).unwrap();
    assert_eq!((report.known, report.lines, report.lost), (7, 7, 0));
    assert_eq!(report.findings, []);
}

#[test]
fn scenario_3_transcript_cleanliness() {
    let [prompt, echo] = user("hello");
    let session = session(&[
        item(
            r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>all</permissions instructions>"}]}"#,
        ),
        item(concat!(
            r##"{"type":"message","role":"user","content":[{"type":"input_text","text":"# AGENTS.md "##,
            r#"instructions for /w"},{"type":"input_text","text":"<environment_context>x"}]}"#,
        )),
        prompt,
        echo,
        event(r#"{"type":"agent_message","message":"hi"}"#),
        item(
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}"#,
        ),
    ]);
    assert_eq!(sketch(&session), ["user text hello", "assistant text hi"]);
    let topics: Vec<_> =
        session.transcript.turns[0].setup.iter().map(|setup| setup.topic.as_str()).collect();
    assert_eq!(topics, ["permissions", "AGENTS.md", "environment"]);
    let options = messages::Options { setup: true };
    let meta = messages(&session.transcript, options);
    assert_eq!(meta.iter().filter(|message| message["isMeta"] == true).count(), 3);
}

#[test]
fn scenario_4_unknown_variant_resilience() {
    let [prompt, echo] = user("go");
    let session = session(&[
        prompt,
        echo,
        item(r#"{"type":"hologram","hue":7}"#),
        event(r#"{"type":"thread_prediction","odds":0.5}"#),
        line("moon_phase", r#"{"phase":"full"}"#),
        event(r#"{"type":"item_completed","turn_id":"x","item":{"type":"Dream","id":"d"}}"#),
        item(r#"{"type":"message","role":"user"}"#),
        "{\"timestamp\":\"2026".to_owned(),
    ]);
    let cards: Vec<_> = (session.transcript.turns.iter().flat_map(|turn| &turn.items))
        .filter_map(|item| match &item.body {
            Body::Unknown { tag, raw, .. } => {
                Some((tag.as_str(), raw.is_null(), &item.origin.lines))
            }
            _ => None,
        })
        .collect();
    #[rustfmt::skip]
    let want = [
        ("response_item/hologram",              false, &vec![4]),
        ("event_msg/thread_prediction",         false, &vec![5]),
        ("moon_phase",                          false, &vec![6]),
        ("event_msg/item_completed/Dream",      false, &vec![7]),
        ("response_item/message",               false, &vec![8]),
        ("torn line",                           false, &vec![9]),
    ];
    assert_eq!(cards, want);
    assert!(session.ledger.missing().is_empty());
}

#[test]
fn scenario_5_parity_focused_rendering() {
    #[rustfmt::skip]
    let table = [
        ("shell",         r#"{\"command\":[\"bash\",\"-lc\",\"ls -la\"]}"#, "Bash",       "$ ls -la"),
        ("shell_command", r#"{\"command\":\"ls -la\"}"#,                    "Bash",       "$ ls -la"),
        ("exec_command",  r#"{\"cmd\":\"ls -la\"}"#,                        "Bash",       "$ ls -la"),
        ("update_plan",   r#"{\"plan\":[]}"#,                               "UpdatePlan", "plan"),
        ("view_image",    r#"{\"path\":\"a.png\"}"#,                        "ViewImage",  "looked at a.png"),
        ("mcp__demo__echo", "{}",                                           "mcp__demo__echo", "mcp:demo/echo {}"),
    ];
    for (name, arguments, canonical, words) in table {
        let session = session(&[item(&format!(
            r#"{{"type":"function_call","name":"{name}","arguments":"{arguments}","call_id":"c"}}"#
        ))]);
        let Body::Tool(tool) = &session.transcript.turns[0].items[0].body else { panic!("{name}") };
        assert_eq!(bindery_sessions::normalise::canonical_name(tool), canonical);
        assert_eq!(bindery_sessions::render::describe(tool), words);
    }
}

#[test]
fn a_turn_aborted_event_is_a_system_entry_and_ends_its_calls() {
    let [prompt, echo] = user("go");
    let session = session(&[
        prompt,
        echo,
        item(
            r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c"}"#,
        ),
        event(r#"{"type":"turn_aborted","reason":"interrupted"}"#),
    ]);
    assert_eq!(
        sketch(&session),
        ["user text go", "assistant tool_use c Bash", "system turn_aborted"]
    );
    assert_eq!(session.transcript.turns[0].items[1].status, Status::Aborted);
}

#[test]
fn a_web_search_closes_itself_and_keeps_its_query() {
    for version in
        ["0.72.0", "0.98.0", "0.110.0", "0.125.0", "0.144.4", "0.153.0", "0.166.0", "0.169.0"]
    {
        let file = corpus::file(&format!("{version}/websearch.rollout.jsonl"));
        let session = of_bytes(&file.bytes, Options::default());
        let searches: Vec<_> = (session.transcript.turns.iter().flat_map(|turn| &turn.items))
            .filter_map(|item| match &item.body {
                Body::Tool(tool) if tool.sort == ToolSort::WebSearch => Some((item.status, tool)),
                _ => None,
            })
            .collect();
        assert!(!searches.is_empty(), "{version}");
        for (status, tool) in searches {
            assert!(matches!(status, Status::Ok | Status::Failed), "{version}: {status:?}");
            assert!(tool.output.is_some(), "{version}");
            assert!(tool.input["query"].is_string());
        }
    }
}

#[test]
fn no_call_of_the_corpus_waits_for_a_result_that_is_there() {
    let mut open = Vec::new();
    for entry in corpus::sessions() {
        let session = of_bytes(&entry.bytes, Options::default());
        for item in session.transcript.turns.iter().flat_map(|turn| &turn.items) {
            if let Body::Tool(tool) = &item.body
                && item.origin.mark.as_deref() == Some("result without call")
            {
                open.push(format!("{} {}", entry.name, tool.call_id));
            }
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn messages_of_the_whole_corpus_tie_every_result_to_its_call() {
    for entry in corpus::sessions() {
        let session = of_bytes(&entry.bytes, Options::default());
        let mut called: Vec<Value> = Vec::new();
        for message in messages(&session.transcript, messages::Options::default()) {
            let blocks = message["message"]["content"].as_array().cloned().unwrap_or_default();
            for block in blocks {
                match block["type"].as_str() {
                    Some("tool_use") => called.push(block["id"].clone()),
                    Some("tool_result") => {
                        assert_eq!(message["type"], "user");
                        assert!(called.contains(&block["tool_use_id"]), "{}", entry.name);
                    }
                    _ => {}
                }
            }
        }
    }
}
