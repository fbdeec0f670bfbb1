//! Tools on a real machine: commands, patches, pictures, and who is asked.

use std::sync::Mutex;

use bindery_engine::outlet::Refusal;
use bindery_engine::prompter::{ExecForm, PatchForm};
use bindery_engine::thread::{Approval, Sandbox, TurnInput};
use serde_json::{Value, json};

use crate::stage::{Act, Setting, Stage, call, free_call, say};

fn cmd(script: &str) -> Value {
    json!({ "cmd": script, "login": false, "yield_time_ms": 30_000 })
}

/// Commands run as they are.
fn open_setting(script: Vec<Vec<Act>>) -> Setting {
    let setting = Setting::new(script).profile(|profile| {
        profile.exec = ExecForm::Unified;
        profile.patch = PatchForm::Freeform;
        profile.view_image = true;
    });
    setting.change(|settings| settings.standing.sandbox = Sandbox::DangerFullAccess)
}

/// Commands and what is outside of the folder are asked for.
fn asking(script: Vec<Vec<Act>>, decisions: Vec<Value>) -> Setting {
    let left = Mutex::new(decisions.into_iter());
    let setting = open_setting(script);
    setting.change(|settings| settings.standing.sandbox = Sandbox::workspace()).answer(
        move |_, _| {
            let decision = left.lock().unwrap().next()?;
            Some(match decision {
                Value::Null => Err(Refusal { why: "nobody is there".to_owned() }),
                decision => Ok(json!({ "decision": decision })),
            })
        },
    )
}

fn items(stage: &Stage, kind: &str) -> Vec<Value> {
    let heard = stage.ears.heard.lock().unwrap();
    let done = heard.iter().filter(|(method, _)| *method == "item/completed");
    let items = done.map(|(_, params)| params["item"].clone());
    items.filter(|item| item["type"] == kind).collect()
}

fn output_of(stage: &Stage, request: usize, id: &str) -> String {
    let input = stage.input(request);
    let found =
        input.as_array().unwrap().iter().find(|item| {
            item["call_id"] == id && item["type"].as_str().unwrap().ends_with("_output")
        });
    found.unwrap_or_else(|| panic!("no output of {id}: {input:#}"))["output"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_command_is_told_as_it_runs() {
    let acts = vec![call("c1", "exec_command", &cmd("echo out; echo err >&2; exit 3"))];
    let stage = open_setting(vec![acts, say("done")]).open();
    stage.turn("go").await;
    let item = items(&stage, "commandExecution").remove(0);
    assert_eq!((&item["status"], &item["exitCode"]), (&json!("failed"), &json!(3)));
    assert_eq!(item["aggregatedOutput"], "out\nerr\n");
    assert!(item["command"].as_str().unwrap().ends_with("-c 'echo out; echo err >&2; exit 3'"));
    assert!(item["processId"].is_string() && item["durationMs"].is_number());
    let deltas = stage.ears.heard.lock().unwrap();
    let deltas = deltas.iter().filter(|(method, _)| method.ends_with("outputDelta"));
    let live: String = deltas.map(|(_, params)| params["delta"].as_str().unwrap()).collect();
    assert_eq!(live, "out\nerr\n");
    let output = output_of(&stage, 1, "c1");
    assert!(output.contains("Process exited with code 3\n"), "{output}");
    assert!(output.ends_with("Output:\nout\nerr\n"), "{output}");
}

#[tokio::test]
async fn the_end_of_a_command_is_told_before_the_model_goes_on() {
    let acts = vec![call("c1", "exec_command", &cmd("echo x"))];
    let stage = open_setting(vec![acts, say("done")]).open();
    stage.turn("go").await;
    let told = stage.sketch();
    let at = |line: &str| told.iter().position(|told| told.starts_with(line)).unwrap();
    assert!(at("item/completed commandExecution") < at("item/started agentMessage"), "{told:#?}");
}

#[tokio::test]
async fn a_command_that_goes_on_is_written_to() {
    let start = json!({
        "cmd": "read line; echo got $line; read more; exit 7", "login": false, "tty": true,
        "yield_time_ms": 250,
    });
    let stage = open_setting(vec![vec![call("c1", "exec_command", &start)], say("waiting")]).open();
    stage.turn("go").await;
    let output = output_of(&stage, 1, "c1");
    let session: i64 = output
        .split("session ID ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no session: {output}"));
    assert_eq!(items(&stage, "commandExecution").len(), 0, "it still runs");

    let write = json!({ "session_id": session, "chars": "word\nend\n", "yield_time_ms": 30_000 });
    stage.model.then(vec![vec![call("c2", "write_stdin", &write)], say("done")]);
    stage.turn("write").await;
    let output = output_of(&stage, 3, "c2");
    assert!(output.contains("got word") && output.contains("exited with code 7"), "{output}");
    let typed = stage.wait("item/commandExecution/terminalInteraction", 0).await;
    assert_eq!((&typed["itemId"], &typed["stdin"]), (&json!("c1"), &json!("word\nend\n")));
    let item = items(&stage, "commandExecution").remove(0);
    assert_eq!((&item["id"], &item["exitCode"]), (&json!("c1"), &json!(7)));
    let view = stage.thread.snapshot().await;
    let kinds = view.turns[0]["items"].as_array().unwrap().iter().map(|item| item["type"].clone());
    assert!(kinds.collect::<Vec<_>>().contains(&json!("commandExecution")), "kept with its turn");
}

#[tokio::test]
async fn the_older_forms_wait_for_the_end() {
    let words = json!({ "command": ["echo", "a b"] });
    let line = json!({ "command": "echo one; sleep 600", "login": false, "timeout_ms": 300 });
    let stage = open_setting(vec![vec![call("c1", "shell", &words)], say("done")])
        .profile(|profile| profile.exec = ExecForm::Shell)
        .open();
    stage.turn("go").await;
    let output: Value = serde_json::from_str(&output_of(&stage, 1, "c1")).unwrap();
    assert_eq!((&output["output"], &output["metadata"]["exit_code"]), (&json!("a b\n"), &json!(0)));

    let stage = open_setting(vec![vec![call("c1", "shell_command", &line)], say("done")])
        .profile(|profile| profile.exec = ExecForm::ShellCommand)
        .open();
    stage.turn("go").await;
    let output = output_of(&stage, 1, "c1");
    assert!(output.starts_with("Exit code: 124\n"), "{output}");
    assert!(output.contains("timed out after 300 milliseconds"), "{output}");
    assert_eq!(items(&stage, "commandExecution").len(), 1);
}

#[tokio::test]
async fn a_gigabyte_of_output_is_borne() {
    let script = "head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo the end";
    let acts = vec![call("c1", "exec_command", &cmd(script))];
    let stage = open_setting(vec![acts, say("done")]).open();
    stage.turn("go").await;
    let output = output_of(&stage, 1, "c1");
    assert!(output.len() < 13_000, "{} bytes", output.len());
    let live: usize = {
        let heard = stage.ears.heard.lock().unwrap();
        let deltas = heard.iter().filter(|(method, _)| method.ends_with("outputDelta"));
        deltas.map(|(_, params)| params["delta"].as_str().unwrap().len()).sum()
    };
    assert!(live < 2 << 20, "{live} bytes were told live");
    stage.thread.close().await;
    let item = items(&stage, "commandExecution").remove(0);
    assert!(item["aggregatedOutput"].as_str().unwrap().len() < 2 << 20);
}

#[tokio::test]
async fn nobody_has_to_answer_for_a_command_to_be_refused() {
    #[rustfmt::skip]
    let table = [
        // answer                     status of the item  status of the turn  said to the model
        (json!("decline"),            "declined",         "completed",        "rejected by user"),
        (json!(null),                 "declined",         "completed",        "nobody is there"),
        (json!("yes please"),         "declined",         "completed",        "none that is known"),
        (json!("cancel"),             "declined",         "interrupted",      ""),
        (json!("accept"),             "completed",        "completed",        "code 0"),
        (json!("acceptForSession"),   "completed",        "completed",        "code 0"),
    ];
    for (decision, item_status, turn_status, said) in table {
        let acts = vec![call("c1", "exec_command", &cmd("touch made"))];
        let stage = asking(vec![acts, say("done")], vec![decision.clone()]).open();
        let turn = stage.turn("go").await;
        assert_eq!(turn["status"], turn_status, "{decision}");
        let item = items(&stage, "commandExecution").remove(0);
        assert_eq!(item["status"], item_status, "{decision}");
        let made = stage.folder.path().join("made").exists();
        assert_eq!(made, item_status == "completed", "{decision}");
        if turn_status == "completed" {
            let output = output_of(&stage, 1, "c1");
            assert!(output.contains(said), "{decision}: {output}");
        }
        let asked = stage.wait("item/commandExecution/requestApproval", 0).await;
        assert_eq!((&asked["itemId"], &asked["kind"]), (&json!("c1"), &json!("command")));
        let told = stage.sketch();
        let waiting = r#"thread/status/changed active["waitingOnApproval"]"#;
        assert!(told.iter().any(|line| line == waiting), "{told:#?}");
    }
}

#[tokio::test]
async fn a_yes_for_the_session_or_for_a_prefix_is_remembered() {
    let rule =
        json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["echo", "b"] } });
    let commands = ["echo a", "echo a", "echo b", "echo b c", "echo b; echo d"];
    let acts = commands.iter().enumerate();
    let acts = acts.map(|(n, script)| vec![call(&format!("c{n}"), "exec_command", &cmd(script))]);
    let mut script: Vec<Vec<Act>> = acts.collect();
    script.push(say("done"));
    let decisions = vec![json!("acceptForSession"), rule, json!("decline")];
    let stage = asking(script, decisions).open();
    stage.turn("go").await;
    let statuses: Vec<Value> =
        items(&stage, "commandExecution").iter().map(|item| item["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "completed", "completed", "completed", "declined"]);
    assert_eq!(stage.count("item/commandExecution/requestApproval"), 3);
}

#[tokio::test]
async fn a_policy_that_asks_nobody_runs_nothing() {
    let acts = vec![call("c1", "exec_command", &cmd("touch made"))];
    let stage = open_setting(vec![acts, say("done")])
        .change(|settings| {
            settings.standing.sandbox = Sandbox::workspace();
            settings.standing.approval = Approval::Never;
        })
        .open();
    stage.turn("go").await;
    assert_eq!(stage.count("item/commandExecution/requestApproval"), 0);
    assert!(!stage.folder.path().join("made").exists());
    assert!(output_of(&stage, 1, "c1").contains("rejected:"));
}

#[tokio::test]
async fn an_interrupt_ends_what_the_turn_started() {
    let file = "pid";
    let script = format!("echo $$ > {file}.tmp; mv {file}.tmp {file}; sleep 6000");
    let start = json!({ "cmd": script, "login": false, "yield_time_ms": 30_000 });
    let stage = open_setting(vec![vec![call("c1", "exec_command", &start)], say("back")]).open();
    let turn_id = stage.thread.start_turn(TurnInput::text("go")).await.unwrap();
    let path = stage.folder.path().join(file);
    let written = async {
        while !path.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::stage::PATIENCE, written).await.unwrap();
    stage.thread.interrupt(&turn_id).await.unwrap();
    assert_eq!(stage.ended(0).await["status"], "interrupted");
    let pid = std::fs::read_to_string(&path).unwrap();
    let alive = std::path::Path::new("/proc").join(pid.trim()).exists();
    assert!(!alive, "the command outlived its turn");
    let item = items(&stage, "commandExecution").remove(0);
    assert_eq!(item["status"], "failed", "its end is told within the turn");
    assert_eq!(stage.turn("again").await["status"], "completed");
}

#[tokio::test]
async fn an_interrupt_during_an_approval_withdraws_it() {
    for tool in ["exec_command", "apply_patch"] {
        let acts = match tool {
            "exec_command" => vec![call("c1", tool, &cmd("touch made"))],
            _ => vec![free_call(
                "c1",
                tool,
                "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch",
            )],
        };
        let setting = asking(vec![acts, say("back")], Vec::new());
        let setting = setting.change(|settings| settings.standing.approval = Approval::Untrusted);
        let stage = setting.open();
        let turn_id = stage.thread.start_turn(TurnInput::text("go")).await.unwrap();
        stage
            .wait_for("a question", |heard| {
                heard.iter().any(|(method, _)| method.ends_with("requestApproval")).then_some(())
            })
            .await;
        stage.thread.interrupt(&turn_id).await.unwrap();
        assert_eq!(stage.ended(0).await["status"], "interrupted", "{tool}");
        assert_eq!(*stage.ears.open.lock().unwrap(), 0, "{tool}");
        assert!(!stage.folder.path().join("made").exists(), "{tool}");
        assert_eq!(stage.turn("again").await["status"], "completed", "{tool}");
        assert_eq!(output_of(&stage, 1, "c1"), "aborted", "{tool}");
    }
}

const PATCH: &str = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Update File: old.txt\n\
    @@\n-alpha\n+ALPHA\n beta\n*** End Patch";

#[tokio::test]
async fn a_patch_in_the_folder_is_written_and_told() {
    for form in ["free", "function", "heredoc"] {
        let acts = match form {
            "free" => vec![free_call("c1", "apply_patch", PATCH)],
            "function" => vec![call("c1", "apply_patch", &json!({ "input": PATCH }))],
            _ => {
                let script = format!("apply_patch <<'EOF'\n{PATCH}\nEOF");
                vec![call("c1", "exec_command", &cmd(&script))]
            }
        };
        let stage = asking(vec![acts, say("done")], Vec::new())
            .profile(|profile| {
                profile.patch =
                    if form == "function" { PatchForm::Function } else { PatchForm::Freeform };
            })
            .open();
        std::fs::write(stage.folder.path().join("old.txt"), "alpha\nbeta\n").unwrap();
        stage.turn("go").await;
        let read = |name: &str| std::fs::read_to_string(stage.folder.path().join(name)).unwrap();
        assert_eq!(
            (read("new.txt").as_str(), read("old.txt").as_str()),
            ("hello\n", "ALPHA\nbeta\n")
        );
        let item = items(&stage, "fileChange").remove(0);
        assert_eq!((&item["status"], &item["id"]), (&json!("completed"), &json!("c1")), "{form}");
        assert_eq!(item["changes"][0]["kind"], json!({ "type": "add" }));
        assert_eq!(items(&stage, "commandExecution").len(), 0, "{form}");
        let diff = stage.wait("turn/diff/updated", 0).await["diff"].as_str().unwrap().to_owned();
        assert!(diff.contains("+++ b/new.txt") && diff.contains("+ALPHA"), "{diff}");
        assert_eq!(stage.count("turn/diff/updated"), 1, "told once: it did not change again");
        let output = output_of(&stage, 1, "c1");
        assert!(output.ends_with("Success. Updated the following files:\nA new.txt\nM old.txt\n"));
    }
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_said_to_the_model_only() {
    let stage =
        asking(vec![vec![free_call("c1", "apply_patch", PATCH)], say("sorry")], Vec::new()).open();
    stage.turn("go").await;
    assert!(output_of(&stage, 1, "c1").starts_with("apply_patch verification failed: "));
    assert_eq!(items(&stage, "fileChange").len(), 0);
    assert!(!stage.folder.path().join("new.txt").exists(), "nothing is written");
}

#[tokio::test]
async fn a_patch_outside_of_the_folder_is_asked_for() {
    let table = [
        (json!("accept"), "completed", true),
        (json!("acceptForSession"), "completed", true),
        (json!("decline"), "declined", false),
        (json!(null), "declined", false),
        (
            json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["x"] } }),
            "declined",
            false,
        ),
    ];
    for (decision, status, written) in table {
        // Neither the project nor a place for temporary files, wherever this was checked out.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().canonicalize().unwrap().join("made.txt");
        let patch = format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch", path.display());
        let acts = vec![free_call("c1", "apply_patch", &patch)];
        let stage = asking(vec![acts, say("done")], vec![decision.clone()]).open();
        assert_eq!(stage.turn("go").await["status"], "completed", "{decision}");
        assert_eq!(items(&stage, "fileChange").remove(0)["status"], status, "{decision}");
        assert_eq!(path.exists(), written, "{decision}");
        let asked = stage.wait("item/fileChange/requestApproval", 0).await;
        assert!(asked["reason"].as_str().unwrap().contains("outside"), "{asked}");
    }
}

#[tokio::test]
async fn a_picture_is_shown() {
    let acts = vec![
        call("c1", "view_image", &json!({ "path": "dot.png" })),
        call("c2", "view_image", &json!({ "path": "none.png" })),
    ];
    let stage = open_setting(vec![acts, say("nice")]).open();
    let dot = one_point();
    std::fs::write(stage.folder.path().join("dot.png"), dot).unwrap();
    stage.turn("look").await;
    let input = stage.input(1);
    let output = &input[3]["output"][0];
    assert_eq!(output["type"], "input_image");
    assert!(output["image_url"].as_str().unwrap().starts_with("data:image/png;base64,"));
    assert!(input[4]["output"].as_str().unwrap().starts_with("view_image failed: "), "{input:#}");
    assert_eq!(items(&stage, "imageView").len(), 1);
}

/// A picture of one point.
fn one_point() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let point = image::RgbImage::from_pixel(1, 1, image::Rgb([255, 0, 0]));
    point.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}
