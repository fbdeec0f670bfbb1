//! Sessions that the real Codex has just written: plain, forked, reverted, compacted, archived,
//! migrated, and one it is still writing.

use std::path::Path;

use bindery_core::item::{Body, Status, ToolSort};
use bindery_core::transcript::Transcript;
use bindery_sessions::catalogue::Catalogue;
use bindery_sessions::find;
use bindery_sessions::normalise::Options;
use bindery_sessions::session::{Session, chain, load_chain};
use bindery_sessions::validate::Report;
use bindery_testkit::codex::{Options as CodexOptions, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Reply, Step};
use serde_json::json;

struct Run {
    codex: RealCodex,
    lines: Lines,
    model: Model,
}

async fn run(replies: Vec<Reply>) -> Run {
    let model = Model::start(replies);
    let codex = RealCodex::with(&model, &CodexOptions::unrestricted());
    let mut lines = Lines::spawn(codex.command(&["app-server"])).unwrap();
    lines.initialize().await;
    Run { codex, lines, model }
}

impl Run {
    /// The session as it is on disk now, with what it continues.
    fn read(&self, thread: &str, live: bool) -> Session {
        let roots = [self.codex.home()];
        let file = find::resolve(thread, &roots).unwrap();
        let files = find::files(&roots).unwrap();
        let session = load_chain(&chain(&file.path, &files), Options { live }).unwrap();
        assert!(session.ledger.missing().is_empty());
        assert_eq!(unknown(&session.transcript), [""; 0]);
        session
    }
}

fn unknown(transcript: &Transcript) -> Vec<String> {
    let items = transcript.turns.iter().flat_map(|turn| &turn.items);
    let cards = items.filter_map(|item| match &item.body {
        Body::Unknown { tag, why, .. } => Some(format!("{tag}: {why}")),
        _ => None,
    });
    cards.collect()
}

fn said(transcript: &Transcript) -> Vec<String> {
    let items = transcript.turns.iter().flat_map(|turn| &turn.items);
    let words = items.filter_map(|item| match &item.body {
        Body::User { text, .. } => Some(format!("user: {text}")),
        Body::Message { text, .. } => Some(format!("codex: {text}")),
        Body::Notice { topic, .. } if topic == "compaction" => Some("compacted".to_owned()),
        _ => None,
    });
    words.collect()
}

/// No line of the real Codex may be strange to us.
fn check_home(home: &Path) {
    let mut report = Report::default();
    for file in find::files(&[home.to_owned()]).unwrap() {
        report.check(&file.path).unwrap();
    }
    let tags: Vec<_> = report.findings.iter().map(|f| (f.kind, f.what.as_str())).collect();
    assert_eq!(tags, [], "drift of the pinned Codex");
    assert_eq!((report.known, report.lost), (report.lines, 0));
}

#[tokio::test]
async fn a_session_is_read_while_it_is_written_and_after() {
    let command = Reply::new([Step::exec("echo hi; exit 3", "c1")]);
    let answer = Reply::new([Step::gate("go"), Step::text("Done")]).when_output_of("c1");
    let mut run = run(vec![command, answer]).await;
    let thread = run.lines.start_thread(json!({ "cwd": run.codex.project() })).await;
    let input = json!([{ "type": "text", "text": "go", "text_elements": [] }]);
    run.lines.request("turn/start", json!({ "threadId": thread, "input": input })).await;
    let item = |message: &serde_json::Value| {
        message["method"] == "item/completed"
            && message["params"]["item"]["type"] == "commandExecution"
    };
    run.lines.until(item).await;
    let now = run.read(&thread, true);
    assert_eq!(now.transcript.turns.last().unwrap().finish, None);
    run.model.open("go");
    run.lines.until_method("turn/completed").await;
    run.lines.close().await;
    let session = run.read(&thread, false);
    assert_eq!(said(&session.transcript), ["user: go", "codex: Done"]);
    let command = session.transcript.turns[0].items.iter().find_map(|item| match &item.body {
        Body::Tool(tool) if tool.sort == ToolSort::Bash => Some((item.status, tool.exit_code)),
        _ => None,
    });
    assert_eq!(command, Some((Status::Failed, Some(3))));
    let list = Catalogue::default().list(&[run.codex.home()], false).unwrap();
    assert_eq!((list.len(), list[0].title.as_deref()), (1, Some("go")));
    assert_eq!(list[0].branch.as_deref(), Some("main"));
    check_home(&run.codex.home());
}

#[tokio::test]
async fn forks_compactions_and_archives_are_read() {
    let mut run = run(vec![Reply::text("Hi").always()]).await;
    let thread = run.lines.start_thread(json!({ "cwd": run.codex.project() })).await;
    run.lines.run_turn(&thread, "one").await;
    let reply = run.lines.request("thread/fork", json!({ "threadId": thread })).await;
    let fork = reply["result"]["thread"]["id"].as_str().unwrap().to_owned();
    run.lines.run_turn(&fork, "two").await;
    run.lines.request("thread/compact/start", json!({ "threadId": fork })).await;
    run.lines.until_method("turn/completed").await;
    run.lines.run_turn(&fork, "three").await;
    run.lines.request("thread/archive", json!({ "threadId": thread })).await;
    run.lines.close().await;

    let words = said(&run.read(&fork, false).transcript);
    let want = [
        "user: one",
        "codex: Hi",
        "user: two",
        "codex: Hi",
        "compacted",
        "user: three",
        "codex: Hi",
    ];
    assert_eq!(words, want);
    assert_eq!(said(&run.read(&thread, false).transcript), ["user: one", "codex: Hi"]);
    let list = Catalogue::default().list(&[run.codex.home()], false).unwrap();
    let parent = list.iter().find(|s| s.id.as_ref().unwrap().as_str() == thread).unwrap();
    assert!(parent.archived);
    assert_eq!(parent.children.first().map(ToString::to_string), Some(fork));
    check_home(&run.codex.home());
}

#[tokio::test]
async fn a_reverted_thread_is_read_from_its_newest_part() {
    let mut run = run(vec![Reply::text("Hi").always()]).await;
    let thread = run.lines.start_thread(json!({ "cwd": run.codex.project() })).await;
    run.lines.run_turn(&thread, "one").await;
    let second = run.lines.run_turn(&thread, "two").await;
    let turn = second["params"]["turn"]["id"].clone();
    let reply = run
        .lines
        .request("thread/revert", json!({ "threadId": thread, "beforeTurnId": turn }))
        .await;
    assert!(reply.get("error").is_none(), "{reply}");
    run.lines.run_turn(&thread, "three").await;
    run.lines.close().await;
    let words = said(&run.read(&thread, false).transcript);
    assert_eq!(words, ["user: one", "codex: Hi", "user: three", "codex: Hi"]);
    check_home(&run.codex.home());
}

#[tokio::test]
async fn a_migrated_session_says_what_it_said_before() {
    let mut run = run(vec![Reply::text("Hi").always()]).await;
    let params = json!({ "cwd": run.codex.project(), "historyMode": "legacy" });
    let thread = run.lines.start_thread(params).await;
    run.lines.run_turn(&thread, "one").await;
    run.lines.run_turn(&thread, "two").await;
    run.lines.close().await;
    let before = said(&run.read(&thread, false).transcript);
    assert_eq!(before, ["user: one", "codex: Hi", "user: two", "codex: Hi"]);
    let status = run.codex.command(&["migrate-rollouts", "--apply"]).output().unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    let after = run.read(&thread, false);
    assert_eq!(said(&after.transcript), before);
    check_home(&run.codex.home());
}
