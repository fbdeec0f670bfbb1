//! How the real Codex cuts what commands say and shows pictures: we do the same.

use std::io::Cursor;

use bindery_engine::exec::{Processes, text};
use bindery_engine::picture::{Detail, Picture};
use bindery_engine::prompter::ExecForm;
use bindery_engine::thread::Sandbox;
use bindery_engine::truncate::Budget;
use bindery_testkit::codex::{Options, RealCodex};
use bindery_testkit::lines::Lines;
use bindery_testkit::model::{Model, Reply, Step};
use serde_json::{Value, json};

#[cfg(unix)]
use crate::exec::{collected, script};
use crate::stage::{Setting, call, say};

/// What a model is told of each call, in order. The files are in the folder where it works.
async fn outputs(calls: &[(&str, Value)], files: &[(&str, Vec<u8>)]) -> Vec<Value> {
    let id = |at: usize| format!("call-{at}");
    let steps = calls.iter().enumerate();
    let steps = steps.map(|(at, (name, arguments))| Step::call(name, arguments.clone(), &id(at)));
    let last = id(calls.len() - 1);
    let model =
        Model::start([Reply::new(steps), Reply::text("Done").when_output_of(&last)].to_vec());
    let codex = RealCodex::with(&model, &Options::unrestricted());
    for (name, bytes) in files {
        let path = codex.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let mut lines = Lines::spawn(codex.command(&["app-server"])).unwrap();
    lines.initialize().await;
    let thread = lines.start_thread(json!({ "cwd": codex.project() })).await;
    lines.run_turn(&thread, "go").await;
    lines.close().await;
    let bodies = model.bodies();
    let items = bodies.last().unwrap()["input"].as_array().unwrap();
    let output = |at| {
        let mut found = items.iter().filter(|item| item["call_id"] == id(at));
        found.find_map(|item| item.get("output")).unwrap().clone()
    };
    (0..calls.len()).map(output).collect()
}

#[cfg(unix)]
#[tokio::test]
async fn commands_are_cut_alike() {
    let commands = [
        ("printf 'abcdefghij%.0s' 1 2 3 4 5 6 7 8 9", 7),
        ("printf 'abcdefghij%.0s' 1 2 3 4 5 6 7 8 9", 1),
        ("printf 'abcdefghij%.0s' 1 2 3 4 5 6 7 8 9", 0),
        ("printf 'abcdefghij%.0s' 1 2 3 4", 10),
        ("printf 'ä€🎉%.0s' 1 2 3 4 5 6 7 8 9", 7),
        ("printf 'ä€🎉%.0s' 1 2 3 4 5 6 7 8 9", 5),
        ("printf 'a\\nb\\n\\nc%.0s' 1 2 3 4 5 6 7 8 9", 4),
        ("seq 1 30000", 10_000),
        ("seq 1 400000", 9000),
    ];
    let calls: Vec<_> = commands
        .iter()
        .map(|(cmd, tokens)| {
            let arguments = json!({
                "cmd": cmd, "max_output_tokens": tokens, "yield_time_ms": 30_000, "login": false,
            });
            ("exec_command", arguments)
        })
        .collect();
    let told = outputs(&calls, &[]).await;
    for ((cmd, tokens), told) in commands.iter().zip(told) {
        let chunk = collected(&Processes::new(), script(cmd)).await;
        let ours = text::chunk(&chunk, Budget::Tokens(*tokens));
        // What comes before differs in the name of the piece and the time it took.
        let from = |text: &str| text[text.find("Process exited").unwrap()..].to_owned();
        let told = told.as_str().unwrap();
        assert!(from(&ours) == from(told), "{cmd} {tokens}: {told:.2000}\n{ours:.2000}");
    }
}

/// Times are what they are.
fn without_times(text: &str) -> String {
    let line = |line: &str| match line.starts_with("Wall time: ") {
        true => line.replace(|char: char| char.is_ascii_digit() || char == '.', ""),
        false => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(unix)]
#[tokio::test]
async fn patches_in_scripts_are_told_alike() {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch";
    let plain = json!({ "cmd": format!("apply_patch <<'EOF'\n{patch}\nEOF") });
    let elsewhere = json!({ "cmd": format!("cd d && apply_patch <<'EOF'\n{patch}\nEOF") });
    let calls = [("exec_command", plain.clone()), ("exec_command", elsewhere.clone())];
    let theirs = outputs(&calls, &[("d/keep", Vec::new())]).await;
    let acts =
        vec![call("call-0", "exec_command", &plain), call("call-1", "exec_command", &elsewhere)];
    let stage = Setting::new(vec![acts, say("Done")])
        .profile(|profile| profile.exec = ExecForm::Unified)
        .change(|settings| settings.standing.sandbox = Sandbox::DangerFullAccess)
        .open();
    std::fs::create_dir(stage.folder.path().join("d")).unwrap();
    stage.turn("go").await;
    let input = stage.input(1);
    for (theirs, ours) in theirs.iter().zip(&input.as_array().unwrap()[3..]) {
        let texts = [theirs, &ours["output"]].map(|text| without_times(text.as_str().unwrap()));
        assert_eq!(texts[0], texts[1]);
    }
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let image = image::RgbImage::from_pixel(width, height, image::Rgb([64, 128, 192]));
    image.write_to(&mut Cursor::new(&mut bytes), image::ImageFormat::Png).unwrap();
    bytes
}

#[tokio::test]
async fn pictures_are_shown_alike() {
    let files = [
        ("small.png", png(30, 20)),
        ("wide.png", png(2100, 70)),
        ("tall.png", png(50, 2049)),
        ("broken.png", png(300, 200)[..100].to_vec()),
        ("text.png", b"hello".to_vec()),
    ];
    // Codex 0.169 shows the original whatever is asked for; ours makes it smaller unless told.
    let asked = [Some("original")];
    let cases: Vec<_> =
        files.iter().flat_map(|file| asked.iter().map(move |detail| (file, *detail))).collect();
    let call = |(file, detail): &(&(&str, Vec<u8>), Option<&str>)| {
        let mut arguments = json!({ "path": file.0 });
        if let Some(detail) = detail {
            arguments["detail"] = json!(detail);
        }
        ("view_image", arguments)
    };
    let told = outputs(&cases.iter().map(call).collect::<Vec<_>>(), &files).await;
    for (((name, bytes), detail), told) in cases.iter().zip(told) {
        let detail = Detail::of(*detail).unwrap();
        match Picture::of(bytes.clone(), detail) {
            // Encoders differ: of a picture made smaller only its kind and its size are alike.
            Ok(picture) => {
                let theirs = &told[0];
                let url = theirs["image_url"].as_str().unwrap();
                assert_eq!(theirs["detail"], detail.as_str(), "{name}");
                assert_eq!(theirs["type"], "input_image", "{name}");
                assert_eq!(size(url), (picture.width, picture.height), "{name}");
                let untouched = picture.bytes == *bytes;
                assert_eq!(url == picture.url(), untouched, "{name}");
            }
            Err(err) => assert!(
                err.to_string().starts_with(told.as_str().unwrap().split(": ").next().unwrap()),
                "{name}: {err}, {told}"
            ),
        }
    }
}

fn size(url: &str) -> (u32, u32) {
    use base64::Engine as _;
    let (_, data) = url.split_once("base64,").unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    let image = image::load_from_memory(&bytes).unwrap();
    (image.width(), image.height())
}
