//! Mentions, skills and marked places of the last user turn.

use serde_json::{Value, json};

use super::*;
use crate::map::prompt_to_turn::notes::in_words;

fn context() -> PlanContext {
    let skill = |name: &str| (name.to_owned(), format!("/s/{name}/SKILL.md"));
    PlanContext {
        parse_mentions: true,
        skills: [skill("deploy"), skill("pdf-fill")].into(),
        cwd: Some("/p".to_owned()),
        ..PlanContext::default()
    }
}

/// What is marked in a text, and the names and paths that follow.
fn marked(text: &str) -> String {
    let plan = try_plan(json!({ "prompt": [user(text)] }), &context()).unwrap();
    assert_eq!(warned(&plan), Vec::<String>::new());
    let input = input(&plan);
    let places = input[0]["text_elements"].as_array().unwrap().iter().map(|element| {
        let at = |end: &str| element["byteRange"][end].as_u64().unwrap() as usize;
        text[at("start")..at("end")].to_owned()
    });
    let named = input.as_array().unwrap()[1..].iter().map(|input| {
        let field = |name: &str| input[name].as_str().unwrap().to_owned();
        format!("{} {} {}", field("type"), field("name"), field("path"))
    });
    places.chain(named).collect::<Vec<_>>().join(" | ")
}

#[test]
fn mentions_and_skills_are_found_in_text() {
    #[rustfmt::skip]
    let table = [
        ("fix @src/foo.ts",               "@src/foo.ts | mention foo.ts /p/src/foo.ts"),
        ("@a.rs",                         "@a.rs | mention a.rs /p/a.rs"),
        ("é (see @a.rs).",                "@a.rs | mention a.rs /p/a.rs"),
        ("日本「@a/日本.rs」",            "@a/日本.rs | mention 日本.rs /p/a/日本.rs"),
        ("@./a.rs, @/b.rs; @~/c.rs!",     "@./a.rs | @/b.rs | @~/c.rs | mention a.rs /p/a.rs | \
                                           mention b.rs /b.rs | mention c.rs ~/c.rs"),
        ("@app/(x)/[id].tsx)",            "@app/(x)/[id].tsx | mention [id].tsx /p/app/(x)/[id].tsx"),
        ("look at @\"my notes.md\", ok",  "@\"my notes.md\" | mention my notes.md /p/my notes.md"),
        ("@a.rs and @a.rs",               "@a.rs | @a.rs | mention a.rs /p/a.rs"),
        ("@src/",                         "@src/ | mention src /p/src/"),
        ("mail me@x.org or a@b",          ""),
        ("@me@x.org @scope/p@1.0 @@ @ @. @\"\" @\"open", ""),
        ("https://x.org/@me `@Override`", ""),
        ("use $deploy.",                  "$deploy | skill deploy /s/deploy/SKILL.md"),
        ("($pdf-fill) $pdf-fill-",        "$pdf-fill | $pdf-fill | skill pdf-fill /s/pdf-fill/SKILL.md"),
        ("$HOME $deployment a$deploy $",  ""),
    ];
    for (text, want) in table {
        assert_eq!(marked(text), want, "{text}");
    }
}

#[test]
fn byte_ranges_count_utf8_bytes() {
    let plan = try_plan(json!({ "prompt": [user("é日 @a.rs")] }), &context()).unwrap();
    let want = json!([{ "byteRange": { "start": 6, "end": 11 }, "placeholder": "a.rs" }]);
    assert_eq!(input(&plan)[0]["text_elements"], want);
}

#[test]
fn nothing_is_parsed_unless_asked_for() {
    let call = |options: Value| json!({ "prompt": [user("@a.rs")], "providerOptions": options });
    assert_eq!(planned(call(json!({}))).input.len(), 1);
    assert_eq!(planned(call(json!({ "codex": { "parseMentions": true } }))).input.len(), 2);
}

#[test]
fn options_name_mentions_skills_and_places() {
    let part = json!({ "type": "text", "text": "é see it", "providerOptions": { "codex": {
        "mentions": [{ "name": "App", "path": "app://x" }, "b.rs", { "name": "no path" }],
        "textElements": [
            { "byteRange": { "start": 0, "end": 2 }, "placeholder": "E" },
            { "byteRange": { "start": 1, "end": 2 }, "placeholder": null },
            { "byteRange": { "start": 2, "end": 99 } },
            { "byteRange": { "start": 2, "end": 2 } },
            { "byteRange": { "start": 5, "end": 3 } },
            "x"],
    } } });
    let message = json!({ "role": "user", "content": [part], "providerOptions": { "codex": {
        "skills": ["deploy", { "name": "own", "path": "/o" }, "nowhere"], "colour": "red",
    } } });
    let plan = try_plan(json!({ "prompt": [message] }), &context()).unwrap();
    assert_eq!(
        input(&plan),
        json!([
            { "type": "text", "text": "é see it", "text_elements": [
                { "byteRange": { "start": 0, "end": 2 }, "placeholder": "E" }] },
            { "type": "skill", "name": "deploy", "path": "/s/deploy/SKILL.md" },
            { "type": "skill", "name": "own", "path": "/o" },
            { "type": "mention", "name": "App", "path": "app://x" },
            { "type": "mention", "name": "b.rs", "path": "/p/b.rs" },
        ])
    );
    let words = plan.warnings.iter().map(in_words).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(words, @r#"
    providerOptions.codex.colour: prompt[0]: no such option of a message
    providerOptions.codex.skills: prompt[0]: "nowhere": no such skill is known; give its path
    providerOptions.codex.mentions: prompt[0].content[0]: {"name":"no path"}: a mention needs a `path`
    providerOptions.codex.textElements: prompt[0].content[0]: {"byteRange":{"end":2,"start":1},"placeholder":null}: its range is not one of whole UTF-8 characters in the text
    providerOptions.codex.textElements: prompt[0].content[0]: {"byteRange":{"end":99,"start":2}}: its range is not one of whole UTF-8 characters in the text
    providerOptions.codex.textElements: prompt[0].content[0]: {"byteRange":{"end":2,"start":2}}: its range is empty
    providerOptions.codex.textElements: prompt[0].content[0]: {"byteRange":{"end":3,"start":5}}: its range is not one of whole UTF-8 characters in the text
    providerOptions.codex.textElements: prompt[0].content[0]: "x": it is not {byteRange, placeholder}
    "#);
}

#[test]
fn a_given_place_wins_over_a_parsed_one() {
    let part = json!({ "type": "text", "text": "@a.rs @b.rs", "providerOptions": { "codex": {
        "textElements": [{ "byteRange": { "start": 3, "end": 7 }, "placeholder": "mine" }] } } });
    let plan = try_plan(json!({ "prompt": [{ "role": "user", "content": [part] }] }), &context());
    assert_eq!(input(&plan.unwrap())[0]["text_elements"].as_array().unwrap().len(), 1);
}

#[test]
fn skills_of_earlier_messages_are_named_once() {
    let old = json!({ "role": "user", "content": "q",
        "providerOptions": { "codex": { "skills": ["deploy"] } } });
    let plan = of_prompt(json!([old, old, assistant("a"), user("now")]));
    assert_eq!(warned(&plan), ["no providerOptions.codex.skills of earlier messages"]);
}
