//! Which thread is taken, and what of the prompt is new to it.

use serde_json::{Value, json};

use super::*;
use crate::map::prompt_to_turn::{Continuation, ThreadChoice, ThreadSource};

/// `thread | injected | input | answers`, one line.
fn line(plan: &TurnPlan) -> String {
    let thread = match &plan.thread {
        ThreadChoice::Fresh => "fresh".to_owned(),
        ThreadChoice::Resume(thread) => format!("resume {thread}"),
        ThreadChoice::Fork { thread_id, last_turn_id } => {
            format!("fork {thread_id} at {}", last_turn_id.as_ref().map_or("end", |t| t.as_str()))
        }
    };
    let input = input(plan);
    let texts: Vec<&str> =
        input.as_array().unwrap().iter().map(|i| i["text"].as_str().unwrap()).collect();
    let answers = plan.answers.iter().map(|answer| match answer {
        Continuation::Approval { approval_id, approved, .. } => format!("{approval_id}={approved}"),
        Continuation::ToolResult { call_id, .. } => call_id.to_string(),
    });
    let answers: Vec<String> = answers.collect();
    [thread, sketch(&plan.inject).join(" / "), texts.join(" / "), answers.join(" / ")].join(" | ")
}

fn call(id: &str, thread: Option<&str>) -> Value {
    let options = thread.map(|thread| json!({ "codex": { "threadId": thread } }));
    json!({ "role": "assistant", "content": [
        { "type": "tool-call", "toolCallId": id, "toolName": "add", "input": {},
          "providerOptions": options }] })
}

fn approval(id: &str, approved: bool) -> Value {
    json!({ "role": "tool", "content": [
        { "type": "tool-approval-response", "approvalId": id, "approved": approved }] })
}

#[test]
fn only_what_the_thread_lacks_is_sent() {
    let two = json!({ "type": "text", "value": "2" });
    #[rustfmt::skip]
    let table = [
        (json!([user("a")]),
            "fresh |  | a | "),
        (json!([user("a"), user("b")]),
            "fresh |  | a / b | "),
        (json!([user("a"), assistant("b"), user("c")]),
            "fresh | user: a / assistant: b | c | "),
        (json!([user("a"), answer("b", "t1"), user("c")]),
            "resume t1 |  | c | "),
        (json!([user("a"), answer("b", "t1"), user("c"), user("d")]),
            "resume t1 |  | c / d | "),
        (json!([answer("b", "t1"), user("c"), answer("d", "t2"), user("e")]),
            "resume t2 |  | e | "),
        // Another model went on in between.
        (json!([user("a"), answer("b", "t1"), user("c"), assistant("d"), user("e")]),
            "resume t1 | user: c / assistant: d | e | "),
        (json!([answer("b", "t1"), user("c"), call("c1", None), result("c1", two.clone()), user("e")]),
            "resume t1 | user: c / call c1 add({}) / result c1: 2 | e | "),
        // The thread's own call waits for its result.
        (json!([user("a"), call("c1", Some("t1")), result("c1", two.clone())]),
            "resume t1 |  |  | c1"),
        (json!([user("a"), call("c1", Some("t1")), result("c1", two.clone()), user("b")]),
            "resume t1 |  | b | c1"),
        (json!([user("a"), call("c1", Some("t1")), approval("a1", true)]),
            "resume t1 |  |  | a1=true"),
        // Metadata was lost: a waiting turn can still be told by the call's id.
        (json!([user("a"), call("c1", None), result("c1", two.clone())]),
            "fresh | user: a / call c1 add({}) / result c1: 2 |  | c1"),
        (json!([user("a"), call("c1", None), result("c1", two), user("b")]),
            "fresh | user: a / call c1 add({}) / result c1: 2 | b | "),
    ];
    for (prompt, want) in table {
        assert_eq!(line(&of_prompt(prompt.clone())), want, "{prompt}");
    }
}

#[test]
fn the_call_and_the_context_can_name_the_thread() {
    let told = json!([user("a"), answer("b", "t1"), user("c")]);
    let untold = json!([user("a"), assistant("b"), user("c")]);
    let given = ThreadSource::Given("t7".into());
    #[rustfmt::skip]
    let table = [
        (&told,   json!({}),                            ThreadSource::History, "resume t1 |  | c | "),
        (&told,   json!({"codex": {"threadId": null}}), ThreadSource::History, "resume t1 |  | c | "),
        (&told,   json!({"codex": {"threadId": "t1"}}), ThreadSource::History, "resume t1 |  | c | "),
        (&told,   json!({"codex": {"threadId": "t9"}}), ThreadSource::History, "resume t9 |  | c | "),
        (&told,   json!({"bindery": {"threadId": "t9"}}), given.clone(),       "resume t9 |  | c | "),
        (&told,   json!({}),                            given.clone(),         "resume t7 |  | c | "),
        (&untold, json!({}),                            given.clone(),         "resume t7 |  | c | "),
        (&untold, json!({"codex": {"fork": true}}),     given,          "fork t7 at end |  | c | "),
        (&told,   json!({"codex": {"fork": true}}),     ThreadSource::History,
            "fork t1 at turn of b |  | c | "),
        (&told,   json!({"codex": {"threadId": "t9"}}), ThreadSource::Fresh,
            "fresh | user: a / assistant: b | c | "),
        (&untold, json!({"codex": {"fork": true}}),     ThreadSource::History,
            "fresh | user: a / assistant: b | c | "),
    ];
    for (prompt, options, thread, want) in table {
        let context = PlanContext { thread, ..PlanContext::default() };
        let call = json!({ "prompt": prompt, "providerOptions": options });
        assert_eq!(line(&try_plan(call.clone(), &context).unwrap()), want, "{call}");
    }
}

#[test]
fn thread_ids_are_found_under_every_key_and_on_every_part() {
    let id = json!({ "threadId": "t1" });
    let part = |kind: Value| {
        let mut part = kind;
        part["providerOptions"] = json!({ "bindery": id });
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "x" }, part] })
    };
    let messages = [
        json!({ "role": "assistant", "content": "b", "providerOptions": { "codex": id } }),
        json!({ "role": "assistant", "content": "b",
                "providerOptions": { "@janole/ai-sdk-provider-codex-asp": id } }),
        part(json!({ "type": "reasoning", "text": "r" })),
        part(json!({ "type": "tool-call", "toolCallId": "c", "toolName": "n", "input": {} })),
        part(json!({ "type": "custom", "kind": "codex.plan" })),
        part(json!({ "type": "hologram" })),
    ];
    for message in messages {
        let plan = of_prompt(json!([user("a"), message, user("c")]));
        assert_eq!(line(&plan), "resume t1 |  | c | ", "{message}");
        assert_eq!(warned(&plan), Vec::<String>::new());
    }
}

#[test]
fn nothing_to_say_is_an_error() {
    let pdf = json!({ "role": "user", "content": [
        { "type": "file", "data": "aGk=", "mediaType": "application/pdf" }] });
    #[rustfmt::skip]
    let table = [
        (json!([]),                                            "empty_prompt"),
        (json!([{"role": "system", "content": "be brief"}]),   "nothing_to_send"),
        (json!([assistant("a")]),                              "nothing_to_send"),
        (json!([user("")]),                                    "nothing_to_send"),
        (json!([user("a"), answer("b", "t1")]),                "nothing_to_send"),
        (json!([pdf]),                                         "nothing_to_send"),
    ];
    for (prompt, want) in table {
        let failed = try_plan(json!({ "prompt": prompt }), &PlanContext::default()).unwrap_err();
        assert_eq!(failed.code(), want, "{prompt}");
    }
    let failed = try_plan(json!({ "prompt": [pdf] }), &PlanContext::default()).unwrap_err();
    insta::assert_snapshot!(failed, @r#"
    the prompt has nothing to send; file (application/pdf): prompt[0].content[0]: Codex takes images and text only
    "#);
}

#[test]
fn a_prompt_that_ends_with_an_answer_runs_on_the_history_alone() {
    let plan = of_prompt(json!([user("a"), assistant("b")]));
    assert_eq!(line(&plan), "fresh | user: a / assistant: b |  | ");
    assert_eq!(warned(&plan), ["other prompt"]);
}

#[test]
fn changed_instructions_follow_as_a_message_and_changed_tools_are_told() {
    let tool = |name: &str| json!({ "type": "function", "name": name, "inputSchema": {} });
    let call = |system: &str, tool: Value, marks: Option<&Value>| {
        let mut said = answer("b", "t1");
        if let Some(marks) = marks {
            said["content"][0]["providerOptions"]["codex"]["marks"] = marks.clone();
        }
        let system = json!({ "role": "system", "content": system });
        let prompt = match marks {
            Some(_) => json!([system, user("a"), said, user("c")]),
            None => json!([system, user("a")]),
        };
        json!({ "prompt": prompt, "tools": [tool] })
    };
    let marks = Value::Object(planned(call("be brief", tool("x"), None)).marks);

    let same = planned(call("be brief", tool("x"), Some(&marks)));
    assert_eq!((warned(&same), line(&same).as_str()), (vec![], "resume t1 |  | c | "));
    assert_eq!(json!(same.marks), marks);

    let changed = planned(call("be long", tool("x"), Some(&marks)));
    assert_eq!(line(&changed), "resume t1 | developer: be long | c | ");
    assert_eq!(warned(&changed), ["other system"]);
    // Told once: the next call finds the new text in force.
    assert_ne!(changed.marks["instructions"], marks["instructions"]);
    assert_eq!(changed.marks["tools"], marks["tools"]);

    // A thread cannot be told of other tools, so another one is.
    let added = planned(call("be brief", tool("y"), Some(&marks)));
    assert_eq!(line(&added), "fresh | user: a / assistant: b | c | ");
    assert_eq!(warned(&added), ["other tools"]);
    assert_ne!(added.marks["tools"], marks["tools"]);
    // Not where the caller wants this one.
    let mut named = call("be brief", tool("y"), Some(&marks));
    named["providerOptions"] = json!({ "codex": { "threadId": "t1" } });
    let named = planned(named);
    assert_eq!(
        (warned(&named), line(&named).as_str()),
        (vec!["no tools".to_owned()], "resume t1 |  | c | ")
    );

    let gone = planned(call("", tool("x"), Some(&marks)));
    assert_eq!((warned(&gone), gone.inject), (vec!["no system".to_owned()], vec![]));
}

#[test]
fn a_tool_with_the_name_of_one_of_codexs_own_is_refused() {
    for name in ["exec_command", "apply_patch", "update_plan", "view_image", "web_search"] {
        let tool = json!({ "type": "function", "name": name, "inputSchema": {} });
        let call = json!({ "prompt": [user("a")], "tools": [tool] });
        let err = try_plan(call, &PlanContext::default()).unwrap_err();
        assert_eq!((err.code(), err.hint().is_some()), ("reserved_tool_name", true));
        assert!(err.to_string().contains(&format!("`{name}`")), "{err}");
    }
}

#[test]
fn an_answer_says_more_by_the_options_of_its_message() {
    let mut told = approval("a1", true);
    told["providerOptions"] = json!({ "codex": { "decision": "acceptForSession", "own": 1 } });
    told["content"][0]["providerOptions"] = json!({ "codex": { "own": 2 } });
    let plan = of_prompt(json!([user("a"), call("c1", Some("t1")), told]));
    let [Continuation::Approval { options, .. }] = &plan.answers[..] else { panic!("{plan:?}") };
    assert_eq!(Value::Object(options.clone()), json!({ "decision": "acceptForSession", "own": 2 }));
}
