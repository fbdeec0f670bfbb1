//! Questions as they are shown, and what the keys say.

use bindery::core::interrupt::{Answer, Ask, Decision, Interrupt};
use bindery::core::item::{ChangeKind, FileChange};
use bindery::core::map::answer_to_reply::reply;
use bindery_cli::approval::{Asker, KeyAction, ask_text, choices, key, more_text};
use serde_json::{Value, json};

use crate::screen::seen;
use crate::turn::paper;

fn interrupt(ask: Ask) -> Interrupt {
    let (id, thread_id) = ("q1".into(), "th".into());
    Interrupt { id, thread_id, turn_id: "tu".into(), call_id: "c1".into(), ask }
}

fn command(command: &str) -> Ask {
    Ask::Command {
        command: command.to_owned(),
        cwd: "/src/almanac".to_owned(),
        reason: Some("publish the branch".to_owned()),
        into_running: false,
        person_required: false,
        rule: None,
        network: None,
        network_rules: Vec::new(),
    }
}

fn elicitation(mode: &str, schema: Option<Value>, tool_params: Option<Value>) -> Ask {
    Ask::Elicitation {
        server: "calendar".to_owned(),
        message: "Allow `weeks_of`?".to_owned(),
        mode: mode.to_owned(),
        schema,
        tool_params,
        persist: vec!["session".to_owned()],
    }
}

fn all() -> Vec<Ask> {
    let mut ruled = command("/bin/bash -lc 'git push origin weeks'");
    if let Ask::Command { rule, network, network_rules, .. } = &mut ruled {
        *rule = Some(vec!["git".into(), "push".into()]);
        *network = Some(json!({"host": "example.org", "protocol": "https"}));
        *network_rules = vec![
            json!({"action": "allow", "host": "example.org"}),
            json!({"action": "deny", "host": "example.org"}),
        ];
    }
    let change = FileChange {
        path: "/src/a.rs".into(),
        kind: ChangeKind::Update { move_path: None },
        diff: "@@ -1 +1 @@\n-a\n+b\n".into(),
    };
    vec![
        command("ls"),
        ruled,
        Ask::FileChange { changes: vec![change], reason: None, grant_root: Some("/src".into()) },
        Ask::Permissions {
            permissions: json!({"network": {"enabled": true}, "fileSystem": {"write": ["/b"]}}),
            reason: Some("to fetch".into()),
            cwd: Some("/src".into()),
        },
        Ask::UserInput { questions: vec![] },
        Ask::UserInput {
            questions: vec![json!({"id": "q", "header": "Colour",
            "question": "Which colour?", "isOther": true, "options": [
                {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]})],
        },
        elicitation("form", None, Some(json!({"year": 2026}))),
        elicitation("form", None, None),
        elicitation("url", Some(json!({"url": "https://x.y/login"})), None),
        elicitation(
            "form",
            Some(json!({"properties": {"n": {"type": "integer",
            "title": "Weeks"}}})),
            None,
        ),
        Ask::ToolCall { tool: "t".into(), namespace: None, arguments: json!({"a": 1}) },
    ]
}

#[test]
fn a_question_names_who_runs_the_turn() {
    for ask in all() {
        let text = |asker| ask_text(&interrupt(ask.clone()), asker, &paper(100, true));
        let (codex, engine) = (text(Asker::Codex), text(Asker::Engine));
        assert!(!engine.contains("Codex"), "{engine}");
        assert_eq!(codex.replace("? Codex ", "? The engine "), engine);
    }
}

#[test]
fn a_command_is_asked_for_as_in_the_sketch() {
    let mut ask = command("/bin/bash -lc 'git push origin weeks'");
    if let Ask::Command { rule, .. } = &mut ask {
        *rule = Some(["git", "push", "origin"].map(str::to_owned).to_vec());
    }
    insta::assert_snapshot!(ask_text(&interrupt(ask.clone()), Asker::Codex, &paper(100, true)), @"
    ? Codex wants to run a command
        $ git push origin weeks
        in /src/almanac · reason: publish the branch
      [y] once   [s] for this session   [a] always `git push origin …`   [n] no, go on   [c] no, stop
      [?] more
    ›
    ");
    insta::assert_snapshot!(ask_text(&interrupt(ask), Asker::Codex, &paper(60, false)), @"
    ? Codex wants to run a command
        $ git push origin weeks
        in /src/almanac - reason: publish the branch
      [y] once   [s] for this session
      [a] always `git push origin ...`   [n] no, go on
      [c] no, stop   [?] more
    >
    ");
}

#[test]
fn what_a_person_must_decide_offers_no_lasting_yes() {
    let mut ask = command("deploy");
    if let Ask::Command { rule, person_required, .. } = &mut ask {
        *rule = Some(vec!["deploy".into()]);
        *person_required = true;
    }
    insta::assert_snapshot!(ask_text(&interrupt(ask), Asker::Codex, &paper(100, true)), @"
    ? Codex wants to run a command
        $ deploy
        in /src/almanac · reason: publish the branch
      [y] once   [n] no, go on   [c] no, stop   [?] more
    ›
    ");
}

#[test]
fn every_question_says_what_it_is_about() {
    let texts = all()
        .into_iter()
        .skip(1)
        .map(|ask| ask_text(&interrupt(ask), Asker::Codex, &paper(80, true)));
    insta::assert_snapshot!(texts.collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn nothing_is_hidden_in_a_command() {
    let hidden = format!("ls{};\trm -rf ~\u{200b}\u{202e}\x1b[1A\n# second line", " ".repeat(70));
    let text = ask_text(&interrupt(command(&hidden)), Asker::Codex, &paper(60, true));
    insta::assert_snapshot!(text, @r#"
    ? Codex wants to run a command
        $ ls
                            ;\trm -rf ~\u{200b}\u{202e}\x1b[1A
          # second line
        in /src/almanac · reason: publish the branch
      [y] once   [s] for this session   [n] no, go on
      [c] no, stop   [?] more
    ›
    "#);
    let more = seen(&more_text(&interrupt(command(&hidden)), &paper(60, true)));
    assert!(more.replace(['\n', ' '], "").contains("\\u{202e}"));
}

#[test]
fn keys_say_what_they_say() {
    let decision =
        |decision| Some(KeyAction::Answer { answer: Answer::decision(decision), stop: false });
    let ruled = interrupt(all().remove(1));
    let rule = vec!["git".to_owned(), "push".to_owned()];
    assert_eq!(key(&ruled, 'y'), decision(Decision::Accept));
    assert_eq!(key(&ruled, 's'), decision(Decision::AcceptForSession));
    assert_eq!(key(&ruled, 'a'), decision(Decision::AcceptWithRule(rule)));
    assert_eq!(key(&ruled, 'n'), decision(Decision::Decline));
    assert_eq!(key(&ruled, 'c'), decision(Decision::Cancel));
    assert_eq!(key(&ruled, '?'), Some(KeyAction::More));
    let plain = interrupt(command("ls"));
    for other in ['a', 'h', 'd', 'Y', '\n', '\r', ' ', '1'] {
        assert_eq!(key(&plain, other), None, "{other:?}");
    }
}

/// Every offered answer is one that Codex takes, and only `y`, `s`, `a` and `h` can mean yes.
#[test]
fn offered_keys_fit_their_questions() {
    for ask in all() {
        let interrupt = interrupt(ask);
        for choice in choices(&interrupt) {
            let KeyAction::Answer { answer, .. } = &choice.action else { continue };
            let reply = reply(&interrupt.ask, answer).unwrap();
            let no = ["decline", "cancel", "deny"].iter().any(|no| reply.to_string().contains(no));
            let nothing = reply.get("permissions") == Some(&json!({}))
                || reply.get("success") == Some(&json!(false))
                || reply.get("answers") == Some(&json!({}));
            assert_eq!("ncd".contains(choice.key), no || nothing, "{choice:?} {reply}");
        }
    }
}

/// A question with no keys must be one with words to type: nothing is answered by itself.
#[test]
fn every_question_waits_for_somebody() {
    let silent: Vec<Ask> =
        all().into_iter().filter(|ask| choices(&interrupt(ask.clone())).is_empty()).collect();
    assert_eq!(silent.len(), 2);
    assert!(matches!(&silent[0], Ask::UserInput { questions } if !questions.is_empty()));
    assert!(matches!(&silent[1], Ask::Elicitation { schema: Some(_), .. }));
}

#[test]
fn more_is_a_list_of_everything_that_is_known() {
    let more = |ask| more_text(&interrupt(ask), &paper(80, true));
    let texts = all().into_iter().map(more).collect::<Vec<_>>();
    insta::assert_snapshot!(texts.join("\n\n"));
}
