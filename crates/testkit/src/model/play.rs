//! Plays a reply, step by step, in the language of the request.

use std::collections::BTreeMap;
use std::future::pending;
use std::io::Result;
use std::time::Duration;

use serde_json::Value;
use tokio::net::tcp::OwnedWriteHalf;

use super::chunks::Chunks;
use super::events::Events;
use super::http::{self, Stream};
use super::script::{Reply, Step, Usage};
use super::server::Shared;

/// The language a reply is told in.
pub(super) enum Voice {
    /// Events of the Responses API.
    Responses(Events),
    /// Chunks of the Chat Completions API.
    Chat(Chunks),
    /// A whole completion at the end.
    Whole(Chunks),
}

impl Voice {
    /// The language of this path; none if there is nothing to ask at it.
    pub(super) fn of(path: &str, number: usize, body: &Value) -> Option<Self> {
        if path.ends_with("/responses") {
            return Some(Self::Responses(Events::new(number)));
        }
        let chunks = || Chunks::new(number, body);
        let chat = if body["stream"] == true { Self::Chat } else { Self::Whole };
        path.ends_with("/chat/completions").then(|| chat(chunks()))
    }

    fn created(&mut self) -> Vec<u8> {
        match self {
            Self::Responses(events) => events.created(),
            Self::Chat(chunks) => chunks.created(),
            Self::Whole(_) => Vec::new(),
        }
    }

    fn completed(&mut self, usage: Usage) -> Vec<u8> {
        match self {
            Self::Responses(events) => events.completed(usage),
            Self::Chat(chunks) | Self::Whole(chunks) => chunks.completed(usage),
        }
    }

    fn failed(&mut self, code: &str, message: &str) -> Vec<u8> {
        match self {
            Self::Responses(events) => events.failed(code, message),
            Self::Chat(chunks) | Self::Whole(chunks) => chunks.failed(code, message),
        }
    }

    fn incomplete(&mut self, reason: &str) -> Vec<u8> {
        match self {
            Self::Responses(events) => events.incomplete(reason),
            Self::Chat(chunks) | Self::Whole(chunks) => chunks.incomplete(reason),
        }
    }

    fn of_step(&mut self, step: &Step) -> Vec<u8> {
        match self {
            Self::Responses(events) => events.of_step(step),
            Self::Chat(chunks) | Self::Whole(chunks) => chunks.of_step(step),
        }
    }
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Played {
    /// Whole: the connection is good for another.
    Whole,
    /// In the middle, as the script has it: the connection ends with it.
    Cut,
}

/// Plays a reply to its end. An error means that the client left first.
pub(super) async fn play(
    reply: &Reply,
    mut voice: Voice,
    to: &mut OwnedWriteHalf,
    shared: &Shared,
) -> Result<Played> {
    let mut stream = Stream::new(to);
    let mut usage = Usage::default();
    for step in &reply.steps {
        match step {
            Step::Delay { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Step::Gate { name } => shared.pass(name).await,
            Step::Usage(numbers) => usage = *numbers,
            Step::HangUp => return Ok(Played::Cut),
            Step::Status { status, body, headers } if !stream.begun() => {
                http::answer(stream.writer(), *status, headers, body).await?;
                return Ok(Played::Whole);
            }
            Step::Cut if matches!(voice, Voice::Whole(_)) => return Ok(Played::Cut),
            step if matches!(voice, Voice::Whole(_)) && says(step) => {
                voice.of_step(step);
            }
            step => {
                begin(&mut stream, &mut voice).await?;
                if let Some(played) = say(step, &mut stream, &mut voice).await? {
                    return Ok(played);
                }
            }
        }
    }
    if let Voice::Whole(chunks) = &voice {
        let body = chunks.whole(usage);
        http::answer(stream.writer(), 200, &BTreeMap::new(), &body).await?;
        return Ok(Played::Whole);
    }
    begin(&mut stream, &mut voice).await?;
    stream.send(&voice.completed(usage)).await?;
    stream.finish().await?;
    Ok(Played::Whole)
}

/// Whether a step is part of what the model says.
fn says(step: &Step) -> bool {
    let faults = matches!(
        step,
        Step::Failed { .. } | Step::Incomplete { .. } | Step::Silence | Step::Bytes { .. }
    );
    !faults
}

/// Says one step; how the reply ended, if nothing may follow it.
async fn say(
    step: &Step,
    stream: &mut Stream<&mut OwnedWriteHalf>,
    voice: &mut Voice,
) -> Result<Option<Played>> {
    let last = match step {
        Step::Failed { code, message } => voice.failed(code, message),
        Step::Incomplete { reason } => voice.incomplete(reason),
        Step::Cut => return Ok(Some(Played::Cut)),
        Step::Silence => pending().await,
        Step::Bytes { bytes } => {
            stream.send(bytes.as_slice()).await?;
            return Ok(None);
        }
        step => {
            stream.send(&voice.of_step(step)).await?;
            return Ok(None);
        }
    };
    stream.send(&last).await?;
    stream.finish().await?;
    Ok(Some(Played::Whole))
}

async fn begin(stream: &mut Stream<&mut OwnedWriteHalf>, voice: &mut Voice) -> Result<()> {
    if stream.begun() {
        return Ok(());
    }
    stream.begin().await?;
    stream.send(&voice.created()).await
}
