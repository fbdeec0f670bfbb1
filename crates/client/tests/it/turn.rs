//! Turns on the real Codex that go well.

use bindery_client::turn::TurnRequest;
use bindery_core::item::ToolSort;
use bindery_core::part::Part;
use bindery_core::transcript::Transcript;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::input::UserInput;
use bindery_core::wire::app_server::params::{ThreadFork, ThreadResume, ThreadSettings};
use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::{Stage, Told, heard};

async fn text_is_streamed() {
    let stage = Stage::free(vec![Reply::new([Step::chunked("The answer is 42.", 5)])]).await;
    let told = stage.say("what is it").await;
    assert_eq!((told.text().as_str(), told.end()), ("The answer is 42.", Unified::Stop));
    let deltas = told.parts.iter().filter(|part| matches!(part, Part::TextDelta(_))).count();
    assert!(deltas > 1, "{deltas}");
}

async fn reasoning_keeps_its_summaries_and_raw_thoughts() {
    let steps = [
        Step::Reasoning {
            summary: vec!["first".into(), "second".into()],
            content: vec!["raw thought".into()],
        },
        Step::text("done"),
    ];
    let stage = Stage::free(vec![Reply::new(steps)]).await;
    let told = stage.say("think").await;
    let content = told.generated().content;
    let thoughts: Vec<&Value> =
        content.iter().filter(|piece| piece["type"] == "reasoning").map(|p| &p["text"]).collect();
    assert_eq!(thoughts, ["first", "second", "raw thought"]);
}

async fn a_command_tells_its_output_exit_code_and_duration() {
    let stage = Stage::free(vec![
        Reply::new([
            Step::exec("echo one; sleep 0.4; echo two", "ok"),
            Step::exec("echo bad; exit 3", "no"),
        ]),
        Reply::text("done"),
    ])
    .await;
    let told = stage.say("run them").await;
    let results = told.results("codex_command_execution");
    let row = |id: &str| results.iter().find(|r| r.tool_call_id.as_str() == id).unwrap();
    let (ok, no) = (row("ok"), row("no"));
    assert_eq!((&ok.result["exitCode"], ok.is_error), (&json!(0), false), "{ok:?}");
    assert_eq!((&no.result["exitCode"], no.is_error), (&json!(3), true), "{no:?}");
    assert_eq!(ok.result["aggregatedOutput"], "one\ntwo\n");
    assert!(ok.result["durationMs"].is_u64());
    assert!(told.parts.iter().any(|part| matches!(part, Part::ToolResult(r) if r.preliminary)));
    assert!(told.parts.iter().all(|part| match part {
        Part::ToolCall(call) => call.provider_executed && call.dynamic,
        _ => true,
    }));
    assert_eq!(told.text(), "done");
}

async fn the_usage_of_a_turn_of_two_requests_is_summed() {
    let stage = Stage::free(vec![
        Reply::new([Step::exec("true", "c1")]),
        Reply::text("done"),
        Reply::text("again"),
    ])
    .await;
    let thread = stage.thread().await;
    let first = stage.run(TurnRequest::new(thread.clone(), "go")).await.generated();
    let second = stage.run(TurnRequest::new(thread, "more")).await.generated();
    let tokens = |usage: bindery_core::usage::Usage| {
        (usage.input_tokens.total, usage.input_tokens.cache_read, usage.output_tokens.total)
    };
    assert_eq!(tokens(first.usage.unwrap()), (Some(200), Some(20), Some(40)));
    assert_eq!(tokens(second.usage.unwrap()), (Some(100), Some(10), Some(20)));
}

async fn a_plan_is_a_checklist() {
    let mut options = Options::unrestricted();
    options.tables.push_str("[tools.update_plan]\nenabled = true\n");
    let plan = json!({"plan": [
        {"step": "look", "status": "completed"}, {"step": "leap", "status": "in_progress"}]});
    let script = vec![Reply::new([Step::call("update_plan", plan, "p1")]), Reply::text("ok")];
    let told = Stage::with(script, &options).await.say("plan").await;
    let mut transcript = Transcript::default();
    told.parts.iter().for_each(|part| transcript.apply(part));
    let tools = transcript.turns[0].items.iter().filter_map(|item| match &item.body {
        bindery_core::item::Body::Tool(tool) if tool.sort == ToolSort::Plan => Some(tool.plan()),
        _ => None,
    });
    let steps: Vec<String> =
        tools.flatten().map(|step| format!("{} {}", step.step, step.status)).collect();
    assert_eq!(steps, ["look completed", "leap inProgress"]);
}

async fn an_image_reaches_the_model() {
    let stage = Stage::free(Script::always("a dot")).await;
    let thread = stage.thread().await;
    let mut request = TurnRequest::new(thread, "what is this");
    let dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42m\
               NkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    request.input.push(UserInput::Image { url: dot.to_owned(), detail: None });
    assert_eq!(stage.run(request).await.text(), "a dot");
    let input = stage.model.bodies()[0]["input"].to_string();
    assert!(input.contains("input_image") && input.contains("data:image/png;base64,"), "{input}");
}

async fn an_answer_may_have_a_schema() {
    let stage = Stage::free(Script::always(r#"{"city":"Bern"}"#)).await;
    let thread = stage.thread().await;
    let mut request = TurnRequest::new(thread, "capital");
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}},
        "required": ["city"], "additionalProperties": false});
    request.settings.output_schema = Some(schema.clone());
    assert_eq!(stage.run(request).await.text(), r#"{"city":"Bern"}"#);
    assert_eq!(stage.model.bodies()[0]["text"]["format"]["schema"], schema);
}

async fn base_and_developer_instructions_reach_the_model() {
    let stage = Stage::free(Script::always("ok")).await;
    let settings = ThreadSettings {
        base_instructions: Some("BASE WORDS".into()),
        developer_instructions: Some("DEVELOPER WORDS".into()),
        ..ThreadSettings::default()
    };
    let thread = stage.thread_with(settings).await;
    stage.run(TurnRequest::new(thread, "hi")).await;
    let input = stage.model.bodies()[0]["input"].to_string();
    let (base, developer) = (input.find("BASE WORDS"), input.find("DEVELOPER WORDS"));
    assert!(base.is_some() && base < developer, "{base:?} {developer:?}");
}

async fn a_resumed_thread_gets_only_the_new_turn_and_counts_only_its_tokens() {
    let mut stage = Stage::free(Script::always("ok")).await;
    let thread = stage.thread().await;
    stage.run(TurnRequest::new(thread.clone(), "first")).await;
    stage.reopen().await;
    let (settings, exclude_turns) = (ThreadSettings::default(), true);
    let resume = ThreadResume { thread_id: thread.clone(), settings, exclude_turns };
    stage.server.resume_thread(&resume).await.unwrap();
    let told = stage.run(TurnRequest::new(thread, "second")).await;
    assert_eq!(told.generated().usage.unwrap().input_tokens.total, Some(100));
    let heard = heard(&stage.model.bodies()[1]);
    let said: Vec<&String> = heard.iter().filter(|line| !line.contains('<')).collect();
    assert_eq!(said, ["user: first", "assistant: ok", "user: second"]);
}

async fn a_fork_goes_its_own_way() {
    let stage = Stage::free(Script::always("ok")).await;
    let thread = stage.thread().await;
    stage.run(TurnRequest::new(thread.clone(), "root")).await;
    let fork = ThreadFork {
        thread_id: thread.clone(),
        last_turn_id: None,
        settings: ThreadSettings::default(),
        ephemeral: None,
        exclude_turns: true,
    };
    let forked = stage.server.fork_thread(&fork).await.unwrap().thread;
    assert_eq!(forked.forked_from_id.as_ref(), Some(&thread));
    stage.run(TurnRequest::new(forked.id, "branch")).await;
    stage.run(TurnRequest::new(thread, "trunk")).await;
    let bodies = stage.model.bodies();
    let said = |index: usize| heard(&bodies[index]).join("\n");
    assert!(said(1).contains("user: root") && said(1).contains("user: branch"));
    assert!(said(2).contains("user: root") && !said(2).contains("user: branch"));
}

async fn an_interrupt_ends_the_turn_as_interrupted() {
    let stage =
        Stage::free(vec![Reply::new([Step::text("one "), Step::gate("g"), Step::text("two")])])
            .await;
    let thread = stage.thread().await;
    let mut turn = stage.server.start_turn(TurnRequest::new(thread.clone(), "go")).await.unwrap();
    let control = turn.control();
    let mut parts = Vec::new();
    while let Some(part) = turn.next().await {
        if matches!(part, Part::TextDelta(_)) {
            control.interrupt();
            control.interrupt();
        }
        parts.push(part);
    }
    let told = Told { parts };
    assert_eq!(told.end(), Unified::Interrupted);
    assert_eq!(told.streamed(), "one ");
    stage.model.push(vec![Reply::text("later")]);
    assert_eq!(stage.run(TurnRequest::new(thread, "again")).await.text(), "later");
}

async fn a_dropped_turn_is_interrupted_and_frees_its_thread() {
    let stage = Stage::free(vec![Reply::new([Step::text("one"), Step::Silence])]).await;
    let thread = stage.thread().await;
    let turn = stage.server.start_turn(TurnRequest::new(thread.clone(), "go")).await.unwrap();
    stage.model.wait_for_requests(1).await;
    let busy = stage.server.start_turn(TurnRequest::new(thread.clone(), "go")).await.unwrap_err();
    assert_eq!(busy.code(), "thread_busy");
    drop(turn);
    stage.model.wait_for_hang_ups(1).await;
    stage.model.push(vec![Reply::text("free")]);
    let told = loop {
        match stage.server.start_turn(TurnRequest::new(thread.clone(), "again")).await {
            Ok(turn) => break Told::of(turn).await,
            Err(err) => assert_eq!(err.code(), "thread_busy"),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(told.text(), "free");
}

async fn who_drops_an_answer_may_ask_again_at_once() {
    let stage = Stage::free(vec![
        Reply::new([Step::text("one"), Step::Silence]).when_user("go"),
        Reply::text("free").when_user("again"),
    ])
    .await;
    let thread = stage.thread().await;
    let turn = stage.server.start_turn(TurnRequest::new(thread.clone(), "go")).await.unwrap();
    stage.model.wait_for_requests(1).await;
    drop(turn);
    let mut again = TurnRequest::new(thread, "again");
    again.deadlines.taken = std::time::Duration::from_secs(10);
    assert_eq!(stage.run(again).await.text(), "free");
}

async fn a_turn_whose_caller_leaves_while_it_starts_is_interrupted() {
    let stage = Stage::free(vec![
        Reply::new([Step::begin("one"), Step::Silence]).when_user("go"),
        Reply::text("free").when_user("again"),
    ])
    .await;
    let thread = stage.thread().await;
    {
        let start = stage.server.start_turn(TurnRequest::new(thread.clone(), "go"));
        tokio::pin!(start);
        // Polled once, so that the request is on its way, and given up.
        assert!(futures_util::poll!(&mut start).is_pending());
    }
    // Interrupted before or after the model was asked: either way the thread is free again.
    let told = loop {
        match stage.server.start_turn(TurnRequest::new(thread.clone(), "again")).await {
            Ok(turn) => break Told::of(turn).await,
            Err(err) => assert_eq!(err.code(), "thread_busy"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(told.text(), "free");
}

/// On Codex only: the engine lets the answer end before it takes the words in.
#[tokio::test]
async fn steering_withdraws_what_was_begun() {
    let stage = Stage::free(vec![
        Reply::new([Step::begin("to the left"), Step::gate("g")]).when_user("go"),
        Reply::text("to the right").when_user("right"),
    ])
    .await;
    let thread = stage.thread().await;
    let mut turn = stage.server.start_turn(TurnRequest::new(thread, "go")).await.unwrap();
    let control = turn.control();
    let mut parts = Vec::new();
    let mut steering = None;
    while let Some(part) = turn.next().await {
        if matches!(part, Part::TextDelta(_)) && steering.is_none() {
            let control = control.clone();
            let steer = async move { control.steer(vec![UserInput::text("go right")]).await };
            steering = Some(tokio::spawn(steer));
        }
        parts.push(part);
    }
    steering.unwrap().await.unwrap().unwrap();
    let told = Told { parts };
    assert_eq!((told.text().as_str(), told.end()), ("to the right", Unified::Stop));
    let asked: Vec<Value> = told.customs("codex.user-message");
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn a_sub_agent_is_kept_apart() {
    let spawn = Step::call_in("multi_agent_v1", "spawn_agent", json!({"message": "count"}), "s1");
    let wait = json!({"targets": ["${s1.agent_id}"]});
    let script = vec![
        Reply::text("one two three").when_header("x-openai-subagent", "collab_spawn"),
        Reply::new([Step::call_in("multi_agent_v1", "wait_agent", wait, "w1")])
            .when_output_of("s1"),
        Reply::new([Step::text("I ask."), spawn]),
        Reply::text("All done."),
    ];
    let told = Stage::free(script).await.say("delegate").await;
    assert_eq!((told.text().as_str(), told.end()), ("I ask.|All done.", Unified::Stop));
    let nested = told.customs("codex.subagent");
    let said: String =
        nested.iter().filter_map(|details| details["part"]["delta"].as_str()).collect();
    assert_eq!(said, "one two three");
}

async fn threads_are_listed_read_named_and_put_away() {
    let stage = Stage::free(Script::always("ok")).await;
    let thread = stage.thread().await;
    stage.run(TurnRequest::new(thread.clone(), "remember me")).await;
    stage.server.name_thread(&thread, "a good name").await.unwrap();
    let read = stage.server.read_thread(&thread).await.unwrap();
    assert_eq!((read.name.as_deref(), read.preview.as_str()), (Some("a good name"), "remember me"));
    let list = |stage: &Stage| {
        let server = stage.server.clone();
        async move { server.list_threads(&serde_json::Map::new()).await.unwrap().data.len() }
    };
    assert_eq!(list(&stage).await, 1);
    stage.server.archive_thread(&thread).await.unwrap();
    assert_eq!(list(&stage).await, 0);
    assert!(stage.server.models().await.unwrap().iter().any(|model| model.is_default));
}

#[tokio::test]
async fn a_review_is_a_turn() {
    let findings = json!({"findings": [], "overall_correctness": "patch is correct",
        "overall_explanation": "fine", "overall_confidence_score": 0.9});
    let stage = Stage::free(Script::always(&findings.to_string())).await;
    let thread = stage.thread().await;
    let request = TurnRequest::new(thread, "");
    let target = json!({"type": "uncommittedChanges"});
    let told = Told::of(stage.server.start_review(request, target).await.unwrap()).await;
    assert_eq!(told.end(), Unified::Stop);
    let phases: Vec<Value> =
        told.customs("codex.review").iter().map(|review| review["phase"].clone()).collect();
    assert_eq!(phases, ["entered", "exited"]);
    assert!(told.text().contains("fine"), "{}", told.text());
}

crate::backend::on_both! {
    text_is_streamed,
    reasoning_keeps_its_summaries_and_raw_thoughts,
    a_command_tells_its_output_exit_code_and_duration,
    the_usage_of_a_turn_of_two_requests_is_summed,
    a_plan_is_a_checklist,
    an_image_reaches_the_model,
    an_answer_may_have_a_schema,
    base_and_developer_instructions_reach_the_model,
    a_resumed_thread_gets_only_the_new_turn_and_counts_only_its_tokens,
    a_fork_goes_its_own_way,
    an_interrupt_ends_the_turn_as_interrupted,
    a_dropped_turn_is_interrupted_and_frees_its_thread,
    who_drops_an_answer_may_ask_again_at_once,
    a_turn_whose_caller_leaves_while_it_starts_is_interrupted,
    threads_are_listed_read_named_and_put_away,
}
