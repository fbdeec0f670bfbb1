//! `bindery run` into pipes: the answer on stdout, everything else on stderr.

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Step};
use serde_json::json;

use crate::stage::Stage;

#[tokio::test]
async fn a_pipe_gets_the_answer_and_nothing_else() {
    let stage = Stage::free(vec![Reply::new([Step::chunked("Hello, *world*.\n\n- one\n", 3)])]);
    insta::assert_snapshot!(stage.run(&["run", "say hello"]).await);
    assert_eq!(stage.heard(), [["user: say hello"]]);
}

#[tokio::test]
async fn commands_are_told_with_how_they_ended() {
    let script = vec![
        Reply::new([Step::commentary("I look around."), Step::exec("echo one; echo two", "c1")]),
        Reply::new([Step::exec("echo broken >&2; exit 3", "c2")]),
        Reply::text("One command failed."),
    ];
    insta::assert_snapshot!(Stage::free(script).run(&["run", "try both"]).await);
}

#[tokio::test]
async fn a_patch_is_told_as_its_diff() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Update File: README.md\n@@\n \
                 # Project\n \n-A small project.\n+A changed project.\n*** End Patch\n";
    let script = vec![Reply::new([Step::patch(patch, "p1")]), Reply::text("Done.")];
    let stage = Stage::free(script);
    insta::assert_snapshot!(stage.run(&["run", "change it"]).await);
    let new = std::fs::read_to_string(stage.codex.project().join("new.txt"));
    assert_eq!(new.unwrap(), "new\n");
}

#[tokio::test]
async fn reasoning_and_plans_are_told() {
    let plan = json!({ "plan": [
        { "step": "look", "status": "completed" }, { "step": "leap", "status": "in_progress" },
    ] });
    let script = vec![
        Reply::new([
            Step::reasoning(["**Looking first**\n\nThen I leap."]),
            Step::call("update_plan", plan, "c1"),
        ]),
        Reply::text("Leapt."),
    ];
    let options = Options {
        tables: "[tools.update_plan]\nenabled = true\n".to_owned(),
        ..Options::unrestricted()
    };
    let stage = Stage::with(script, &options);
    insta::assert_snapshot!(stage.run(&["run", "leap"]).await);
}

#[tokio::test]
async fn the_prompt_may_come_from_stdin() {
    let stage = Stage::free(vec![Reply::text("ok").always()]);
    assert_eq!(stage.run_reading(&["run", "-"], "by name\n").await.code, Some(0));
    assert_eq!(stage.run_reading(&["run"], "by pipe\nof two lines").await.code, Some(0));
    assert_eq!(stage.run_reading(&["run", "by argument"], "not read").await.code, Some(0));
    let heard = stage.heard();
    assert_eq!(
        heard,
        [["user: by name\n"], ["user: by pipe\nof two lines"], ["user: by argument"]]
    );
}

#[tokio::test]
async fn no_prompt_is_misuse() {
    let stage = Stage::free(vec![]);
    let nothing = stage.run(&["run"]).await;
    insta::assert_snapshot!(nothing, @r#"
    exit: 2
    stdout:

    stderr:
    error: there is no prompt
      hint: bindery run "what to do", or pipe it: … | bindery run -
    "#);
    for (args, input) in [(&["run", "-"][..], " \n"), (&["run", ""], ""), (&["run"], "\n")] {
        let ran = stage.run_reading(args, input).await;
        assert_eq!((ran.code, &ran.err), (Some(2), &nothing.err), "{args:?}");
    }
    assert_eq!(stage.model.count(), 0);
}
