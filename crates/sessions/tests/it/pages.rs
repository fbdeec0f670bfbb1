//! Pages: what a reader sees of a session.

use bindery_sessions::normalise::Options;
use bindery_sessions::render::{Density, Style, markdown, terminal};
use bindery_sessions::session::of_bytes;

use crate::corpus;

fn page(name: &str, density: Density) -> String {
    let session = of_bytes(&corpus::file(name).bytes, Options::default());
    let style = Style { density, width: 80, ..Style::default() };
    let mut out = Vec::new();
    for (turn, number) in session.transcript.turns.iter().zip(1..) {
        terminal(&mut out, Some(number), turn, style).unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn three_densities_of_a_failing_command() {
    insta::assert_snapshot!(
        "conversation",
        page("0.98.0/shellfail.rollout.jsonl", Density::Conversation)
    );
    insta::assert_snapshot!("activity", page("0.98.0/shellfail.rollout.jsonl", Density::Activity));
    insta::assert_snapshot!(
        "everything",
        page("0.98.0/shellfail.rollout.jsonl", Density::Everything)
    );
}

#[test]
fn patches_plans_and_compactions_are_drawn() {
    insta::assert_snapshot!("patch", page("0.166.0/patch.rollout.jsonl", Density::Activity));
    insta::assert_snapshot!("plan", page("0.98.0/plan.rollout.jsonl", Density::Activity));
    insta::assert_snapshot!(
        "compaction",
        page("0.166.0/app_compact.rollout.jsonl", Density::Activity)
    );
    insta::assert_snapshot!(
        "aborted",
        page("0.166.0/app_interrupt.rollout.jsonl", Density::Activity)
    );
}

#[test]
fn a_goal_and_the_turns_that_it_began_are_shown_as_such() {
    let page = page("0.169.0/app_goal.rollout.jsonl", Density::Activity);
    assert!(!page.contains("unknown"), "{page}");
    let lines: Vec<&str> = page.lines().filter(|line| line.contains("goal")).collect();
    let has = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
    assert_eq!((has("goal: count to three"), has("begun by goal")), (2, 2), "{page}");
}

#[test]
fn a_session_as_markdown() {
    let session = of_bytes(&corpus::file("0.166.0/patch.rollout.jsonl").bytes, Options::default());
    let mut out = Vec::new();
    for (turn, number) in session.transcript.turns.iter().zip(1..) {
        markdown(&mut out, number, turn).unwrap();
    }
    insta::assert_snapshot!("markdown", String::from_utf8(out).unwrap());
}

#[test]
fn every_session_of_the_corpus_is_drawn_without_control_characters() {
    for entry in corpus::sessions() {
        let session = of_bytes(&entry.bytes, Options::default());
        for density in [Density::Conversation, Density::Activity, Density::Everything] {
            let style = Style { density, width: 60, unicode: false, ..Style::default() };
            let mut out = Vec::new();
            for turn in &session.transcript.turns {
                terminal(&mut out, None, turn, style).unwrap();
                markdown(&mut out, 1, turn).unwrap();
            }
            let text = String::from_utf8(out).unwrap();
            let bad = text.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t');
            assert_eq!(bad, None, "{}", entry.name);
        }
    }
}
