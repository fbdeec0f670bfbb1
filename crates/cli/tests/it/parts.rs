//! `--format parts`: the AI SDK's stream parts, one a line.

use std::collections::HashSet;

use bindery_testkit::model::{Reply, Step};
use serde_json::Value;

use crate::stage::{Ran, Stage};

/// A bit of everything.
fn script() -> Vec<Reply> {
    vec![
        Reply::new([
            Step::reasoning(["**Looking**"]),
            Step::commentary("I look."),
            Step::exec("echo one", "c1"),
        ]),
        Reply::new([Step::chunked("All well.", 4)]),
    ]
}

/// The lines as JSON; each must be an object with a type.
fn parts(ran: &Ran) -> Vec<Value> {
    let lines = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let parts: Vec<Value> = lines.collect();
    assert!(parts.iter().all(|part| part["type"].is_string()), "{parts:?}");
    parts
}

/// What the contract says of the order, whatever happens in the turn.
fn assert_in_order(parts: &[Value]) {
    let kinds: Vec<&str> = parts.iter().filter_map(|part| part["type"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"stream-start"));
    assert_eq!(kinds.last(), Some(&"finish"));
    assert_eq!(kinds.iter().filter(|kind| **kind == "finish").count(), 1);
    let mut open = HashSet::new();
    for (part, kind) in parts.iter().zip(kinds) {
        let Some((what, when)) = kind.rsplit_once('-') else { continue };
        let run = (what, part["id"].as_str().unwrap_or_default());
        match when {
            "start" if what != "stream" => assert!(open.insert(run), "opened twice: {part}"),
            "delta" => assert!(open.contains(&run), "not open: {part}"),
            "end" => assert!(open.remove(&run), "not open: {part}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}

/// Without what the clock says.
fn told(parts: &[Value]) -> String {
    // How much of a command's output is told while it runs is up to the clock.
    let lasting = parts.iter().filter(|part| part["preliminary"] != true);
    let told = lasting.map(|part| {
        let mut part = part.clone();
        settle(&mut part);
        format!("{part}\n")
    });
    told.collect()
}

fn settle(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let timed = name.ends_with("Ms") || name == "timestamp" || name == "processId";
                if timed && !field.is_null() {
                    *field = Value::from("[varies]");
                }
                settle(field);
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(settle),
        _ => {}
    }
}

async fn run(args: &[&str]) -> (Ran, Vec<Value>) {
    let ran = Stage::free(script()).run(args).await;
    let parts = parts(&ran);
    assert_in_order(&parts);
    (ran, parts)
}

#[tokio::test]
async fn version_4_is_written_unless_told_otherwise() {
    let (ran, parts) = run(&["run", "--format", "parts", "look"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(told(&parts));
}

#[tokio::test]
async fn version_3_has_its_own_shapes() {
    let (ran, parts) = run(&["run", "--format", "parts", "--spec", "v3", "look"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(told(&parts));
}

#[tokio::test]
async fn a_failed_turn_is_told_in_parts_too() {
    let stage = Stage::free(vec![Reply::new([Step::status(400, "bad", "no such thing")])]);
    let ran = stage.run(&["run", "--format", "parts", "fail"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let parts = parts(&ran);
    assert_in_order(&parts);
    let errors: Vec<&Value> = parts.iter().filter(|part| part["type"] == "error").collect();
    insta::assert_json_snapshot!(errors, @r#"
    [
      {
        "error": {
          "kind": "other",
          "message": "{\"error\":{\"message\":\"no such thing\",\"type\":\"bad\"}}"
        },
        "type": "error"
      }
    ]
    "#);
}

#[tokio::test]
async fn a_refusal_is_told_on_stderr() {
    let script = vec![Reply::new([Step::exec("touch x", "c1")]), Reply::text("Then not.")];
    let args =
        ["run", "--format", "parts", "--approve", "untrusted", "--sandbox", "read-only", "go"];
    let ran = Stage::careful(script).run(&args).await;
    assert_in_order(&parts(&ran));
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.err);
}
