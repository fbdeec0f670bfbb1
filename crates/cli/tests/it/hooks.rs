//! Webhooks: who is told of a question, and tools that are served by one.

use std::time::Duration;

use bindery_testkit::api_tools::{Python, run as run_tool};
use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::receiver::{Answers, Receiver};
use crate::web::text;

bindery_testkit::on_both! {
    a_question_is_told_until_it_is_taken,
    a_delivery_outlives_the_daemon,
    a_webhook_serves_a_tool_and_its_failures_are_told_to_the_model,
    a_webhook_is_told_what_it_asked_for_in_the_standard_form,
}

const SECRET: &str = "whsec_b2YgdGhpcyB0ZXN0";

fn fine(body: Value) -> Answers {
    Answers::With(200, body.to_string())
}

/// A daemon whose turns ask for a command, and whose tenant has a webhook.
fn asking(receiver: &Receiver) -> Daemon {
    let run = Reply::new([Step::exec("echo ran > ran", "c1")]);
    let daemon = Daemon::new(vec![Reply::text("fine").when_output_of("c1"), run]);
    let url = receiver.url();
    daemon.set_tenant(&format!("[[webhooks]]\nurl = '{url}'\nsecret = '{SECRET}'\n"));
    daemon
}

async fn a_question_is_told_until_it_is_taken() {
    let receiver = Receiver::new(vec![Answers::With(500, String::new()), fine(json!({}))]);
    let daemon = asking(&receiver);
    let thread = daemon.careful().await;
    let turn = daemon.say(&thread, "go").await;
    let calls = receiver.wait(2).await;
    let told = calls[0].json();
    assert_eq!((&told["event"], &told["tenant"]), (&json!("interrupt.opened"), &json!("default")));
    assert_eq!(told["interrupt"]["turnId"], json!(turn));
    assert_eq!(calls[0].headers["bindery-delivery"], told["id"].as_str().unwrap());
    assert_eq!(calls[0].headers["content-type"], "application/json");
    assert_eq!(calls[0].body, calls[1].body);
    assert!(calls.iter().all(|call| call.is_signed(SECRET) && !call.is_signed("another")));
    let pause = calls[1].at - calls[0].at;
    assert!(pause > Duration::from_millis(1500), "it came again after {pause:?}");
    // Whoever was told can answer.
    let token = told["interrupt"]["token"].as_str().unwrap();
    let yes = json!({ "kind": "decision", "decision": "accept" });
    let (status, said) = daemon.web.post(&format!("/v1/interrupts/{token}/answer"), yes).await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(text(&daemon.web.follow(&turn, 0).await.rest().await), "fine");
    assert_eq!(receiver.calls().len(), 2, "what was taken is not told again");
}

async fn a_delivery_outlives_the_daemon() {
    let refusal = Answers::With(503, String::new());
    let receiver = Receiver::new(vec![refusal, Answers::Never, fine(json!({}))]);
    let mut daemon = asking(&receiver);
    let thread = daemon.careful().await;
    daemon.say(&thread, "go").await;
    // Refused, then killed while the second call waits for its answer.
    receiver.wait(2).await;
    daemon.kill();
    daemon.again();
    let calls = receiver.wait(3).await;
    assert_eq!(calls[0].body, calls[2].body);
    assert_eq!(calls[0].headers["bindery-delivery"], calls[2].headers["bindery-delivery"]);
    assert!(calls[2].is_signed(SECRET));
    // A call that waits does not hold up the end.
    let (_, open) = daemon.web.get("/v1/interrupts").await;
    assert_eq!(open["data"].as_array().unwrap().len(), 1);
    assert_eq!(daemon.terminate(), Some(0));
}

/// What the model was told of a call.
fn told_of(daemon: &Daemon, call: &str) -> String {
    let bodies = daemon.stage.model.bodies();
    let items = bodies.iter().rev().flat_map(|body| body["input"].as_array().unwrap());
    let of_call = |item: &&Value| item["call_id"] == call && item.get("output").is_some();
    items.into_iter().find(of_call).unwrap()["output"].to_string()
}

async fn a_webhook_serves_a_tool_and_its_failures_are_told_to_the_model() {
    let cases = [
        (fine(json!({ "output": "sunny" })), "sunny"),
        (fine(json!({ "output": { "degrees": 21 } })), "21"),
        (Answers::With(500, "{}".to_owned()), "it answered 500"),
        (Answers::With(200, "sunny".to_owned()), "cannot be read"),
        (fine(json!({ "weather": "sunny" })), "has no `output`"),
        (fine(json!({ "error": "no such city" })), "no such city"),
        (Answers::Closing, "connection closed"),
        (Answers::Elsewhere("http://127.0.0.1:9/".to_owned()), "it answered 307"),
        (Answers::Flood, "its answer is too long"),
        (Answers::Never, "did not answer in time"),
    ];
    let receiver = Receiver::new(cases.iter().map(|(answer, _)| answer.clone()).collect());
    let mut script = Vec::new();
    for number in (0..cases.len()).rev() {
        let (call, user) = (format!("c{number}"), format!("case {number}"));
        script.push(Reply::text("told").when_output_of(&call));
        let asked = Step::call("weather", json!({ "city": "Rome" }), &call);
        script.push(Reply::new([asked]).when_user(&user));
    }
    let daemon = Daemon::new(script);
    let url = receiver.url();
    daemon.set_tenant(&format!(
        "[[tools]]\nname = 'weather'\ndescription = 'The weather'\nurl = '{url}'\n\
         secret = '{SECRET}'\ntimeout_seconds = 2\n\
         input_schema = {{ type = 'object', properties = {{ city = {{ type = 'string' }} }} }}\n"
    ));
    let thread = daemon.thread(json!({})).await;
    for (number, (_, told)) in cases.iter().enumerate() {
        let turn = daemon.say(&thread, &format!("case {number}")).await;
        let all = daemon.web.follow(&turn, 0).await.rest().await;
        assert_eq!(text(&all), "told", "{all:#?}");
        assert!(all.iter().all(|heard| heard.event != "interrupt"), "{all:#?}");
        let said = told_of(&daemon, &format!("c{number}"));
        assert!(said.contains(told), "{number}: {said}");
        let call = receiver.wait(number + 1).await.pop().unwrap();
        assert!(call.is_signed(SECRET));
        let asked = call.json();
        assert_eq!((&asked["event"], &asked["tool"]), (&json!("tool.call"), &json!("weather")));
        assert_eq!(asked["input"], json!({ "city": "Rome" }));
        assert_eq!(call.headers["bindery-delivery"], asked["callId"].as_str().unwrap());
    }
    assert_eq!(receiver.calls().len(), cases.len(), "a call is made once");
}

/// Reads calls from a file and fails unless each is signed as Standard Webhooks has it.
const VERIFY: &str = r#"
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
calls, secret = json.load(open(sys.argv[2])), sys.argv[1]
for call in calls:
    told = Webhook(secret).verify(call["body"], call["headers"])
    assert told["id"] == call["headers"]["webhook-id"], told
    for wrong in ({**call, "body": call["body"] + " "}, call):
        other = secret if wrong is not call else "whsec_b3RoZXI="
        try:
            Webhook(other).verify(wrong["body"], wrong["headers"])
        except WebhookVerificationError:
            continue
        raise SystemExit("a wrong signature is taken for a right one")
print(len(calls))
"#;

async fn a_webhook_is_told_what_it_asked_for_in_the_standard_form() {
    let Some(python) = Python::find() else { return };
    let receiver = Receiver::new(vec![Answers::With(500, String::new()), fine(json!({}))]);
    let run = Reply::new([Step::exec("echo ran > ran", "c1")]).when_user("go");
    let failing = Reply::new([Step::status(400, "invalid_request_error", "bad")]).when_user("fail");
    let daemon = Daemon::new(vec![Reply::text("fine").when_output_of("c1"), run, failing]);
    let events = "events = ['turn.waiting', 'turn.completed', 'turn.failed']";
    let url = receiver.url();
    daemon.set_tenant(&format!("[[webhooks]]\nurl = '{url}'\nsecret = '{SECRET}'\n{events}\n"));
    let thread = daemon.careful().await;
    let turn = daemon.say(&thread, "go").await;
    // Refused once, then taken.
    let calls = receiver.wait(2).await;
    assert_eq!(calls[0].headers["webhook-id"], calls[1].headers["webhook-id"]);
    let waiting = calls[1].json();
    assert_eq!(waiting["type"], "turn.waiting");
    assert_eq!(waiting["data"]["turn"]["id"], json!(turn));
    let token = waiting["data"]["interrupt"]["token"].as_str().unwrap();
    let yes = json!({ "kind": "decision", "decision": "accept" });
    assert_eq!(daemon.web.post(&format!("/v1/interrupts/{token}/answer"), yes).await.0, 200);
    receiver.wait(3).await;
    daemon.say(&thread, "fail").await;
    let calls = receiver.wait(4).await;
    let told: Vec<Value> = calls[1..].iter().map(|call| call.json()["type"].clone()).collect();
    assert_eq!(told, ["turn.waiting", "turn.completed", "turn.failed"]);
    let failed = &calls[3].json()["data"]["turn"];
    assert_eq!(failed["state"], "failed");
    assert!(failed["error"]["message"].as_str().unwrap().contains("bad"), "{failed}");
    let folder = tempfile::tempdir().unwrap();
    let heard = calls.iter().map(|call| json!({ "headers": call.headers, "body": call.body }));
    let file = folder.path().join("calls.json");
    std::fs::write(&file, heard.collect::<Value>().to_string()).unwrap();
    let mut command = python.command(folder.path());
    let (said, _) = run_tool(command.arg("-c").arg(VERIFY).arg(SECRET).arg(file));
    assert_eq!(said.trim(), "4");
}
