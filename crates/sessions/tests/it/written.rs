//! Sessions that we wrote, resumed and shown by the real Codex.

use std::path::Path;

use bindery_sessions::catalogue::Catalogue;
use bindery_sessions::find;
use bindery_sessions::normalise::Options as ReadOptions;
use bindery_sessions::session::{chain, load_chain};
use bindery_sessions::validate::Report;
use bindery_sessions::write::marks::{self, Ended, Usage};
use bindery_sessions::write::shown::{self, Completed};
use bindery_sessions::write::{Clock, Format, Git, Meta, Record, Recorder};
use bindery_testkit::codex::{Options as CodexOptions, RealCodex};
use bindery_testkit::model::{Model, Reply};
use serde_json::{Value, json};

use crate::resumed::{app_server, difference, load, resumed_input};

/// Our reader knows every line of the home.
pub(crate) fn check(home: &Path) {
    let mut report = Report::default();
    for file in find::files(&[home.to_owned()]).unwrap() {
        report.check(&file.path).unwrap();
    }
    let tags: Vec<_> = report.findings.iter().map(|f| (f.kind, f.what.as_str())).collect();
    assert_eq!(tags, []);
    assert_eq!((report.known, report.lost), (report.lines, 0));
}

pub(crate) fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

pub(crate) fn meta(codex: &RealCodex, format: Format) -> Meta {
    let mut meta = Meta::new(Meta::new_id(), codex.project());
    meta.format = format;
    meta.model_provider = Some("scripted".to_owned());
    meta.base_instructions = Some("Be brief.".to_owned());
    meta.git = Some(Git { branch: Some("main".to_owned()), ..Git::default() });
    meta
}

/// Writes turns as an engine does.
pub(crate) struct Writer {
    pub(crate) recorder: Recorder,
    turn: String,
    clock: Clock,
}

impl Writer {
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder, turn: String::new(), clock: Clock::system() }
    }

    pub(crate) fn record(&mut self, record: Record) {
        self.recorder.record(&record).unwrap();
    }

    pub(crate) fn item(&mut self, item: Value) {
        self.record(Record::ResponseItem(item));
    }

    pub(crate) fn shown(&mut self, item: &Value) {
        let now = self.clock.millis();
        let (thread, turn) = (self.recorder.thread().to_owned(), self.turn.clone());
        let at = Completed { thread: &thread, turn: &turn, started_ms: now - 5, completed_ms: now };
        for record in shown::records(self.recorder.format(), at, item) {
            self.record(record);
        }
    }

    pub(crate) fn begin(&mut self, cwd: &Path, text: &str) -> String {
        self.turn = Meta::new_id();
        self.record(marks::turn_started(&self.turn, self.clock.millis(), Some(258_400)));
        self.record(Record::TurnContext(json!({
            "turn_id": self.turn,
            "cwd": cwd,
            "approval_policy": "never",
            "sandbox_policy": { "type": "danger-full-access" },
            "model": "gpt-5.5",
            "summary": "auto",
        })));
        self.item(message("user", text));
        let content = json!([{ "type": "text", "text": text, "text_elements": [] }]);
        let id = Meta::new_id();
        self.shown(&json!({ "type": "userMessage", "id": id, "content": content }));
        self.turn.clone()
    }

    pub(crate) fn end(&mut self, text: &str) {
        let id = format!("msg_{}", Meta::new_id());
        self.shown(&json!({ "type": "agentMessage", "id": id, "text": text, "phase": null }));
        let mut answer = message("assistant", text);
        answer["id"] = json!(id);
        self.item(answer);
        let (cached_input, reasoning_output) = (10, 5);
        let usage = Usage { input: 100, cached_input, output: 20, reasoning_output, total: 120 };
        self.record(marks::token_count(&usage, &usage, Some(258_400)));
        let now = self.clock.millis();
        let turn = self.turn.clone();
        self.record(marks::turn_completed(&Ended {
            turn: &turn,
            last_message: Some(text),
            started_ms: now - 12,
            completed_ms: now,
            error: None,
        }));
        self.recorder.sync().unwrap();
    }

    /// A thought and a command.
    fn work(&mut self, cwd: &Path) {
        self.shown(&json!({
            "type": "reasoning", "id": "rs_1", "summary": ["Look first"], "content": [],
        }));
        self.item(json!({
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{ "type": "summary_text", "text": "Look first" }],
            "encrypted_content": "c2VjcmV0",
        }));
        self.item(json!({
            "type": "function_call",
            "id": "fc_1",
            "name": "exec_command",
            "arguments": "{\"cmd\":\"echo hi\"}",
            "call_id": "c1",
        }));
        self.shown(&json!({
            "type": "commandExecution",
            "id": "c1",
            "command": "/bin/bash -lc 'echo hi'",
            "cwd": cwd,
            "processId": "77",
            "source": "unifiedExecStartup",
            "status": "completed",
            "commandActions": [{ "type": "unknown", "command": "echo hi" }],
            "aggregatedOutput": "hi\n",
            "exitCode": 0,
            "durationMs": 12,
        }));
        self.item(json!({
            "type": "function_call_output", "call_id": "c1", "output": "Process exited with code 0\nOutput:\nhi\n",
        }));
        self.item(json!({
            "type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "c2",
        }));
        self.shown(&json!({
            "type": "fileChange",
            "id": "c2",
            "changes": [{ "path": cwd.join("new.txt"), "kind": { "type": "add" }, "diff": "new\n" }],
            "status": "completed",
        }));
        self.item(
            json!({ "type": "custom_tool_call_output", "call_id": "c2", "output": "Success" }),
        );
        self.shown(&json!({
            "type": "mcpToolCall",
            "id": "c3",
            "server": "demo",
            "tool": "echo",
            "status": "completed",
            "arguments": { "text": "hi" },
            "result": { "content": [{ "type": "text", "text": "hi" }], "structuredContent": null },
            "durationMs": 3,
        }));
        self.shown(&json!({
            "type": "webSearch", "id": "ws1", "query": "rust", "action": { "type": "search", "query": "rust", "queries": ["rust"] },
        }));
        self.shown(&json!({ "type": "imageView", "id": "c4", "path": cwd.join("a b.png") }));
        self.shown(&json!({ "type": "plan", "id": "p1", "text": "# Plan" }));
    }
}

pub(crate) fn stage() -> (Model, RealCodex) {
    let model = Model::start(vec![Reply::text("Fine").always()]);
    let codex = RealCodex::with(&model, &CodexOptions::unrestricted());
    (model, codex)
}

/// Two turns with everything.
fn write(codex: &RealCodex, format: Format) -> String {
    let meta = meta(codex, format);
    let recorder = Recorder::create(&codex.home(), &meta, Clock::system()).unwrap();
    let mut writer = Writer::new(recorder);
    writer.begin(&codex.project(), "one");
    writer.work(&codex.project());
    writer.end("It says hi");
    writer.begin(&codex.project(), "two");
    writer.end("Done");
    meta.id
}

fn kinds(turn: &Value) -> String {
    let items = turn["items"].as_array().unwrap();
    items.iter().map(|item| item["type"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn codex_resumes_and_shows_what_we_wrote() {
    for format in [Format::Paginated, Format::Legacy] {
        let (model, codex) = stage();
        let thread = write(&codex, format);
        check(&codex.home());
        let ours = load(&codex.home(), &thread);
        let listed = Catalogue::default().list(&[codex.home()], true).unwrap();
        let listed = &listed[0];
        assert_eq!((listed.title.as_deref(), listed.turns), (Some("one"), Some(2)));
        assert_eq!((listed.messages, listed.branch.as_deref()), (Some(4), Some("main")));

        let mut lines = app_server(&codex).await;
        // Numbered files are shown from a database, which resuming fills.
        lines.request("thread/resume", json!({ "threadId": thread })).await;
        let params = json!({ "threadId": thread, "includeTurns": true });
        let reply = lines.request("thread/read", params).await;
        let shown = &reply["result"]["thread"];
        assert_eq!(shown["preview"], "one", "{reply}");
        assert_eq!(shown["historyMode"], format.word());
        let list = lines.request("thread/list", json!({})).await;
        assert_eq!(list["result"]["data"][0]["id"], thread.as_str(), "{list}");
        lines.close().await;
        let kinds = |turns: &[Value]| -> Vec<String> { turns.iter().map(kinds).collect() };
        let theirs = kinds(shown["turns"].as_array().unwrap());
        let first = "userMessage reasoning commandExecution fileChange mcpToolCall webSearch \
                     imageView plan agentMessage";
        assert_eq!(kinds(&ours.turns), [first, "userMessage agentMessage"]);
        // 0.166 reads these events of legacy files, and shows nothing of them.
        let hidden = |first: &str| first.replace("commandExecution ", "").replace("imageView ", "");
        let first = match format {
            Format::Paginated => first.to_owned(),
            Format::Legacy => hidden(first),
        };
        assert_eq!(theirs, [first.as_str(), "userMessage agentMessage"]);

        let input = resumed_input(&codex, &model, &thread).await;
        assert_eq!(difference(&ours, &input), None);
        assert_eq!(ours.history.len(), 9);
        assert_eq!(input[0]["content"][0]["text"], "Be brief.");
        // Codex went on in our file, and we can go on in it.
        check(&codex.home());
        let path = find::resolve(&thread, &[codex.home()]).unwrap().path;
        let recorder = Recorder::append(&codex.home(), &path, Clock::system()).unwrap();
        let mut writer = Writer::new(recorder);
        writer.begin(&codex.project(), "three");
        writer.end("Again");
        drop(writer);
        check(&codex.home());
        let input = resumed_input(&codex, &model, &thread).await;
        let said: Vec<_> = input.iter().filter(|item| item["role"] == "assistant").collect();
        assert_eq!(said.len(), 4);
        let files = find::files(&[codex.home()]).unwrap();
        let session = load_chain(&chain(&path, &files), ReadOptions::default()).unwrap();
        assert_eq!(session.transcript.turns.len(), 5);
    }
}
