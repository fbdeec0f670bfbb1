//! The Chat Completions wire: an adapter over our item model, for servers that speak nothing else.
//!
//! It loses what the wire has no place for: encrypted thoughts, groups of tools, tools run by the
//! server. What differs between servers and models is in the [`ChatProfile`]; a request that is
//! refused for its shape is sent once more with the fields that the refusal names.

mod messages;

mod shape;

mod tools_as_text;

mod body;

mod stream;

mod tags;

mod finish_reason;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::Response;
use tokio::sync::mpsc;

use body::build_body;
use stream::{Progress, Reader};

use super::chat_profile::{ChatProfile, ChatProfileFields};
use super::chat_profiles::{ShapeFix, fix_for_refusal};
use super::classify::{Again, Failure};
use super::clients::Clients;
use super::dialect::Names;
use super::http::{self, Shape};
use super::wire::{Server, headers, tell};
use super::{Answered, Fault, Model, ModelError, ModelEvent, ModelRequest, Provider};

/// How long an answer that is whole may still be followed by its count of tokens.
const GRACE: Duration = Duration::from_secs(5);

/// A server of the Chat Completions API.
pub(super) struct Chat {
    provider: Provider,
    server: Server,
    /// Fields that the server's refusals asked for, by model.
    learned: Mutex<HashMap<String, Vec<ChatProfileFields>>>,
}

impl Chat {
    pub(super) fn new(provider: &Provider, clients: &Clients) -> Self {
        let server = Server::new(provider, &["chat", "completions"], clients);
        Self { provider: provider.clone(), server, learned: Mutex::default() }
    }

    async fn ask(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answered, ModelError> {
        let model = request.model.clone();
        let profile = self.profile(&model);
        let error = match self.ask_once(request.clone(), &profile, &events).await {
            Err(error) if error.kind == Fault::BadRequest => error,
            ended => return ended,
        };
        let Some(fix) = fix_for_refusal(&error.message) else { return Err(error) };
        let mut mended = profile.clone();
        mended.set(&fix.fields);
        if mended == profile {
            return Err(error);
        }
        tracing::warn!(%error, set = fix.settings, "the server refused a request; sent once more");
        let ended = self.ask_once(request, &mended, &events).await;
        match ended {
            Ok(answered) => {
                self.learn(&model, &fix);
                tell(&events, ModelEvent::Notice(self.advice(&fix))).await;
                Ok(answered)
            }
            Err(second) => {
                Err(ModelError { message: self.name_fields(&second.message, &fix), ..second })
            }
        }
    }

    fn profile(&self, model: &str) -> ChatProfile {
        let mut profile = self.provider.chat.for_model(model);
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.get(model).into_iter().flatten().for_each(|fields| profile.set(fields));
        profile
    }

    fn learn(&self, model: &str, fix: &ShapeFix) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.entry(model.to_owned()).or_default().push(fix.fields.clone());
    }

    fn advice(&self, fix: &ShapeFix) -> String {
        format!(
            "the model's server refused the request as it was and took it with `{}`; write that \
             below `{}` to be spared the second request",
            fix.settings,
            self.provider.chat.settings_table(),
        )
    }

    fn name_fields(&self, message: &str, fix: &ShapeFix) -> String {
        let table = self.provider.chat.settings_table();
        format!("{message}; tried also with `{}` of `{table}`", fix.settings)
    }

    async fn ask_once(
        &self,
        request: ModelRequest,
        profile: &ChatProfile,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answered, ModelError> {
        let mut headers = headers(&request);
        let extra = profile.extra_headers.iter();
        headers.extend(extra.map(|(name, value)| (Cow::Owned(name.clone()), value.clone())));
        let (body, names) = build_body(request, &self.provider, profile);
        let read = |response| self.read(response, &names, profile, events);
        self.server.ask(&body, &headers, events, read).await
    }

    async fn read(
        &self,
        response: Response,
        names: &Names,
        profile: &ChatProfile,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answered, Failure> {
        let mut reader = Reader::new(names, &profile.finish_reasons);
        let strange = match http::shape(&response) {
            Shape::Stream => self.stream(response, &mut reader, events).await?,
            Shape::Json => {
                let body = self.server.http.whole(response).await?;
                for event in reader.read_whole(&String::from_utf8_lossy(&body))? {
                    tell(events, event).await;
                }
                0
            }
            Shape::Page => return Err(http::page(&response)),
        };
        let (told, answered) = reader.finish(strange);
        for event in told {
            tell(events, event).await;
        }
        answered
    }

    /// Reads to the end; gives how many lines were nothing at all.
    async fn stream(
        &self,
        response: Response,
        reader: &mut Reader<'_>,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<usize, Failure> {
        let mut stream = self.server.http.events(response);
        loop {
            let next = match reader.is_finished() {
                false => stream.next().await?,
                // Everything is said; a cut or a silence now takes nothing from it.
                true => stream.next_within(GRACE).await.unwrap_or_default(),
            };
            let Some(event) = next else { break };
            if event.name == "error" {
                return Err(stream::failed(&event.data));
            }
            let (told, progress) = reader.read(&event.data)?;
            for event in told {
                tell(events, event).await;
            }
            if progress == Progress::Done {
                break;
            }
        }
        let strange = stream.strange();
        stream.drain(Duration::from_millis(50)).await;
        Ok(strange)
    }
}

impl Model for Chat {
    fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> BoxFuture<'_, Result<Answered, ModelError>> {
        Box::pin(self.ask(request, events))
    }
}

/// The server closed, and this is all that can be said of it.
fn closed() -> Failure {
    let words = "the model's server closed before its answer was whole";
    Failure::new(Fault::Transport, Again::Stream, words)
}
