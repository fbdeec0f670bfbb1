//! Codex, bound into your app.
//!
//! [`start`] finds Codex on this machine, starts it, and gives it as a language model: a prompt in
//! the AI SDK's shape goes in, stream parts in the AI SDK's shape come out.
//!
//! ```no_run
//! use bindery::{CallOptions, Part, Prompt};
//!
//! # async fn run() -> Result<(), bindery::Error> {
//! let codex = bindery::start().await?;
//! let prompt = Prompt::user("what does this project do?");
//! let mut turn = codex.stream(&CallOptions { prompt, ..Default::default() }).await?.turn;
//! while let Some(part) = turn.next().await {
//!     if let Part::TextDelta(text) = part {
//!         print!("{}", text.delta);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Where there is no Codex, [`start_engine`] starts the built-in engine in this process and gives
//! the same [`AppServer`].
//!
//! [`core`] holds the words and the maps, [`client`] everything between us and a running Codex,
//! [`sessions`] what Codex leaves on disk, [`engine`] the same pipeline in our own code, on any
//! model.

mod in_process;

pub use bindery_client as client;
pub use bindery_core as core;
pub use bindery_engine as engine;
pub use bindery_sessions as sessions;

pub use bindery_client::answerer::Answerer;
pub use bindery_client::app_server::{AppServer, ConnectOptions};
pub use bindery_client::error::Error;
pub use bindery_client::model::{Call, LanguageModel, ModelSettings, Step};
pub use bindery_client::transport::stdio::Launch;
pub use bindery_client::turn::{Deadlines, Turn, TurnControl, TurnRequest};
pub use bindery_core::call::CallOptions;
pub use bindery_core::interrupt::{Answer, Ask, Decision, Interrupt};
pub use bindery_core::part::Part;
pub use bindery_core::prompt::Prompt;
pub use bindery_core::transcript::Transcript;
pub use in_process::{
    Engine, EngineError, EngineOptions, RawEngine, engine_house, engine_service, start_engine,
};

/// Finds Codex, starts it, and gives it as a language model with default settings.
///
/// Nobody answers its questions, so whatever needs an approval is refused; see [`start_with`].
pub async fn start() -> Result<LanguageModel, Error> {
    start_with(ModelSettings::default()).await
}

/// Finds Codex, starts it, and gives it as a language model.
pub async fn start_with(settings: ModelSettings) -> Result<LanguageModel, Error> {
    let codex = client::locate::locate(None)?;
    let server = AppServer::spawn(&Launch::codex(&codex), &ConnectOptions::default()).await?;
    Ok(LanguageModel::new(server, settings))
}
