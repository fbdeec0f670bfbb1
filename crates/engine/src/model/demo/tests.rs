//! The tour from the first word to the report, with tools that answer as ours do.

use serde_json::{Value, json};

use super::super::{Model, ModelEvent, ModelRequest, ToolSpec};
use super::{Demo, LABEL, answer, spoken};
use crate::item::{HistoryItem, Item, Message, Role};

const LISTING: &str = "total 12\n\
    drwxr-xr-x 2 me me 4096 Jan  1 00:00 src\n\
    -rw-r--r-- 1 me me  900 Jan  1 00:00 big data.bin\n\
    -rw-r--r-- 1 me me  300 Jan  1 00:00 main.rs\n\
    -rw-r--r-- 1 me me  200 Jan  1 00:00 README 1.md\n";

fn function(name: &str) -> ToolSpec {
    let (name, description) = (name.to_owned(), String::new());
    ToolSpec::Function { name, description, parameters: json!({}) }
}

fn patch_tool() -> ToolSpec {
    ToolSpec::Freeform {
        name: "apply_patch".to_owned(),
        description: String::new(),
        syntax: "lark".to_owned(),
        definition: String::new(),
    }
}

fn request(asked: &str) -> ModelRequest {
    let context = Message::text(Role::User, "<environment_context>\n</environment_context>");
    let input = vec![context.into(), Message::text(Role::User, asked).into()];
    let tools = vec![function("exec_command"), patch_tool(), function("update_plan")];
    ModelRequest { input, tools, ..ModelRequest::default() }
}

fn value(item: &Item) -> Value {
    serde_json::to_value(item).unwrap()
}

fn exec(text: &str) -> String {
    format!("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{text}")
}

/// What our tools answer to these calls.
fn tool_answers(call: &Value, listing: &str) -> String {
    let arguments = call["arguments"].as_str().unwrap_or_default();
    match call["name"].as_str().unwrap() {
        "update_plan" => "Plan updated".to_owned(),
        "apply_patch" => "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.".to_owned(),
        _ if arguments.contains("ls -lAS") => exec(listing),
        _ if arguments.contains("head") => exec("\n# The title\nmore\n"),
        _ => exec("Linux\n"),
    }
}

/// Runs a turn to its end; `deny` names a piece of the call that is not allowed.
fn run(request: &mut ModelRequest, listing: &str, deny: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for _ in 0..20 {
        let items = answer(request);
        let mut outputs = Vec::new();
        for item in items {
            let told = value(&item);
            if let Some(id) = told["call_id"].as_str() {
                let denied = !deny.is_empty() && told.to_string().contains(deny);
                let text = match denied {
                    true => "exec_command failed: rejected by user".to_owned(),
                    false => tool_answers(&told, listing),
                };
                let kind = format!("{}_output", told["type"].as_str().unwrap());
                outputs.push(json!({ "type": kind, "call_id": id, "output": text }));
            }
            request.input.push(item.into());
            all.push(told);
        }
        if outputs.is_empty() {
            return all;
        }
        request.input.extend(outputs.into_iter().map(HistoryItem::from_value));
    }
    panic!("the tour does not end: {all:#?}");
}

#[test]
fn the_tour_plans_lists_reads_writes_asks_and_reports() {
    let mut request = request("fix the failing\ntest");
    insta::assert_json_snapshot!(run(&mut request, LISTING, ""));
    request.input.push(Message::text(Role::User, "and now?").into());
    insta::assert_json_snapshot!(run(&mut request, LISTING, ""));
    request.input.push(Message::text(Role::User, "Again, please!").into());
    let again = run(&mut request, &format!("{LISTING}-rw- 1 a a 1 Jan 1 1 BINDERY-DEMO.md\n"), "");
    assert!(again.iter().any(|item| item.to_string().contains("BINDERY-DEMO-2.md")), "{again:#?}");
}

#[test]
fn a_no_is_taken_and_reported() {
    for (deny, what) in [("uname", "outside the sandbox"), ("ls -lAS", "listing the files")] {
        let told = run(&mut request("hello"), LISTING, deny);
        let report = told.last().unwrap().to_string();
        assert!(report.contains("You did not allow"), "{report}");
        assert!(report.contains(what), "{report}");
        let calls = |name: &str| told.iter().filter(|item| item["name"] == name).count();
        assert_eq!(calls("apply_patch"), usize::from(deny == "uname"));
    }
}

#[test]
fn it_works_with_whatever_is_offered_and_always_says_what_it_is() {
    let sets = [
        vec![],
        vec![function("shell_command")],
        vec![function("shell"), function("apply_patch")],
        vec![patch_tool()],
        vec![function("update_plan")],
        vec![ToolSpec::Hosted(json!({ "type": "web_search" }))],
    ];
    for tools in sets {
        for listing in [LISTING, "total 0\n", "nonsense", ""] {
            let mut request = ModelRequest { tools: tools.clone(), ..request("what is here?") };
            let told = run(&mut request, listing, "");
            let messages: Vec<_> = told.iter().filter(|item| item["type"] == "message").collect();
            assert!(!messages.is_empty());
            for message in messages {
                let text = message["content"][0]["text"].as_str().unwrap();
                assert!(text.starts_with(LABEL), "{text}");
            }
        }
    }
    assert!(!answer(&ModelRequest::default()).is_empty());
}

#[test]
fn summaries_reviews_and_shapes_are_answered_in_kind() {
    let text = |request: &ModelRequest| {
        value(&answer(request)[0])["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let mut compact = request("first wish");
    compact.purpose = Some("compact");
    compact.input.push(Message::text(Role::User, "Sum it up.").into());
    assert_eq!(text(&compact), "[demo] So far the person said:\n- first wish");
    let mut review = request("review");
    review.purpose = Some("review");
    let found: Value = serde_json::from_str(&text(&review)).unwrap();
    assert_eq!(found["findings"], json!([]));
    let mut shaped = request("answer in JSON");
    shaped.output_schema = Some(json!({ "type": "object", "properties": {
        "name": { "type": "string" }, "count": { "type": "integer" },
        "kind": { "enum": ["a", "b"] }, "list": { "type": "array", "minItems": 1,
        "items": { "type": ["boolean", "null"] } } } }));
    let want = json!({ "name": "[demo] no real model was asked", "count": 0, "kind": "a",
        "list": [false] });
    assert_eq!(serde_json::from_str::<Value>(&text(&shaped)).unwrap(), want);
}

#[test]
fn the_pieces_make_the_whole() {
    let mut request = request("hello");
    run(&mut request, LISTING, "");
    for item in request.input.iter().filter_map(HistoryItem::known) {
        let pieces = spoken(item).into_iter().map(|event| match event {
            ModelEvent::Text(text) | ModelEvent::ToolInput { text, .. } => text,
            _ => String::new(),
        });
        let pieces: String = pieces.collect();
        let told = value(item);
        let whole = told["input"].as_str().or_else(|| told["content"][0]["text"].as_str());
        if let Some(whole) = whole {
            assert_eq!(pieces, whole);
        }
    }
}

#[tokio::test]
async fn it_answers_through_the_same_door_as_the_others() {
    let (sender, mut events) = tokio::sync::mpsc::channel(1);
    let listening = async {
        let mut count = 0;
        while events.recv().await.is_some() {
            count += 1;
        }
        count
    };
    let (answered, count) = tokio::join!(Demo.answer(request("hello"), sender), listening);
    assert_eq!(answered.unwrap().model.as_deref(), Some("bindery-demo"));
    assert!(count > 5, "{count}");
}
