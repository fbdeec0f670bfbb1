//! A lost connection and the turns that outlive it, on the real Codex.

mod older;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindery_client::app_server::{AppServer, ConnectOptions};
use bindery_client::error::Error;
use bindery_client::peer::{Bounds, Inbound, Peer};
use bindery_client::transport::Transport;
use bindery_client::transport::dial::{self, Dial};
use bindery_client::turn::{Turn, TurnRequest};
use bindery_core::ids::ThreadId;
use bindery_core::interrupt::{Answer, Ask, Decision, Interrupt};
use bindery_core::part::Part;
use bindery_core::usage::Unified;
use bindery_core::wire::app_server::params::{ThreadSettings, ThreadStart};
use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::listening::Listening;
use bindery_testkit::model::{Model, Reply, Step};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use crate::proxy::Proxy;
use crate::server::LONG;
use crate::stage::Told;

/// A Codex that listens, a wire that can be cut, and our client.
struct Scene {
    server: AppServer,
    proxy: Proxy,
    listening: Listening,
    codex: RealCodex,
    model: Model,
    /// Threads have their history in the older form.
    older: bool,
}

impl Scene {
    async fn new(replies: Vec<Reply>) -> Self {
        Self::with(replies, &ConnectOptions::default()).await
    }

    async fn with(replies: Vec<Reply>, options: &ConnectOptions) -> Self {
        let model = Model::start(replies);
        let codex = RealCodex::with(&model, &Options::default());
        let listening = Listening::ws(&codex, &[]);
        let proxy = Proxy::before(listening.address()).await;
        let server = AppServer::dial(&proxy.dial(), options).await.unwrap();
        Self { server, proxy, listening, codex, model, older: false }
    }

    fn start(&self) -> ThreadStart {
        let form = self.older.then(|| ("historyMode".to_owned(), json!("legacy")));
        let settings = ThreadSettings {
            cwd: Some(self.codex.project().display().to_string()),
            approval_policy: Some(json!("untrusted")),
            sandbox: Some("danger-full-access".into()),
            extra: form.into_iter().collect(),
            ..ThreadSettings::default()
        };
        ThreadStart { settings, ..ThreadStart::default() }
    }

    async fn thread(&self) -> ThreadId {
        self.server.start_thread(&self.start()).await.unwrap().thread.id
    }

    async fn turn(&self) -> Heard {
        self.turn_of(TurnRequest::new(self.thread().await, "go")).await
    }

    async fn turn_of(&self, request: TurnRequest) -> Heard {
        Heard { turn: self.server.start_turn(request).await.unwrap(), parts: Vec::new() }
    }

    /// Waits until requests come through; those under way when the wire was cut do not.
    async fn connected(&self) {
        let ask = async { while self.server.models().await.is_err() {} };
        timeout(LONG, ask).await.expect("no request comes through");
    }

    /// Waits, past the cut wire, until the thread does nothing any more.
    async fn idle(&self, thread: &ThreadId) {
        let dial = Dial::new(self.listening.address().parse().unwrap());
        let other = AppServer::dial(&dial, &ConnectOptions::default()).await.unwrap();
        let watch = async {
            while other.read_thread(thread).await.unwrap().status["type"] != "idle" {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, watch).await.expect("the turn goes on and on");
    }
}

/// A turn that is listened to step by step.
struct Heard {
    turn: Turn,
    parts: Vec<Part>,
}

impl Heard {
    /// Listens until a part fits.
    async fn until(&mut self, fits: impl Fn(&Part) -> bool) {
        loop {
            let part = timeout(LONG, self.turn.next()).await.expect("the turn hangs").unwrap();
            self.parts.push(part);
            if self.parts.last().is_some_and(&fits) {
                return;
            }
        }
    }

    /// Listens to the end.
    async fn rest(mut self) -> Told {
        self.parts.extend(Told::of(self.turn).await.parts);
        Told { parts: self.parts }
    }
}

/// A message of two pieces with a gate between them.
fn halves(first: &str, second: &str) -> Vec<Step> {
    let message = |text: &str| {
        let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
        json!({ "type": "message", "id": "msg_h", "role": "assistant", "content": content })
    };
    let event = |event: Value| Step::Event { event };
    let delta = |delta: &str| {
        let kind = "response.output_text.delta";
        event(json!({
            "type": kind, "output_index": 0, "item_id": "msg_h", "content_index": 0, "delta": delta,
        }))
    };
    let edge = |kind: &str, text: &str| {
        event(json!({ "type": kind, "output_index": 0, "item": message(text) }))
    };
    vec![
        edge("response.output_item.added", ""),
        delta(first),
        Step::gate("half"),
        delta(second),
        edge("response.output_item.done", &format!("{first}{second}")),
    ]
}

fn is_delta(part: &Part) -> bool {
    matches!(part, Part::TextDelta(_))
}

/// Each part by its name, pieces of text joined.
fn sketch(told: &Told) -> String {
    let mut names: Vec<String> = Vec::new();
    for part in &told.parts {
        let name = match part {
            Part::StreamStart { .. } | Part::ResponseMetadata { .. } => continue,
            Part::ToolInputStart(_) | Part::ToolInputDelta(_) | Part::ToolInputEnd(_) => continue,
            Part::ToolResult(result) if result.preliminary => continue,
            Part::TextStart(_) => "text(".to_owned(),
            Part::ReasoningStart(_) => "thought(".to_owned(),
            Part::TextDelta(delta) | Part::ReasoningDelta(delta) => {
                // However a text is cut into pieces, it is the same text.
                names.last_mut().unwrap().push_str(&delta.delta);
                continue;
            }
            Part::TextEnd { .. } | Part::ReasoningEnd(_) => ")".to_owned(),
            Part::ToolCall(call) => format!("call {}", call.tool_call_id),
            Part::ToolApprovalRequest { .. } => "ask".to_owned(),
            Part::ToolResult(result) => {
                format!("result {} {}", result.tool_call_id, result.result["status"])
            }
            Part::Custom { kind, .. } => kind.clone(),
            Part::Error { error } => format!("error {}", error["kind"]),
            Part::Finish { finish_reason, .. } => format!("{:?}", finish_reason.unified),
            other => format!("{other:?}"),
        };
        names.push(name);
    }
    names.join(" ").replace("  ", " ").replace(" )", ")")
}

const HELLO: &str = "codex.user-message text(one two three) Stop";

async fn a_text_goes_on_where_it_was_torn() {
    let scene = Scene::new(vec![Reply::new(halves("one ", "two three"))]).await;
    let mut heard = scene.turn().await;
    heard.until(is_delta).await;
    scene.proxy.cut();
    scene.proxy.wait_for(2).await;
    scene.model.open("half");
    assert_eq!(sketch(&heard.rest().await), HELLO);
}

async fn what_was_said_meanwhile_is_told_once() {
    let scene = Scene::new(vec![Reply::new(halves("one ", "two three"))]).await;
    let mut heard = scene.turn().await;
    heard.until(is_delta).await;
    scene.proxy.bar();
    scene.model.open("half");
    scene.idle(heard.turn.thread_id()).await;
    scene.proxy.open();
    let told = heard.rest().await;
    assert_eq!(sketch(&told), HELLO);
    // The end was missed, and the tokens with it.
    let usage = told.generated().usage;
    assert_eq!(usage.unwrap().input_tokens.total, Some(100));
}

async fn a_wire_that_is_cut_again_and_again_tears_nothing() {
    let mut steps = halves("one ", "two ");
    steps.push(Step::gate("more"));
    steps.push(Step::text("three"));
    let scene = Scene::new(vec![Reply::new(steps)]).await;
    let mut heard = scene.turn().await;
    heard.until(is_delta).await;
    for count in 2..5 {
        scene.proxy.cut();
        scene.proxy.wait_for(count).await;
    }
    scene.model.open("half");
    heard.until(|part| matches!(part, Part::TextEnd { .. })).await;
    scene.proxy.cut();
    scene.model.open("more");
    assert_eq!(sketch(&heard.rest().await), "codex.user-message text(one two) text(three) Stop");
}

/// Thinks, talks, runs a command, asks, patches and talks again, whatever the thread.
fn busy() -> Vec<Reply> {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n";
    let first = Reply::new([
        Step::reasoning(["First thought. ", "Second thought. "]),
        Step::chunked("I shall look around now. ", 5),
        Step::exec("echo seen", "c1"),
    ]);
    let second = Reply::new([Step::commentary("Now the patch. "), Step::patch(patch, "p1")]);
    let third = Reply::new([
        Step::reasoning(["Nearly done. "]),
        Step::chunked("All of it is done, as you wished. ", 3),
    ]);
    vec![third.when_output_of("p1").always(), second.when_output_of("c1").always(), first.always()]
}

/// A turn whose wire is cut after so many parts; none for never. Also how many parts there were.
async fn torn(scene: &Scene, after: Option<usize>) -> (String, usize) {
    let _ = std::fs::remove_file(scene.codex.project().join("new.txt"));
    let mut request = TurnRequest::new(scene.thread().await, "go");
    let desk = desk(&mut request);
    desk.may.add_permits(100);
    let mut heard = scene.turn_of(request).await;
    while after.is_some_and(|after| heard.parts.len() < after) {
        heard.until(|_| true).await;
    }
    if after.is_some() {
        scene.proxy.cut();
    }
    let told = heard.rest().await;
    scene.connected().await;
    let asked = desk.asked.load(Ordering::SeqCst);
    (format!("{} asked {asked}", sketch(&told)), told.parts.len())
}

async fn wherever_the_wire_is_cut_the_turn_is_the_same() {
    let scene = Scene::new(busy()).await;
    let (whole, parts) = torn(&scene, None).await;
    // Parts that come while we look at one are cut off with it, so every step is not needed.
    for after in (1..parts).step_by(4) {
        let (told, _) = torn(&scene, Some(after)).await;
        assert_eq!(told, whole, "cut after {after} of {parts} parts");
    }
}

async fn a_tool_that_ended_meanwhile_gets_its_result() {
    let command = "until [ -e go ]; do sleep 0.05; done; echo gone";
    let replies = vec![Reply::new([Step::exec(command, "c1")]), Reply::text("fine")];
    let scene = Scene::new(replies).await;
    let mut request = TurnRequest::new(scene.thread().await, "go");
    request.settings.approval_policy = Some(json!("never"));
    let mut heard = scene.turn_of(request).await;
    heard.until(|part| matches!(part, Part::ToolCall(_))).await;
    scene.proxy.bar();
    std::fs::write(scene.codex.project().join("go"), "").unwrap();
    scene.idle(heard.turn.thread_id()).await;
    scene.proxy.open();
    let told = heard.rest().await;
    let want = r#"codex.user-message call c1 result c1 "completed" text(fine) Stop"#;
    assert_eq!(sketch(&told), want);
    assert_eq!(told.results("codex_command_execution")[0].result["aggregatedOutput"], "gone\n");
}

/// Answers yes as soon as it may, and counts how often it is asked.
struct Desk {
    asked: Arc<AtomicUsize>,
    may: Arc<Semaphore>,
    answered: mpsc::Receiver<()>,
}

fn desk(request: &mut TurnRequest) -> Desk {
    let (asked, may) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (sender, answered) = mpsc::channel(8);
    let desk = Desk { asked: asked.clone(), may: may.clone(), answered };
    request.answerer = Arc::new(move |interrupt: Interrupt| {
        asked.fetch_add(1, Ordering::SeqCst);
        let (may, sender) = (may.clone(), sender.clone());
        async move {
            may.acquire().await.unwrap().forget();
            let _ = sender.try_send(());
            Some(match interrupt.ask {
                Ask::ToolCall { .. } => Answer::ToolResult {
                    content: vec![json!({ "type": "inputText", "text": "found" })],
                    success: true,
                },
                _ => Answer::decision(Decision::Accept),
            })
        }
    });
    desk
}

const ASKED: &str = r#"codex.user-message call c1 ask result c1 "completed" text(fine) Stop"#;

async fn asking() -> (Scene, Heard, Desk) {
    let replies = vec![Reply::new([Step::exec("touch ran", "c1")]), Reply::text("fine")];
    let scene = Scene::new(replies).await;
    let mut request = TurnRequest::new(scene.thread().await, "go");
    let desk = desk(&mut request);
    let mut heard = scene.turn_of(request).await;
    heard.until(|part| matches!(part, Part::ToolApprovalRequest { .. })).await;
    (scene, heard, desk)
}

async fn a_question_outlives_the_connection_and_is_asked_once() {
    let (scene, heard, desk) = asking().await;
    scene.proxy.cut();
    scene.proxy.wait_for(2).await;
    desk.may.add_permits(1);
    assert_eq!(sketch(&heard.rest().await), ASKED);
    assert_eq!(desk.asked.load(Ordering::SeqCst), 1);
}

async fn an_answer_that_was_lost_is_given_again() {
    let (scene, heard, mut desk) = asking().await;
    scene.proxy.bar();
    desk.may.add_permits(1);
    desk.answered.recv().await.unwrap();
    scene.proxy.open();
    assert_eq!(sketch(&heard.rest().await), ASKED);
    assert_eq!(desk.asked.load(Ordering::SeqCst), 1);
}

async fn a_question_that_another_client_answered_is_withdrawn() {
    let (scene, heard, desk) = asking().await;
    scene.proxy.bar();
    let thread = heard.turn.thread_id().clone();
    let dial = Dial::new(scene.listening.address().parse().unwrap());
    let transport = dial::connect(&dial).await.unwrap();
    let other = Other::greet(transport).await;
    other.accept_first_question(&thread).await;
    scene.idle(&thread).await;
    scene.proxy.open();
    assert_eq!(sketch(&heard.rest().await), ASKED);
    assert_eq!(desk.asked.load(Ordering::SeqCst), 1);
}

/// A second client, without any of our machinery above the peer.
struct Other {
    peer: Peer,
    inbound: mpsc::Receiver<Inbound>,
}

impl Other {
    async fn greet(transport: Transport) -> Self {
        let (peer, inbound) = Peer::start(transport, Bounds::default());
        let hello = json!({ "clientInfo": { "name": "other", "version": "1" } });
        peer.request("initialize", hello, LONG).await.unwrap();
        Self { peer, inbound }
    }

    async fn accept_first_question(mut self, thread: &ThreadId) {
        let params = json!({ "threadId": thread, "excludeTurns": true });
        self.peer.request("thread/resume", params, LONG).await.unwrap();
        while let Some(inbound) = self.inbound.recv().await {
            match inbound {
                Inbound::Request { id, .. } => {
                    self.peer.respond(&id, json!({ "decision": "accept" })).await.unwrap();
                }
                Inbound::Notification { method, .. } if method == "turn/completed" => {
                    return;
                }
                _ => {}
            }
        }
    }
}

async fn a_call_of_our_tool_outlives_the_connection() {
    let call = Step::call("lookup", json!({ "key": "k" }), "d1");
    let scene = Scene::new(vec![Reply::new([call]), Reply::text("fine")]).await;
    let tool = json!({
        "type": "function", "name": "lookup", "description": "Looks up.",
        "inputSchema": { "type": "object", "properties": {} },
    });
    let start = ThreadStart { dynamic_tools: Some(vec![tool]), ..scene.start() };
    let thread = scene.server.start_thread(&start).await.unwrap().thread.id;
    let mut request = TurnRequest::new(thread, "go");
    let desk = desk(&mut request);
    let mut heard = scene.turn_of(request).await;
    heard.until(|part| matches!(part, Part::ToolCall(_))).await;
    scene.proxy.cut();
    scene.proxy.wait_for(2).await;
    desk.may.add_permits(1);
    let told = heard.rest().await;
    let want = r#"codex.user-message call d1 result d1 "completed" text(fine) Stop"#;
    assert_eq!(sketch(&told), want);
    assert_eq!(desk.asked.load(Ordering::SeqCst), 1);
}

async fn an_interrupt_is_heard_when_there_is_a_connection_again() {
    let scene = Scene::new(vec![Reply::new(halves("one ", "two"))]).await;
    let mut heard = scene.turn().await;
    heard.until(is_delta).await;
    scene.proxy.bar();
    heard.turn.control().interrupt();
    scene.proxy.open();
    assert_eq!(sketch(&heard.rest().await), "codex.user-message text(one) Interrupted");
}

async fn threads_are_heard_again_after_the_connection_was_lost() {
    let scene =
        Scene::new(vec![Reply::text("one"), Reply::text("two"), Reply::text("three")]).await;
    let (used, fresh) = (scene.thread().await, scene.thread().await);
    let run = async |thread: &ThreadId| {
        let request = TurnRequest::new(thread.clone(), "go");
        sketch(&scene.turn_of(request).await.rest().await)
    };
    assert_eq!(run(&used).await, "codex.user-message text(one) Stop");
    scene.proxy.cut();
    scene.proxy.wait_for(2).await;
    assert_eq!(run(&used).await, "codex.user-message text(two) Stop");
    // It has never run, so that Codex cannot open it; it is there all the same.
    assert_eq!(run(&fresh).await, "codex.user-message text(three) Stop");
}

async fn requests_wait_for_the_next_connection() {
    let scene = Scene::new(Vec::new()).await;
    scene.proxy.bar();
    // One that is under way fails; by then the loss is known, and the next one waits.
    while scene.server.models().await.is_ok() {}
    let (models, ()) = tokio::join!(scene.server.models(), async {
        sleep(Duration::from_millis(300)).await;
        scene.proxy.open();
    });
    assert!(!models.unwrap().is_empty());
}

async fn a_server_that_is_gone_for_good_ends_its_turns() {
    let options =
        ConnectOptions { reconnect: Duration::from_millis(300), ..ConnectOptions::default() };
    let mut scene = Scene::with(vec![Reply::new(halves("one ", "two"))], &options).await;
    let mut heard = scene.turn().await;
    heard.until(is_delta).await;
    scene.proxy.bar();
    scene.listening.kill();
    let told = heard.rest().await;
    assert_eq!(sketch(&told), r#"codex.user-message text(one error "closed") Error"#);
    assert!(matches!(scene.server.models().await, Err(Error::Closed { .. })));
}

#[tokio::test]
async fn a_thread_that_is_not_kept_cannot_be_heard_again() {
    let scene = Scene::new(vec![Reply::new(halves("one ", "two"))]).await;
    let start = ThreadStart { ephemeral: Some(true), ..scene.start() };
    let thread = scene.server.start_thread(&start).await.unwrap().thread.id;
    let mut heard = scene.turn_of(TurnRequest::new(thread, "go")).await;
    heard.until(is_delta).await;
    scene.proxy.cut();
    let told = heard.rest().await;
    assert_eq!(sketch(&told), r#"codex.user-message text(one error "detached") Error"#);
    assert_eq!(told.end(), Unified::Error);
}

async fn closing_does_not_wait_for_a_server_that_is_away() {
    let scene = Scene::new(vec![Reply::new(halves("one ", "two"))]).await;
    let mut heard = scene.turn().await;
    heard.until(is_delta).await;
    scene.proxy.bar();
    let begin = std::time::Instant::now();
    let (_, told) = tokio::join!(scene.server.close(), heard.rest());
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert_eq!(sketch(&told), r#"codex.user-message text(one error "closed") Error"#);
}

#[cfg(unix)]
#[tokio::test]
async fn the_control_socket_of_the_daemon_is_a_socket_like_any_other() {
    let model = Model::start(Vec::new());
    let codex = RealCodex::new(&model);
    let _listening = Listening::control(&codex);
    let path = codex.home().join("app-server-control/app-server-control.sock");
    let dial = Dial::new(format!("unix:{}", path.display()).parse().unwrap());
    let server = AppServer::dial(&dial, &ConnectOptions::default()).await.unwrap();
    assert!(!server.models().await.unwrap().is_empty());
}

#[cfg(unix)]
async fn a_server_that_was_started_anew_is_used_and_its_turns_are_over() {
    let model = Model::start(vec![Reply::new(halves("one ", "two")), Reply::text("again")]);
    let codex = RealCodex::with(&model, &Options::unrestricted());
    let mut listening = Listening::unix(&codex);
    let dial = Dial::new(listening.address().parse().unwrap());
    let server = AppServer::dial(&dial, &ConnectOptions::default()).await.unwrap();
    let thread = server.start_thread(&ThreadStart::default()).await.unwrap().thread.id;
    let turn = server.start_turn(TurnRequest::new(thread.clone(), "go")).await.unwrap();
    let mut heard = Heard { turn, parts: Vec::new() };
    heard.until(is_delta).await;
    listening.kill();
    let _listening = tokio::task::spawn_blocking(move || (Listening::unix(&codex), codex)).await;
    let told = heard.rest().await;
    assert_eq!(sketch(&told), r#"codex.user-message text(one error "closed") Error"#);
    let again = server.start_turn(TurnRequest::new(thread, "again")).await.unwrap();
    assert_eq!(Told::of(again).await.text(), "again");
}

crate::backend::on_both! {
    a_text_goes_on_where_it_was_torn,
    what_was_said_meanwhile_is_told_once,
    a_wire_that_is_cut_again_and_again_tears_nothing,
    wherever_the_wire_is_cut_the_turn_is_the_same,
    a_tool_that_ended_meanwhile_gets_its_result,
    a_question_outlives_the_connection_and_is_asked_once,
    an_answer_that_was_lost_is_given_again,
    a_question_that_another_client_answered_is_withdrawn,
    a_call_of_our_tool_outlives_the_connection,
    an_interrupt_is_heard_when_there_is_a_connection_again,
    threads_are_heard_again_after_the_connection_was_lost,
    requests_wait_for_the_next_connection,
    a_server_that_is_gone_for_good_ends_its_turns,
    closing_does_not_wait_for_a_server_that_is_away,
    a_server_that_was_started_anew_is_used_and_its_turns_are_over,
}
