//! One question to a model, through the wire that turns use, within a time.

use std::sync::Arc;
use std::time::Duration;

use bindery::engine::config::Config;
use bindery::engine::item::{CallOutput, FunctionCall, HistoryItem, Item, Message, Output, Role};
use bindery::engine::model::{
    self, Clients, Fault, Model, ModelError, ModelEvent, ModelRequest, ToolSpec,
};
use bindery::engine::model_secrets::Secrets;
use bindery::engine::service::house::model_provider;
use bindery::engine::tokens::TokenCount;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Events that may wait between the wire and us.
const EVENTS: usize = 64;

/// More of an answer nobody needs here, whatever the server goes on to say.
const MOST_TEXT: usize = 64 * 1024;

/// The tool that the model is offered.
pub(super) const TOOL: &str = "lookup";

/// Someone to ask.
pub(super) struct Respondent {
    model: Arc<dyn Model>,
    request: ModelRequest,
    limit: Duration,
    secrets: Secrets,
}

/// What came back.
#[derive(Default)]
pub(super) struct Said {
    pub(super) text: String,
    /// All of it, as a history keeps it.
    pub(super) items: Vec<HistoryItem>,
    pub(super) usage: Option<TokenCount>,
    /// What the wire had to do to be understood, and which setting spares it that.
    pub(super) notices: Vec<String>,
}

impl Respondent {
    /// The model in force, asked as turns ask it but for repeats: a fault is to be seen.
    pub(super) fn new(config: &Config, limit: Duration) -> Self {
        let mut provider = model_provider(config);
        provider.request_max_retries = provider.request_max_retries.min(1);
        provider.stream_max_retries = 0;
        provider.idle_timeout = limit;
        let reasoning = config.entry.reasoning.clone().unwrap_or_default();
        let summary = config.summary.clone().or(reasoning.summary);
        let request = ModelRequest {
            model: config.model.clone(),
            base: "You take part in a test of your server. Do what the user asks, briefly."
                .to_owned(),
            parallel_tool_calls: config.entry.parallel_tool_calls,
            effort: config.effort.clone().or(reasoning.effort),
            summary: summary.filter(|word| word != "none"),
            verbosity: config.verbosity.clone().or(config.entry.verbosity.clone()),
            thread_id: format!("doctor-{}", std::process::id()),
            ..ModelRequest::default()
        };
        let model = model::open(&provider, &Clients::default());
        Self { model, request, limit, secrets: Secrets::of(&provider) }
    }

    /// Asks; `change` says what.
    pub(super) async fn ask(
        &self,
        change: impl FnOnce(&mut ModelRequest),
    ) -> Result<Said, ModelError> {
        let mut request = self.request.clone();
        change(&mut request);
        let (sender, mut events) = mpsc::channel(EVENTS);
        let listen = async {
            let mut said = Said::default();
            while let Some(event) = events.recv().await {
                said.hear(event);
            }
            said
        };
        let both = async { tokio::join!(self.model.answer(request, sender), listen) };
        let Ok((answered, mut said)) = timeout(self.limit, both).await else {
            let message = format!("no whole answer within {} s", self.limit.as_secs());
            return Err(ModelError { kind: Fault::Idle, message, status: None });
        };
        let hidden = |error: ModelError| {
            let message = self.secrets.hide(&error.message);
            ModelError { message, ..error }
        };
        said.usage = answered.map_err(hidden)?.usage;
        Ok(said)
    }

    /// What a model said, without what nobody may read.
    pub(super) fn hide(&self, text: &str) -> String {
        self.secrets.hide(text)
    }
}

impl Said {
    fn hear(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Text(text) if self.text.len() < MOST_TEXT => self.text.push_str(&text),
            ModelEvent::ItemDone(item) => self.items.push(item),
            ModelEvent::Notice(text) => self.notices.push(text),
            // Everything before it is void, but for what should be known.
            ModelEvent::Retrying { .. } => {
                *self = Self { notices: std::mem::take(&mut self.notices), ..Self::default() };
            }
            _ => {}
        }
    }

    /// The calls among it.
    pub(super) fn calls(&self) -> Vec<&FunctionCall> {
        let known = self.items.iter().filter_map(|item| item.known());
        known
            .filter_map(|item| match item {
                Item::FunctionCall(call) => Some(call),
                _ => None,
            })
            .collect()
    }

    /// The answers that a history goes on with.
    pub(super) fn outputs(&self) -> Vec<HistoryItem> {
        let output = |call: &FunctionCall| CallOutput {
            id: None,
            call_id: call.call_id.clone(),
            output: Output::Text("The value is 42.".to_owned()),
        };
        let outputs = self.calls().into_iter().map(output);
        outputs.map(|output| Item::FunctionCallOutput(output).into()).collect()
    }
}

/// The person's words.
pub(super) fn user(text: &str) -> HistoryItem {
    Message::text(Role::User, text).into()
}

/// A tool as small as they come.
pub(super) fn tool() -> ToolSpec {
    ToolSpec::Function {
        name: TOOL.to_owned(),
        description: "Looks up the value of a key.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "key": { "type": "string", "description": "The key." } },
            "required": ["key"],
            "additionalProperties": false,
        }),
    }
}
