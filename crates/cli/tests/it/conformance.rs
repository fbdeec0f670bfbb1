//! What a daemon says in a whole life of a thread, all of it held against its API document.
#![cfg(target_os = "linux")]

use std::path::Path;

use bindery_testkit::api_tools::{Python, run};
use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::web::Heard;

/// Whoever asks, and writes down what was answered.
struct Recorder {
    daemon: Daemon,
    cases: Vec<Value>,
}

impl Recorder {
    async fn ask(&mut self, method: &str, path: &str, body: Option<Value>, want: u16) -> Value {
        let (status, said) = self.daemon.web.ask(method, path, body, &[]).await;
        assert_eq!(status, want, "{method} {path}: {said}");
        let (kept, value) = (json!({ "method": method, "path": path, "status": status }), &said);
        let mut case = kept;
        case["value"] = value.clone();
        self.cases.push(case);
        said
    }

    async fn get(&mut self, path: &str) -> Value {
        self.ask("GET", path, None, 200).await
    }

    async fn post(&mut self, path: &str, body: Value, want: u16) -> Value {
        self.ask("POST", path, Some(body), want).await
    }

    fn hear(&mut self, events: &[Heard]) {
        for heard in events {
            let schema = match heard.event.as_str() {
                "part" => "Part",
                "interrupt" => "Interrupt",
                "end" => "TurnEnd",
                other => panic!("an event is called `{other}`"),
            };
            self.cases.push(json!({ "schema": schema, "value": heard.data }));
            let frame = json!({ "id": heard.id.to_string(), "event": heard.event,
                "data": heard.data.to_string() });
            self.cases.push(json!({ "schema": "TurnEvent", "value": frame }));
        }
    }

    /// Follows a turn to its next question, which is answered.
    async fn answer(&mut self, turn: &str, after: u64, answer: Value) -> u64 {
        let mut events = self.daemon.web.follow(turn, after).await;
        let seen = events.until(|heard| heard.event == "interrupt").await;
        self.hear(&seen);
        let (last, token) = (seen.last().unwrap().id, seen.last().unwrap().data["token"].clone());
        let path = format!("/v1/interrupts/{}", token.as_str().unwrap());
        self.get("/v1/interrupts").await;
        self.get(&path).await;
        self.get(&format!("/v1/turns/{turn}")).await;
        let wrong = json!({ "kind": "userInput", "answers": {} });
        self.post(&format!("{path}/answer"), wrong, 422).await;
        self.post(&format!("{path}/answer"), answer.clone(), 200).await;
        self.post(&format!("{path}/answer"), answer, 409).await;
        last
    }
}

fn name(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// A turn with a command, a change, a tool and an answer; then whatever is asked for.
fn script() -> Vec<Reply> {
    let patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n";
    vec![
        Reply::text("done then").when_output_of("w1"),
        Reply::new([Step::call("weather", json!({ "city": "Rome" }), "w1")]).when_output_of("p1"),
        Reply::new([Step::text("A file now."), Step::patch(patch, "p1")]).when_output_of("c1"),
        Reply::new([Step::exec("echo ran", "c1")]).when_user("go"),
        Reply::new([Step::status(400, "invalid_request_error", "bad thing")]).when_user("fail"),
        Reply::text("and so on").always(),
    ]
}

async fn run_turn(recorder: &mut Recorder, thread: &str) -> String {
    let path = format!("/v1/threads/{thread}/turns");
    let turn = name(&recorder.post(&path, json!({ "input": "go" }), 201).await);
    let yes = json!({ "kind": "decision", "decision": "accept" });
    let mut after = recorder.answer(&turn, 0, yes.clone()).await;
    after = recorder.answer(&turn, after, yes).await;
    let sunny = json!({ "kind": "toolResult", "success": true,
        "content": [{ "type": "inputText", "text": "sunny" }] });
    after = recorder.answer(&turn, after, sunny).await;
    let rest = recorder.daemon.web.follow(&turn, after).await.rest().await;
    recorder.hear(&rest);
    recorder.get(&path).await;
    turn
}

/// The kinds of things beside turns.
async fn look_around(recorder: &mut Recorder, thread: &str) {
    let path = format!("/v1/threads/{thread}");
    let session = recorder.get(&path).await["sessionId"].as_str().unwrap().to_owned();
    for path in ["/v1/threads?limit=1", "/v1/sessions", "/v1/deliveries", "/v1/models", "/healthz"]
    {
        recorder.get(path).await;
    }
    recorder.get("/v1/interrupts?open=false").await;
    recorder.get(&format!("/v1/sessions/{session}")).await;
    recorder.get(&format!("/v1/sessions/{session}/transcript")).await;
    recorder.ask("PATCH", &path, Some(json!({ "title": "a title" })), 200).await;
    let fork = name(&recorder.post(&format!("{path}/fork"), json!({}), 201).await);
    recorder.post(&format!("{path}/archive"), json!({}), 200).await;
    recorder.post(&format!("{path}/turns"), json!({ "input": "no" }), 409).await;
    recorder.post(&format!("{path}/unarchive"), json!({}), 200).await;
    for wrong in ["/v1/threads/thr_x", "/v1/turns/turn_x", "/v1/sessions/x", "/v1/interrupts/x"] {
        recorder.ask("GET", wrong, None, 404).await;
    }
    recorder.ask("GET", "/v1/threads?limit=0", None, 422).await;
    recorder.post("/v1/threads", json!({ "settings": { "sandbx": 1 } }), 422).await;
    recorder.ask("DELETE", &format!("/v1/threads/{fork}"), None, 204).await;
    recorder.ask("DELETE", &format!("/v1/threads/{fork}"), None, 404).await;
}

/// Turns that go wrong, and turns of other kinds.
async fn run_others(recorder: &mut Recorder, thread: &str) {
    let path = format!("/v1/threads/{thread}");
    for (act, body) in [
        ("turns", json!({ "input": [{ "type": "text", "text": "fail" }] })),
        ("compact", json!({})),
        ("review", json!({ "target": { "type": "custom", "instructions": "look" } })),
    ] {
        let turn = name(&recorder.post(&format!("{path}/{act}"), body, 201).await);
        let heard = recorder.daemon.web.follow(&turn, 0).await.rest().await;
        recorder.hear(&heard);
        recorder.get(&format!("/v1/turns/{turn}")).await;
        recorder.post(&format!("/v1/turns/{turn}/interrupt"), json!({}), 409).await;
    }
}

#[tokio::test]
async fn all_that_a_daemon_says_is_as_its_document_says() {
    let Some(python) = Python::find() else { return };
    let daemon = Daemon::new(script());
    // Nobody is there, so deliveries wait.
    daemon.set_tenant(
        "[[webhooks]]\nurl = 'http://127.0.0.1:9'\nsecret = 's'\n\
         events = ['turn.completed', 'turn.waiting']",
    );
    let mut recorder = Recorder { daemon, cases: Vec::new() };
    let settings = json!({ "approvalPolicy": "untrusted", "sandbox": "danger-full-access" });
    let tools = json!([{ "type": "function", "name": "weather", "inputSchema": {} }]);
    let body = json!({ "title": "t", "settings": settings, "tools": tools });
    let thread = name(&recorder.post("/v1/threads", body, 201).await);
    let turn = run_turn(&mut recorder, &thread).await;
    let read = recorder.get(&format!("/v1/turns/{turn}")).await;
    assert_eq!((&read["text"], &read["state"]), (&json!("done then"), &json!("completed")));
    look_around(&mut recorder, &thread).await;
    run_others(&mut recorder, &thread).await;
    let folder = tempfile::tempdir().unwrap();
    let (document, cases) = (folder.path().join("openapi.json"), folder.path().join("cases.json"));
    let (_, said) = recorder.daemon.web.get("/v1/openapi.json").await;
    std::fs::write(&document, said.to_string()).unwrap();
    std::fs::write(&cases, json!(recorder.cases).to_string()).unwrap();
    let script = "../daemon/tests/clients/conformance.py";
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    run(python.command(folder.path()).arg(script).arg(document).arg(cases));
}
