//! Where a model is and how it wants to be spoken to: plain settings, read from nowhere.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::chat_profiles::ChatProfiles;

/// What a wire must know of a model's server.
///
/// It holds secrets: its `Debug` names them and does not show them.
#[derive(Clone, PartialEq)]
pub struct Provider {
    /// Which language the server speaks.
    pub wire: Wire,
    /// Before `/responses` or `/chat/completions`, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// The bearer token. Local servers need none.
    pub key: Option<String>,
    /// Further headers; one of the same name takes the place of ours.
    pub headers: Vec<(String, String)>,
    /// A file with authorities to trust besides the system's, in PEM.
    pub authority: Option<PathBuf>,
    /// Added to the URL; Azure wants `api-version`.
    pub query: Vec<(String, String)>,
    /// How often one request is posted again before it is counted as failed; at most 100.
    pub request_max_retries: u32,
    /// How often a failed request or a broken stream is begun anew; at most 100.
    pub stream_max_retries: u32,
    /// How long we wait for the next event.
    pub idle_timeout: Duration,
    /// Where the base prompt goes.
    pub placement: Placement,
    /// What the server and the model's template accept on the Chat wire.
    pub chat: ChatProfiles,
    /// Whether the server knows groups of tools (Responses only).
    pub namespaces: bool,
    /// Whether the server knows tools that take free text (Responses only).
    pub freeform: bool,
    /// Whether the model sees pictures; otherwise a sentence stands in for each.
    pub images: bool,
    /// `priority`, `flex` …; none leaves it to the server (Responses only).
    pub service_tier: Option<String>,
}

/// Languages of model servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// `POST {base_url}/responses`.
    #[default]
    Responses,
    /// `POST {base_url}/chat/completions`.
    Chat,
    /// No server: the demo model answers.
    Demo,
}

/// Where the base prompt goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The field `instructions`; on the Chat wire a system message.
    #[default]
    Instructions,
    /// A developer's message before all others.
    Developer,
    /// A system message before all others.
    System,
}

impl Provider {
    /// A server with the settings Codex has by default.
    pub fn new(wire: Wire, base_url: impl Into<String>) -> Self {
        Self {
            wire,
            base_url: base_url.into(),
            key: None,
            headers: Vec::new(),
            authority: None,
            query: Vec::new(),
            request_max_retries: 4,
            stream_max_retries: 5,
            idle_timeout: Duration::from_secs(300),
            placement: Placement::default(),
            chat: ChatProfiles::default(),
            namespaces: true,
            freeform: true,
            images: true,
            service_tier: None,
        }
    }

    /// The demo model.
    pub fn demo() -> Self {
        Self::new(Wire::Demo, "")
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| -> Vec<String> {
            pairs.iter().map(|(name, _)| name.clone()).collect()
        };
        out.debug_struct("Provider")
            .field("wire", &self.wire)
            .field("base_url", &self.base_url)
            .field("key", &self.key.as_ref().map(|_| "…"))
            .field("headers", &names(&self.headers))
            .field("query", &names(&self.query))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Provider, Wire};

    #[test]
    fn debugging_shows_no_secret() {
        let mut provider = Provider::new(Wire::Chat, "http://localhost/v1");
        provider.key = Some("sk-secret".to_owned());
        provider.headers = vec![("x-key".to_owned(), "hidden".to_owned())];
        provider.query = vec![("sig".to_owned(), "hidden".to_owned())];
        let text = format!("{provider:?}");
        assert!(!text.contains("sk-secret") && !text.contains("hidden"), "{text}");
    }
}
