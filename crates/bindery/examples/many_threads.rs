//! Several conversations at once on one pool of Codex processes.
//!
//! `cargo run --example many_threads -- "first question" "second question" …`
#![expect(clippy::print_stdout, reason = "an example tells what happens")]

use std::time::Duration;

use bindery::client::locate::locate;
use bindery::client::pool::{Pool, PoolSettings};
use bindery::core::spec::Spec;
use bindery::{CallOptions, Error, Launch, ModelSettings, Prompt};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let questions: Vec<String> = std::env::args().skip(1).collect();
    let pool = Pool::new(PoolSettings { workers: 1, ..PoolSettings::default() });
    let model = pool.model(Launch::codex(&locate(None)?), ModelSettings::default());
    let asked = questions.into_iter().map(|question| {
        let model = model.clone();
        tokio::spawn(async move {
            let prompt = Prompt::user(question.clone());
            let options = CallOptions { prompt, ..CallOptions::default() };
            (question, model.generate(&options, Spec::V4).await)
        })
    });
    for answer in asked.collect::<Vec<_>>() {
        let Ok((question, generated)) = answer.await else { continue };
        let texts = generated?.content.into_iter().filter(|piece| piece["type"] == "text");
        let texts: Vec<String> =
            texts.filter_map(|piece| piece["text"].as_str().map(str::to_owned)).collect();
        println!("{question} → {}", texts.join(" "));
    }
    println!("{} worker", pool.stats().workers);
    pool.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
