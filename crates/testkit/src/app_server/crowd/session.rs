//! One client of a crowd's server.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Crowd, Ending, Home, Part};
use crate::app_server::filling::Filling;
use crate::app_server::script::Step;
use crate::app_server::shapes::{Turn, initialize, start_thread};

/// Lines that may wait for a client that does not read.
const QUEUE: usize = 64;

/// A server of a crowd, as one client sees it.
pub(super) struct Session {
    stage: Arc<Stage>,
    outbox: mpsc::Receiver<String>,
    tasks: JoinSet<()>,
}

/// What the tasks of a session share.
struct Stage {
    crowd: Crowd,
    server: u64,
    lines: mpsc::Sender<String>,
    crash: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: u64,
    starting: usize,
    answers: HashMap<u64, oneshot::Sender<Value>>,
    /// Stops a turn, by its id.
    stops: HashMap<String, Arc<Notify>>,
}

impl Session {
    pub(super) fn new(crowd: Crowd) -> Self {
        let server = crowd.home().join();
        let (lines, outbox) = mpsc::channel(QUEUE);
        let (crash, state) = (Notify::new(), Mutex::default());
        let stage = Arc::new(Stage { crowd, server, lines, crash, state });
        Self { stage, outbox, tasks: JoinSet::new() }
    }

    pub(super) async fn run(
        mut self,
        from: impl AsyncRead + Send + Unpin,
        mut to: impl AsyncWrite + Send + Unpin,
    ) -> bool {
        let mut lines = BufReader::new(from).lines();
        loop {
            tokio::select! {
                () = self.stage.crash.notified() => return true,
                Some(line) = self.outbox.recv() => {
                    // A client that does not read any more may still have something to say.
                    let _ = to.write_all(line.as_bytes()).await;
                    let _ = to.flush().await;
                }
                line = lines.next_line() => match line {
                    Ok(Some(line)) => self.take(&line),
                    _ => return false,
                },
            }
        }
    }

    /// Nothing waits here: the loop that calls it also writes.
    fn take(&mut self, line: &str) {
        while self.tasks.try_join_next().is_some() {}
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        let stage = self.stage.clone();
        // What is said about a thread holds from the moment it is said.
        let thread = message["params"]["threadId"].as_str().unwrap_or_default().to_owned();
        match message["method"].as_str() {
            None => return stage.answered(&message),
            Some("thread/unsubscribe") => stage.unsubscribe(&thread),
            Some("thread/delete") => stage.delete(&thread),
            _ => {}
        }
        self.tasks.spawn(async move { stage.serve(message, thread).await });
    }
}

impl Stage {
    async fn serve(&self, message: Value, thread: String) {
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let filling = Filling { last: message, ..Filling::default() };
                self.play(&filling, &initialize()).await;
            }
            "thread/start" => self.start(message).await,
            "thread/resume" => self.resume(message, &thread).await,
            "turn/start" => self.turn(message, &thread).await,
            "turn/interrupt" => self.interrupt(&message).await,
            _ if message.get("id").is_some() => self.reply(&message, json!({})).await,
            _ => {}
        }
    }

    async fn start(&self, message: Value) {
        {
            let mut state = self.state();
            state.starting += 1;
            let mut home = self.crowd.home();
            home.seen.most_starts = home.seen.most_starts.max(state.starting);
        }
        sleep(self.crowd.start).await;
        let thread = self.crowd.home().thread(self.server);
        self.state().starting -= 1;
        self.opened(message, &thread).await;
    }

    async fn resume(&self, message: Value, thread: &str) {
        let outcome = self.crowd.home().resume(self.server, thread, self.crowd.any_thread);
        match outcome {
            Ok(()) => self.opened(message, thread).await,
            Err(why) => self.refuse(&message, &why).await,
        }
    }

    async fn opened(&self, message: Value, thread: &str) {
        let filling = Filling { last: message, ..Filling::default() };
        self.play(&filling, &start_thread(thread)).await;
    }

    fn unsubscribe(&self, thread: &str) {
        let mut home = self.crowd.home();
        home.seen.unsubscribed += 1;
        if let Some(record) = home.threads.get_mut(thread) {
            record.subscribed = false;
            if record.active {
                home.fault("a thread unsubscribed during its turn");
            }
        }
    }

    fn delete(&self, thread: &str) {
        let mut home = self.crowd.home();
        home.seen.deleted += 1;
        if home.threads.remove(thread).is_some_and(|record| record.ran) {
            home.fault("a thread deleted that ran");
        }
    }

    async fn turn(&self, message: Value, thread: &str) {
        let id = format!("turn-{}", self.crowd.home().number());
        let turn = Turn::new(thread, &id);
        let stop = Arc::new(Notify::new());
        self.state().stops.insert(id.clone(), stop.clone());
        self.crowd.home().begin(self.server, thread);
        let running = Running { stage: self, thread };
        let text = message["params"]["input"][0]["text"].as_str().unwrap_or_default();
        let part: Part = serde_json::from_str(text).unwrap_or_default();
        let filling = Filling { last: message, ..Filling::default() };
        self.play(&filling, &turn.begin()).await;
        let mut said = String::new();
        let end = tokio::select! {
            () = stop.notified(), if part.end != Ending::Deaf => None,
            end = self.act(&turn, &part, &mut said) => Some(end),
        };
        self.state().stops.remove(&id);
        // Before the client can know of it.
        drop(running);
        let last = match end {
            Some(Ending::Fail) => turn.fail("the script says so", json!("other")),
            Some(_) => turn.complete_with("msg_1", &said),
            None => turn.interrupt(),
        };
        self.say(&turn, &last).await;
    }

    async fn act(&self, turn: &Turn, part: &Part, said: &mut String) -> Ending {
        let pause = || async {
            // Even the shortest sleep takes a millisecond.
            match part.pause {
                0 => tokio::task::yield_now().await,
                pause => sleep(Duration::from_millis(pause)).await,
            }
        };
        for number in 0..part.ask {
            pause().await;
            self.ask(turn, number).await;
        }
        self.say(turn, &turn.say("msg_1", "")[..1]).await;
        for piece in 0..part.say {
            pause().await;
            let text = part.piece(piece);
            said.push_str(&text);
            self.say(turn, &[turn.delta("msg_1", &text)]).await;
        }
        pause().await;
        match part.end {
            Ending::Crash => {
                self.crash.notify_one();
                pending().await
            }
            Ending::Hang | Ending::Deaf => pending().await,
            end => {
                self.say(turn, &turn.say("msg_1", said)[2..]).await;
                end
            }
        }
    }

    /// Asks for a command and waits for the answer, whatever it is.
    async fn ask(&self, turn: &Turn, number: usize) {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut state = self.state();
            let id = state.asked;
            state.asked += 1;
            state.answers.insert(id, sender);
            id
        };
        let item = format!("call_{number}");
        self.say(turn, &turn.ask_for_command(id, &item, "true")).await;
        let answer = answer.await.unwrap_or_default();
        let status = if answer["decision"] == "accept" { "completed" } else { "declined" };
        let item = json!({
            "type": "commandExecution", "id": item, "command": "true", "cwd": "/home/dev/project",
            "status": status, "aggregatedOutput": "", "exitCode": 0, "commandActions": [],
        });
        let resolved = turn.notify("serverRequest/resolved", json!({ "requestId": id }));
        self.say(turn, &[resolved]).await;
        self.say(turn, &turn.item(item.clone(), item, Vec::new())[1..]).await;
    }

    fn answered(&self, message: &Value) {
        let answer = message["id"].as_u64().and_then(|id| self.state().answers.remove(&id));
        match answer {
            Some(sender) => drop(sender.send(message["result"].clone())),
            None => self.crowd.home().fault("an answer to no question"),
        }
    }

    async fn interrupt(&self, message: &Value) {
        let id = message["params"]["turnId"].as_str().unwrap_or_default();
        let stop = self.state().stops.get(id).cloned();
        match stop {
            Some(stop) => {
                self.reply(message, json!({})).await;
                stop.notify_one();
            }
            None => self.refuse(message, "no active turn to interrupt").await,
        }
    }

    /// Says what is said aloud, as far as somebody listens.
    async fn say(&self, turn: &Turn, steps: &[Step]) {
        for step in steps {
            let heard = self.crowd.home().threads.get(&turn.thread).is_none_or(|it| it.subscribed);
            if let (Step::Send { message }, true) = (step, heard) {
                self.send(message).await;
            }
        }
    }

    async fn play(&self, filling: &Filling, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Reply { result } => self.reply(&filling.last, result.clone()).await,
                Step::Send { message } => self.send(&filling.fill(message)).await,
                _ => {}
            }
        }
    }

    async fn reply(&self, message: &Value, result: Value) {
        self.send(&json!({ "id": message["id"], "result": result })).await;
    }

    async fn refuse(&self, message: &Value, why: &str) {
        let error = json!({ "code": -32600, "message": why });
        self.send(&json!({ "error": error, "id": message["id"] })).await;
    }

    async fn send(&self, message: &Value) {
        // A client that has left ends the session elsewhere.
        let _ = self.lines.send(format!("{message}\n")).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    /// A process that ends lets go of its threads.
    fn drop(&mut self) {
        let mut home = self.stage.crowd.home();
        let Home { threads, running, .. } = &mut *home;
        running.remove(&self.stage.server);
        for thread in threads.values_mut().filter(|it| it.holder == Some(self.stage.server)) {
            (thread.holder, thread.active, thread.subscribed) = (None, false, false);
        }
        // As with Codex, a thread that never ran is nowhere once it is not in memory.
        threads.retain(|_, thread| thread.ran || thread.holder.is_some());
    }
}

/// A turn that counts as running.
struct Running<'a> {
    stage: &'a Stage,
    thread: &'a str,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.stage.crowd.home().end(self.stage.server, self.thread);
    }
}
