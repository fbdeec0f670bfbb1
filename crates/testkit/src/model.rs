//! A scripted model: a server for the OpenAI Responses API that streams what a script says, and for
//! Chat Completions: any script runs on either.
//!
//! It lives on a thread of its own, so that synchronous tests, benches and tests with a paused
//! clock can all use it; dropping it ends that thread and everything on it.

mod script;

mod choice;

mod filling;

mod events;

mod chunks;

mod play;

mod http;

mod server;

pub use choice::last_user_text;
pub use script::{Bytes, Reply, Script, Step, Times, Usage, When};
pub use server::{Model, Request};
