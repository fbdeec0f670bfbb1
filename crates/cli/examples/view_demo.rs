//! Plays a scripted turn in the terminal.
//!
//! `cargo run -p bindery-cli --example view_demo [command|words|cancelled]`; with a word it also
//! asks a question, the last of which is taken back after a while.

use std::time::{Duration, Instant};

use bindery::core::interrupt::{Ask, Interrupt};
use bindery::core::part::Part;
use bindery_cli::approval;
use bindery_cli::terminal::Style;
use bindery_cli::view::View;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let style = Style::here();
    let started = Instant::now();
    let now = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut view = View::new(style, "/home/dev/almanac");
    view.header(&["codex 0.166.0", "gpt-5.4", "workspace-write", "~/almanac (main, 2 changed)"])
        .print()?;
    let word = std::env::args().nth(1);
    for line in include_str!("../tests/it/turn.jsonl").lines() {
        let part: Part = serde_json::from_str(line)?;
        let pause = match &part {
            Part::ToolResult(result) if result.preliminary => 200,
            Part::ToolCall(_) => 600,
            _ => 40,
        };
        let last = matches!(&part, Part::TextStart(run) if run.id.as_str() == "t3");
        if let Some(word) = word.as_deref().filter(|_| last) {
            view.pause().print()?;
            let patience = if word == "cancelled" { 3 } else { 3600 };
            let cancelled = tokio::time::sleep(Duration::from_secs(patience));
            let outcome =
                approval::ask(&question(word), approval::Asker::Codex, &style, cancelled).await?;
            view.remark(&format!("answered: {outcome:?}")).print()?;
        }
        view.push(&part).print()?;
        for _ in 0..pause / 40 {
            tokio::time::sleep(Duration::from_millis(40)).await;
            view.tick(now()).print()?;
        }
    }
    view.finish().print()?;
    Ok(())
}

fn question(word: &str) -> Interrupt {
    let command = Ask::Command {
        command: "/bin/bash -lc 'git push origin weeks'".to_owned(),
        cwd: "/home/dev/almanac".to_owned(),
        reason: Some("publish the branch".to_owned()),
        into_running: false,
        person_required: false,
        rule: Some(["git", "push", "origin"].map(str::to_owned).to_vec()),
        network: None,
        network_rules: Vec::new(),
    };
    let questions = vec![
        json!({"id": "colour", "header": "Colour", "question": "Which colour?", "isOther": true,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]}),
        json!({"id": "key", "header": "Key", "question": "The key?", "isSecret": true}),
    ];
    let ask = if word == "words" { Ask::UserInput { questions } } else { command };
    let (id, call_id) = ("q1".into(), "c9".into());
    Interrupt { id, thread_id: "01a1e0cd".into(), turn_id: "01a1e0ce".into(), call_id, ask }
}
