//! What a model is sent around the user's words, from the settings to the wire: the order, what is
//! told once, what is told again, and by whom a thread was begun.

use std::sync::Arc;

use bindery_engine::config::{Home, parse_override};
use bindery_engine::service::disk::Disk;
use bindery_engine::service::house::House;
use bindery_engine::service::{Service, ServiceSettings};
use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Reply, Script, Step};
use serde_json::{Value, json};

use crate::service::peer::Peer;

/// A home and a project, a scripted model, and threads on it by the user's settings.
struct Study {
    codex: RealCodex,
    model: Model,
    flags: Vec<String>,
}

impl Study {
    fn new(flags: &[&str]) -> Self {
        Self::on(Script::always("ok"), flags)
    }

    fn on(script: Script, flags: &[&str]) -> Self {
        let model = Model::start(script);
        let options = Options {
            settings: "developer_instructions = \"Answer in rhyme.\"\n".to_owned(),
            ..Options::default()
        };
        let codex = RealCodex::with(&model, &options);
        std::fs::write(codex.project().join("AGENTS.md"), "Be brief.").unwrap();
        Self { codex, model, flags: flags.iter().map(|flag| (*flag).to_owned()).collect() }
    }

    async fn serve(&self) -> (Service, Peer) {
        let home = Home::of(self.codex.env().into_iter().collect()).unwrap();
        let flags = self.flags.iter().map(|flag| parse_override(flag).unwrap()).collect();
        let disk = Arc::new(Disk::new(self.codex.home()));
        let house = Arc::new(House::new(home, flags));
        let service = Service::start(house, disk, ServiceSettings::default());
        let peer = Peer::new(&service).await;
        (service, peer)
    }

    async fn begin(&self, peer: &mut Peer) -> String {
        let params = json!({ "cwd": self.codex.project() });
        let opened = peer.ask("thread/start", params).await.unwrap();
        opened["thread"]["id"].as_str().unwrap().to_owned()
    }

    /// The entries of a request, each as `role: part | part` by the first lines of its parts.
    fn sketch(&self, request: usize) -> Vec<String> {
        let body = &self.model.bodies()[request];
        let entries = body.get("input").or_else(|| body.get("messages")).unwrap();
        entries.as_array().unwrap().iter().map(|entry| self.line(entry)).collect()
    }

    fn line(&self, entry: &Value) -> String {
        let role = entry["role"].as_str().unwrap_or_else(|| entry["type"].as_str().unwrap());
        let parts = match &entry["content"] {
            Value::String(text) => vec![first_line(text)],
            Value::Null => Vec::new(),
            parts => {
                let texts = parts.as_array().unwrap().iter();
                texts.map(|part| first_line(part["text"].as_str().unwrap())).collect()
            }
        };
        let line = format!("{role}: {}", parts.join(" | "));
        line.replace(&*self.codex.project().to_string_lossy(), "~")
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

const DEVELOPER: &str = "developer: Answer in rhyme. | <permissions instructions>";

const USER: &str = "user: # AGENTS.md instructions for ~ | <environment_context> | <git_context>";

#[tokio::test]
async fn a_first_request_has_its_blocks_in_this_order() {
    let study = Study::new(&["model_instructions_file=base.md"]);
    std::fs::write(study.codex.home().join("base.md"), "My own base.\n").unwrap();
    let (service, mut peer) = study.serve().await;
    let thread = study.begin(&mut peer).await;
    peer.say(&thread, "hello").await;
    let base = "developer: My own base.";
    assert_eq!(study.sketch(0), [base, DEVELOPER, USER, "user: hello"]);
    let body = &study.model.bodies()[0];
    assert_eq!(body.get("instructions"), None);
    assert_eq!(body["prompt_cache_key"], json!(thread));
    service.stop().await;
}

#[tokio::test]
async fn the_base_prompt_stands_where_the_model_and_the_wire_want_it() {
    let full = bindery_engine::config::Catalogue::default();
    let base = |model: &str| {
        let entry = full.model(model);
        bindery_engine::prompt::base(&entry, bindery_engine::prompt::Mode::Agent)
    };
    for (model, wire) in [("gpt-5.5", "responses"), ("gpt-oss:20b", "responses"), ("m", "chat")] {
        let model_flag = format!("model={model}");
        let wire_flag = format!("model_providers.scripted.wire_api={wire}");
        let study = Study::new(&[&model_flag, &wire_flag]);
        let (service, mut peer) = study.serve().await;
        let thread = study.begin(&mut peer).await;
        peer.say(&thread, "hello").await;
        let body = study.model.bodies().remove(0);
        match (model, wire) {
            ("gpt-5.5", _) => assert_eq!(body["input"][0]["content"][0]["text"], base(model)),
            (_, "responses") => {
                assert_eq!(body["instructions"], base(model));
                assert_eq!(study.sketch(0), [DEVELOPER, USER, "user: hello"]);
            }
            _ => {
                assert_eq!(body["messages"][0]["role"], "system");
                let lines = study.sketch(0);
                assert_eq!(lines.last().unwrap(), "user: hello");
                assert_eq!(lines.len(), 3, "{lines:?}");
            }
        }
        service.stop().await;
    }
}

#[tokio::test]
async fn a_model_nobody_has_described_gets_the_fallback_and_a_warning() {
    let study = Study::new(&["model=never-heard-of"]);
    let (service, mut peer) = study.serve().await;
    let thread = study.begin(&mut peer).await;
    let told = peer.told("configWarning").await;
    let words = "nothing is known of the model `never-heard-of`; careful values are used";
    assert_eq!(told["params"]["summary"], words);
    peer.say(&thread, "hello").await;
    let body = study.model.bodies().remove(0);
    assert_eq!((&body["parallel_tool_calls"], body.get("text")), (&json!(true), None));
    assert_eq!(body["reasoning"], json!({ "summary": "auto" }));
    let names: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["exec_command", "write_stdin", "update_plan", "view_image"]);
    service.stop().await;
}

#[tokio::test]
async fn context_is_told_once_and_again_only_where_it_changed() {
    let study = Study::new(&[]);
    let (service, mut peer) = study.serve().await;
    let thread = study.begin(&mut peer).await;
    peer.say(&thread, "one").await;
    let first = study.sketch(0);
    peer.say(&thread, "two").await;
    let unchanged = [&first[..], &["assistant: ok".to_owned(), "user: two".to_owned()]].concat();
    assert_eq!(study.sketch(1), unchanged);
    // The same in another process, over the session file.
    service.stop().await;
    let (service, mut peer) = study.serve().await;
    peer.ask("thread/resume", json!({ "threadId": thread })).await.unwrap();
    peer.say(&thread, "three").await;
    let resumed = [&unchanged[..], &["assistant: ok".into(), "user: three".into()]].concat();
    assert_eq!(study.sketch(2), resumed);
    // In another folder: what differs there, and nothing else.
    let folder = study.codex.project().join("src");
    std::fs::write(folder.join("AGENTS.md"), "Be verbose.").unwrap();
    let input = json!([{ "type": "text", "text": "four" }]);
    let params = json!({ "threadId": thread, "input": input, "cwd": folder });
    peer.ask("turn/start", params).await.unwrap();
    peer.ended().await;
    let more = &study.sketch(3)[resumed.len()..];
    // The folders that can be written are among the permissions.
    let permissions = "developer: <permissions instructions>";
    let changed = "user: # AGENTS.md instructions for ~/src | <environment_context>";
    assert_eq!(more, ["assistant: ok", permissions, changed, "user: four"]);
    let bodies = study.model.bodies();
    let before = bodies[2]["input"].as_array().unwrap();
    assert_eq!(
        &bodies[3]["input"].as_array().unwrap()[..before.len()],
        &before[..],
        "no rewriting"
    );
    service.stop().await;
}

#[tokio::test]
async fn after_a_summary_a_thread_that_is_resumed_is_told_everything_again() {
    let study = Study::new(&["compact_prompt=Sum it up for me."]);
    let (service, mut peer) = study.serve().await;
    let thread = study.begin(&mut peer).await;
    peer.say(&thread, "one").await;
    peer.ask("thread/compact/start", json!({ "threadId": thread })).await.unwrap();
    peer.told("turn/completed").await;
    assert_eq!(study.sketch(1).last().unwrap(), "user: Sum it up for me.");
    service.stop().await;
    let (service, mut peer) = study.serve().await;
    peer.ask("thread/resume", json!({ "threadId": thread })).await.unwrap();
    peer.say(&thread, "two").await;
    let want = ["user: one", "user: <summary_of_earlier_work>", DEVELOPER, USER, "user: two"];
    assert_eq!(study.sketch(2)[1..], want);
    service.stop().await;
}

#[tokio::test]
async fn a_tier_that_was_asked_for_reaches_the_server() {
    let study = Study::new(&["service_tier=fast"]);
    let (service, mut peer) = study.serve().await;
    let thread = study.begin(&mut peer).await;
    peer.say(&thread, "hello").await;
    assert_eq!(study.model.bodies()[0]["service_tier"], "priority");
    service.stop().await;
}

/// A thread of two turns that the real Codex has written, the second with a command.
async fn of_codex(study: &Study) -> String {
    let mut lines = Lines::spawn(study.codex.command(&["app-server"])).unwrap();
    lines.initialize().await;
    let thread = lines.start_thread(json!({ "cwd": study.codex.project() })).await;
    lines.run_turn(&thread, "one").await;
    lines.run_turn(&thread, "two").await;
    lines.close().await;
    thread
}

#[tokio::test]
async fn a_thread_of_codex_is_told_only_what_codex_told_otherwise() {
    let exec = Step::call("exec_command", json!({ "cmd": "echo x", "login": false }), "c1");
    let study = Study::on(
        Script::new([
            Reply::new([exec]).when_user("two").when_after_tool(false),
            Reply::text("ok").always(),
        ]),
        &[],
    );
    // Midnight may pass between the two.
    let (thread, today) = loop {
        let today = jiff::Zoned::now().date();
        let thread = of_codex(&study).await;
        if jiff::Zoned::now().date() == today {
            break (thread, today);
        }
    };
    let theirs = study.model.bodies().pop().unwrap()["input"].as_array().unwrap().len();
    let (service, mut peer) = study.serve().await;
    peer.ask("thread/resume", json!({ "threadId": thread })).await.unwrap();
    peer.say(&thread, "three").await;
    let ours = study.sketch(study.model.count() - 1);
    let more = &ours[theirs..];
    let mut want = vec![
        "assistant: ok",
        "developer: <permissions instructions>",
        "user: <git_context>",
        "user: three",
    ];
    if jiff::Zoned::now().date() != today {
        want[2] = "user: <environment_context> | <git_context>";
    }
    assert_eq!(more, want, "{ours:#?}");
    let told = |block: &str| ours.iter().filter(|line| line.contains(block)).count();
    assert_eq!((told("# AGENTS.md instructions"), told("Answer in rhyme.")), (1, 1), "{ours:#?}");
    // From here on it is a thread like any other.
    peer.say(&thread, "four").await;
    let after = study.sketch(study.model.count() - 1);
    assert_eq!(after[ours.len()..], ["assistant: ok", "user: four"]);
    // What changes is told, and says that it replaces what Codex has told.
    std::fs::write(study.codex.project().join("AGENTS.md"), "Be verbose.").unwrap();
    peer.say(&thread, "five").await;
    let last = study.sketch(study.model.count() - 1);
    let replaced = "user: # AGENTS.md instructions for ~";
    assert_eq!(last[after.len()..], ["assistant: ok", replaced, "user: five"]);
    service.stop().await;
}
