//! Reviews, on the built-in engine and on Codex.
#![cfg(unix)]

use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::Stage;

fn answer() -> String {
    let place = json!({ "absolute_file_path": "/p/f.txt", "line_range": { "start": 1, "end": 2 } });
    let finding = json!({ "title": "[P1] Close the file", "body": "It stays open.",
        "confidence_score": 0.9, "priority": 1, "code_location": place });
    json!({ "findings": [finding], "overall_correctness": "patch is incorrect",
        "overall_explanation": "One thing.", "overall_confidence_score": 0.9 })
    .to_string()
}

#[tokio::test]
async fn findings_are_shown_and_what_led_to_them() {
    let replies = vec![
        Reply::new([Step::text("I look."), Step::exec("echo one", "c1")]),
        Reply::text(&answer()),
    ];
    let stage = Stage::free(replies);
    stage.file("new.txt", "new\n");
    insta::assert_snapshot!(stage.run(&["review", "--backend", "engine"]).await);
}

#[tokio::test]
async fn both_backends_give_the_same_findings() {
    let stage = Stage::free(Script::always(&answer()));
    for backend in ["engine", "codex"] {
        let ran = stage.run(&["review", "--backend", backend, "--json", "look hard"]).await;
        assert_eq!(ran.code, Some(0), "{backend}: {ran}");
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(told["status"], "completed", "{told}");
        assert_eq!(told["explanation"], "One thing.");
        let finding = &told["findings"][0];
        assert_eq!(finding["title"], "[P1] Close the file");
        assert_eq!(finding["priority"], 1);
        assert_eq!(finding["body"], "It stays open.");
        let place = json!({ "path": "/p/f.txt", "start": 1, "end": 2 });
        assert_eq!(finding["location"], place);
    }
}

#[tokio::test]
async fn a_name_that_git_does_not_know_fails() {
    let stage = Stage::free(Script::always(&answer()));
    let ran = stage.run(&["review", "--backend", "engine", "--base", "nowhere", "--json"]).await;
    assert_eq!(ran.code, Some(1), "{ran}");
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["status"], &told["findings"]), (&json!("failed"), &json!([])));
    assert!(told["error"].to_string().contains("no branch or commit `nowhere`"), "{told}");
    assert!(stage.model.bodies().is_empty());
}

#[tokio::test]
async fn one_target_is_enough() {
    let stage = Stage::free(Script::always(&answer()));
    for args in [["--uncommitted", "--base=main"], ["--base=main", "words"], ["--title=x", "words"]]
    {
        let ran = stage.run(&[["review"].as_slice(), &args].concat()).await;
        assert_eq!(ran.code, Some(2), "{args:?}: {ran}");
    }
}
