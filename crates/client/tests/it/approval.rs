//! Questions of the real Codex and their answers.

use std::sync::Arc;

use bindery_client::turn::TurnRequest;
use bindery_core::interrupt::{Answer, Ask, Decision, Interrupt};
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::ThreadSettings;
use bindery_testkit::app_server::{Step as Scripted, Turn, start_thread};
use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Step};
use serde_json::json;

use crate::backend::asked_about;
use crate::rig::{Kind, Rig, Scene};
use crate::stage::{Stage, Told};

const PATCH: &str = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n";

/// Everything that is not known to be harmless is asked.
fn careful() -> ThreadSettings {
    ThreadSettings {
        approval_policy: Some(json!("untrusted")),
        sandbox: Some("read-only".into()),
        ..ThreadSettings::default()
    }
}

/// Runs a turn in which everything is asked, and answers it all the same way.
async fn ask(step: Step, answer: Option<Decision>) -> (Stage, Told) {
    let script = vec![Reply::new([step]), Reply::text("done")];
    let stage = Stage::with(script, &Options::default()).await;
    let thread = stage.thread_with(careful()).await;
    let mut request = TurnRequest::new(thread, "go");
    request.answerer = Arc::new(move |_: Interrupt| {
        let answer = answer.clone().map(Answer::decision);
        async move { answer }
    });
    let told = stage.run(request).await;
    (stage, told)
}

fn status(told: &Told, tool: &str) -> String {
    told.results(tool)[0].result["status"].as_str().unwrap().to_owned()
}

const COMMAND: &str = "codex_command_execution";

async fn an_accepted_command_runs() {
    let (_stage, told) = ask(Step::exec(asked_about(), "c1"), Some(Decision::Accept)).await;
    assert_eq!(told.results(COMMAND)[0].result["aggregatedOutput"], "ran\n");
    assert_eq!((told.text().as_str(), told.end()), ("done", Unified::Stop));
}

async fn a_declined_command_does_not_run_and_the_turn_goes_on() {
    let (_stage, told) = ask(Step::exec(asked_about(), "c1"), Some(Decision::Decline)).await;
    assert_eq!(status(&told, COMMAND), "declined");
    assert_eq!((told.text().as_str(), told.end()), ("done", Unified::Stop));
}

async fn a_cancelled_command_stops_the_turn() {
    let (_stage, told) = ask(Step::exec(asked_about(), "c1"), Some(Decision::Cancel)).await;
    assert_eq!(status(&told, COMMAND), "declined");
    assert_eq!((told.text().as_str(), told.end()), ("", Unified::Interrupted));
}

async fn no_answer_means_no() {
    let (_stage, told) = ask(Step::exec(asked_about(), "c1"), None).await;
    assert_eq!(status(&told, COMMAND), "declined");
}

async fn an_answer_that_does_not_fit_means_no_and_is_told() {
    let rule = Decision::AcceptWithRule(vec!["rm".into()]);
    let (_stage, told) = ask(Step::exec(asked_about(), "c1"), Some(rule)).await;
    assert_eq!(status(&told, COMMAND), "declined");
    let notices = told.customs("codex.notice");
    assert!(notices.iter().any(|notice| notice["topic"] == "answer"), "{notices:?}");
}

async fn a_panicking_answerer_means_no() {
    let script = vec![Reply::new([Step::exec(asked_about(), "c1")]), Reply::text("done")];
    let stage = Stage::with(script, &Options::default()).await;
    let thread = stage.thread_with(careful()).await;
    let mut request = TurnRequest::new(thread, "go");
    request.answerer = Arc::new(|_: Interrupt| async { panic!("a bug of the caller's") });
    let told = stage.run(request).await;
    assert_eq!((status(&told, COMMAND).as_str(), told.end()), ("declined", Unified::Stop));
}

async fn a_patch_is_asked_with_its_diff_and_applied() {
    let script = vec![Reply::new([Step::patch(PATCH, "p1")]), Reply::text("done")];
    let stage = Stage::with(script, &Options::default()).await;
    let settings =
        ThreadSettings { approval_policy: Some(json!("untrusted")), ..ThreadSettings::default() };
    let thread = stage.thread_with(settings).await;
    let (sender, mut asked) = tokio::sync::mpsc::channel(4);
    let mut request = TurnRequest::new(thread, "go");
    request.answerer = Arc::new(move |interrupt: Interrupt| {
        let sender = sender.clone();
        async move {
            sender.send(interrupt.ask).await.unwrap();
            Some(Answer::decision(Decision::Accept))
        }
    });
    let told = stage.run(request).await;
    let Some(Ask::FileChange { changes, .. }) = asked.recv().await else { panic!("not asked") };
    assert_eq!((changes.len(), changes[0].diff.as_str()), (1, "hello\n"));
    assert!(changes[0].path.ends_with("new.txt"), "{changes:?}");
    assert_eq!(status(&told, "codex_file_change"), "completed");
    let file = std::fs::read_to_string(stage.codex.project().join("new.txt")).unwrap();
    assert_eq!(file, "hello\n");
}

async fn an_approval_request_follows_its_call() {
    let (_stage, told) = ask(Step::exec(asked_about(), "c1"), Some(Decision::Decline)).await;
    let index = |found: &dyn Fn(&Part) -> bool| told.parts.iter().position(found).unwrap();
    let call = index(&|part| matches!(part, Part::ToolCall(_)));
    let approval = index(&|part| matches!(part, Part::ToolApprovalRequest { .. }));
    let result = index(&|part| matches!(part, Part::ToolResult(_)));
    assert!(call < approval && approval < result);
}

async fn an_interrupt_withdraws_the_question() {
    let script = vec![Reply::new([Step::exec(asked_about(), "c1")])];
    let stage = Stage::with(script, &Options::default()).await;
    let thread = stage.thread_with(careful()).await;
    let (dropped, mut withdrawn) = tokio::sync::mpsc::channel::<()>(1);
    let mut request = TurnRequest::new(thread, "go");
    request.answerer = Arc::new(move |_: Interrupt| {
        let held = dropped.clone();
        async move {
            std::future::pending::<()>().await;
            drop(held);
            None
        }
    });
    let mut turn = stage.server.start_turn(request).await.unwrap();
    let control = turn.control();
    let mut parts = Vec::new();
    while let Some(part) = turn.next().await {
        if matches!(part, Part::ToolApprovalRequest { .. }) {
            control.interrupt();
        }
        parts.push(part);
    }
    assert_eq!(Told { parts }.end(), Unified::Interrupted);
    // The only sender left is the one in the answerer, which went with the turn.
    assert!(withdrawn.recv().await.is_none());
}

/// A scripted server asks, because no setting of this machine makes the real one ask.
#[tokio::test]
async fn what_a_person_must_decide_is_asked_and_accepted_once_only() {
    for (decision, sent) in [(Decision::Accept, "accept"), (Decision::AcceptForSession, "decline")]
    {
        for kind in ["humanCommand", "aKindOfTheFuture"] {
            assert_eq!(asked_as(kind, decision.clone()).await, sent);
        }
    }
}

/// What is sent to a server whose question is of this kind.
async fn asked_as(kind: &str, decision: Decision) -> String {
    let turn = Turn::new("thread-1", "turn-1");
    let mut steps = [start_thread("thread-1"), turn.begin()].concat();
    let params = json!({
        "threadId": "thread-1", "turnId": "turn-1", "itemId": "h1", "kind": kind,
        "command": "deploy", "cwd": "/", "startedAtMs": 1,
    });
    let method = "item/commandExecution/requestApproval";
    steps.push(Scripted::request(json!(7), method, params));
    steps.push(Scripted::ExpectAnswer { id: json!(7) });
    steps.push(turn.notify("warning", json!({ "message": "$result.decision" })));
    steps.extend(turn.complete());
    let rig = Rig::new(Kind::Memory, Scene { steps, replies: Vec::new() }).await;
    let (sender, mut asked) = tokio::sync::mpsc::channel(1);
    let mut request = TurnRequest::new(rig.thread().await, "go");
    request.answerer = Arc::new(move |interrupt: Interrupt| {
        let (sender, decision) = (sender.clone(), decision.clone());
        async move {
            sender.send(interrupt).await.ok();
            Some(Answer::decision(decision))
        }
    });
    let told = Told::of(rig.server.start_turn(request).await.unwrap()).await;
    assert_eq!(told.end(), Unified::Stop);
    let Ask::Command { command, person_required, .. } = asked.recv().await.unwrap().ask else {
        panic!("not a command")
    };
    assert_eq!((command.as_str(), person_required), ("deploy", true));
    let notices = told.customs("codex.notice");
    let sent = notices.iter().find(|notice| notice["topic"] == "warning").unwrap();
    sent["text"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned()
}

crate::backend::on_both! {
    an_accepted_command_runs,
    a_declined_command_does_not_run_and_the_turn_goes_on,
    a_cancelled_command_stops_the_turn,
    no_answer_means_no,
    an_answer_that_does_not_fit_means_no_and_is_told,
    a_panicking_answerer_means_no,
    a_patch_is_asked_with_its_diff_and_applied,
    an_approval_request_follows_its_call,
    an_interrupt_withdraws_the_question,
}

crate::backend::on_older_codex! {
    an_accepted_command_runs,
    a_declined_command_does_not_run_and_the_turn_goes_on,
    a_cancelled_command_stops_the_turn,
    no_answer_means_no,
    an_answer_that_does_not_fit_means_no_and_is_told,
    a_panicking_answerer_means_no,
    a_patch_is_asked_with_its_diff_and_applied,
    an_approval_request_follows_its_call,
    an_interrupt_withdraws_the_question,
}
