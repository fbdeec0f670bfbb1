//! The Responses wire: our own item model, sent and read almost as it is.

mod body;

mod stream;

use std::time::Duration;

use bindery_core::surrogates::mended_bytes;
use futures_util::future::BoxFuture;
use reqwest::Response;
use serde_json::Value;
use tokio::sync::mpsc;

pub(super) use body::SCHEMA_NAME;
use stream::{Reader, Step};

use super::classify::{self, Again, Failure, Told};
use super::clients::Clients;
use super::dialect::Names;
use super::http::{self, Shape};
use super::wire::{Server, headers, tell};
use super::{Answered, Fault, Model, ModelError, ModelEvent, ModelRequest, Provider};

/// A server of the Responses API.
pub(super) struct Responses {
    provider: Provider,
    server: Server,
}

impl Responses {
    pub(super) fn new(provider: &Provider, clients: &Clients) -> Self {
        let server = Server::new(provider, &["responses"], clients);
        Self { provider: provider.clone(), server }
    }

    async fn ask(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answered, ModelError> {
        let headers = headers(&request);
        let (body, names) = body::body(request, &self.provider);
        let read = |response| self.read(response, &names, &events);
        self.server.ask(&body, &headers, &events, read).await
    }

    async fn read(
        &self,
        response: Response,
        names: &Names,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answered, Failure> {
        let model = http::header(&response, "openai-model");
        let counts_old_thoughts = http::header(&response, "x-reasoning-included").is_some();
        let mut answered = match http::shape(&response) {
            Shape::Stream => self.stream(response, names, events).await?,
            Shape::Json => whole(&self.server.http.whole(response).await?, names, events).await?,
            Shape::Page => return Err(http::page(&response)),
        };
        answered.model = model.or(answered.model);
        answered.counts_old_thoughts = counts_old_thoughts;
        Ok(answered)
    }

    async fn stream(
        &self,
        response: Response,
        names: &Names,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answered, Failure> {
        let mut stream = self.server.http.events(response);
        let mut reader = Reader::new(names);
        while let Some(event) = stream.next().await? {
            match reader.read(&event.data)? {
                Step::Tell(Some(event)) => tell(events, event).await,
                Step::Tell(None) => {}
                Step::Done(answered, told) => {
                    for event in told {
                        tell(events, event).await;
                    }
                    stream.drain(Duration::from_millis(50)).await;
                    return Ok(answered);
                }
            }
        }
        Err(reader.ended(stream.strange()))
    }
}

impl Model for Responses {
    fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> BoxFuture<'_, Result<Answered, ModelError>> {
        Box::pin(self.ask(request, events))
    }
}

/// A server that does not stream sends the response itself.
async fn whole(
    body: &[u8],
    names: &Names,
    events: &mpsc::Sender<ModelEvent>,
) -> Result<Answered, Failure> {
    let mut response: Value = serde_json::from_slice(&mended_bytes(body).0).map_err(|err| {
        let words = format!("what the model's server sent is not JSON: {err}");
        Failure::new(Fault::Garbage, Again::Stream, words)
    })?;
    if response["error"].is_object() {
        return Err(classify::failed(&Told::from_value(&response)));
    }
    if response["status"] == "incomplete" {
        return Err(stream::incomplete(&response));
    }
    let Value::Array(output) = response["output"].take() else {
        let words = "the model's server sent JSON that is no response; check `base_url`";
        return Err(Failure::new(Fault::Garbage, Again::Never, words));
    };
    for item in output.into_iter().filter_map(stream::read) {
        tell(events, ModelEvent::ItemDone(names.restore(item))).await;
    }
    Ok(stream::answered(&response))
}
