//! A turn on a Codex that runs already: `codex app-server --listen unix:///tmp/codex.sock`.
//!
//! `cargo run --example attach -- unix:///tmp/codex.sock "say hello"`
#![expect(clippy::print_stdout, reason = "an example tells what happens")]

use bindery::client::transport::dial::Dial;
use bindery::{
    AppServer, CallOptions, ConnectOptions, Error, LanguageModel, ModelSettings, Part, Prompt,
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "unix://".to_owned()).parse()?;
    let prompt = arguments.next().unwrap_or_else(|| "say hello".to_owned());
    // A lost connection is found again, and the turn goes on where it was.
    let server = AppServer::dial(&Dial::new(address), &ConnectOptions::default()).await?;
    let model = LanguageModel::new(server, ModelSettings::default());
    let options = CallOptions { prompt: Prompt::user(prompt), ..CallOptions::default() };
    let mut turn = model.stream(&options).await?.turn;
    while let Some(part) = turn.next().await {
        match part {
            Part::TextDelta(text) => print!("{}", text.delta),
            Part::Finish { .. } => println!(),
            _ => {}
        }
    }
    Ok(())
}
