//! Messages in the shapes of Codex 0.169, as groups of steps.

use serde_json::{Value, json};

use super::script::{Script, Step};

/// The moment everything happens at, in milliseconds.
pub(super) const MS: u64 = 1_794_773_355_000;

const SECONDS: u64 = MS / 1000;

/// Shakes hands.
pub fn initialize() -> Vec<Step> {
    let result = json!({
        "userAgent": "scripted/0.169.0 (Debian 12.0.0; x86_64) unknown (scripted; 0.1.0)",
        "codexHome": "/home/dev/.codex", "platformFamily": "unix", "platformOs": "linux",
    });
    let status = json!({
        "status": "disabled", "serverName": "scripted", "environmentId": null,
        "installationId": "2bcc50c6-7317-461f-8b0f-2ec552a7839f",
    });
    vec![
        Step::expect("initialize"),
        Step::reply(result),
        Step::notify("remoteControl/status/changed", status),
        Step::expect("initialized"),
    ]
}

/// Starts a thread with this id.
pub fn start_thread(id: &str) -> Vec<Step> {
    let result = json!({
        "thread": thread(id), "model": "gpt-5.5", "modelProvider": "scripted",
        "serviceTier": null, "disabledPluginIds": [], "cwd": "/home/dev/project",
        "runtimeWorkspaceRoots": ["/home/dev/project"], "instructionSources": [],
        "approvalPolicy": "on-request", "approvalsReviewer": "user",
        "sandbox": {
            "type": "workspaceWrite", "writableRoots": [], "networkAccess": false,
            "excludeTmpdirEnvVar": false, "excludeSlashTmp": false,
        },
        "activePermissionProfile": { "id": ":workspace", "extends": null },
        "reasoningEffort": null, "multiAgentMode": "explicitRequestOnly",
    });
    vec![
        Step::expect("thread/start"),
        Step::reply(result),
        Step::notify("thread/started", json!({ "thread": thread(id) })),
    ]
}

/// Hands shaken, a thread, a turn that says this text, and the end.
pub fn plain_session(text: &str) -> Script {
    let turn = Turn::new("thread-1", "turn-1");
    Script::new([
        initialize(),
        start_thread("thread-1"),
        turn.begin(),
        turn.say("msg_1", text),
        turn.complete_with("msg_1", text),
    ])
}

/// A turn of a thread; its ids may be blanks such as `$params.threadId`.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The thread.
    pub thread: String,
    /// The turn.
    pub id: String,
}

impl Turn {
    /// A turn with these ids.
    pub fn new(thread: &str, id: &str) -> Self {
        Self { thread: thread.to_owned(), id: id.to_owned() }
    }

    /// Answers `turn/start` and shows the user's message.
    pub fn begin(&self) -> Vec<Step> {
        let mut steps = vec![
            Step::expect("turn/start"),
            Step::reply(json!({ "turn": self.turn("inProgress", Value::Null) })),
            self.status(json!({ "type": "active", "activeFlags": [] })),
        ];
        let turn = self.turn("inProgress", Value::Null);
        steps.push(self.notify("turn/started", json!({ "turn": turn })));
        let said = json!({
            "type": "userMessage", "id": format!("user-{}", self.id), "clientId": null,
            "content": "$params.input",
        });
        steps.extend(self.item(said.clone(), said, Vec::new()));
        steps
    }

    /// An assistant message in one delta.
    pub fn say(&self, item: &str, text: &str) -> Vec<Step> {
        let delta = self.delta(item, text);
        self.item(message(item, ""), message(item, text), vec![delta])
    }

    /// The beginning of an assistant message that is never finished.
    pub fn begin_to_say(&self, item: &str, text: &str) -> Vec<Step> {
        let mut steps = self.item(message(item, ""), message(item, text), Vec::new());
        steps.truncate(1);
        steps.push(self.delta(item, text));
        steps
    }

    /// One piece of an assistant message.
    pub fn delta(&self, item: &str, text: &str) -> Step {
        self.notify("item/agentMessage/delta", json!({ "itemId": item, "delta": text }))
    }

    /// Any item: its start, what is in between, its completion.
    pub fn item(&self, started: Value, completed: Value, between: Vec<Step>) -> Vec<Step> {
        let started = json!({ "item": stamped(started, false), "startedAtMs": MS });
        let completed = json!({
            "item": stamped(completed, true), "completedAtMs": MS, "contentTokenCount": null,
        });
        let mut steps = vec![self.notify("item/started", started)];
        steps.extend(between);
        steps.push(self.notify("item/completed", completed));
        steps
    }

    /// A request for approval of a command, its item started before it.
    pub fn ask_for_command(&self, request: u64, item: &str, command: &str) -> Vec<Step> {
        let started = json!({
            "type": "commandExecution", "id": item, "command": command,
            "cwd": "/home/dev/project", "processId": null, "source": "agent",
            "status": "inProgress", "aggregatedOutput": null, "exitCode": null,
            "durationMs": null, "pluginId": null, "scriptPath": null,
            "commandActions": [{ "type": "unknown", "command": command }],
        });
        let asked = json!({
            "kind": "command", "threadId": self.thread, "turnId": self.id, "itemId": item,
            "startedAtMs": MS, "environmentId": "local", "command": command,
            "cwd": "/home/dev/project",
            "commandActions": [{ "type": "unknown", "command": command }],
            "proposedExecpolicyAmendment": [command],
            "availableDecisions": [
                "accept",
                { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": [command] } },
                "cancel",
            ],
        });
        let mut steps = self.item(started.clone(), started, Vec::new());
        steps.truncate(1);
        steps.push(self.status(json!({ "type": "active", "activeFlags": ["waitingOnApproval"] })));
        let method = "item/commandExecution/requestApproval";
        steps.push(Step::request(json!(request), method, asked));
        steps
    }

    /// Token counts, idle, and `turn/completed`, which carries no item.
    pub fn complete(&self) -> Vec<Step> {
        self.end(self.turn("completed", Value::Null))
    }

    /// The same, but with the last message in `turn/completed`, as Codex has it.
    pub fn complete_with(&self, item: &str, text: &str) -> Vec<Step> {
        let mut turn = self.turn("completed", Value::Null);
        turn["items"] = json!([stamped(message(item, text), true)]);
        turn["itemsView"] = json!("summary");
        self.end(turn)
    }

    /// An error that ends the turn; `info` is the value of `codexErrorInfo`.
    pub fn fail(&self, message: &str, info: Value) -> Vec<Step> {
        let error = json!({
            "message": message, "codexErrorInfo": info, "additionalDetails": null,
            "misalignment": null,
        });
        let params = json!({ "error": error, "willRetry": false });
        vec![
            self.status(json!({ "type": "systemError" })),
            self.notify("error", params),
            self.completed("failed", error),
        ]
    }

    /// Answers `turn/interrupt` and ends the turn.
    pub fn interrupt(&self) -> Vec<Step> {
        vec![
            Step::expect("turn/interrupt"),
            Step::reply(json!({})),
            self.status(json!({ "type": "idle" })),
            self.completed("interrupted", Value::Null),
        ]
    }

    /// A notification of this turn: its ids are added.
    pub fn notify(&self, method: &str, mut params: Value) -> Step {
        params["threadId"] = json!(self.thread);
        // Notifications that carry the turn itself do not name it twice.
        if params.get("turn").is_none() {
            params["turnId"] = json!(self.id);
        }
        Step::notify(method, params)
    }

    fn status(&self, status: Value) -> Step {
        let params = json!({ "threadId": self.thread, "status": status });
        Step::notify("thread/status/changed", params)
    }

    fn end(&self, turn: Value) -> Vec<Step> {
        let counts = json!({
            "totalTokens": 120, "inputTokens": 100, "cachedInputTokens": 10,
            "cacheWriteInputTokens": 0, "outputTokens": 20, "reasoningOutputTokens": 5,
        });
        let usage = json!({ "total": counts, "last": counts, "modelContextWindow": 258_400 });
        vec![
            self.notify("thread/tokenUsage/updated", json!({ "tokenUsage": usage })),
            self.status(json!({ "type": "idle" })),
            self.notify("turn/completed", json!({ "turn": turn })),
        ]
    }

    fn completed(&self, status: &str, error: Value) -> Step {
        self.notify("turn/completed", json!({ "turn": self.turn(status, error) }))
    }

    fn turn(&self, status: &str, error: Value) -> Value {
        let ended = if status == "inProgress" { Value::Null } else { json!(SECONDS) };
        json!({
            "id": self.id, "rootTurnId": self.id, "items": [], "itemsView": "notLoaded",
            "status": status, "error": error, "startedAt": SECONDS, "completedAt": ended,
            "durationMs": null,
        })
    }
}

fn stamped(mut item: Value, done: bool) -> Value {
    item["startedAtMs"] = json!(MS);
    item["completedAtMs"] = if done { json!(MS) } else { Value::Null };
    item
}

fn message(id: &str, text: &str) -> Value {
    json!({
        "type": "agentMessage", "id": id, "text": text, "phase": null, "memoryCitation": null,
        "delivery": null, "questions": null, "moderation": null,
    })
}

fn thread(id: &str) -> Value {
    json!({
        "id": id, "sessionId": id, "forkedFromId": null, "parentThreadId": null, "preview": "",
        "environments": [{
            "environmentId": "local", "cwd": "/home/dev/project",
            "runtimeWorkspaceRoots": ["/home/dev/project"],
        }],
        "ephemeral": false, "extra": null, "section": null, "sectionEnteredAt": null,
        "attachedToThreadId": null,
        "projectId": null, "historyMode": "paginated", "modelProvider": "scripted",
        "model": "gpt-5.5", "reasoningEffort": null, "createdAt": SECONDS, "updatedAt": SECONDS,
        "recencyAt": SECONDS, "status": { "type": "idle" },
        "path": format!("/home/dev/.codex/sessions/rollout-2026-11-15T20-09-15-{id}.jsonl"),
        "cwd": "/home/dev/project", "cliVersion": "0.169.0", "originator": "scripted",
        "source": "vscode", "canAcceptDirectInput": true, "threadSource": null,
        "agentNickname": null, "agentRole": null, "gitInfo": null, "name": null,
        "daybreakEnabled": null, "turns": [],
    })
}
