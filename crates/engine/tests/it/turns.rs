//! The loop: answers, calls, steering, limits.

use bindery_core::open::Open;
use bindery_engine::item::{HistoryItem, Item, Reasoning};
use bindery_engine::model::ModelEvent;
use bindery_engine::outlet::Refusal;
use bindery_engine::thread::{DynamicTool, Entry, Overrides, ThreadError, TurnInput};
use serde_json::{Value, json};

use crate::stage::{Act, Setting, Stage, call, plan, say};

#[tokio::test]
async fn a_plain_turn_reads_as_codex_tells_it() {
    let stage = Stage::new(vec![say("Hello there.")]);
    let turn = stage.turn("hi").await;
    insta::assert_snapshot!(stage.sketch().join("\n"), @r#"
    thread/status/changed active[]
    turn/started
    item/started userMessage
    item/completed userMessage
    item/started agentMessage
    item/agentMessage/delta "Hello "
    item/agentMessage/delta "there."
    item/completed agentMessage Hello there.
    thread/tokenUsage/updated 120 of 120
    thread/status/changed idle
    turn/completed completed
    "#);
    assert_eq!(turn["items"][0]["text"], "Hello there.");
    assert_eq!(turn["itemsView"], "summary");
    let view = stage.thread.snapshot().await;
    assert_eq!(view.turns.len(), 1);
    assert_eq!(view.turns[0]["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(view.status, json!({ "type": "idle" }));
}

#[tokio::test]
async fn thoughts_are_told_in_parts() {
    let reasoning = Reasoning {
        id: Some("rs_1".to_owned()),
        summary: vec![json!({ "type": "summary_text", "text": "Look" })],
        content: Some(vec![json!({ "type": "reasoning_text", "text": "raw" })]),
        encrypted_content: None,
    };
    let item: HistoryItem = Item::Reasoning(reasoning.clone()).into();
    let begun = Item::Reasoning(Reasoning { id: reasoning.id, ..Reasoning::default() }).into();
    let mut acts = vec![
        Act::Tell(ModelEvent::ItemBegun(begun)),
        Act::Tell(ModelEvent::SummaryPart),
        Act::Tell(ModelEvent::Summary("Look".to_owned())),
        Act::Tell(ModelEvent::Thought("raw".to_owned())),
        Act::Tell(ModelEvent::ItemDone(item)),
    ];
    acts.extend(say("ok"));
    let stage = Stage::new(vec![acts]);
    stage.turn("think").await;
    let told = stage.sketch();
    insta::assert_snapshot!(told[4..9].join("\n"), @r#"
    item/started reasoning
    item/reasoning/summaryPartAdded
    item/reasoning/summaryTextDelta "Look"
    item/reasoning/textDelta "raw"
    item/completed reasoning
    "#);
    stage.turn("again").await;
    let kinds = stage.input_lines(1);
    assert_eq!(kinds, ["user: think", "reasoning", "assistant: ok", "user: again"]);
}

#[tokio::test]
async fn calls_run_and_the_model_is_asked_again() {
    let stage = Stage::new(vec![vec![call("c1", "update_plan", &plan())], say("done")]);
    let turn = stage.turn("plan it").await;
    assert_eq!(turn["status"], "completed");
    let expected = ["user: plan it", "call c1 update_plan", "output c1 Plan updated"];
    assert_eq!(stage.input_lines(1), expected);
    let told = stage.wait("turn/plan/updated", 0).await;
    assert_eq!(told["plan"], json!([{ "step": "Look", "status": "inProgress" }]));
    assert_eq!(
        stage.wait("thread/tokenUsage/updated", 1).await["tokenUsage"]["total"]["totalTokens"],
        240
    );
}

#[tokio::test]
async fn what_cannot_be_called_is_said_to_the_model() {
    let acts = vec![
        call("c1", "nope", &json!({})),
        call("c2", "update_plan", &json!("{\"plan\":")),
        call("c3", "update_plan", &json!({ "plan": [{ "step": "x", "status": "someday" }] })),
    ];
    let stage = Stage::new(vec![acts, say("sorry")]);
    stage.turn("go").await;
    let outputs: Vec<String> = stage.input_lines(1).into_iter().skip(4).collect();
    assert_eq!(outputs[0], "output c1 unsupported call: nope");
    assert!(
        outputs[1].starts_with("output c2 failed to parse function arguments: "),
        "{outputs:?}"
    );
    assert!(
        outputs[2].starts_with("output c3 failed to parse function arguments: "),
        "{outputs:?}"
    );
}

fn client_tool(name: &str) -> DynamicTool {
    DynamicTool::read(&json!({ "name": name, "description": "d", "inputSchema": {} }))
        .expect("a tool")
}

#[tokio::test]
async fn tools_of_the_client_run_beside_each_other_and_answer_in_order() {
    let acts =
        vec![call("c1", "slow", &json!({ "n": 1 })), call("c2", "quick", &json!({ "n": 2 }))];
    let (asked, mut both) = tokio::sync::mpsc::channel::<String>(2);
    let setting = Setting::new(vec![acts, say("ok")])
        .change(|settings| settings.dynamic_tools = vec![client_tool("slow"), client_tool("quick")])
        .answer(move |method, params| {
            assert_eq!(method, "item/tool/call");
            let tool = params["tool"].as_str().expect("a tool").to_owned();
            let text = format!("{tool} {}", params["arguments"]["n"]);
            asked.try_send(tool).expect("room");
            let items = json!([{ "type": "inputText", "text": text }]);
            Some(Ok(json!({ "contentItems": items, "success": true })))
        });
    let stage = setting.open();
    stage.turn("go").await;
    assert_eq!(both.recv().await.as_deref(), Some("slow"));
    assert_eq!(both.recv().await.as_deref(), Some("quick"));
    let expected =
        ["user: go", "call c1 slow", "call c2 quick", "output c1 slow 1", "output c2 quick 2"];
    assert_eq!(stage.input_lines(1), expected);
    let item = stage
        .wait_for("a finished call", |heard| {
            let done = heard.iter().find(|(method, params)| {
                *method == "item/completed" && params["item"]["type"] == "dynamicToolCall"
            });
            done.map(|(_, params)| params["item"].clone())
        })
        .await;
    assert_eq!((&item["status"], &item["success"]), (&json!("completed"), &json!(true)));
}

#[tokio::test]
async fn a_group_of_tools_and_failures_of_the_client() {
    let group = json!({
        "type": "namespace", "name": "tickets", "description": "d",
        "tools": [{ "type": "function", "name": "look", "description": "d", "inputSchema": {} }],
    });
    let acts = vec![
        call("c1", "tickets__look", &json!({})),
        call("c2", "tickets__look", &json!({ "refuse": true })),
        call("c3", "tickets__look", &json!({ "odd": true })),
    ];
    let setting = Setting::new(vec![acts, say("ok")])
        .change(move |settings| {
            settings.dynamic_tools = vec![DynamicTool::read(&group).expect("a group")];
        })
        .answer(|_, params| {
            assert_eq!(params["namespace"], "tickets");
            if params["arguments"]["refuse"] == true {
                return Some(Err(Refusal { why: "not today".to_owned() }));
            }
            if params["arguments"]["odd"] == true {
                return Some(Ok(json!({ "answer": 42 })));
            }
            let items = json!([
                { "type": "inputText", "text": "open" },
                { "type": "inputImage", "imageUrl": "data:image/png;base64,AA" },
            ]);
            Some(Ok(json!({ "contentItems": items, "success": false })))
        });
    let stage = setting.open();
    stage.turn("go").await;
    let input = stage.input(1);
    let content = json!([
        { "type": "input_text", "text": "open" },
        { "type": "input_image", "image_url": "data:image/png;base64,AA" },
    ]);
    assert_eq!(input[4]["output"], content);
    assert_eq!(input[5]["output"], "dynamic tool request failed: not today");
    let odd = input[6]["output"].as_str().expect("words");
    assert!(odd.starts_with("dynamic tool request failed: missing field"), "{odd}");
}

#[tokio::test]
async fn input_that_a_stopped_turn_did_not_take_is_kept() {
    let setting = Setting::new(vec![vec![call("c1", "wait", &json!({}))], say("both")]);
    let stage =
        setting.change(|settings| settings.dynamic_tools = vec![client_tool("wait")]).open();
    let first = stage.thread.start_turn(TurnInput::text("one")).await.expect("a turn");
    stage.wait("item/tool/call", 0).await;
    let late = stage.thread.steer("other", TurnInput::text("x")).await;
    let found = first.clone();
    assert_eq!(late, Err(ThreadError::OtherTurn { expected: "other".to_owned(), found }));
    let same = stage.thread.start_turn(TurnInput::text("two")).await.expect("the same turn");
    assert_eq!(same, first);
    let steered = stage.thread.steer(&first, TurnInput::text("three")).await;
    assert_eq!(steered.as_ref(), Ok(&first));
    stage.thread.interrupt(&first).await.expect("an interrupt");
    let turn = stage.ended(0).await;
    assert_eq!(turn["status"], "interrupted");
    stage.turn("four").await;
    let lines = stage.input_lines(1);
    assert_eq!(
        lines[..5],
        ["user: one", "call c1 wait", "output c1 aborted", "user: two", "user: three",]
    );
    assert!(lines[5].starts_with("user: <turn_aborted>"), "{lines:?}");
    assert_eq!(lines[6], "user: four");
}

#[tokio::test]
async fn a_turn_goes_on_for_input_that_came_while_it_answered() {
    let mut slow = say("first answer");
    slow.push(Act::Gate);
    let stage = Stage::new(vec![slow, say("second answer")]);
    let turn_id = stage.thread.start_turn(TurnInput::text("one")).await.expect("a turn");
    stage.wait("item/agentMessage/delta", 1).await;
    stage.thread.steer(&turn_id, TurnInput::text("two")).await.expect("steered");
    stage.model.open_gate();
    let turn = stage.ended(0).await;
    assert_eq!(turn["items"][0]["text"], "second answer");
    let lines = stage.input_lines(1);
    assert_eq!(lines, ["user: one", "assistant: first answer", "user: two"]);
    let late = stage.thread.steer(&turn_id, TurnInput::text("three")).await;
    assert_eq!(late, Err(ThreadError::NothingToSteer));
}

#[tokio::test]
async fn a_model_that_says_it_is_not_done_is_asked_again() {
    let mut part = say("part");
    part.push(Act::NotDone);
    let stage = Stage::new(vec![part, say("rest")]);
    stage.turn("go").await;
    assert_eq!(stage.input_lines(1), ["user: go", "assistant: part"]);
}

#[tokio::test]
async fn a_turn_without_end_reaches_its_limit() {
    let stage = Setting::new(vec![vec![call("c1", "update_plan", &plan())]])
        .change(|settings| settings.limits.steps = 7)
        .open();
    let turn = stage.turn("go").await;
    assert_eq!(turn["status"], "failed");
    let message = turn["error"]["message"].as_str().expect("words");
    assert!(message.starts_with("the model was asked 7 times"), "{message}");
    assert_eq!(stage.model.requests.lock().expect("requests").len(), 7);
    assert_eq!(stage.turn("again").await["status"], "failed");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_takes_too_long_ends() {
    let stage = Setting::new(vec![vec![Act::Hang]])
        .change(|settings| settings.limits.time = std::time::Duration::from_secs(90))
        .open();
    stage.thread.start_turn(TurnInput::text("go")).await.expect("a turn");
    while stage.count("turn/completed") == 0 {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    let turn = stage.ended(0).await;
    let message = turn["error"]["message"].as_str().expect("words");
    assert!(message.starts_with("the turn took longer than its 90 s"), "{message}");
}

#[tokio::test]
async fn an_answer_without_end_reaches_its_limit() {
    let flood = (0..100).map(|_| Act::Tell(ModelEvent::Text("x".repeat(1_000)))).collect();
    let stage =
        Setting::new(vec![flood]).change(|settings| settings.limits.response_bytes = 50_000).open();
    let turn = stage.turn("go").await;
    assert_eq!(turn["error"]["message"], "the model wrote more than 50000 bytes in one response");
    let calls = (0..40).map(|n| call(&format!("c{n}"), "update_plan", &plan())).collect();
    let stage =
        Setting::new(vec![calls, say("ok")]).change(|settings| settings.limits.calls = 10).open();
    let turn = stage.turn("go").await;
    assert_eq!(turn["error"]["message"], "the model made more than 10 calls in one response");
    assert_eq!(stage.turn("again").await["status"], "completed");
}

#[tokio::test]
async fn what_a_turn_changes_stays_and_a_schema_does_not() {
    let stage = Stage::new(vec![say("one"), say("two")]);
    let overrides = Overrides {
        model: Some("other".to_owned()),
        effort: Some("high".to_owned()),
        summary: Some("none".to_owned()),
        ..Overrides::default()
    };
    let schema = json!({ "type": "object" });
    let input = TurnInput {
        overrides,
        output_schema: Some(schema.clone()),
        client_id: Some("mine".to_owned()),
        ..TurnInput::text("go")
    };
    stage.thread.start_turn(input).await.expect("a turn");
    stage.ended(0).await;
    stage.turn("again").await;
    let requests = stage.model.requests.lock().expect("requests");
    let seen: Vec<_> = requests
        .iter()
        .map(|request| {
            let effort = request.effort.as_deref();
            (request.model.as_str(), effort, request.summary.clone(), request.output_schema.clone())
        })
        .collect();
    let high = Some("high");
    assert_eq!(seen, [("other", high, None, Some(schema)), ("other", high, None, None)]);
    let message = stage.ears.heard.lock().expect("ears")[2].1["item"].clone();
    assert_eq!(message["clientId"], "mine");
    assert_eq!(message["content"][0]["text"], "go");
}

#[tokio::test]
async fn injected_items_are_history() {
    let stage = Stage::new(vec![say("ok")]);
    let items = vec![
        json!({ "type": "message", "role": "user",
            "content": [{ "type": "input_text", "text": "before" }] }),
        json!({ "type": "hologram", "hue": 7 }),
        json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1" }),
    ];
    stage.thread.inject(items).await.expect("taken");
    stage.turn("go").await;
    let expected = ["user: before", "hologram", "call c1 f", "output c1 aborted", "user: go"];
    assert_eq!(stage.input_lines(0), expected);
    let bad = stage.thread.inject(vec![json!({ "type": "message" })]).await.expect_err("refused");
    assert!(bad.to_string().starts_with("items[0] is not a valid response item:"), "{bad}");
}

#[tokio::test]
async fn the_journal_holds_the_turn_in_order() {
    let mut acts = say("Looking.");
    acts.push(call("c1", "update_plan", &plan()));
    let stage = Stage::new(vec![acts, say("done")]);
    stage.turn("go").await;
    let entries = stage.book.entries.lock().expect("book");
    let lines: Vec<String> = entries.iter().map(entry_line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    turn started
    context m
    world null
    item user: go
    shown userMessage
    shown agentMessage
    item assistant: Looking.
    item call c1 update_plan
    item output c1 Plan updated
    tokens 120
    shown agentMessage
    item assistant: done
    tokens 240
    turn ended Some("done")
    "#);
}

fn entry_line(entry: &Entry) -> String {
    match entry {
        Entry::Item(item) => format!("item {}", crate::stage::item_line(&json!(item))),
        Entry::ItemCompleted { item, .. } => format!("shown {}", item["type"]).replace('"', ""),
        Entry::TurnStarted { .. } => "turn started".to_owned(),
        Entry::TurnContext(context) => format!("context {}", context.model),
        Entry::WorldState(state) => format!("world {state}"),
        Entry::TokenCount { total, .. } => format!("tokens {}", total.total_tokens),
        Entry::Compacted { history, .. } => format!("compacted to {}", history.len()),
        Entry::TurnCompleted { last_message, .. } => format!("turn ended {last_message:?}"),
        Entry::TurnAborted { .. } => "turn aborted".to_owned(),
    }
}

#[tokio::test]
async fn a_picture_stays_out_of_a_model_that_sees_none() {
    let picture = json!({ "type": "image", "url": "data:image/png;base64,AA" });
    let script = vec![say("ok"), say("ok")];
    let stage = Setting::new(script).profile(|profile| profile.images = false).open();
    let input = TurnInput { input: vec![Open::from_value(picture)], ..TurnInput::default() };
    stage.thread.start_turn(input).await.expect("a turn");
    stage.ended(0).await;
    assert_eq!(stage.input(0)[0]["content"][0]["type"], "input_text");
    let told = stage.wait("warning", 0).await["message"].to_string();
    assert!(told.contains("cannot see pictures: a picture was left out"), "{told}");
    let kept: Vec<Value> = stage.thread.snapshot().await.turns;
    assert_eq!(kept[0]["items"][0]["content"][0]["type"], "image");
    // Once for each picture, not with every turn.
    stage.turn("and now?").await;
    assert_eq!(stage.count("warning"), 1);
}

#[tokio::test]
async fn pictures_that_are_elsewhere_are_refused_and_no_words_are_fine() {
    let stage = Stage::new(vec![say("ok")]);
    let far = json!({ "type": "image", "url": "https://example.com/x.png" });
    let input = TurnInput { input: vec![Open::from_value(far)], ..TurnInput::default() };
    let refused = stage.thread.start_turn(input).await.expect_err("refused");
    assert_eq!(refused.code(), "bad-input");
    stage.thread.start_turn(TurnInput::default()).await.expect("a turn");
    assert_eq!(stage.ended(0).await["status"], "completed");
    assert_eq!(stage.input(0), json!([]));
}
