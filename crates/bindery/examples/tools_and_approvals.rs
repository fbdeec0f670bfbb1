//! A tool of ours that Codex may call, and approvals that are answered by rule.
//!
//! `cargo run --example tools_and_approvals -- "what is the weather in Bern?"`
#![expect(clippy::print_stdout, reason = "an example tells what happens")]

use std::sync::Arc;

use bindery::client::tools::{Output, Tool, ToolSet};
use bindery::{Answer, Ask, CallOptions, Decision, Error, Interrupt, ModelSettings, Part, Prompt};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "how is the weather in Bern?".into());
    let settings = ModelSettings {
        tools: ToolSet::default().with("weather", weather()),
        answerer: Arc::new(answer),
        ..ModelSettings::default()
    };
    let codex = bindery::start_with(settings).await?;
    let options = CallOptions { prompt: Prompt::user(prompt), ..CallOptions::default() };
    let mut turn = codex.stream(&options).await?.turn;
    while let Some(part) = turn.next().await {
        match part {
            Part::ToolCall(call) => println!("[{} {}]", call.tool_name, call.input),
            Part::TextDelta(text) => print!("{}", text.delta),
            Part::Finish { .. } => println!(),
            _ => {}
        }
    }
    Ok(())
}

/// Runs in this process. An error, a panic or 30 seconds without an answer become a failed result.
fn weather() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
    });
    Tool::new("Tells the weather in a city", schema, |call| async move {
        let city = call.input["city"].as_str().ok_or("which city?")?.to_owned();
        Ok(Output::text(format!("it rains in {city}")))
    })
}

/// Lets harmless commands run and refuses everything else.
async fn answer(interrupt: Interrupt) -> Option<Answer> {
    match &interrupt.ask {
        Ask::Command { command, .. } if command.contains("git status") => {
            Some(Answer::decision(Decision::Accept))
        }
        _ => None,
    }
}
