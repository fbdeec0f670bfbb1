//! Recordings of the app-server, told in the words of `codex exec --json`.

use bindery_core::ids::ThreadId;
use bindery_core::map::app_server_to_exec::ExecMapper;
use bindery_core::wire::app_server::notification::Notification;
use bindery_core::wire::exec;
use serde_json::value::to_raw_value;

use crate::recording;

/// The lines of a recording's first thread up to the end of its first turn.
fn told(name: &str) -> Vec<String> {
    let mut mapper: Option<ExecMapper> = None;
    let mut told = Vec::new();
    for line in recording::lines(name).into_iter().filter(|line| line.received) {
        let thread = line.message.pointer("/result/thread/id").and_then(|id| id.as_str());
        if let (Some(thread), None) = (thread, &mapper) {
            let new = ExecMapper::new(ThreadId::new(thread));
            told.push(new.begin());
            mapper = Some(new);
        }
        let Some(mapper) = &mut mapper else { continue };
        let Some(method) = line.message["method"].as_str() else { continue };
        if line.message.get("id").is_none() {
            let params = to_raw_value(&line.message["params"]).unwrap();
            told.extend(mapper.push(&Notification::decode(method, &params)));
        }
    }
    told.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
}

#[test]
fn every_recording_is_told_in_words_that_we_can_read() {
    for name in recording::names() {
        for line in told(&name) {
            let read = exec::decode(&line);
            assert!(!matches!(read, exec::Line::Unknown { .. }), "{name}: {line}");
        }
    }
}

#[test]
fn recordings_in_exec_words() {
    let names = [
        "update_plan",
        "web_search",
        "mcp_tool_call",
        "error_400",
        "error_500",
        "reasoning_text",
        "patch_workspace_write_onrequest",
        "sub_agent",
        "turn_interrupt",
        "command_approval_decline",
    ];
    let text: Vec<String> =
        names.iter().map(|name| format!("## {name}\n{}", told(name).join("\n"))).collect();
    insta::assert_snapshot!(text.join("\n\n"));
}
