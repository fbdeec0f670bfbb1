//! The Chat Completions wire: an adapter over our item model, for servers that speak nothing else.
//!
//! It loses what the wire has no place for: encrypted thoughts, groups of tools, tools run by the
//! server. Tags such as `<think>` inside a text stay there: they may be meant.

mod messages;

mod stream;

use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::Response;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use stream::{Progress, Reader};

use super::classify::{Again, Failure};
use super::clients::Clients;
use super::dialect::{Dialect, Names};
use super::fit::fit;
use super::http::{self, Shape};
use super::responses::SCHEMA_NAME;
use super::wire::{Server, headers, tell};
use super::{Answered, Fault, Model, ModelError, ModelEvent, ModelRequest, Provider, ToolSpec};

/// How long an answer that is whole may still be followed by its count of tokens.
const GRACE: Duration = Duration::from_secs(5);

const DIALECT: Dialect = Dialect { namespaces: false, freeform: false };

/// A server of the Chat Completions API.
pub(super) struct Chat {
    provider: Provider,
    server: Server,
}

#[derive(Debug, Serialize)]
struct Body {
    model: String,
    messages: Vec<Value>,
    stream: bool,
    stream_options: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

impl Chat {
    pub(super) fn new(provider: &Provider, clients: &Clients) -> Self {
        let server = Server::new(provider, &["chat", "completions"], clients);
        Self { provider: provider.clone(), server }
    }

    async fn ask(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answered, ModelError> {
        let headers = headers(&request);
        let (body, names) = body(request, &self.provider);
        let read = |response| self.read(response, &names, &events);
        self.server.ask(&body, &headers, &events, read).await
    }

    async fn read(
        &self,
        response: Response,
        names: &Names,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answered, Failure> {
        let mut reader = Reader::new(names);
        let strange = match http::shape(&response) {
            Shape::Stream => self.stream(response, &mut reader, events).await?,
            Shape::Json => {
                let body = self.server.http.whole(response).await?;
                let (told, _) = reader.read(&String::from_utf8_lossy(&body))?;
                for event in told {
                    tell(events, event).await;
                }
                0
            }
            Shape::Page => return Err(http::page(&response)),
        };
        let (told, answered) = reader.finish(strange)?;
        for event in told {
            tell(events, event).await;
        }
        Ok(answered)
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

fn body(request: ModelRequest, provider: &Provider) -> (Body, Names) {
    let (tools, names) = DIALECT.tools(request.tools);
    let tools: Vec<Value> = tools.into_iter().filter_map(tool).collect();
    let input = fit(request.input, provider.images);
    let input = input.into_iter().map(|item| DIALECT.tell(item)).collect();
    let body = Body {
        model: request.model,
        messages: messages::messages(request.base, input, provider),
        stream: true,
        stream_options: json!({ "include_usage": true }),
        // Allowed unless it is forbidden, and not every server knows the word.
        parallel_tool_calls: (!tools.is_empty() && !request.parallel_tool_calls).then_some(false),
        tools,
        reasoning_effort: request.effort,
        verbosity: request.verbosity,
        response_format: request.output_schema.map(|schema| {
            let schema = json!({ "name": SCHEMA_NAME, "strict": true, "schema": schema });
            json!({ "type": "json_schema", "json_schema": schema })
        }),
    };
    (body, names)
}

fn tool(tool: ToolSpec) -> Option<Value> {
    match tool {
        ToolSpec::Function { name, description, parameters } => Some(json!({
            "type": "function",
            "function": { "name": name, "description": description, "parameters": parameters },
        })),
        other => {
            tracing::debug!(?other, "the Chat wire cannot offer this tool");
            None
        }
    }
}

/// The server closed, and this is all that can be said of it.
fn closed() -> Failure {
    let words = "the model's server closed before its answer was whole";
    Failure::new(Fault::Transport, Again::Stream, words)
}
