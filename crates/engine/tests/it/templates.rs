//! Every history that the engine sends on the Chat wire is one that the model's template takes.
//!
//! `templates/rules.toml` has the rules of each kind of template; one long session is held on each
//! and every request of it is checked against all of its rules.

use std::collections::BTreeSet;

use bindery_engine::model::{ChatProfileFields, ChatProfiles, Provider, Wire};
use bindery_engine::thread::TurnInput;
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stage::{Setting, Stage, plan};
use crate::wires::{opened, provider};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    template: Vec<TemplateRules>,
}

/// What one kind of template enforces.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateRules {
    name: String,
    model: String,
    provider: String,
    roles: BTreeSet<String>,
    system: String,
    #[serde(default)]
    alternation: Option<String>,
    #[serde(default)]
    call_ids: Option<String>,
    #[serde(default)]
    max_calls: Option<usize>,
    content: BTreeSet<String>,
    #[serde(default = "yes")]
    thinking_beside_content: bool,
    #[serde(default = "yes")]
    empty_text: bool,
    user: bool,
    #[serde(default = "yes")]
    tools: bool,
    #[serde(default)]
    refused: Vec<String>,
}

fn yes() -> bool {
    true
}

impl TemplateRules {
    /// What a history breaks.
    fn check(&self, messages: &[Value]) -> Vec<String> {
        let mut broken = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            self.check_message(at, message, &mut broken);
        }
        self.check_alternation(messages, &mut broken);
        self.check_answers(messages, &mut broken);
        if self.user && !messages.iter().any(|message| message["role"] == "user") {
            broken.push("no user message".to_owned());
        }
        broken
    }

    fn check_message(&self, at: usize, message: &Value, broken: &mut Vec<String>) {
        let role = message["role"].as_str().unwrap_or_default();
        let mut breaks = |what: String| broken.push(format!("message {at} ({role}): {what}"));
        if !self.roles.contains(role) {
            breaks("role is not known".to_owned());
        }
        if role == "system" && self.system == "first" && at > 0 {
            breaks("system message is not the first".to_owned());
        }
        for field in self.refused.iter().filter(|field| message.get(field.as_str()).is_some()) {
            breaks(format!("field `{field}`"));
        }
        let calls = message["tool_calls"].as_array();
        if calls.is_some() && !self.tools {
            breaks("calls are not rendered".to_owned());
        }
        let kind = match message.get("content") {
            None => "missing",
            Some(Value::Null) => "null",
            Some(Value::String(text)) if text.trim().is_empty() && !self.empty_text => "empty",
            Some(Value::String(_)) => "string",
            Some(Value::Array(_)) if role == "user" => "string",
            Some(_) => "other",
        };
        let takes = if calls.is_some() { self.content.contains(kind) } else { kind == "string" };
        if !takes {
            breaks(format!("content is {kind}"));
        }
        for call in calls.into_iter().flatten() {
            let function = &call["function"];
            let arguments = function["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                breaks(format!("arguments are no object: {arguments}"));
            }
            self.check_id(call["id"].as_str(), &mut breaks);
        }
        if role == "tool" {
            self.check_id(message["tool_call_id"].as_str(), &mut breaks);
        }
        if calls.is_some_and(|calls| calls.len() > self.max_calls.unwrap_or(usize::MAX)) {
            breaks("more calls than one".to_owned());
        }
        let thinks = ["reasoning", "reasoning_content", "thinking"]
            .iter()
            .any(|field| message.get(*field).is_some());
        let says = message["content"].as_str().is_some_and(|text| !text.is_empty());
        if calls.is_some() && thinks && says && !self.thinking_beside_content {
            breaks("text and thoughts beside calls".to_owned());
        }
    }

    fn check_id(&self, id: Option<&str>, breaks: &mut impl FnMut(String)) {
        let id = id.unwrap_or_default();
        let is_alnum9 = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if id.is_empty() || (self.call_ids.as_deref() == Some("alnum9") && !is_alnum9) {
            breaks(format!("id `{id}`"));
        }
    }

    fn check_alternation(&self, messages: &[Value], broken: &mut Vec<String>) {
        let Some(kind) = self.alternation.as_deref() else { return };
        let counts = |message: &&Value| {
            let is_tools = message["role"] == "tool" || message["tool_calls"].is_array();
            message["role"] != "system" && (kind == "strict" || !is_tools)
        };
        for (at, message) in messages.iter().filter(counts).enumerate() {
            let want = if at % 2 == 0 { "user" } else { "assistant" };
            if message["role"] != want {
                broken.push(format!("roles do not alternate at {at}: {}", message["role"]));
                return;
            }
        }
        let last = messages.last().map(|message| &message["role"]);
        if last.is_none_or(|role| role != "user" && role != "tool") {
            broken.push("the last message is not a user's or a tool's".to_owned());
        }
    }

    /// Answers stand right behind their calls, one for each.
    fn check_answers(&self, messages: &[Value], broken: &mut Vec<String>) {
        let mut open: Vec<&str> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            if message["role"] == "tool" {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match open.iter().position(|call| *call == id) {
                    Some(found) => drop(open.remove(found)),
                    None => broken.push(format!("message {at} answers no call: {id}")),
                }
                continue;
            }
            if !open.is_empty() {
                broken.push(format!("message {at} stands before the answers to {open:?}"));
                open.clear();
            }
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            open.extend(calls.filter_map(|call| call["id"].as_str()));
        }
        if !open.is_empty() {
            broken.push(format!("no answers to {open:?}"));
        }
    }
}

fn thought(text: &str) -> Step {
    let choice =
        json!({ "index": 0, "delta": { "reasoning_content": text }, "finish_reason": null });
    Step::Event { event: json!({ "choices": [choice] }) }
}

/// A call as the model writes it where its server knows no tools.
fn in_text(name: &str, arguments: &Value) -> Step {
    let call = json!({ "name": name, "arguments": arguments });
    Step::text(&format!("<tool_call>{call}</tool_call>"))
}

/// What the model says to a prompt of this name, before it ends the turn with words.
fn replies(name: &str, id: &str, tools: bool) -> Vec<Reply> {
    let call = |tool: &str, arguments: Value, at: &str| match tools {
        true => Step::call(tool, arguments, &format!("call_{id}_{at}")),
        false => in_text(tool, &arguments),
    };
    let steps = match name {
        "call" => vec![call("update_plan", plan(), "a")],
        "parallel" => {
            vec![call("update_plan", plan(), "a"), call("update_plan", plan(), "b")]
        }
        "invalid" => vec![call("update_plan", json!(["no", "object"]), "a")],
        // In text, a tool that nobody offered is text, and the turn ends with it.
        "unknown" if !tools => vec![],
        "unknown" => vec![call("no_such_tool", json!({ "a": 1 }), "a")],
        "text and call" => vec![Step::text("I look."), call("update_plan", plan(), "a")],
        "thoughts" => vec![thought("Hm."), Step::text("I look."), call("update_plan", plan(), "a")],
        _ => vec![],
    };
    let first = (!steps.is_empty()).then(|| Reply::new(steps));
    first.into_iter().chain([Reply::text(&format!("Done with {name}."))]).collect()
}

const SESSION: &[&str] = &[
    "text",
    "call",
    "parallel",
    "invalid",
    "interrupt",
    "text and call",
    "settings",
    "thoughts",
    "unknown",
    "parallel",
    "compact",
    "text",
    "settings",
    "call",
    "interrupt",
    "parallel",
    "invalid",
    "thoughts",
    "compact",
    "text",
];

fn script(tools: bool) -> Script {
    let replies = SESSION.iter().enumerate().flat_map(|(at, name)| match *name {
        "interrupt" => {
            let call = match tools {
                true => Step::call("update_plan", plan(), &format!("call_{at}_i")),
                false => in_text("update_plan", &plan()),
            };
            vec![Reply::new([call]), Reply::new([Step::begin("Wai"), Step::Silence])]
        }
        name => replies(name, &at.to_string(), tools),
    });
    Script::new(replies)
}

fn say(role: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] })
}

async fn interrupt(stage: &Stage) {
    let (ended, begun) = (stage.count("turn/completed"), stage.count("turn/started"));
    let deltas = stage.count("item/agentMessage/delta");
    stage.thread.start_turn(TurnInput::text("wait for it")).await.expect("a turn");
    let turn = stage.wait("turn/started", begun).await;
    stage.wait("item/agentMessage/delta", deltas).await;
    let id = turn["turn"]["id"].as_str().expect("an id");
    stage.thread.interrupt(id).await.expect("an interrupt");
    stage.ended(ended).await;
}

async fn hold_session(stage: &Stage) {
    let context = vec![say("developer", "<permissions>"), say("user", "<environment>")];
    stage.thread.inject(context).await.expect("a context");
    for name in SESSION {
        match *name {
            "interrupt" => interrupt(stage).await,
            "compact" => {
                let before = stage.count("turn/completed");
                drop(stage.thread.compact().await.expect("a turn"));
                stage.ended(before).await;
            }
            "settings" => {
                let change = vec![say("developer", "<permissions> have changed")];
                stage.thread.inject(change).await.expect("a change");
                assert_eq!(stage.turn(name).await["status"], "completed");
            }
            _ => assert_eq!(stage.turn(name).await["status"], "completed", "{name}"),
        }
    }
}

#[tokio::test]
async fn every_history_of_a_long_session_fits_every_template() {
    let rules: Rules = toml::from_str(include_str!("templates/rules.toml")).expect("rules");
    for template in rules.template {
        let model = Model::start(script(template.tools));
        let fields = ChatProfileFields::default();
        let chat = ChatProfiles::choose(&template.provider, "", &[], fields);
        let provider = Provider { chat, ..provider(Wire::Chat, &model) };
        let slug = template.model.clone();
        let stage =
            Setting::on(opened(&provider)).change(|settings| settings.standing.model = slug).open();
        hold_session(&stage).await;
        let bodies = model.bodies();
        let at_least = if template.tools { 33 } else { 32 };
        assert!(bodies.len() >= at_least, "{}: {} requests", template.name, bodies.len());
        for (at, body) in bodies.iter().enumerate() {
            assert_eq!(body["model"], template.model.as_str());
            let messages = body["messages"].as_array().expect("messages");
            let broken = template.check(messages);
            assert!(
                broken.is_empty(),
                "{}, request {at}: {broken:#?}\n{messages:#?}",
                template.name
            );
        }
    }
}

/// A server that refuses every request gets two and no more.
#[tokio::test]
async fn a_refused_shape_is_sent_at_most_twice_and_the_error_names_the_field() {
    let alternate = "After the optional system message, conversation roles must alternate";
    #[rustfmt::skip]
    let table = [
        // vLLM answers 400, llama.cpp and Ollama 500.
        (400, alternate,                                              2, "alternate_roles = true"),
        (500, alternate,                                              2, "alternate_roles = true"),
        (500, "System role not supported",                            2, "system = \"unsupported\""),
        (422, "body.messages.3.assistant.reasoning: extra forbidden", 2, "reasoning_field = \"\""),
        (500, "jinja2.exceptions.TemplateError: no",                  1, "TemplateError"),
        (400, "no",                                                   1, "no"),
    ];
    for (status, words, requests, named) in table {
        let reply = Reply::new([Step::status(status, "error", words)]).always();
        let model = Model::start(Script::new([reply]));
        let stage = Setting::on(opened(&provider(Wire::Chat, &model))).open();
        let turn = stage.turn("go").await;
        assert_eq!(turn["status"], "failed", "{words}");
        assert_eq!(model.count(), requests, "{status} {words}");
        let message = turn["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(named), "{words}: {message}");
    }
}

#[tokio::test]
async fn what_a_refusal_taught_is_kept_and_told_once() {
    let refusal = Step::status(400, "error", "System role not supported");
    let model =
        Model::start(Script::new([Reply::new([refusal]), Reply::text("one"), Reply::text("two")]));
    let stage = Setting::on(opened(&provider(Wire::Chat, &model))).open();
    stage.thread.inject(vec![say("developer", "<permissions>")]).await.expect("a context");
    assert_eq!(stage.turn("go").await["status"], "completed");
    assert_eq!(stage.turn("on").await["status"], "completed");
    assert_eq!(model.count(), 3);
    let roles = |body: &Value| body["messages"][0]["role"].clone();
    let bodies = model.bodies();
    assert_eq!(bodies.iter().map(roles).collect::<Vec<_>>(), ["system", "user", "user"]);
    assert_eq!(stage.count("warning"), 1);
    let told = stage.wait("warning", 0).await["message"].to_string();
    assert!(told.contains("system = \\\"unsupported\\\"") && told.contains(".chat]"), "{told}");
}
