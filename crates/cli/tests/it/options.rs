//! Flags, and what of them reaches the model.

use bindery_testkit::model::{Reply, Step};
use serde_json::{Value, json};

use crate::stage::Stage;

/// A red dot, one pixel, as PNG.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
    \0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

async fn body(stage: &Stage, args: &[&str]) -> Value {
    let ran = stage.run(&[&["run"], args, &["go"]].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran}");
    stage.model.bodies().pop().unwrap()
}

#[tokio::test]
async fn model_and_effort() {
    let stage = Stage::free(vec![Reply::text("ok").always()]);
    let body = body(&stage, &["--model", "gpt-5.4", "--effort", "high"]).await;
    assert_eq!((&body["model"], &body["reasoning"]["effort"]), (&json!("gpt-5.4"), &json!("high")));
}

#[tokio::test]
async fn an_image_goes_as_an_image() {
    let stage = Stage::free(vec![Reply::text("a dot").always()]);
    let dot = stage.codex.project().join("red dot.png");
    std::fs::write(&dot, PIXEL).unwrap();
    body(&stage, &["--image", "red dot.png"]).await;
    insta::assert_debug_snapshot!(stage.heard());
    let missing = stage.run(&["run", "--image", "blue.png", "look"]).await;
    insta::assert_snapshot!(missing, @"
    exit: 1
    stdout:

    stderr:
    error: no image `blue.png`
      cause: No such file or directory (os error 2)
    ");
}

#[tokio::test]
async fn a_schema_goes_as_the_format_of_the_answer() {
    let stage = Stage::free(vec![Reply::text("{\"n\": 1}").always()]);
    let schema = json!({
        "type": "object", "properties": { "n": { "type": "number" } },
        "required": ["n"], "additionalProperties": false,
    });
    stage.file("schema.json", &schema.to_string());
    let body = body(&stage, &["--output-schema", "schema.json"]).await;
    assert_eq!(body["text"]["format"]["schema"], schema);
    stage.file("broken.json", "{");
    let broken = stage.run(&["run", "--output-schema", "broken.json", "go"]).await;
    insta::assert_snapshot!(broken, @"
    exit: 1
    stdout:

    stderr:
    error: `broken.json` is not JSON
      cause: EOF while parsing an object at line 1 column 1
    ");
}

#[tokio::test]
async fn the_folder_is_the_one_named() {
    let script = vec![Reply::new([Step::exec("pwd", "c1")]), Reply::text("there")];
    let stage = Stage::free(script);
    insta::assert_snapshot!(stage.run(&["run", "--cwd", "src", "where?"]).await, @r#"
    exit: 0
    stdout:
    there

    stderr:
    codex 0.169.0 · gpt-5.5 · danger-full-access · [project]/src (main)

    ✓ $ pwd  [time]
      │ [project]/src

    done in [time] · 200 in (20 cached) · 40 out · 99 % context left
    resume with: bindery run --resume [id] "…"
    "#);
    insta::assert_snapshot!(stage.run(&["run", "-C", "nowhere", "where?"]).await, @"
    exit: 1
    stdout:

    stderr:
    error: no folder `nowhere`
      cause: No such file or directory (os error 2)
    ");
}

/// Read-only, so that every write needs a yes.
const WARY: &[&str] = &["--sandbox", "read-only", "--approve"];

async fn write(how: &str) -> (String, bool) {
    let script = vec![Reply::new([Step::exec("echo x > made", "c1")]), Reply::text("Well.")];
    let stage = Stage::careful(script);
    let ran = stage.run(&[&["run"], WARY, &[how, "write"]].concat()).await;
    (ran.to_string(), stage.codex.project().join("made").exists())
}

#[tokio::test]
async fn nobody_to_ask_is_a_no_that_names_the_flags() {
    let (told, made) = write("untrusted").await;
    insta::assert_snapshot!(told);
    assert!(!made);
}

#[tokio::test]
async fn accept_says_yes_to_what_is_asked() {
    let script = vec![
        Reply::new([Step::call(
            "exec_command",
            json!({ "cmd": "echo x > made", "sandbox_permissions": "require_escalated",
                "justification": "to make it" }),
            "c1",
        )]),
        Reply::text("Well."),
    ];
    let stage = Stage::careful(script);
    let ran = stage.run(&[&["run"], WARY, &["accept", "write"]].concat()).await;
    insta::assert_snapshot!(ran, @r#"
    exit: 0
    stdout:
    Well.

    stderr:
    codex 0.169.0 · gpt-5.5 · read-only · [project] (main)

    ✓ $ echo x > made  [time]

    done in [time] · 200 in (20 cached) · 40 out · 99 % context left
    resume with: bindery run --resume [id] "…"
    "#);
    assert!(stage.codex.project().join("made").exists());
}

#[tokio::test]
async fn a_patch_that_nobody_can_approve_is_not_made() {
    let patch = "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n";
    let script = vec![Reply::new([Step::patch(patch, "p1")]), Reply::text("Then not.")];
    let stage = Stage::careful(script);
    let ran = stage.run(&[&["run"], WARY, &["untrusted", "write"]].concat()).await;
    insta::assert_snapshot!(ran);
    assert!(!stage.codex.project().join("made").exists());
}

/// With `never` Codex does not ask: the sandbox stands, and the model is told that nobody will.
#[tokio::test]
async fn never_is_told_to_the_model() {
    let stage = Stage::careful(vec![Reply::text("ok").always()]);
    let never = body(&stage, &["--approve", "never", "--sandbox", "read-only"]).await;
    let ask = body(&stage, &["--approve", "untrusted", "--sandbox", "workspace-write"]).await;
    let told = |body: &Value, words: &str| body["input"].to_string().contains(words);
    assert!(told(&never, "`read-only`") && told(&never, "Approval policy is currently never"));
    assert!(told(&ask, "`workspace-write`") && !told(&ask, "Approval policy is currently never"));
}
