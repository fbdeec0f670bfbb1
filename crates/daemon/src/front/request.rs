//! What a caller of the front asks for.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_core::call::{CallOptions, ResponseFormat};
use bindery_core::map::prompt_to_turn::RESERVED;
use bindery_core::open::Open;
use bindery_core::settings;
use bindery_core::spec::{PROVIDER_KEY, Spec};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::tenants::ALIASES;
use crate::error::Error;

/// The name that stands for "the model that Codex is set to".
const DEFAULT_MODEL: &str = "default";

/// One call of the language model, with the provider's own settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRequest {
    /// The shape of the parts that go back.
    pub specification: Spec,
    /// The model; `default` for the one that the backend is set to.
    #[serde(default)]
    pub model_id: Option<String>,
    /// The call, as the SDK makes it.
    options: CallOptions,
    /// Only the gathered result is wanted.
    #[serde(default)]
    pub generate: bool,
    /// The provider's own settings.
    #[serde(default)]
    pub settings: FrontSettings,
}

/// Settings of a provider; a call's own options come before them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct FrontSettings {
    /// Defaults for `providerOptions.codex`, under the same names.
    pub thread: Option<Map<String, Value>>,
    /// Kinds of questions that are answered while the stream is open.
    pub callbacks: Vec<String>,
    /// The caller waits for the `session` event. Else it goes with the first part, or before long.
    pub session_at_once: bool,
    /// Tools that the caller runs while the stream is open.
    pub tools: Vec<DeclaredTool>,
    /// How long one of `tools` may take.
    pub tool_timeout_ms: Option<u64>,
    /// How long a question may wait for its answer.
    pub answer_timeout_ms: Option<u64>,
    /// How long an interrupted turn may take to end.
    pub interrupt_timeout_ms: Option<u64>,
    /// How long a turn may show no progress.
    pub idle_timeout_ms: Option<u64>,
    /// How long a turn may take.
    pub turn_timeout_ms: Option<u64>,
    /// Whether a resumed thread is compacted first.
    pub compaction: Option<Compact>,
    /// A compaction that fails, fails the call.
    pub strict_compaction: Option<bool>,
    /// `codex` or `engine`.
    pub backend: Option<String>,
    /// Codex's home; only a daemon that belongs to its caller takes one.
    pub codex_home: Option<String>,
    /// An app-server that listens already, used instead of one of our own; only a daemon that
    /// belongs to its caller takes one.
    pub app_server: Option<Listening>,
    /// Added to the worker's environment; only a daemon that belongs to its caller takes any.
    pub env: Option<BTreeMap<String, String>>,
}

/// An app-server that listens.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listening {
    /// `ws://HOST:PORT`, `wss://HOST`, `unix://PATH`.
    pub url: String,
    /// What it asks for before it lets us in.
    #[serde(default)]
    pub token: Option<String>,
}

impl std::fmt::Debug for Listening {
    /// The token is a secret, and an address may hold one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listening(…)")
    }
}

/// A tool of the provider's settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclaredTool {
    /// Its name.
    pub name: String,
    /// For the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// Whether a resumed thread is compacted before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compact {
    /// Every time.
    Always,
    /// Only when Codex does it by itself.
    Never,
}

impl CallRequest {
    /// The call with the provider's defaults beneath its own options.
    pub fn options(&self) -> CallOptions {
        let mut options = self.options.clone();
        let metadata = options.provider_options.get_or_insert_default();
        let own = metadata.remove(PROVIDER_KEY).unwrap_or_default();
        let own = match own {
            Value::Object(own) => self.with_defaults(own),
            Value::Null => self.with_defaults(Map::new()),
            // Not for us to mend: the planner names it in a warning.
            other => other,
        };
        if own.as_object().is_none_or(|own| !own.is_empty()) {
            metadata.insert(PROVIDER_KEY.to_owned(), own);
        }
        options
    }

    /// So many characters of it could not be read and were replaced.
    pub fn note_replaced(&mut self, characters: usize) {
        self.options.replaced = characters;
    }

    /// Whether the text of the answer is to be read as one value.
    pub(super) fn wants_json(&self) -> bool {
        let format = self.options.response_format.as_ref().and_then(Open::known);
        matches!(format, Some(ResponseFormat::Json { .. }))
    }

    /// Refuses settings that are unknown or mistyped, and those in a place where nobody reads them.
    pub(super) fn check_settings(&self) -> Result<(), Error> {
        for name in self.options.rest.keys() {
            if settings::is_known(name) || settings::meant_guard(name).is_some() {
                let why = format!("it goes into `providerOptions.{PROVIDER_KEY}`");
                return Err(Error::invalid(format!("options.{name}"), why));
            }
        }
        let taken = |tool: &&DeclaredTool| RESERVED.contains(&tool.name.as_str());
        if let Some(DeclaredTool { name, .. }) = self.settings.tools.iter().find(taken) {
            let why = format!("Codex has a tool `{name}` of its own, and would run that instead");
            return Err(Error::invalid("settings.tools", why));
        }
        if let Some(thread) = &self.settings.thread {
            check_own("settings.thread", thread)?;
        }
        let is_ours = |key: &str| key == PROVIDER_KEY || ALIASES.contains(&key);
        let all = self.options.provider_options.iter().flatten();
        for (key, own) in all.filter(|(key, value)| is_ours(key) && !value.is_null()) {
            let what = format!("providerOptions.{key}");
            let own = own.as_object();
            check_own(&what, own.ok_or_else(|| Error::invalid(&*what, "it must be an object"))?)?;
        }
        Ok(())
    }

    /// Makes it the call with these options, which hold everything.
    pub(super) fn set(&mut self, options: CallOptions) {
        self.options = options;
        (self.settings.thread, self.model_id) = (None, None);
    }

    fn with_defaults(&self, mut own: Map<String, Value>) -> Value {
        let defaults = self.settings.thread.iter().flatten();
        for (name, value) in defaults {
            own.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let model = self.model_id.as_ref().filter(|model| *model != DEFAULT_MODEL);
        if let Some(model) = model {
            own.entry("model").or_insert_with(|| Value::from(model.clone()));
        }
        Value::Object(own)
    }
}

fn check_own(place: &str, own: &Map<String, Value>) -> Result<(), Error> {
    settings::check(own)
        .map_err(|wrong| Error::invalid(format!("{place}.{}", wrong.name), wrong.why))
}

/// Milliseconds as they come in JSON.
pub(super) fn millis(value: Option<u64>) -> Option<Duration> {
    value.map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(value: Value) -> CallRequest {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_calls_own_options_come_before_the_providers() {
        let asked = request(json!({
            "specification": "v4",
            "modelId": "gpt-x",
            "options": {
                "prompt": [],
                "providerOptions": { "codex": { "cwd": "/call" }, "other": { "a": 1 } },
            },
            "settings": { "thread": { "cwd": "/provider", "sandbox": "read-only" } },
        }));
        let options = serde_json::to_value(asked.options()).unwrap();
        assert_eq!(
            options["providerOptions"],
            json!({
                "codex": { "cwd": "/call", "sandbox": "read-only", "model": "gpt-x" },
                "other": { "a": 1 },
            })
        );
    }

    #[test]
    fn the_default_model_is_the_backends_own() {
        let asked = request(json!({
            "specification": "v3", "modelId": "default", "options": { "prompt": [] },
        }));
        let options = asked.options();
        assert!(options.provider_options.is_none_or(|metadata| metadata.is_empty()));
    }
}
