//! The rules of tools: what they are offered as, what runs beside what, what the model reads.

use bindery_engine::model::ToolSpec;
use bindery_engine::outlet::Refusal;
use bindery_engine::prompter::{ExecForm, PatchForm};
use bindery_engine::thread::{DynamicTool, Sandbox, TurnInput};
use bindery_engine::truncate::Budget;
use serde_json::{Value, json};

use crate::stage::{Act, Setting, Stage, call, free_call, say};

/// Commands run as they are.
fn free(script: Vec<Vec<Act>>) -> Setting {
    let setting = Setting::new(script).profile(|profile| {
        profile.exec = ExecForm::Unified;
        profile.patch = PatchForm::Freeform;
        profile.view_image = true;
    });
    setting.change(|settings| settings.standing.sandbox = Sandbox::DangerFullAccess)
}

fn cmd(script: &str) -> Value {
    json!({ "cmd": script, "login": false, "yield_time_ms": 30_000 })
}

fn outputs(stage: &Stage, request: usize) -> Vec<(String, Value)> {
    let input = stage.input(request);
    let outputs = input.as_array().unwrap().iter().filter(|item| item.get("output").is_some());
    let pair =
        |item: &Value| (item["call_id"].as_str().unwrap().to_owned(), item["output"].clone());
    outputs.map(pair).collect()
}

/// A tool on one line, and a line for each of its arguments; `!` marks what must be given.
fn sketch(tool: &ToolSpec) -> String {
    let (name, parameters) = match tool {
        ToolSpec::Function { name, parameters, .. } => (name, parameters),
        ToolSpec::Freeform { name, syntax, .. } => return format!("{name} ({syntax})\n"),
        other => panic!("{other:?}"),
    };
    assert_eq!(parameters["additionalProperties"], false, "{name}");
    let required = parameters["required"].as_array().unwrap();
    let mut lines = format!("{name}\n");
    for (key, schema) in parameters["properties"].as_object().unwrap() {
        let mark = if required.contains(&json!(key)) { "!" } else { "" };
        let words = schema.get("enum").map(|words| format!(" {words}")).unwrap_or_default();
        lines += &format!("  {key}{mark}: {}{words}\n", schema["type"].as_str().unwrap());
    }
    lines
}

#[tokio::test]
async fn tools_are_offered_with_the_arguments_that_models_know() {
    let forms = [
        (ExecForm::Unified, PatchForm::Freeform),
        (ExecForm::Shell, PatchForm::Function),
        (ExecForm::ShellCommand, PatchForm::None),
    ];
    let mut all = String::new();
    for (at, (exec, patch)) in forms.into_iter().enumerate() {
        let stage = free(vec![say("ok")])
            .profile(|profile| {
                (profile.exec, profile.patch) = (exec, patch);
                (profile.plan, profile.view_image) = (at == 0, at == 0);
            })
            .open();
        stage.turn("go").await;
        let requests = stage.model.requests.lock().unwrap();
        all.extend(requests[0].tools.iter().map(sketch));
    }
    insta::assert_snapshot!(all);
}

#[tokio::test]
async fn several_calls_at_once_are_allowed_unless_the_model_s_entry_forbids() {
    for allowed in [true, false] {
        let stage =
            Setting::new(vec![say("ok")]).profile(|profile| profile.parallel = allowed).open();
        stage.turn("go").await;
        assert_eq!(stage.model.requests.lock().unwrap()[0].parallel_tool_calls, allowed);
    }
}

#[tokio::test]
async fn commands_run_beside_each_other_and_are_answered_in_the_order_of_their_calls() {
    let waiting = "until [ -e go ]; do sleep 0.02; done; echo first";
    let acts = vec![
        call("c1", "exec_command", &cmd(waiting)),
        call("c2", "exec_command", &cmd("touch go; echo second")),
    ];
    let stage = free(vec![acts, say("ok")]).open();
    stage.turn("go").await;
    let told = outputs(&stage, 1);
    let ends = |at: usize, id: &str, words: &str| {
        let text = told[at].1.as_str().unwrap();
        assert!(told[at].0 == id && text.ends_with(words), "{id}: {text}");
        assert!(text.contains("Process exited with code 0"), "{id}: {text}");
    };
    ends(0, "c1", "Output:\nfirst\n");
    ends(1, "c2", "Output:\nsecond\n");
}

#[tokio::test]
async fn a_patch_runs_alone() {
    let watching = "for i in 1 2 3 4 5 6 7 8; do [ -e a.txt ] && echo seen; sleep 0.1; done; true";
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch";
    let acts = vec![
        call("c1", "exec_command", &cmd(watching)),
        free_call("c2", "apply_patch", patch),
        call("c3", "exec_command", &cmd("cat a.txt")),
    ];
    let stage = free(vec![acts, say("ok")]).open();
    stage.turn("go").await;
    let told = outputs(&stage, 1);
    let text = |at: usize| told[at].1.as_str().unwrap();
    assert!(text(0).ends_with("Output:\n"), "{}", text(0));
    assert!(text(1).starts_with("Exit code: 0\nWall time: "), "{}", text(1));
    assert!(text(1).contains(" seconds\nOutput:\nSuccess. Updated"), "{}", text(1));
    assert!(text(2).ends_with("Output:\none\n"), "{}", text(2));
}

#[tokio::test]
async fn a_call_starts_while_the_model_still_speaks() {
    let mut acts = vec![call("c1", "exec_command", &cmd("echo early")), Act::Gate];
    acts.extend(say("Going on."));
    let stage = free(vec![acts, say("ok")]).open();
    stage.thread.start_turn(TurnInput::text("go")).await.unwrap();
    stage
        .wait_for("the command's end", |heard| {
            let ended = |(method, params): &&(&str, Value)| {
                *method == "item/completed" && params["item"]["type"] == "commandExecution"
            };
            heard.iter().find(ended).map(drop)
        })
        .await;
    assert_eq!(stage.model.requests.lock().unwrap().len(), 1);
    stage.model.open_gate();
    stage.ended(0).await;
    // Outputs come after everything that was said in that answer.
    let lines = stage.input_lines(1);
    assert_eq!(lines[..3], ["user: go", "call c1 exec_command", "assistant: Going on."]);
    assert!(lines[3].starts_with("output c1 Chunk ID: "), "{lines:?}");
}

#[tokio::test]
async fn a_command_is_given_to_a_login_shell_unless_the_model_says_otherwise() {
    // A home without a profile, which could take its time.
    let home = tempfile::tempdir().unwrap();
    for (login, flag) in [(json!(null), " -lc "), (json!(true), " -lc "), (json!(false), " -c ")] {
        let mut start = cmd("echo x");
        let at = home.path().display().to_string();
        match login.is_null() {
            true => drop(start.as_object_mut().unwrap().remove("login")),
            false => start["login"] = login.clone(),
        }
        let stage = free(vec![vec![call("c1", "exec_command", &start)], say("ok")])
            .change(move |settings| {
                settings.standing.sandbox = Sandbox::DangerFullAccess;
                settings.environment.set.insert("HOME".to_owned(), at);
            })
            .open();
        stage.turn("go").await;
        let begun = stage.wait("item/started", 1).await;
        let command = begun["item"]["command"].as_str().unwrap();
        assert!(command.contains(flag), "{login}: {command}");
    }
}

#[tokio::test]
async fn an_output_is_cut_to_the_wish_of_the_model_and_never_beyond_its_budget() {
    #[rustfmt::skip]
    let table = [
        // budget,                wish,          the cut
        (Budget::Tokens(1_000),   None,          Some("…14000 tokens truncated…")),
        (Budget::Tokens(1_000),   Some(50_000),  Some("…14000 tokens truncated…")),
        (Budget::Tokens(1_000),   Some(500),     Some("…14500 tokens truncated…")),
        (Budget::Bytes(10_000),   None,          Some("…50000 chars truncated…")),
        (Budget::Bytes(10_000),   Some(1_000),   Some("…14000 tokens truncated…")),
        (Budget::Tokens(20_000),  None,          Some("…5000 tokens truncated…")),
        (Budget::Tokens(20_000),  Some(15_000),  None),
    ];
    for (budget, wish, cut) in table {
        let mut start = cmd("printf '%060000d' 0");
        start["max_output_tokens"] = json!(wish);
        let stage = free(vec![vec![call("c1", "exec_command", &start)], say("ok")])
            .profile(|profile| profile.truncation = budget)
            .open();
        stage.turn("go").await;
        let text = outputs(&stage, 1).remove(0).1.as_str().unwrap().to_owned();
        assert!(text.contains("Original token count: 15000\n"), "{text}");
        let (_, output) = text.split_once("Output:\n").unwrap();
        let Some(cut) = cut else {
            assert_eq!(output, "0".repeat(60_000), "{budget:?} {wish:?}");
            continue;
        };
        let heading = "Warning: truncated output (original token count: 15000)\n\
                       Total output lines: 1\n\n";
        let rest = output.strip_prefix(heading).unwrap_or_else(|| panic!("{output}"));
        let (head, tail) = rest.split_once(cut).unwrap_or_else(|| panic!("{budget:?}: {rest}"));
        assert_eq!(head.len(), tail.len(), "{budget:?} {wish:?}");
    }
}

/// Answers a call of the client's tool with these pieces.
async fn answered(pieces: Value, budget: Budget) -> Value {
    let tool = json!({ "name": "look", "description": "d", "inputSchema": {} });
    let reply = json!({ "contentItems": pieces, "success": true });
    let stage = Setting::new(vec![vec![call("c1", "look", &json!({}))], say("ok")])
        .profile(|profile| profile.truncation = budget)
        .change(move |settings| {
            settings.dynamic_tools = vec![DynamicTool::read(&tool).unwrap()];
        })
        .answer(move |_, _| Some(Ok::<_, Refusal>(reply.clone())))
        .open();
    stage.turn("go").await;
    outputs(&stage, 1).remove(0).1
}

fn text(text: &str) -> Value {
    json!({ "type": "inputText", "text": text })
}

#[tokio::test]
async fn a_history_keeps_a_fifth_more_than_the_budget_of_any_answer() {
    let long = |length: usize| json!([text(&"x".repeat(length))]);
    let kept = answered(long(1_200), Budget::Bytes(1_000)).await;
    assert_eq!(kept.as_str().unwrap(), "x".repeat(1_200));
    let cut = answered(long(1_300), Budget::Bytes(1_000)).await;
    let half = "x".repeat(600);
    assert_eq!(cut.as_str().unwrap(), format!("{half}…100 chars truncated…{half}"));
    let cut = answered(long(4_900), Budget::Tokens(1_000)).await;
    let half = "x".repeat(2_400);
    assert_eq!(cut.as_str().unwrap(), format!("{half}…25 tokens truncated…{half}"));
}

#[tokio::test]
async fn pieces_of_an_answer_share_its_budget_and_pictures_stay() {
    let picture = json!({ "type": "inputImage", "imageUrl": "data:image/png;base64,AA" });
    let pieces = json!([text("1234567890"), picture, text("abcdefghij"), text("gone"), picture]);
    let told = answered(pieces, Budget::Bytes(10)).await;
    let words = |text: &str| json!({ "type": "input_text", "text": text });
    let shown = json!({ "type": "input_image", "image_url": "data:image/png;base64,AA" });
    let want = json!([
        words("1234567890"),
        shown,
        words("a…8 chars truncated…j"),
        shown,
        words("[omitted 1 text items ...]"),
    ]);
    assert_eq!(told, want);
}
