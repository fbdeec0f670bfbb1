//! `bindery exec` beside the real `codex exec`: the same model, the same lines.
//!
//! Equal but for this: thread ids; the folder of each; error items before the turn, in which each
//! warns of its own settings; the words of an error, which are our own.
#![cfg(unix)]

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use bindery_testkit::codex::Options;
use bindery_testkit::model::{Reply, Script, Step};
use serde_json::{Value, json};

use crate::stage::Stage;

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Codex,
    Bindery,
}

/// What a program did.
#[derive(Debug, PartialEq)]
struct Did {
    code: Option<i32>,
    lines: Vec<Value>,
    /// What the model was told, folder by folder the same.
    heard: Vec<Vec<String>>,
}

fn command(stage: &Stage, which: Which, args: &[&str]) -> Command {
    match which {
        Which::Codex => stage.codex.command(args),
        Which::Bindery => stage.bindery(args),
    }
}

fn run(mut command: Command, stdin: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that fails early may not read it.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

/// The lines with stable names: threads and items in the order they are first seen.
fn lines(output: &Output, stage: &Stage) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let text = text.replace(&stage.codex.project().display().to_string(), "$PROJECT");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let begun = lines.iter().position(|line| line["type"] == "turn.started").unwrap_or(0);
    let keep = |(at, line): &(usize, Value)| *at > begun || line["item"]["type"] != "error";
    let mut names = HashMap::new();
    let named = |(_, mut line): (usize, Value)| {
        for pointer in ["/thread_id", "/item/id"] {
            let next = format!("{pointer}#{}", names.len());
            if let Some(id) = line.pointer_mut(pointer) {
                let known: &String = names.entry(id.to_string()).or_insert(next);
                *id = json!(known);
            }
        }
        for pointer in ["/message", "/error/message"] {
            if let Some(words) = line.pointer_mut(pointer) {
                let text = words.as_str().unwrap();
                assert!(!text.is_empty());
                let retry = text.starts_with("Reconnecting... ");
                *words = json!(if retry { &text[.."Reconnecting... 1/2".len()] } else { "words" });
            }
        }
        line
    };
    lines.into_iter().enumerate().filter(keep).map(named).collect()
}

/// Runs each line of arguments, one after the other, on one stage; `$THREAD` is the thread that
/// was told last.
fn did(which: Which, script: Script, options: &Options, runs: &[(&[&str], &str)]) -> Did {
    let stage = Stage::with(script, options);
    let (mut thread, mut code, mut all) = (String::new(), None, Vec::new());
    for (args, stdin) in runs {
        let args: Vec<&str> =
            args.iter().map(|arg| if *arg == "$THREAD" { &thread } else { *arg }).collect();
        let output = run(command(&stage, which, &args), stdin);
        code = output.status.code();
        let first = output.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let told: Value = serde_json::from_slice(first).unwrap_or_default();
        all.extend(lines(&output, &stage));
        thread = told["thread_id"].as_str().unwrap_or_default().to_owned();
        if all.is_empty() {
            all.push(json!(String::from_utf8_lossy(&output.stderr)));
        }
    }
    Did { code, lines: all, heard: stage.heard() }
}

#[track_caller]
fn same(script: impl Fn() -> Script + Sync, options: &Options, runs: &[(&[&str], &str)]) -> Did {
    let (codex, ours) = std::thread::scope(|scope| {
        let codex = scope.spawn(|| did(Which::Codex, script(), options, runs));
        let ours = did(Which::Bindery, script(), options, runs);
        (codex.join().unwrap(), ours)
    });
    assert_eq!(ours.lines, codex.lines);
    assert_eq!(ours, codex);
    ours
}

/// One run that may do everything.
#[track_caller]
fn same_free(replies: impl Fn() -> Vec<Reply> + Sync) -> Did {
    let script = || Script::new(replies());
    same(script, &Options::unrestricted(), &[(&["exec", "--json", "go"], "")])
}

#[test]
fn a_text() {
    let did = same_free(|| vec![Reply::text("Hello.")]);
    assert_eq!((did.code, did.lines.len()), (Some(0), 4));
}

#[tokio::test]
async fn nobody_is_asked_whatever_is_said_of_approvals() {
    let stage = Stage::careful(vec![
        Reply::new([Step::call(
            "exec_command",
            json!({ "cmd": "echo x", "sandbox_permissions": "require_escalated" }),
            "c1",
        )]),
        Reply::text("Done."),
    ]);
    let flag = "approval_policy=\"on-request\"";
    let ran = stage.run(&["exec", "-c", flag, "go"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("\napproval: never\n"), "{}", ran.err);
    let sent = stage.model.bodies()[1]["input"].to_string();
    assert!(sent.contains("rejected: "), "{sent}");
}

#[test]
fn a_command() {
    let did = same_free(|| {
        let first = [Step::text("I look."), Step::exec("printf 'a\\nb\\n'; ls", "c1")];
        vec![Reply::new(first), Reply::text("Done.")]
    });
    assert_eq!(did.lines[3]["item"]["command"], "/bin/bash -lc \"printf 'a\\\\nb\\\\n'; ls\"");
}

#[test]
fn a_command_that_fails() {
    let did = same_free(|| {
        vec![Reply::new([Step::exec("echo no >&2; exit 3", "c1")]), Reply::text("It failed.")]
    });
    assert_eq!(did.code, Some(0));
    assert_eq!(did.lines[3]["item"]["status"], "failed");
}

#[test]
fn a_patch() {
    let patch = "*** Begin Patch\n*** Update File: README.md\n@@\n-# Project\n+# Work\n\
                 *** Add File: new.txt\n+one\n*** End Patch";
    let did = same_free(|| vec![Reply::new([Step::patch(patch, "p1")]), Reply::text("Patched.")]);
    assert_eq!(did.lines[2]["item"]["changes"].as_array().unwrap().len(), 2);
}

#[test]
fn a_patch_that_does_not_fit() {
    let patch = "*** Begin Patch\n*** Update File: README.md\n@@\n-# Other\n+# Work\n*** End Patch";
    same_free(|| vec![Reply::new([Step::patch(patch, "p1")]), Reply::text("It does not fit.")]);
}

#[test]
fn a_plan_and_thoughts() {
    let step = |text: &str, status: &str| json!({ "step": text, "status": status });
    let plan = |one: &str, two: &str| json!({ "plan": [step("Look", one), step("Fix", two)] });
    let mut options = Options::unrestricted();
    options.tables.push_str("[tools.update_plan]\nenabled = true\n");
    let script = || {
        let first = Step::call("update_plan", plan("in_progress", "pending"), "u1");
        let second = Step::call("update_plan", plan("completed", "in_progress"), "u2");
        vec![
            Reply::new([Step::reasoning(["**Thinking**\n\nhard", "**More**"]), first]),
            Reply::new([second]),
            Reply::text("Half done."),
        ]
    };
    let did = same(|| Script::new(script()), &options, &[(&["exec", "--json", "go"], "")]);
    let last = &did.lines[did.lines.len() - 2];
    assert_eq!(last["type"], "item.completed");
    assert_eq!(last["item"]["items"][0]["completed"], true);
}

#[test]
fn a_search_and_an_unknown_tool() {
    let script = || {
        vec![
            Reply::new([Step::WebSearch { query: "rust".to_owned() }, Step::text("Found.")]),
            Reply::text("Done."),
        ]
    };
    // Codex writes `id` twice into the item of a search; which one is read is up to the reader.
    same_free(script);
    same_free(|| {
        vec![Reply::new([Step::call("no_such_tool", json!({}), "x1")]), Reply::text("Well.")]
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_tool_of_an_mcp_server() {
    use crate::mcp::{calling, no_python, with_toy};
    if no_python() {
        return;
    }
    let options = with_toy(Options::unrestricted(), &[]);
    for (tool, status) in [("add", "completed"), ("wrong", "failed"), ("structured", "completed")] {
        let script = || Script::new(calling(tool));
        let did = same(script, &options, &[(&["exec", "--json", "go"], "")]);
        assert_eq!(did.lines[3]["item"]["status"], status, "{:#?}", did.lines);
    }
}

#[test]
fn a_provider_that_refuses() {
    let did = same_free(|| {
        vec![Reply::new([Step::status(400, "invalid_request_error", "bad thing")]).always()]
    });
    assert_eq!(did.code, Some(1));
    assert_eq!(did.lines.last().unwrap()["type"], "turn.failed");
}

#[test]
fn an_answer_that_is_cut_once() {
    same_free(|| vec![Reply::new([Step::begin("Hal"), Step::Cut]), Reply::text("Hello.")]);
}

#[test]
fn an_answer_that_is_incomplete() {
    same_free(|| {
        vec![Reply::new([Step::Incomplete { reason: "max_output_tokens".to_owned() }]).always()]
    });
}

#[test]
fn a_thread_goes_on() {
    let options = Options::unrestricted();
    let script = || Script::always("ok");
    let did = same(
        script,
        &options,
        &[
            (&["exec", "--experimental-json", "one"], ""),
            (&["exec", "--json", "resume", "$THREAD", "two"], ""),
            (&["exec", "--json", "resume", "--last", "-"], "three"),
            (&["exec", "--json", "fork", "$THREAD", "four"], ""),
        ],
    );
    assert_eq!(did.heard[3].len(), 7, "{:#?}", did.heard[3]);
}

#[test]
fn the_prompt_and_what_is_piped_in() {
    let options = Options::unrestricted();
    same(
        || Script::always("ok"),
        &options,
        &[
            (&["exec", "--json", "sum this up"], "a\nb"),
            (&["exec", "--json"], "from stdin\n"),
            (&["exec", "--json", "-"], "\u{feff}marked"),
            (&["exec", "--json", "alone"], " \n"),
        ],
    );
}

#[test]
fn a_review_in_words() {
    let answer = json!({
        "findings": [], "overall_correctness": "patch is correct",
        "overall_explanation": "All is well.", "overall_confidence_score": 0.9,
    });
    let script = || Script::always(&answer.to_string());
    let ran = |which| {
        let stage = Stage::with(script(), &Options::unrestricted());
        let output = run(command(&stage, which, &["exec", "--json", "review", "look at it"]), "");
        let lines = lines(&output, &stage);
        let said = lines.iter().filter(|line| line["item"]["type"] == "agent_message");
        let said: Vec<Value> = said.map(|line| line["item"]["text"].clone()).collect();
        (output.status.code(), said, lines.last().unwrap()["type"].clone())
    };
    let ours = ran(Which::Bindery);
    assert_eq!(ours, (Some(0), vec![json!("All is well.")], json!("turn.completed")));
    assert_eq!(ours, ran(Which::Codex));
}

#[test]
fn an_answer_of_a_given_shape() {
    let shape = json!({
        "type": "object", "properties": { "answer": { "type": "integer" } },
        "required": ["answer"], "additionalProperties": false,
    });
    let ran = |which| {
        let stage = Stage::free(Script::always("{\"answer\":42}"));
        stage.file("shape.json", &shape.to_string());
        let args =
            ["exec", "--json", "--output-schema", "shape.json", "-o", "last.txt", "how many"];
        let output = run(command(&stage, which, &args), "");
        let last = std::fs::read_to_string(stage.codex.project().join("last.txt")).unwrap();
        let format = stage.model.bodies()[0]["text"]["format"].clone();
        (output.status.code(), lines(&output, &stage), last, format)
    };
    let ours = ran(Which::Bindery);
    assert_eq!(ours.2, "{\"answer\":42}");
    assert_eq!(ours.3["schema"], shape);
    assert_eq!(ours, ran(Which::Codex));
}

#[test]
fn what_cannot_begin_says_nothing_on_stdout() {
    let options = Options::unrestricted();
    let runs: [(&[&str], i32); 6] = [
        (&["exec", "--json"], 1),
        (&["exec", "--json", "-c", "model_provider=nobody", "hi"], 1),
        (&["exec", "--json", "--output-schema", "no-such-file", "hi"], 1),
        (&["exec", "--json", "resume", "01a1e0d6-e495-7a02-b5f0-b2a3e4b8818f", "hi"], 1),
        (&["exec", "--json", "-C", "/", "hi"], 1),
        (&["exec", "--json", "--sandbox", "some", "hi"], 2),
    ];
    for (args, code) in runs {
        for which in [Which::Codex, Which::Bindery] {
            let stage = Stage::with(Script::always("ok"), &options);
            let output = run(command(&stage, which, args), "");
            assert_eq!(output.status.code(), Some(code), "{which:?} {args:?} {output:?}");
            assert_eq!(output.stdout, b"", "{which:?} {args:?}");
            assert!(!output.stderr.is_empty(), "{which:?} {args:?}");
        }
    }
}

/// One review by each, told line by line the same but for its cost, which Codex does not count.
fn reviewed(which: Which, args: &[&str], answer: &str) -> (Option<i32>, Vec<Value>, Value) {
    let stage = Stage::free(vec![
        Reply::new([Step::text("I look."), Step::exec("echo one", "c1")]),
        Reply::text(answer),
    ]);
    stage.file("README.md", "# Changed\n");
    let all = [&["exec", "--json", "review"], args].concat();
    let output = run(command(&stage, which, &all), "");
    let told = lines(&output, &stage);
    let usage = told.last().unwrap_or_else(|| panic!("{output:?}"))["usage"].clone();
    (output.status.code(), told, usage)
}

#[test]
fn a_review() {
    let place = json!({ "absolute_file_path": "/p/f", "line_range": { "start": 1, "end": 2 } });
    let finding = json!({ "title": "[P1] Close it", "body": "It stays open.",
        "confidence_score": 0.9, "priority": 1, "code_location": place });
    let answer = json!({ "findings": [finding], "overall_correctness": "patch is incorrect",
        "overall_explanation": "One thing.", "overall_confidence_score": 0.9 });
    let answers = [answer.to_string(), "No JSON at all.".to_owned()];
    let targets: [&[&str]; 4] =
        [&["--uncommitted"], &["--base", "main"], &["--commit", "HEAD"], &["look hard"]];
    for (number, target) in targets.into_iter().enumerate() {
        let answer = &answers[number % 2];
        let (code, told, usage) = reviewed(Which::Bindery, target, answer);
        let (codex, theirs, _) = reviewed(Which::Codex, target, answer);
        assert_eq!((code, codex), (Some(0), Some(0)), "{target:?} {told:#?}");
        let bare = |mut lines: Vec<Value>| {
            lines.last_mut().unwrap()["usage"] = Value::Null;
            lines
        };
        assert_eq!(bare(told), bare(theirs), "{target:?}");
        assert_eq!(usage["input_tokens"], 200, "{target:?} {usage}");
    }
}

#[test]
fn a_review_of_too_much_or_nothing_does_not_begin() {
    let cases = [
        (&["--uncommitted", "--base", "main"][..], 2),
        (&["--base", "gone"], 1),
        (&["--uncommitted", "--file", "README.md"], 2),
        (&["--uncommitted", "-i", "picture.png"], 2),
    ];
    for (args, code) in cases {
        let stage = Stage::free(Script::always("ok"));
        let all = [&["exec", "--json", "review"], args].concat();
        let output = run(command(&stage, Which::Bindery, &all), "");
        assert_eq!(output.status.code(), Some(code), "{args:?} {output:?}");
        assert_eq!(stage.model.count(), 0, "{args:?}");
    }
}

#[tokio::test]
async fn for_people_only_the_answer_is_on_stdout() {
    let first = [Step::commentary("I look."), Step::exec("printf 'a\\033[31mb\\n'", "c1")];
    let stage = Stage::free(vec![Reply::new(first), Reply::text("Done.")]);
    let ran = stage.run(&["exec", "-c", "analytics.enabled=true", "go"]).await;
    insta::assert_snapshot!(ran);
}

#[tokio::test]
async fn one_of_your_own_prompts() {
    let stage = Stage::free(Script::always("ok"));
    let prompts = stage.codex.home().join("prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    std::fs::write(prompts.join("ticket.md"), "Mend $ID of $PLACE.\n").unwrap();
    let ran = stage.run(&["exec", "--json", "--prompt", "ticket", "ID=42", "PLACE=a b"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(stage.heard()[0].last().unwrap(), "user: Mend 42 of a b.\n");
    let ran = stage.run(&["exec", "--json", "--prompt", "ticket", "ID=42"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let ran = stage.run(&["exec", "--json", "--prompt", "nothing"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let ran = stage.run(&["exec", "--json", "words", "--prompt", "ticket"]).await;
    assert_eq!(ran.code, Some(2), "two prompts: {}", ran.err);
    let args = ["exec", "--json", "--prompt", "ticket", "ID=1", "PLACE=x"];
    let ran = stage.run_reading(&args, "a log").await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let want = "user: Mend 1 of x.\n\n\n<stdin>\na log\n</stdin>";
    assert_eq!(stage.heard()[1].last().unwrap(), want);
}

/// What a command of each program finds in its environment.
fn found(which: Which, policy: &str, names: &str) -> String {
    let mut options = Options::unrestricted();
    options.tables.push_str(policy);
    let look = format!("for name in {names}; do echo $name=${{!name}}; done > found.txt");
    let stage =
        Stage::with(vec![Reply::new([Step::exec(&look, "c1")]), Reply::text("Done.")], &options);
    let mut command = command(&stage, which, &["exec", "--json", "go"]);
    for name in ["PLAIN", "DEPLOY_TOKEN", "Client_Secret", "SIGNING_KEY", "AWS_REGION"] {
        command.env(name, "ours");
    }
    let output = run(command, "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found = std::fs::read_to_string(stage.codex.project().join("found.txt")).unwrap();
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn commands_get_what_the_policy_leaves() {
    let names = "PLAIN DEPLOY_TOKEN Client_Secret SIGNING_KEY AWS_REGION EXTRA HOME";
    let policy = "[shell_environment_policy]\ninherit = 'all'\nignore_default_excludes = false\n\
                  exclude = ['aws_*']\nset = { EXTRA = 'set', SIGNING_KEY = 'set' }\n\
                  include_only = ['PLAIN', '*_*', 'E?TRA']\n";
    let ours = found(Which::Bindery, policy, names);
    let want =
        "PLAIN=ours DEPLOY_TOKEN= Client_Secret= SIGNING_KEY=set AWS_REGION= EXTRA=set HOME=";
    assert_eq!(ours, want);
    assert_eq!(ours, found(Which::Codex, policy, names));
    let core = "[shell_environment_policy]\ninherit = 'core'\n";
    let names = "PLAIN DEPLOY_TOKEN AWS_REGION";
    assert_eq!(found(Which::Bindery, core, names), found(Which::Codex, core, names));
}

#[test]
fn secrets_are_kept_from_commands_unless_they_are_asked_for() {
    let names = "PLAIN DEPLOY_TOKEN Client_Secret SIGNING_KEY OPENAI_API_KEY AWS_REGION";
    let want =
        "PLAIN=ours DEPLOY_TOKEN= Client_Secret= SIGNING_KEY= OPENAI_API_KEY= AWS_REGION=ours";
    assert_eq!(found(Which::Bindery, "", names), want);
    let all = "[shell_environment_policy]\nignore_default_excludes = true\n";
    let names = "PLAIN DEPLOY_TOKEN Client_Secret SIGNING_KEY AWS_REGION";
    let want = "PLAIN=ours DEPLOY_TOKEN=ours Client_Secret=ours SIGNING_KEY=ours AWS_REGION=ours";
    assert_eq!(found(Which::Bindery, all, names), want);
}

#[tokio::test]
async fn nobody_is_asked_and_the_sandbox_holds() {
    let touch = |id: &str| Reply::new([Step::exec("touch made.txt", id)]);
    let script = vec![touch("c1"), Reply::text("No."), touch("c2"), Reply::text("Yes.")];
    let stage = Stage::careful(script);
    let ran = stage.run(&["exec", "--json", "-s", "read-only", "go"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!stage.codex.project().join("made.txt").exists(), "{}", ran.out);
    let ran = stage.run(&["exec", "--json", "--yolo", "go"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(stage.codex.project().join("made.txt").exists(), "{}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_whose_settings_are_left_unread() {
    let stage = Stage::free(Script::always("ok"));
    let said = |args: &[&str]| {
        let mut command = stage.bindery(args);
        command.env("OPENAI_API_KEY", "k");
        run(command, "")
    };
    let url = format!("openai_base_url=\"{}\"", stage.model.base_url());
    let args = ["exec", "--ignore-user-config", "--ephemeral", "-c", &url, "hi"];
    let output = tokio::task::block_in_place(|| said(&args));
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("provider: openai"), "{err}");
    assert!(!stage.codex.home().join("sessions").exists());
    let strict = tokio::task::block_in_place(|| said(&["exec", "--strict-config", "hi"]));
    assert_eq!((strict.status.code(), strict.stdout.len()), (Some(1), 0));
}

/// Waits for the line that tells of a command, then sends a signal; gives exit code and stdout.
fn signalled(signal: &str) -> (Option<i32>, String, bool) {
    use std::io::{BufRead, BufReader, Read};
    let call = Step::exec("touch begun; sleep 300; touch survived", "c1");
    let stage = Stage::free(vec![Reply::new([call])]);
    let mut command = stage.bindery(&["exec", "--json", "go"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    while !told.contains("item.started") {
        assert!(stdout.read_line(&mut told).unwrap() > 0, "{told}");
    }
    let pid = child.id().to_string();
    Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
    let code = child.wait().unwrap().code();
    stdout.read_to_string(&mut told).unwrap();
    (code, told, stage.codex.project().join("survived").exists())
}

#[test]
fn signals_end_it_as_they_end_codex() {
    for (signal, want) in [("INT", 1), ("TERM", 143)] {
        let (code, told, survived) = signalled(signal);
        assert_eq!((code, survived), (Some(want), false), "{signal}: {told}");
        assert!(!told.contains("turn.completed") && !told.contains("turn.failed"), "{told}");
    }
}
