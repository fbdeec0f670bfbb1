//! Files of every form.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::map::prompt_to_turn::{Download, Fetched};

fn file(data: Value, media_type: &str, name: Option<&str>) -> Value {
    json!({ "type": "file", "data": data, "mediaType": media_type, "filename": name })
}

fn with(part: Value) -> Value {
    json!({ "prompt": [{ "role": "user", "content": [{ "type": "text", "text": "q" }, part] }] })
}

/// The second input in a word, else what was warned of.
fn seen(plan: &TurnPlan) -> String {
    let input = &input(plan)[1];
    let field =
        |name: &str| input[name].as_str().map(|value| format!("{}: {value}", input["type"]));
    let seen = field("url").or_else(|| field("path")).or_else(|| field("text"));
    seen.unwrap_or_else(|| warned(plan).join(", ")).replace('"', "")
}

#[test]
fn files_become_images_paths_or_text() {
    let png = format!("image: data:image/png;base64,{PNG}");
    let text = json!({ "type": "text", "text": "a" });
    #[rustfmt::skip]
    let table = [
        (file(json!(PNG), "image/png", None),                        png.as_str()),
        (file(json!(PNG), "image/*", None),                          &png),
        (file(json!(PNG), "image", None),                            &png),
        (file(json!(PNG), "image/jpeg", None),                       &png),
        (file(json!(PNG), "application/octet-stream", None),         &png),
        (file(json!("iVBO\nRw0K Ggo"), "image/*", None),             &png),
        (file(json!([137, 80, 78, 71, 13, 10, 26, 10]), "image/*", None), &png),
        (file(json!({"type": "data", "data": PNG}), "image/*", None), &png),
        (file(json!(format!("data:image/png;base64,{PNG}")), "image/*", None), &png),
        (file(json!(format!("data:;base64,{PNG}")), "image/*", None), &png),
        (json!({"type": "image", "image": PNG}),                     &png),
        (file(json!("/9j/"), "image/*", None),                       "image: data:image/jpeg;base64,/9j/"),
        (file(json!("R0lGODlh"), "image/*", None),                   "image: data:image/gif;base64,R0lGODlh"),
        (file(json!("UklGRgAAAABXRUJQ"), "image/*", None),           "image: data:image/webp;base64,UklGRgAAAABXRUJQ"),
        (file(json!("aGk="), "image/bmp", None),                     "image: data:image/bmp;base64,aGk="),
        (file(json!("aGk="), "image/*", Some("a.png")),              "no file (image/*, `a.png`)"),
        (file(json!("a$b"), "image/png", None),                      "no file (image/png)"),
        (file(json!("data:image/png,"), "image/*", None),            "no file (image/*)"),
        (file(json!("file:///a%20b.png"), "image/png", None),        "localImage: /a b.png"),
        (file(json!("file:///a.pdf"), "text/plain", None),           "no file (text/plain)"),
        (file(json!("ftp://a/b.png"), "image/png", None),            "no file (image/png)"),
        (file(json!({"type": "url", "url": "ftp://a"}), "image/png", None), "no file (image/png)"),
        (file(json!({"type": "reference", "reference": {"x": 1}}), "image/png", None), "no file (image/png)"),
        (file(text.clone(), "text/plain", Some("a.txt")),            "text: File `a.txt`:\n```txt\na\n```"),
        (file(json!("YQ=="), "text/csv; charset=utf-8", None),       "text: File (text/csv):\n```\na\n```"),
        (file(json!("data:text/plain,a%20b"), "text/plain", None),   "text: File (text/plain):\n```\na b\n```"),
        (file(text.clone(), "application/x-yaml", Some("a.yml")),    "text: File `a.yml`:\n```yml\na\n```"),
        (file(text.clone(), "application/vnd.x+json", None),         "text: File (application/vnd.x+json):\n```\na\n```"),
        (file(text.clone(), "image/svg+xml", Some("`a\n.svg")),      "text: File `_a_.svg`:\n```svg\na\n```"),
        (file(text, "application/octet-stream", Some("a.rs")),       "text: File `a.rs`:\n```rs\na\n```"),
        (file(json!({"type": "text", "text": "```\nx\n"}), "text/markdown", None),
            "text: File (text/markdown):\n````\n```\nx\n````"),
        (file(json!("/w=="), "text/plain", None),                    "no file (text/plain)"),
        (file(json!("aGk="), "application/octet-stream", Some("a.bin")), "no file (application/octet-stream, `a.bin`)"),
        (file(json!("aGk="), "application/pdf", Some("a.pdf")),      "no file (application/pdf, `a.pdf`)"),
        (file(json!("https://a/b.pdf"), "application/pdf", None),    "no file (application/pdf)"),
        (file(json!("aGk="), "audio/wav", None),                     "no file (audio/wav)"),
        (json!({"type": "file", "data": 7, "mediaType": "image/png"}), "no part of type `file`"),
    ];
    for (part, want) in table {
        let plan = planned(with(part.clone()));
        assert_eq!(seen(&plan), want, "{part}");
        assert_eq!(plan.downloads, [], "{part}");
    }
}

#[test]
fn a_local_path_goes_before_content() {
    let mut part = file(json!(PNG), "image/png", None);
    part["providerOptions"] =
        json!({ "codex": { "localPath": "/p/a.png", "imageDetail": "high" } });
    let plan = planned(with(part.clone()));
    assert_eq!(
        input(&plan)[1],
        json!({"type": "localImage", "path": "/p/a.png", "detail": "high"})
    );
    // In the history Codex would not read it.
    let plan = of_prompt(json!([{ "role": "user", "content": [part] }, user("now")]));
    assert_eq!(plan.input.len(), 2, "two user messages in a row are one turn");
    let before = json!({ "role": "user", "content": [
        file(json!("file:///p/a.png"), "image/png", None)] });
    let plan = of_prompt(json!([before, assistant("b"), user("now")]));
    assert_eq!(sketch(&plan.inject)[0], "user: [image file: /p/a.png]");
    assert_eq!(warned(&plan), ["other local image"]);
}

#[test]
fn images_that_codex_may_not_read_are_sent_and_told() {
    for media_type in ["image/bmp", "image/png"] {
        let plan = planned(with(file(json!("aGk="), media_type, None)));
        assert_eq!(warned(&plan), [format!("other file ({media_type})")]);
        assert_eq!(plan.input.len(), 2);
    }
}

#[test]
fn addresses_are_handed_back_and_planned_again() {
    let call = with(file(json!("https://a/b.png"), "image/*", None));
    let first = planned(call.clone());
    let want = Download { url: "https://a/b.png".into(), media_type: "image/*".into() };
    assert_eq!(first.downloads, [want]);
    assert_eq!(warned(&first), ["no file (image/*)"]);

    let again = |fetched: Fetched| {
        let fetched = BTreeMap::from([("https://a/b.png".to_owned(), fetched)]);
        try_plan(call.clone(), &PlanContext { fetched, ..PlanContext::default() }).unwrap()
    };
    let bytes = vec![0xff, 0xd8, 0xff];
    let second = again(Fetched::File { bytes, media_type: "text/html".into() });
    assert_eq!((second.downloads.len(), warned(&second)), (0, vec![]));
    assert_eq!(seen(&second), "image: data:image/jpeg;base64,/9j/");
    let refused = again(Fetched::Refused("it is 9 GB".into()));
    insta::assert_json_snapshot!(refused.warnings, @r#"
    [
      {
        "type": "unsupported",
        "feature": "file (image/*)",
        "details": "prompt[0].content[1]: `https://a/b.png` was not downloaded: it is 9 GB"
      }
    ]
    "#);
}

#[test]
fn image_detail_comes_from_the_nearest_place() {
    let at = |part: Value, message: Value, call: Value| {
        let mut image = file(json!(PNG), "image/png", None);
        image["providerOptions"] = part;
        let message = json!({ "role": "user", "content": [image], "providerOptions": message });
        planned(json!({ "prompt": [message], "providerOptions": call }))
    };
    let codex = |word: &str| json!({ "codex": { "imageDetail": word } });
    let openai = |word: &str| json!({ "openai": { "imageDetail": word } });
    #[rustfmt::skip]
    let table = [
        (json!({}),      json!({}),     json!({}),       json!(null),       0),
        (codex("high"),  codex("low"),  codex("auto"),   json!("high"),     0),
        (openai("high"), codex("low"),  codex("auto"),   json!("high"),     0),
        (json!({}),      codex("low"),  codex("high"),   json!("auto"),     1),
        (json!({}),      json!({}),     codex("original"), json!("original"), 0),
        (json!({}),      json!({}),     openai("low"),   json!("auto"),     1),
        (codex("huge"),  codex("high"), json!({}),       json!("high"),     1),
        (json!({}),      json!({}),     codex("huge"),   json!(null),       1),
    ];
    for (part, message, call, want, warnings) in table {
        let plan = at(part.clone(), message, call);
        assert_eq!(input(&plan)[0].get("detail").cloned().unwrap_or_default(), want, "{part}");
        assert_eq!(plan.warnings.len(), warnings, "{part}");
    }
}
