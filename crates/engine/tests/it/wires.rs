//! Both wires against the scripted model: the same script gives the same items.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::item::{HistoryItem, Message, Role};
use bindery_engine::model::{
    self, Answered, Clients, ModelError, ModelEvent, ModelRequest, Provider, ToolSpec, Wire,
};
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

pub(crate) const WIRES: [Wire; 2] = [Wire::Responses, Wire::Chat];

/// No test waits longer for what must come.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// What came of one question.
pub(crate) struct Asked {
    pub(crate) ended: Result<Answered, ModelError>,
    pub(crate) events: Vec<ModelEvent>,
}

impl Asked {
    /// Items that are whole, as JSON, without the ids of the server.
    pub(crate) fn items(&self) -> Vec<Value> {
        let done = self.events.iter().filter_map(|event| match event {
            ModelEvent::ItemDone(item) => Some(json!(item)),
            _ => None,
        });
        let plain = |mut item: Value| {
            let fields = item.as_object_mut().expect("an object");
            fields.retain(|key, value| !value.is_null() && key != "id" && key != "status");
            item
        };
        done.map(plain).collect()
    }

    /// All pieces of text.
    pub(crate) fn text(&self) -> String {
        let pieces = self.events.iter().map(|event| match event {
            ModelEvent::Text(text) => text.as_str(),
            _ => "",
        });
        pieces.collect()
    }
}

/// A provider for the scripted model with few and quick repeats.
pub(crate) fn provider(wire: Wire, model: &Model) -> Provider {
    Provider {
        key: Some("sk-test".to_owned()),
        request_max_retries: 1,
        stream_max_retries: 2,
        ..Provider::new(wire, model.base_url())
    }
}

pub(crate) fn request(text: &str) -> ModelRequest {
    ModelRequest {
        model: "gpt-test".to_owned(),
        base: "Be brief.".to_owned(),
        input: vec![Message::text(Role::User, text).into()],
        parallel_tool_calls: true,
        thread_id: "thread-1".to_owned(),
        ..ModelRequest::default()
    }
}

/// A model that shares its connections with no other.
pub(crate) fn opened(provider: &Provider) -> Arc<dyn model::Model> {
    model::open(provider, &Clients::default())
}

/// Asks, and hears everything.
pub(crate) async fn ask(provider: &Provider, request: ModelRequest) -> Asked {
    let model = opened(provider);
    let (sender, mut heard) = mpsc::channel(1);
    let listening = async {
        let mut events = Vec::new();
        while let Some(event) = heard.recv().await {
            events.push(event);
        }
        events
    };
    let asking = async { tokio::join!(model.answer(request, sender), listening) };
    let (ended, events) = timeout(LIMIT, asking).await.expect("the model hangs");
    Asked { ended, events }
}

fn tools() -> Vec<ToolSpec> {
    let function = |name: &str| ToolSpec::Function {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
    };
    let patch = ToolSpec::Freeform {
        name: "apply_patch".to_owned(),
        description: "Edits.".to_owned(),
        syntax: "lark".to_owned(),
        definition: "start: x".to_owned(),
    };
    let docs = ToolSpec::Namespace {
        name: "mcp__docs".to_owned(),
        description: String::new(),
        tools: vec![function("find")],
    };
    vec![function("exec_command"), patch, docs]
}

#[tokio::test]
async fn the_same_script_gives_the_same_items_on_both_wires() {
    let steps = || {
        [
            Step::Reasoning { summary: vec![], content: vec!["Let me see.".to_owned()] },
            Step::chunked("I look äround.", 3),
            Step::exec("ls", "call_1"),
            Step::call_in("mcp__docs", "find", json!({ "q": 1 }), "call_2"),
            Step::patch("*** Begin Patch\n*** End Patch", "call_3"),
        ]
    };
    let mut all = Vec::new();
    for wire in WIRES {
        let model = Model::start(vec![Reply::new(steps())]);
        let request = ModelRequest { tools: tools(), ..request("go") };
        let asked = ask(&provider(wire, &model), request).await;
        let answered = asked.ended.clone().expect("an answer");
        let usage = answered.usage.expect("an answer");
        assert_eq!((usage.input_tokens, usage.cached_input_tokens), (100, 10));
        assert_eq!((usage.output_tokens, usage.total_tokens), (20, 120));
        assert_eq!(usage.reasoning_output_tokens, 5);
        assert!(answered.id.is_some());
        assert_eq!(asked.text(), "I look äround.");
        all.push(asked.items());
    }
    assert_eq!(all[0], all[1]);
    insta::assert_json_snapshot!(all[0]);
}

#[tokio::test]
async fn a_history_goes_out_and_back_on_both_wires() {
    for wire in WIRES {
        let model = Model::start(vec![
            Reply::new([Step::exec("ls", "call_1")]).when_after_tool(false),
            Reply::text("Two files.").when_output_of("call_1"),
        ]);
        let provider = provider(wire, &model);
        let mut asking = ModelRequest { tools: tools(), ..request("what is here?") };
        let first = ask(&provider, asking.clone()).await;
        asking.input.extend(first.items().into_iter().map(HistoryItem::from_value));
        asking.input.push(HistoryItem::from_value(json!({
            "type": "function_call_output", "call_id": "call_1", "output": "a\nb",
        })));
        let second = ask(&provider, asking).await;
        assert_eq!(second.text(), "Two files.", "{wire:?}");
        assert_eq!(model.count(), 2);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_taken() {
    let message = json!({ "role": "assistant", "content": "Whole." });
    let chat = json!({ "choices": [{ "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
    let item = json!({ "type": "message", "role": "assistant",
        "content": [{ "type": "output_text", "text": "Whole." }] });
    let responses = json!({ "id": "r", "status": "completed", "output": [item],
        "usage": { "input_tokens": 1, "output_tokens": 2 } });
    for (wire, body) in WIRES.into_iter().zip([responses, chat]) {
        let whole = Step::Status { status: 200, body, headers: Default::default() };
        let model = Model::start(vec![Reply::new([whole])]);
        let asked = ask(&provider(wire, &model), request("go")).await;
        assert_eq!(asked.items(), std::slice::from_ref(&item), "{wire:?}");
        assert_eq!(asked.ended.expect("an answer").usage.expect("an answer").total_tokens, 3);
    }
}

#[tokio::test]
async fn items_told_in_the_response_alone_are_taken() {
    let item = json!({ "type": "message", "role": "assistant",
        "content": [{ "type": "output_text", "text": "Late." }] });
    let completed = json!({ "type": "response.completed", "response": {
        "id": "r", "output": [item], "end_turn": false, "model": "m" } });
    let model = Model::start(vec![Reply::new([Step::Event { event: completed }, Step::Silence])]);
    let asked = ask(&provider(Wire::Responses, &model), request("go")).await;
    assert_eq!(asked.items(), [item]);
    let answered = asked.ended.expect("an answer");
    assert_eq!((answered.end_turn, answered.model.as_deref()), (Some(false), Some("m")));
}

#[tokio::test]
async fn headers_and_queries_reach_the_server() {
    for wire in WIRES {
        let model = Model::start(Script::always("ok"));
        let provider = Provider {
            headers: vec![("x-team".to_owned(), "red".to_owned())],
            query: vec![("api-version".to_owned(), "1".to_owned())],
            ..provider(wire, &model)
        };
        let request = ModelRequest { purpose: Some("review"), ..request("go") };
        ask(&provider, request).await.ended.expect("an answer");
        let got = &model.requests()[0];
        assert!(got.path.ends_with("?api-version=1"), "{}", got.path);
        let header = |name: &str| got.headers.get(name).map(String::as_str);
        assert_eq!(header("authorization"), Some("Bearer sk-test"));
        assert_eq!(header("x-team"), Some("red"));
        assert_eq!(header("originator"), Some("bindery"));
        assert_eq!(header("accept"), Some("text/event-stream"));
        assert_eq!(header("content-type"), Some("application/json"));
        assert_eq!(header("session-id"), Some("thread-1"));
        assert_eq!(header("thread-id"), Some("thread-1"));
        assert_eq!(header("x-openai-subagent"), Some("review"));
        assert!(header("user-agent").expect("an answer").starts_with("bindery/"));
    }
}

#[tokio::test]
async fn whoever_stops_listening_ends_the_request() {
    for wire in WIRES {
        let model = Model::start(vec![Reply::new([Step::begin("Once"), Step::Silence])]);
        let opened = opened(&provider(wire, &model));
        let (sender, mut heard) = mpsc::channel(64);
        let mut asking = opened.answer(request("go"), sender);
        let begun = async {
            while let Some(event) = heard.recv().await {
                if matches!(event, ModelEvent::Text(_)) {
                    break;
                }
            }
        };
        tokio::select! {
            ended = &mut asking => panic!("{ended:?}"),
            begun = timeout(LIMIT, begun) => begun.expect("the text comes"),
        }
        drop(asking);
        timeout(LIMIT, model.wait_for_hang_ups(1)).await.expect("the server sees it");
    }
}

#[tokio::test]
async fn threads_share_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("its address"));
    let server = tokio::spawn(async move {
        let mut connections = 0;
        let mut asked = 0;
        while asked < 2 {
            let (stream, _) = listener.accept().await.expect("a connection");
            connections += 1;
            asked += answer_all(stream, 2 - asked).await;
        }
        connections
    });
    let provider = Provider::new(Wire::Responses, base_url);
    let clients = Clients::default();
    for _ in 0..2 {
        let (sender, _heard) = mpsc::channel(64);
        let answer = model::open(&provider, &clients).answer(request("go"), sender).await;
        answer.expect("an answer");
    }
    assert_eq!(timeout(LIMIT, server).await.expect("in time").expect("no panic"), 1);
}

/// Answers so many questions, as long as they come on this connection; gives how many came.
async fn answer_all(stream: TcpStream, most: usize) -> usize {
    let body = json!({ "id": "r", "status": "completed", "output": [] }).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
    let mut stream = BufReader::new(stream);
    for answered in 0..most {
        let mut length = None;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return answered;
            }
            let line = line.trim().to_ascii_lowercase();
            length = line.strip_prefix("content-length: ").map(str::to_owned).or(length);
            if line.is_empty() {
                break;
            }
        }
        let length = length.expect("a length").parse().expect("a number");
        stream.read_exact(&mut vec![0; length]).await.expect("a body");
        let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.expect("it listens");
    }
    most
}
