//! An interrupt in every state: the turn ends, the history is closed, the thread goes on.

use bindery_engine::item::HistoryItem;
use bindery_engine::model::ModelEvent;
use bindery_engine::thread::{DynamicTool, ThreadError, TurnInput};
use serde_json::json;

use crate::stage::{Act, Setting, Stage, assistant, call, say};

/// A state to interrupt in: what the model does, and the sign that it is reached.
struct State {
    name: &'static str,
    acts: Vec<Act>,
    sign: &'static str,
    /// What the next turn's model sees between the first words and the mark of the interrupt.
    history: &'static [&'static str],
}

fn states() -> Vec<State> {
    let begun: HistoryItem = assistant("");
    let retry = ModelEvent::Retrying {
        attempt: 1,
        most: 5,
        cause: "cut".to_owned(),
        delay: std::time::Duration::from_secs(600),
    };
    let mut after_item = say("whole");
    after_item.push(Act::Hang);
    let mut with_call = say("whole");
    with_call.extend([call("c1", "wait", &json!({})), call("c2", "nope", &json!({})), Act::Hang]);
    vec![
        State { name: "before the first byte", acts: vec![Act::Hang], sign: "", history: &[] },
        State {
            name: "in the middle of a message",
            acts: vec![
                Act::Tell(ModelEvent::ItemBegun(begun)),
                Act::Tell(ModelEvent::Text("half".to_owned())),
                Act::Hang,
            ],
            sign: "item/agentMessage/delta",
            history: &[],
        },
        State {
            name: "after a whole message",
            acts: after_item,
            sign: "item/agentMessage/delta",
            history: &["assistant: whole"],
        },
        State {
            name: "while the wire waits to ask again",
            acts: vec![Act::Tell(retry), Act::Hang],
            sign: "error",
            history: &[],
        },
        State {
            name: "while a tool runs and the model goes on",
            acts: with_call,
            sign: "item/tool/call",
            history: &["assistant: whole", "call c1 wait", "call c2 nope"],
        },
        State {
            name: "while a tool runs and the model is done",
            acts: vec![call("c1", "wait", &json!({}))],
            sign: "item/tool/call",
            history: &["call c1 wait", "output c1 aborted"],
        },
    ]
}

fn setting(acts: Vec<Act>) -> Setting {
    let wait = json!({ "name": "wait", "description": "d" });
    Setting::new(vec![acts, say("back")]).change(move |settings| {
        settings.dynamic_tools = vec![DynamicTool::read(&wait).expect("a tool")];
    })
}

#[tokio::test]
async fn the_thread_is_usable_after_an_interrupt_in_any_state() {
    for State { name, acts, sign, history } in states() {
        let stage = setting(acts).open();
        let turn_id = stage.thread.start_turn(TurnInput::text("one")).await.expect("a turn");
        stage.asked(1).await;
        if !sign.is_empty() {
            stage.wait(sign, 0).await;
        }
        if name == "after a whole message" {
            stage.wait("item/completed", 1).await;
        }
        stage.thread.interrupt(&turn_id).await.expect(name);
        let turn = stage.ended(0).await;
        assert_eq!(
            (&turn["status"], &turn["error"]),
            (&json!("interrupted"), &json!(null)),
            "{name}"
        );
        assert_eq!(*stage.ears.open.lock().expect("count"), 0, "{name}: a question stays open");
        let again = stage.thread.interrupt(&turn_id).await;
        assert_eq!(again, Err(ThreadError::NothingToInterrupt), "{name}");

        assert_eq!(stage.turn("two").await["status"], "completed", "{name}");
        let lines = stage.input_lines(1);
        assert_eq!(lines[0], "user: one", "{name}");
        assert_eq!(&lines[1..=history.len()], history, "{name}");
        let mark = &lines[lines.len() - 2];
        assert!(mark.starts_with("user: <turn_aborted>"), "{name}: {lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("user: two"), "{name}");
        let calls = lines.iter().filter(|line| line.starts_with("call ")).count();
        let outputs = lines.iter().filter(|line| line.starts_with("output ")).count();
        assert_eq!(calls, outputs, "{name}: {lines:?}");
    }
}

#[tokio::test]
async fn an_interrupt_while_summing_up_leaves_the_history_as_it_was() {
    let stage = Stage::new(vec![say("first"), vec![Act::Hang], say("back")]);
    stage.turn("one").await;
    let ticket = stage.thread.compact().await.expect("a turn");
    let turn_id = ticket.turn_id.clone();
    drop(ticket);
    stage.asked(2).await;
    let steered = stage.thread.steer(&turn_id, TurnInput::text("x")).await;
    assert_eq!(steered, Err(ThreadError::NotSteerable { kind: "compact" }));
    stage.thread.interrupt(&turn_id).await.expect("an interrupt");
    assert_eq!(stage.ended(1).await["status"], "interrupted");
    stage.turn("two").await;
    assert_eq!(stage.input_lines(2)[..2], ["user: one", "assistant: first"]);
}

#[tokio::test]
async fn an_interrupt_before_the_ticket_is_given_back_ends_the_turn() {
    let stage = Stage::new(vec![say("never")]);
    let ticket = stage.thread.prepare_turn(TurnInput::text("one")).await.expect("a turn");
    assert_eq!(stage.sketch(), Vec::<String>::new(), "the turn waits for its ticket");
    stage.thread.interrupt(&ticket.turn_id).await.expect("an interrupt");
    drop(ticket);
    assert_eq!(stage.ended(0).await["status"], "interrupted");
    assert_eq!(stage.model.requests.lock().expect("requests").len(), 0);
}

#[tokio::test]
async fn closing_a_thread_ends_its_turn_and_its_task() {
    let stage = Stage::new(vec![vec![Act::Hang]]);
    stage.thread.start_turn(TurnInput::text("one")).await.expect("a turn");
    stage.asked(1).await;
    stage.thread.close().await;
    assert_eq!(stage.ended(0).await["status"], "interrupted");
    assert_eq!(stage.thread.start_turn(TurnInput::text("x")).await, Err(ThreadError::Closed));
    stage.tasks.close();
    tokio::time::timeout(crate::stage::PATIENCE, stage.tasks.wait()).await.expect("no task stays");
}
