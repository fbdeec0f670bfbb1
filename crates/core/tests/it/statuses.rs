//! How a tool's end is told: a word that nobody knows is never success.

use bindery_core::ids::{ThreadId, TurnId};
use bindery_core::map::app_server_to_part::{TurnContext, TurnMapper};
use bindery_core::part::Part;
use bindery_core::wire::app_server::notification::Notification;
use serde_json::{Value, json, value::to_raw_value};

fn notify(mapper: &mut TurnMapper, method: &str, params: &Value) -> Vec<Part> {
    mapper.notify(&Notification::decode(method, &to_raw_value(params).unwrap()))
}

fn command(status: &str) -> Value {
    json!({ "threadId": "t", "turnId": "u", "item": {
        "type": "commandExecution", "id": "c", "command": "ls", "cwd": "/", "status": status,
        "commandActions": [], "aggregatedOutput": "", "exitCode": null,
    } })
}

fn mapper() -> TurnMapper {
    TurnMapper::new(TurnContext::new(ThreadId::new("t"), TurnId::new("u")))
}

fn errors(parts: &[Part]) -> Vec<bool> {
    let result = |part: &Part| match part {
        Part::ToolResult(result) => Some(result.is_error),
        _ => None,
    };
    parts.iter().filter_map(result).collect()
}

#[test]
fn an_unknown_status_is_no_success() {
    for (status, is_error) in
        [("completed", false), ("failed", true), ("declined", true), ("evaporated", true)]
    {
        let mut mapper = mapper();
        notify(&mut mapper, "item/started", &command("inProgress"));
        let parts = notify(&mut mapper, "item/completed", &command(status));
        assert_eq!(errors(&parts), [is_error], "{status}");
    }
}

#[test]
fn a_command_that_outlives_its_turn_runs_unless_its_end_may_have_been_missed() {
    for missed in [false, true] {
        let mut mapper = mapper();
        notify(&mut mapper, "item/started", &command("inProgress"));
        if missed {
            mapper.note_missed_events();
        }
        let turn = json!({ "id": "u", "items": [], "status": "completed" });
        let parts =
            notify(&mut mapper, "turn/completed", &json!({ "threadId": "t", "turn": turn }));
        assert_eq!(errors(&parts), [missed]);
    }
}
