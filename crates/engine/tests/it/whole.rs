//! The loop on the real wires: calls, faults and cuts, seen as a client sees them.

use std::time::Duration;

use bindery_core::part::Part;
use bindery_engine::model::{Provider, Wire};
use bindery_engine::prompter::{ExecForm, PatchForm};
use bindery_engine::thread::{Sandbox, TurnInput};
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::{Setting, Stage, plan};
use crate::wires::{WIRES, opened, provider};

fn stage(wire: Wire, model: &Model) -> Stage {
    on(&provider(wire, model))
}

fn on(provider: &Provider) -> Stage {
    Setting::on(opened(provider))
        .profile(|profile| {
            profile.exec = ExecForm::Unified;
            profile.patch = PatchForm::Freeform;
        })
        .change(|settings| settings.standing.sandbox = Sandbox::DangerFullAccess)
        .open()
}

/// What a reader sees written.
fn text(parts: &[Part]) -> String {
    let deltas = parts.iter().filter_map(|part| match part {
        Part::TextDelta(piece) => Some(piece.delta.as_str()),
        _ => None,
    });
    deltas.collect()
}

#[tokio::test]
async fn a_turn_with_every_tool_reads_alike_on_both_wires() {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n";
    let command = json!({ "cmd": "cat a.txt", "login": false, "yield_time_ms": 30_000 });
    let mut seen = Vec::new();
    for wire in WIRES {
        let model = Model::start(Script::new([
            Reply::new([Step::patch(patch, "c1")]),
            Reply::new([
                Step::call("update_plan", plan(), "c2"),
                Step::call("exec_command", command.clone(), "c3"),
            ]),
            Reply::text("All done."),
        ]));
        let stage = stage(wire, &model);
        let turn = stage.turn("go").await;
        assert_eq!(turn["status"], "completed", "{wire:?}: {turn}");
        assert_eq!(text(&stage.parts()), "All done.", "{wire:?}");
        let told = stage.sketch().into_iter().filter(|line| !line.contains("outputDelta"));
        let told = told.filter(|line| !line.starts_with("item/agentMessage/delta"));
        let told: Vec<String> = told.filter(|line| !line.contains("tokenUsage")).collect();
        seen.push(told);
        let sent = model.bodies().pop().expect("a body").to_string();
        assert!(sent.contains("Plan updated") && sent.contains("Process exited with code 0"));
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_cut_answer_is_read_once() {
    for wire in WIRES {
        let model = Model::start(Script::new([
            Reply::new([Step::begin("Hello wo"), Step::Cut]),
            Reply::new([Step::chunked("Hello world.", 3)]),
        ]));
        let stage = stage(wire, &model);
        assert_eq!(stage.turn("go").await["status"], "completed", "{wire:?}");
        assert_eq!(text(&stage.parts()), "Hello world.", "{wire:?}");
        assert_eq!(stage.wait("error", 0).await["willRetry"], true, "{wire:?}");
    }
}

#[tokio::test]
async fn every_fault_ends_the_turn_and_the_thread_goes_on() {
    let status = Step::status;
    let table: Vec<(&str, Vec<Step>, Value)> = vec![
        (
            "401",
            vec![status(401, "auth", "no")],
            json!({ "httpConnectionFailed": { "httpStatusCode": 401 } }),
        ),
        ("400", vec![status(400, "bad", "no")], json!("badRequest")),
        ("429", vec![Step::usage_limit()], json!("usageLimitExceeded")),
        ("500", vec![status(500, "server", "no")], json!("internalServerError")),
        (
            "cut",
            vec![Step::begin("Half"), Step::Cut],
            json!({ "responseStreamDisconnected": { "httpStatusCode": null } }),
        ),
        (
            "cut after a call",
            vec![Step::call("update_plan", plan(), "c1"), Step::Cut],
            json!({ "responseStreamDisconnected": { "httpStatusCode": null } }),
        ),
        (
            "hang-up",
            vec![Step::HangUp],
            json!({ "responseStreamDisconnected": { "httpStatusCode": null } }),
        ),
        (
            "garbage",
            vec![Step::Status {
                status: 200,
                body: json!("data: {bad\n\n"),
                headers: Default::default(),
            }],
            json!("other"),
        ),
        ("busy", vec![Step::failed("server_is_overloaded", "x")], json!("serverOverloaded")),
        (
            "silence",
            vec![Step::begin("Once"), Step::Silence],
            json!({ "responseStreamDisconnected": { "httpStatusCode": null } }),
        ),
    ];
    for (name, steps, word) in table {
        for wire in WIRES {
            let model = Model::start(Script::new([
                Reply::text("back").when_user("again"),
                Reply::new(steps.clone()).always(),
            ]));
            let patience = match name {
                "silence" => Duration::from_millis(300),
                _ => Duration::from_secs(300),
            };
            let stage = on(&Provider { idle_timeout: patience, ..provider(wire, &model) });
            let turn = stage.turn("first").await;
            assert_eq!(turn["status"], "failed", "{name} on {wire:?}");
            assert_eq!(turn["error"]["codexErrorInfo"], word, "{name} on {wire:?}");
            assert_eq!(stage.turn("again").await["status"], "completed", "{name} on {wire:?}");
        }
    }
}

#[tokio::test]
async fn an_interrupt_ends_the_request() {
    for wire in WIRES {
        let model = Model::start(Script::new([
            Reply::new([Step::begin("Once upon"), Step::Silence]),
            Reply::text("back"),
        ]));
        let stage = stage(wire, &model);
        let turn_id = stage.thread.start_turn(TurnInput::text("go")).await.unwrap();
        stage.wait("item/agentMessage/delta", 0).await;
        stage.thread.interrupt(&turn_id).await.unwrap();
        assert_eq!(stage.ended(0).await["status"], "interrupted", "{wire:?}");
        assert_eq!(stage.turn("again").await["status"], "completed", "{wire:?}");
        let sent = model.bodies().pop().expect("a body").to_string();
        assert!(sent.contains("<turn_aborted>") && !sent.contains("Once upon"), "{wire:?}: {sent}");
    }
}

/// A state of a wire to interrupt in: what the server does, and the sign that it is reached.
fn states() -> Vec<(&'static str, Vec<Step>, &'static str)> {
    let sleep = json!({ "cmd": "sleep 600", "login": false, "yield_time_ms": 30_000 });
    vec![
        ("before the answer", vec![Step::Silence], ""),
        ("after its head", vec![Step::gate("never")], ""),
        ("in a thought", vec![Step::reasoning(["Hm."]), Step::Silence], "item/started"),
        ("in a message", vec![Step::begin("Once"), Step::Silence], "item/agentMessage/delta"),
        ("after a message", vec![Step::text("Once."), Step::Silence], "item/agentMessage/delta"),
        ("in a wait to ask again", vec![Step::rate_limit(200)], "error"),
        ("in a command", vec![Step::call("exec_command", sleep, "c1")], "item/started"),
    ]
}

#[tokio::test]
async fn an_interrupt_in_every_state_of_both_wires_leaves_the_thread_usable() {
    for (name, steps, sign) in states() {
        for wire in WIRES {
            let model = Model::start(Script::new([
                Reply::text("back").when_user("again"),
                Reply::new(steps.clone()).always(),
            ]));
            let stage = stage(wire, &model);
            let turn_id = stage.thread.start_turn(TurnInput::text("go")).await.unwrap();
            model.wait_for_requests(1).await;
            match sign {
                "" => {}
                // The user's own message is the first item.
                "item/started" => drop(stage.wait(sign, 1).await),
                sign => drop(stage.wait(sign, 0).await),
            }
            stage.thread.interrupt(&turn_id).await.unwrap();
            assert_eq!(stage.ended(0).await["status"], "interrupted", "{name} on {wire:?}");
            let turn = stage.turn("again").await;
            assert_eq!(turn["status"], "completed", "{name} on {wire:?}: {turn}");
            let sent = model.bodies().pop().expect("a body").to_string();
            assert!(sent.contains("<turn_aborted>"), "{name} on {wire:?}: {sent}");
            stage.thread.close().await;
        }
    }
}

#[tokio::test]
async fn a_command_that_never_ends_holds_up_no_turn() {
    let sleep = json!({ "cmd": "echo begun; sleep 600", "login": false, "yield_time_ms": 250 });
    for wire in WIRES {
        let model = Model::start(Script::new([
            Reply::new([Step::call("exec_command", sleep.clone(), "c1")]),
            Reply::text("It runs.").always(),
        ]));
        let stage = stage(wire, &model);
        assert_eq!(stage.turn("go").await["status"], "completed", "{wire:?}");
        let sent = model.bodies().pop().expect("a body").to_string();
        assert!(sent.contains("Process running with session ID"), "{wire:?}: {sent}");
        assert_eq!(stage.turn("again").await["status"], "completed", "{wire:?}");
        let closing = tokio::time::timeout(crate::stage::PATIENCE, stage.thread.close());
        closing.await.expect("a thread that ends with its commands");
    }
}

#[tokio::test]
async fn the_demo_model_takes_turns() {
    let stage = on(&Provider::demo());
    assert_eq!(stage.turn("hello").await["status"], "completed");
    assert!(!text(&stage.parts()).is_empty());
}

#[tokio::test]
async fn an_overflow_compacts_and_the_turn_goes_on() {
    for wire in WIRES {
        let model = Model::start(Script::new([
            Reply::new([Step::failed("context_length_exceeded", "too long")]),
            Reply::text("The summary."),
            Reply::text("All done."),
        ]));
        let stage = stage(wire, &model);
        assert_eq!(stage.turn("go").await["status"], "completed", "{wire:?}");
        assert_eq!(text(&stage.parts()), "All done.", "{wire:?}");
        let sent = model.bodies().pop().expect("a body").to_string();
        assert!(sent.contains("The summary."), "{wire:?}: {sent}");
    }
}
