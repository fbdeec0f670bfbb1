//! One turn on Codex: streams the answer, and asks before anything is run or changed.
//!
//! `cargo run --example one_turn -- "what does this project do?"`

use std::io::Write;
use std::sync::Arc;

use bindery::{Answer, CallOptions, Decision, Error, Interrupt, ModelSettings, Part, Prompt};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "say hello".to_owned());
    run(&prompt, &mut std::io::stdout()).await
}

/// Runs the prompt and writes what happens.
async fn run(prompt: &str, out: &mut impl Write) -> Result<(), Error> {
    let settings = ModelSettings { answerer: Arc::new(answer), ..ModelSettings::default() };
    let codex = bindery::start_with(settings).await?;
    let options = CallOptions { prompt: Prompt::user(prompt), ..CallOptions::default() };
    let mut turn = codex.stream(&options).await?.turn;
    while let Some(part) = turn.next().await {
        // A reader that went away is no reason to stop the turn.
        let _ = match part {
            Part::TextDelta(text) => write!(out, "{}", text.delta),
            Part::ToolCall(call) => writeln!(out, "[{} {}]", call.tool_name, call.input),
            Part::Error { error } => writeln!(out, "error: {error}"),
            Part::Finish { usage, .. } => {
                writeln!(out, "\n{:?} tokens read", usage.input_tokens.total.unwrap_or(0))
            }
            _ => Ok(()),
        };
    }
    Ok(())
}

/// Says no to everything; a real application would ask somebody.
async fn answer(_: Interrupt) -> Option<Answer> {
    Some(Answer::decision(Decision::Decline))
}
