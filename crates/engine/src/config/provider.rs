//! Who serves a model, and how to reach them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Home;
use crate::model::ChatProfileFields;

/// How a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireApi {
    /// OpenAI's Responses API.
    Responses,
    /// The Chat Completions API, which every other server speaks. Codex dropped it in 0.95.
    Chat,
    /// Not at all: the model is a script of ours.
    Demo,
}

/// A provider, in the words of Codex's `[model_providers.*]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProviderEntry {
    /// The name of its table.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Up to and without the last part: `…/v1`.
    pub base_url: String,
    /// How it is spoken to.
    pub wire_api: WireApi,
    /// The variable that holds its key.
    pub env_key: Option<String>,
    /// What to tell somebody who has no key.
    pub env_key_instructions: Option<String>,
    /// A key written into the settings.
    #[serde(skip_serializing)]
    pub bearer_token: Option<String>,
    /// Whether nothing works without a key.
    pub needs_key: bool,
    /// Added to every address; Azure's `api-version`.
    pub query_params: BTreeMap<String, String>,
    /// Added to every request.
    #[serde(skip_serializing)]
    pub http_headers: BTreeMap<String, String>,
    /// Headers whose values are in variables.
    pub env_http_headers: BTreeMap<String, String>,
    /// The header the key goes into, where it is not `authorization`; Azure's `api-key`.
    pub key_header: Option<String>,
    /// Repeats of a request that got no answer.
    pub request_max_retries: u32,
    /// Repeats of an answer that was cut.
    pub stream_max_retries: u32,
    /// Silence after which an answer counts as cut, in milliseconds.
    pub stream_idle_timeout_ms: u64,
    /// The model where none is named.
    pub default_model: Option<String>,
    /// What its server accepts on the Chat wire, where the shipped profiles do not say so.
    #[serde(skip)]
    pub chat: ChatProfileFields,
}

/// Nobody gains from more repeats than this.
pub(super) const MOST_RETRIES: u32 = 100;

impl ProviderEntry {
    /// Silence after which an answer counts as cut.
    pub fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.stream_idle_timeout_ms)
    }

    /// The key: from the settings, from its variable, or, for OpenAI, as Codex has stored it.
    pub fn key(&self, home: &Home) -> Option<String> {
        let variable = || home.variable(self.env_key.as_deref()?).map(str::to_owned);
        let stored = || (self.id == OPENAI).then(|| stored_key(home)).flatten();
        self.bearer_token.clone().or_else(variable).or_else(stored)
    }

    /// All headers but that of the key.
    pub fn headers(&self, home: &Home) -> BTreeMap<String, String> {
        let from_environment = self.env_http_headers.iter().filter_map(|(header, variable)| {
            Some((header.clone(), home.variable(variable)?.to_owned()))
        });
        self.http_headers.clone().into_iter().chain(from_environment).collect()
    }
}

/// The provider that is used when there is a key for it and nothing else is said.
pub(super) const OPENAI: &str = "openai";

/// The API key that `codex login --with-api-key` leaves in the home. A ChatGPT login is no key.
pub(super) fn stored_key(home: &Home) -> Option<String> {
    #[derive(Deserialize)]
    struct Stored {
        #[serde(rename = "OPENAI_API_KEY")]
        key: Option<String>,
    }
    let text = std::fs::read(home.codex.join("auth.json")).ok()?;
    let stored: Stored = serde_json::from_slice(&text).ok()?;
    stored.key.filter(|key| !key.is_empty())
}
