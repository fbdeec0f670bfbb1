//! A thread on a stage: a scripted model before it, ears around it, a journal under it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery_core::map::app_server_to_part::{TurnContext, TurnMapper};
use bindery_core::part::Part;
use bindery_core::wire::app_server::notification::{self, Body, Notification};
use bindery_core::wire::app_server::request::{self, ServerRequest};
use bindery_engine::guard::{Guard, NoFence};
use bindery_engine::item::{CustomCall, FunctionCall, HistoryItem, Item, Message, Role};
use bindery_engine::model::{Answered, Fault, Model, ModelError, ModelEvent, ModelRequest};
use bindery_engine::outlet::{Outlet, Refusal};
use bindery_engine::prompter::{ExecForm, PlainPrompter, Profile, Prompter};
use bindery_engine::sandbox::environment::EnvironmentPolicy;
use bindery_engine::thread::{
    Entry, Journal, JournalError, Makings, Standing, Thread, ThreadSettings, TurnInput,
    system_clock,
};
use bindery_engine::tokens::TokenCount;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

/// Long enough for any machine; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What commands get: a home of their own. A test may end a login shell in the middle of a profile,
/// and what that leaves behind is nothing for the home of whoever runs the tests.
pub(crate) fn environment() -> EnvironmentPolicy {
    let home = concat!(env!("CARGO_TARGET_TMPDIR"), "/home");
    let set = [("HOME".to_owned(), home.to_owned())].into();
    EnvironmentPolicy { set, ..EnvironmentPolicy::default() }
}

/// One thing the model does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Tell(ModelEvent),
    /// The answer ends here, having cost so many tokens.
    Cost(u64),
    Fail(ModelError),
    NotDone,
    /// Waits for [`Scripted::open_gate`].
    Gate,
    /// Fails as code fails.
    Panic,
    /// Never goes on.
    Hang,
}

/// Answers each request with the next list of acts; the last one again when there are no more.
pub(crate) struct Scripted {
    acts: Mutex<VecDeque<Vec<Act>>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
    asked: watch::Sender<usize>,
    gate: tokio::sync::Semaphore,
}

impl Scripted {
    /// What it does from now on.
    pub(crate) fn then(&self, acts: Vec<Vec<Act>>) {
        *self.acts.lock().expect("acts") = acts.into();
    }

    /// Lets one gate of the script go.
    pub(crate) fn open_gate(&self) {
        self.gate.add_permits(1);
    }
}

impl Model for Scripted {
    fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> BoxFuture<'_, Result<Answered, ModelError>> {
        let acts = {
            let mut left = self.acts.lock().expect("acts");
            if left.len() > 1 { left.pop_front() } else { left.front().cloned() }
        };
        self.requests.lock().expect("requests").push(request);
        self.asked.send_modify(|count| *count += 1);
        async move {
            let mut answered = Answered { usage: Some(cost(120)), ..Answered::default() };
            for act in acts.unwrap_or_default() {
                match act {
                    Act::Tell(event) => events.send(event).await.expect("a listener"),
                    Act::Cost(total) => answered.usage = Some(cost(total)),
                    Act::Fail(error) => return Err(error),
                    Act::NotDone => answered.end_turn = Some(false),
                    Act::Gate => self.gate.acquire().await.expect("a gate").forget(),
                    Act::Panic => panic!("as the script says"),
                    Act::Hang => std::future::pending().await,
                }
            }
            Ok(answered)
        }
        .boxed()
    }
}

fn cost(total: u64) -> TokenCount {
    TokenCount {
        input_tokens: total - total / 6,
        output_tokens: total / 6,
        total_tokens: total,
        ..TokenCount::default()
    }
}

type Answerer = Box<dyn Fn(&str, &Value) -> Option<Result<Value, Refusal>> + Send + Sync>;

/// Hears everything, answers as told; a question without an answer stays open.
pub(crate) struct Ears {
    pub(crate) heard: Mutex<Vec<(&'static str, Value)>>,
    count: watch::Sender<usize>,
    answerer: Answerer,
    pub(crate) open: Arc<Mutex<usize>>,
}

impl Ears {
    fn hear(&self, method: &'static str, params: Value) {
        self.heard.lock().expect("ears").push((method, params));
        self.count.send_modify(|count| *count += 1);
    }
}

impl Outlet for Ears {
    fn tell(&self, method: &'static str, params: Value) {
        self.hear(method, params);
    }

    fn ask(&self, method: &'static str, params: Value) -> BoxFuture<'_, Result<Value, Refusal>> {
        let answer = (self.answerer)(method, &params);
        self.hear(method, params);
        let open = Arc::clone(&self.open);
        async move {
            match answer {
                Some(answer) => answer,
                None => {
                    let _withdrawn = Question::ask(open);
                    std::future::pending().await
                }
            }
        }
        .boxed()
    }
}

struct Question(Arc<Mutex<usize>>);

impl Question {
    fn ask(open: Arc<Mutex<usize>>) -> Self {
        *open.lock().expect("count") += 1;
        Self(open)
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        *self.0.lock().expect("count") -= 1;
    }
}

/// Keeps entries; fails from the given one on.
pub(crate) struct Book {
    pub(crate) entries: Mutex<Vec<Entry>>,
    pub(crate) room: Mutex<usize>,
}

impl Journal for Book {
    fn write(&self, entries: &[Entry]) -> Result<(), JournalError> {
        let mut room = self.room.lock().expect("room");
        let Some(left) = room.checked_sub(entries.len()) else {
            return Err(JournalError { why: "no space left on device".to_owned() });
        };
        *room = left;
        self.entries.lock().expect("book").extend_from_slice(entries);
        Ok(())
    }
}

/// Everything around one thread.
pub(crate) struct Stage {
    pub(crate) thread: Thread,
    pub(crate) model: Arc<Scripted>,
    pub(crate) ears: Arc<Ears>,
    pub(crate) book: Arc<Book>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) tasks: TaskTracker,
}

/// What differs from stage to stage.
pub(crate) struct Setting {
    pub(crate) script: Vec<Vec<Act>>,
    /// Answers in the script's place.
    pub(crate) other: Option<Arc<dyn Model>>,
    pub(crate) profile: Profile,
    /// Makes prompts in place of one that tells nothing.
    pub(crate) prompter: Option<Arc<dyn Prompter>>,
    pub(crate) answerer: Answerer,
    pub(crate) guard: Arc<dyn Guard>,
    pub(crate) change: Box<dyn FnOnce(&mut ThreadSettings)>,
}

impl Setting {
    pub(crate) fn new(script: Vec<Vec<Act>>) -> Self {
        let profile = Profile { exec: ExecForm::None, plan: true, ..Profile::unknown("m") };
        Self {
            script,
            other: None,
            profile,
            prompter: None,
            answerer: Box::new(|_, _| None),
            guard: Arc::new(NoFence::default()),
            change: Box::new(|_| {}),
        }
    }

    /// A thread on another model.
    pub(crate) fn on(model: Arc<dyn Model>) -> Self {
        Self { other: Some(model), ..Self::new(Vec::new()) }
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut ThreadSettings) + 'static) -> Self {
        self.change = Box::new(change);
        self
    }

    pub(crate) fn profile(mut self, change: impl FnOnce(&mut Profile)) -> Self {
        change(&mut self.profile);
        self
    }

    pub(crate) fn answer(
        mut self,
        answerer: impl Fn(&str, &Value) -> Option<Result<Value, Refusal>> + Send + Sync + 'static,
    ) -> Self {
        self.answerer = Box::new(answerer);
        self
    }

    pub(crate) fn open(self) -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        let model = Arc::new(Scripted {
            acts: Mutex::new(self.script.into()),
            requests: Mutex::default(),
            asked: watch::Sender::new(0),
            gate: tokio::sync::Semaphore::new(0),
        });
        let ears = Arc::new(Ears {
            heard: Mutex::default(),
            count: watch::Sender::new(0),
            answerer: self.answerer,
            open: Arc::default(),
        });
        let book = Arc::new(Book { entries: Mutex::default(), room: Mutex::new(usize::MAX) });
        let plain = PlainPrompter { profile: self.profile };
        let makings = Makings {
            model: self.other.unwrap_or_else(|| Arc::clone(&model) as _),
            outlet: Arc::clone(&ears) as _,
            journal: Arc::clone(&book) as _,
            prompter: self.prompter.unwrap_or_else(|| Arc::new(plain)),
            guard: self.guard,
            clock: system_clock,
        };
        let mut settings = ThreadSettings::new("thread-1", Standing::new("m", folder.path()));
        settings.environment = environment();
        (self.change)(&mut settings);
        let tasks = TaskTracker::new();
        let thread = Thread::open(settings, makings, &tasks);
        Stage { thread, model, ears, book, folder, tasks }
    }
}

impl Stage {
    pub(crate) fn new(script: Vec<Vec<Act>>) -> Self {
        Setting::new(script).open()
    }

    /// Starts a turn and waits for its end.
    pub(crate) async fn turn(&self, text: &str) -> Value {
        let before = self.count("turn/completed");
        self.thread.start_turn(TurnInput::text(text)).await.expect("a turn");
        self.ended(before).await
    }

    /// Waits for a turn's end, after so many that have ended already.
    pub(crate) async fn ended(&self, before: usize) -> Value {
        let turn = self.wait("turn/completed", before).await["turn"].clone();
        self.assert_understood();
        turn
    }

    /// The client knows every word that was told and every question that was put.
    fn assert_understood(&self) {
        for (method, params) in self.ears.heard.lock().expect("ears").iter() {
            let raw = serde_json::value::to_raw_value(params).expect("JSON");
            let asked = ["item/tool/call", "mcpServer/elicitation/request"];
            if method.ends_with("requestApproval") || asked.contains(method) {
                let request = ServerRequest::decode(method, &raw);
                let strange = matches!(request.body, request::Body::Unknown { .. });
                assert!(!strange, "{method}: {:?}", request.body);
                continue;
            }
            let told = Notification::decode(method, &raw);
            let strange = matches!(told.body, notification::Body::Unknown { .. });
            assert!(!strange, "{method}: {:?}", told.body);
            if let Body::ItemStarted(note) | Body::ItemCompleted(note) = &told.body {
                assert!(note.item.known().is_some(), "{method}: {:?}", note.item);
            }
        }
    }

    /// The parts a client makes of the first turn.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let heard = self.ears.heard.lock().expect("ears");
        let turn = heard.iter().find(|(method, _)| *method == "turn/started").expect("a turn");
        let turn_id = turn.1["turn"]["id"].as_str().expect("an id");
        let mut mapper = TurnMapper::new(TurnContext::new("thread-1".into(), turn_id.into()));
        let told = heard.iter().flat_map(|(method, params)| {
            let raw = serde_json::value::to_raw_value(params).expect("JSON");
            mapper.notify(&Notification::decode(method, &raw))
        });
        told.collect()
    }

    /// Waits until a message was heard more often than `before` times, and gives it.
    pub(crate) async fn wait(&self, method: &str, before: usize) -> Value {
        self.wait_for(&format!("`{method}`"), |heard| {
            let mut all = heard.iter().filter(|(name, _)| *name == method);
            all.nth(before).map(|(_, params)| params.clone())
        })
        .await
    }

    pub(crate) async fn wait_for<T>(
        &self,
        what: &str,
        find: impl Fn(&[(&'static str, Value)]) -> Option<T>,
    ) -> T {
        let mut count = self.ears.count.subscribe();
        let found = async {
            loop {
                count.borrow_and_update();
                if let Some(found) = find(&self.ears.heard.lock().expect("ears")) {
                    return found;
                }
                count.changed().await.expect("ears");
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("{what} never came; heard: {:#?}", self.sketch()))
    }

    /// Waits until the model was asked so many times.
    pub(crate) async fn asked(&self, times: usize) {
        let mut asked = self.model.asked.subscribe();
        let waiting = asked.wait_for(|count| *count >= times);
        let reached = tokio::time::timeout(PATIENCE, waiting).await;
        reached.expect("the model was not asked").expect("a model");
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.ears.heard.lock().expect("ears").iter().filter(|(name, _)| *name == method).count()
    }

    /// What was heard, a line each.
    pub(crate) fn sketch(&self) -> Vec<String> {
        self.ears.heard.lock().expect("ears").iter().map(sketch).collect()
    }

    /// The input of a request, as JSON.
    pub(crate) fn input(&self, request: usize) -> Value {
        let requests = self.model.requests.lock().expect("requests");
        json!(requests.get(request).expect("a request").input)
    }

    /// The input of the last request, a line for each item.
    pub(crate) fn input_lines(&self, request: usize) -> Vec<String> {
        let input = self.input(request);
        input.as_array().expect("a list").iter().map(item_line).collect()
    }
}

fn sketch((method, params): &(&'static str, Value)) -> String {
    let detail = match *method {
        "item/started" | "item/completed" => {
            let item = &params["item"];
            let text = item.get("text").and_then(Value::as_str).unwrap_or_default();
            let status = item.get("status").and_then(Value::as_str).unwrap_or_default();
            format!("{} {status}{text}", item["type"].as_str().unwrap_or_default())
        }
        "turn/completed" => params["turn"]["status"].as_str().unwrap_or_default().to_owned(),
        "thread/status/changed" => {
            let flags = params["status"].get("activeFlags").map(Value::to_string);
            let word = params["status"]["type"].as_str().unwrap_or_default();
            format!("{word}{}", flags.unwrap_or_default())
        }
        "thread/tokenUsage/updated" => {
            let usage = &params["tokenUsage"];
            format!("{} of {}", usage["last"]["totalTokens"], usage["total"]["totalTokens"])
        }
        "error" => {
            let error = &params["error"];
            format!(
                "{} {} retry:{}",
                error["message"], error["codexErrorInfo"], params["willRetry"]
            )
        }
        "warning" => String::new(),
        _ => params.get("delta").map(Value::to_string).unwrap_or_default(),
    };
    format!("{method} {detail}").trim_end().to_owned()
}

/// An item of a request in one line.
pub(crate) fn item_line(item: &Value) -> String {
    match item["type"].as_str().unwrap_or_default() {
        "message" => {
            let texts = item["content"].as_array().expect("content").iter();
            let text: String = texts.filter_map(|piece| piece["text"].as_str()).collect();
            format!("{}: {text}", item["role"].as_str().unwrap_or_default())
        }
        "function_call" | "custom_tool_call" => {
            format!("call {} {}", item["call_id"], item["name"]).replace('"', "")
        }
        "function_call_output" | "custom_tool_call_output" => {
            let output = item["output"].as_str().map(str::to_owned);
            let output = output.unwrap_or_else(|| item["output"].to_string());
            format!("output {} {output}", item["call_id"].as_str().unwrap_or_default())
        }
        other => other.to_owned(),
    }
}

/// A whole message, streamed in two pieces.
pub(crate) fn say(text: &str) -> Vec<Act> {
    let whole = assistant(text);
    let (head, tail) = text.split_at(text.len() / 2);
    vec![
        Act::Tell(ModelEvent::ItemBegun(assistant(""))),
        Act::Tell(ModelEvent::Text(head.to_owned())),
        Act::Tell(ModelEvent::Text(tail.to_owned())),
        Act::Tell(ModelEvent::ItemDone(whole)),
    ]
}

pub(crate) fn assistant(text: &str) -> HistoryItem {
    let mut message = Message::text(Role::Assistant, text);
    message.id = Some("msg_1".to_owned());
    message.into()
}

/// A call, without an end of the answer.
pub(crate) fn call(id: &str, name: &str, arguments: &Value) -> Act {
    let item = Item::FunctionCall(FunctionCall {
        id: None,
        name: name.to_owned(),
        namespace: None,
        arguments: match arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        },
        call_id: id.to_owned(),
        extra_content: None,
    });
    Act::Tell(ModelEvent::ItemDone(item.into()))
}

/// A call with free text.
pub(crate) fn free_call(id: &str, name: &str, input: &str) -> Act {
    let item = Item::CustomToolCall(CustomCall {
        id: None,
        name: name.to_owned(),
        input: input.to_owned(),
        call_id: id.to_owned(),
        status: None,
        extra_content: None,
    });
    Act::Tell(ModelEvent::ItemDone(item.into()))
}

pub(crate) fn fail(kind: Fault) -> Vec<Act> {
    vec![Act::Fail(error(kind))]
}

pub(crate) fn error(kind: Fault) -> ModelError {
    ModelError { kind, message: format!("a fault of kind {kind:?}"), status: None }
}

/// Words of a plan with one step.
pub(crate) fn plan() -> Value {
    json!({ "plan": [{ "step": "Look", "status": "in_progress" }] })
}
