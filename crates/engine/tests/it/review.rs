//! Reviews: what is looked at, what the reviewer is told, what the thread gets.

use std::path::Path;
use std::process::Command;

use bindery_engine::model::Fault;
use bindery_engine::review::Target;
use bindery_engine::thread::{Approval, Entry, ThreadError, TurnInput};
use serde_json::{Value, json};

use crate::stage::{Act, Setting, Stage, call, fail, plan, say};

fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
    let done = git.args(args).current_dir(folder).output().expect("git");
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout).expect("text").trim().to_owned()
}

/// A repository with one commit on `main`.
fn repository(folder: &Path) {
    git(folder, &["init", "-q", "-b", "main"]);
    std::fs::write(folder.join("a.txt"), "one\n").unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-q", "-m", "begin"]);
}

fn findings() -> String {
    let place = json!({ "absolute_file_path": "/p/f.txt", "line_range": { "start": 1, "end": 1 } });
    let finding = json!({ "title": "[P1] Bug", "body": "bad thing", "code_location": place });
    json!({ "findings": [finding], "overall_explanation": "one bug" }).to_string()
}

const TOLD: &str = "one bug\n\nReview comment:\n\n- [P1] Bug — /p/f.txt:1-1\n  bad thing";

async fn review(stage: &Stage, target: Target) -> Value {
    let before = stage.count("turn/completed");
    stage.thread.review(target).await.expect("a review");
    stage.ended(before).await
}

fn custom() -> Target {
    Target::Custom { instructions: "look hard".to_owned() }
}

#[tokio::test]
async fn a_review_reads_as_codex_tells_it() {
    let stage = Stage::new(vec![say(&findings()), say("ok")]);
    repository(stage.folder.path());
    std::fs::write(stage.folder.path().join("a.txt"), "two\n").unwrap();
    let turn = review(&stage, Target::UncommittedChanges).await;
    insta::assert_snapshot!(stage.sketch().join("\n"), @r"
    thread/status/changed active[]
    turn/started
    item/started enteredReviewMode
    item/completed enteredReviewMode
    item/started userMessage
    item/completed userMessage
    thread/tokenUsage/updated 120 of 120
    thread/tokenUsage/updated 0 of 120
    item/started exitedReviewMode
    item/completed exitedReviewMode
    item/started agentMessage one bug

    Review comment:

    - [P1] Bug — /p/f.txt:1-1
      bad thing
    item/completed agentMessage one bug

    Review comment:

    - [P1] Bug — /p/f.txt:1-1
      bad thing
    thread/status/changed idle
    turn/completed completed
    ");
    assert_eq!(turn["items"][0]["text"], TOLD);
    stage.turn("and now?").await;
    let input = stage.input_lines(1);
    assert!(input[0].starts_with("user: <user_action>\n<action>review</action>"), "{input:?}");
    assert_eq!(input[1..], [format!("assistant: {TOLD}"), "user: and now?".to_owned()]);
}

#[tokio::test]
async fn the_reviewer_is_told_what_it_is() {
    let calls = vec![call("c1", "update_plan", &plan())];
    let stage = Setting::new(vec![say("earlier"), calls, say(&findings())]).open();
    stage.turn("something secret").await;
    review(&stage, custom()).await;
    let requests = stage.model.requests.lock().expect("requests");
    let (first, asked, again) = (&requests[0], &requests[1], &requests[2]);
    assert_eq!(asked.purpose, Some("review"));
    assert!(asked.base.starts_with("You review changes"), "{}", asked.base);
    assert_ne!(asked.thread_id, first.thread_id, "another conversation, another cache");
    assert!(asked.tools.is_empty(), "{:?}", asked.tools);
    let told = serde_json::to_string(&again.input).expect("JSON");
    assert!(told.contains("look hard") && !told.contains("secret"), "{told}");
    assert!(told.contains("unsupported call: update_plan"), "{told}");
}

#[tokio::test]
async fn what_it_costs_is_counted_and_what_it_says_is_not_kept() {
    let calls = vec![call("c1", "nope", &json!({})), Act::Cost(600)];
    let stage = Stage::new(vec![say("a"), calls, say(&findings())]);
    stage.turn("hi").await;
    review(&stage, custom()).await;
    let usage = stage.thread.snapshot().await.usage;
    assert_eq!((usage.total.total_tokens, usage.last.total_tokens), (120 + 600 + 120, 120));
    let view = stage.thread.snapshot().await;
    assert_eq!(view.standing.approval, Approval::OnRequest, "the thread's own policy stays");
    let entries = stage.book.entries.lock().expect("book");
    let items = entries.iter().filter(|entry| matches!(entry, Entry::Item(_))).count();
    assert_eq!(items, 4, "two of the turn, two of the review: {entries:#?}");
    let kept = entries.iter().filter_map(|entry| match entry {
        Entry::ItemCompleted { item, .. } => item["type"].as_str(),
        _ => None,
    });
    let kept: Vec<&str> = kept.collect();
    let review = ["enteredReviewMode", "userMessage", "exitedReviewMode", "agentMessage"];
    assert_eq!(kept, [["userMessage", "agentMessage"].as_slice(), &review].concat());
}

#[tokio::test]
async fn nothing_to_review_asks_nobody() {
    let stage = Stage::new(vec![say(&findings())]);
    repository(stage.folder.path());
    let turn = review(&stage, Target::UncommittedChanges).await;
    let told = &turn["items"][0]["text"];
    assert_eq!(told, "There is nothing to review: everything is committed.");
    let turn = review(&stage, Target::BaseBranch { branch: "main".to_owned() }).await;
    let told = &turn["items"][0]["text"];
    assert_eq!(told, "There is nothing to review: no file differs from `main`.");
    assert_eq!(stage.model.requests.lock().expect("requests").len(), 0);
    assert_eq!(stage.count("thread/tokenUsage/updated"), 0);
}

#[tokio::test]
async fn branches_and_commits_are_looked_up() {
    let stage = Stage::new(vec![say(&findings())]);
    let folder = stage.folder.path();
    repository(folder);
    let base = git(folder, &["rev-parse", "HEAD"]);
    git(folder, &["checkout", "-q", "-b", "work"]);
    std::fs::write(folder.join("a.txt"), "two\n").unwrap();
    git(folder, &["commit", "-q", "-a", "-m", "change"]);
    let head = git(folder, &["rev-parse", "HEAD"]);
    review(&stage, Target::BaseBranch { branch: "main".to_owned() }).await;
    let title = Some("change".to_owned());
    review(&stage, Target::Commit { sha: head[..8].to_owned(), title }).await;
    let asked = [stage.input_lines(0), stage.input_lines(1)].concat().join("\n");
    assert!(asked.contains(&format!("git diff {base}")), "{asked}");
    assert!(asked.contains(&format!("commit {head} (\"change\")")), "{asked}");
    for name in ["nowhere", "--output=x", "main..work"] {
        let turn = review(&stage, Target::BaseBranch { branch: name.to_owned() }).await;
        assert_eq!(turn["status"], "failed");
        let why = turn["error"]["message"].as_str().unwrap_or_default();
        assert!(why.starts_with(&format!("no branch or commit `{name}`")), "{why}");
    }
    assert!(!folder.join("x").exists());
    let left = stage.wait("item/completed", stage.count("item/completed") - 1).await;
    assert_eq!(left["item"]["type"], "exitedReviewMode");
}

#[tokio::test]
async fn whatever_the_reviewer_says_is_told() {
    for answer in ["All is well.", "{\"findings\": 5", "}{", "null"] {
        let stage = Stage::new(vec![say(answer)]);
        let turn = review(&stage, custom()).await;
        assert_eq!(turn["items"][0]["text"], answer);
    }
}

#[tokio::test]
async fn a_review_that_fails_or_is_stopped_is_left() {
    let stage = Stage::new(vec![fail(Fault::Quota), vec![Act::Hang]]);
    let turn = review(&stage, custom()).await;
    assert_eq!(turn["status"], "failed");
    assert_eq!(stage.sketch().iter().filter(|line| line.contains("exitedReviewMode")).count(), 2);
    let before = stage.count("turn/completed");
    let ticket = stage.thread.review(custom()).await.expect("a review");
    let turn_id = ticket.turn_id.clone();
    let busy = stage.thread.review(custom()).await.expect_err("one at a time");
    assert_eq!(busy, ThreadError::Busy);
    let steered = stage.thread.start_turn(TurnInput::text("hey")).await.expect_err("no steering");
    assert_eq!(steered, ThreadError::NotSteerable { kind: "review" });
    drop(ticket);
    stage.asked(2).await;
    stage.thread.interrupt(&turn_id).await.expect("an interrupt");
    assert_eq!(stage.ended(before).await["status"], "interrupted");
    let left = stage.sketch().iter().filter(|line| line.contains("exitedReviewMode")).count();
    assert_eq!(left, 4);
    stage.model.then(vec![say("still here")]);
    assert_eq!(stage.turn("hello?").await["status"], "completed");
}

#[tokio::test]
async fn a_target_must_say_something() {
    let stage = Stage::new(vec![say("x")]);
    let nothing = [
        Target::Custom { instructions: " ".to_owned() },
        Target::Commit { sha: String::new(), title: None },
        Target::BaseBranch { branch: "\n".to_owned() },
    ];
    for target in nothing {
        let refused = stage.thread.review(target).await.expect_err("nothing");
        assert!(refused.to_string().ends_with("must not be empty"), "{refused}");
    }
}
