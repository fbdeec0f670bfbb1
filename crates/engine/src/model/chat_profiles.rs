//! Chooses the [`ChatProfile`] of a request: by server, by model family, by the user's settings.

use std::sync::LazyLock;

use serde::Deserialize;
use toml::Table;

use super::chat_profile::{ChatProfile, ChatProfileFields};

/// A profile and what it is chosen by.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatProfileRow {
    /// What people call it.
    name: String,
    /// Ids of providers in `[model_providers]`.
    providers: Vec<String>,
    /// Hosts, with `*` for any text.
    hosts: Vec<String>,
    /// Ports of servers on this machine.
    ports: Vec<u16>,
    /// Model names without the part before the last slash, with `*` for any text.
    models: Vec<String>,
    /// What it sets.
    set: ChatProfileFields,
}

/// What servers say when they refuse the shape of a request, and which fields mend it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusalRow {
    /// Pieces of the server's words, lower case; any of them.
    says: Vec<String>,
    /// What would help.
    set: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    servers: Vec<ChatProfileRow>,
    families: Vec<ChatProfileRow>,
    refusals: Vec<RefusalRow>,
}

static SHIPPED: LazyLock<File> = LazyLock::new(|| {
    toml::from_str(include_str!("chat_profiles.toml")).expect("the profiles are checked by a test")
});

/// The profiles that may apply to the requests of one provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatProfiles {
    provider: String,
    /// Fields of the shipped profile of the server.
    server: ChatProfileFields,
    /// The user's profiles that fit the provider or name models.
    user: Vec<ChatProfileRow>,
    /// The user's fields for this provider.
    own: ChatProfileFields,
}

impl ChatProfiles {
    /// Profiles for a provider at an address. Fields of the provider's own win over the user's
    /// profiles, and those over the shipped ones.
    pub fn choose(
        provider: &str,
        base_url: &str,
        user: &[ChatProfileRow],
        own: ChatProfileFields,
    ) -> Self {
        let server = Server::read(base_url);
        let shipped = SHIPPED.servers.iter().find(|row| row.is_for_provider(provider));
        let shipped = shipped.or_else(|| SHIPPED.servers.iter().find(|row| row.is_at(&server)));
        let fits =
            |row: &&ChatProfileRow| row.fits_server(provider, &server) || !row.models.is_empty();
        Self {
            provider: provider.to_owned(),
            server: shipped.map(|row| row.set.clone()).unwrap_or_default(),
            user: user.iter().filter(fits).cloned().collect(),
            own,
        }
    }

    /// The profile of a model.
    pub fn for_model(&self, model: &str) -> ChatProfile {
        let name = family_name(model);
        let mut profile = ChatProfile::default();
        profile.set(&self.server);
        let families = SHIPPED.families.iter().filter(|row| row.is_for_model(&name));
        families.for_each(|row| profile.set(&row.set));
        let user = self.user.iter();
        user.filter(|row| row.models.is_empty() || row.is_for_model(&name))
            .for_each(|row| profile.set(&row.set));
        profile.set(&self.own);
        profile
    }

    /// Where a user writes the fields of this provider.
    pub(super) fn settings_table(&self) -> String {
        match self.provider.as_str() {
            "" => "[model_providers.NAME.chat]".to_owned(),
            provider => format!("[model_providers.{provider}.chat]"),
        }
    }
}

impl ChatProfileRow {
    fn is_for_provider(&self, provider: &str) -> bool {
        self.providers.iter().any(|id| id == provider)
    }

    fn is_at(&self, server: &Server) -> bool {
        let by_host = self.hosts.iter().any(|pattern| matches(pattern, &server.host));
        let by_port = server.is_local && server.port.is_some_and(|port| self.ports.contains(&port));
        by_host || by_port
    }

    /// Whether it is for this server, or for every one.
    fn fits_server(&self, provider: &str, server: &Server) -> bool {
        let says_nothing =
            self.providers.is_empty() && self.hosts.is_empty() && self.ports.is_empty();
        says_nothing || self.is_for_provider(provider) || self.is_at(server)
    }

    fn is_for_model(&self, name: &str) -> bool {
        self.models.iter().any(|pattern| matches(pattern, name))
    }
}

/// What a server's refusal says about the profile.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShapeFix {
    /// The fields, as they are written in settings.
    pub(super) settings: String,
    /// The same, to be laid over a profile.
    pub(super) fields: ChatProfileFields,
}

/// The fields that would mend a request which a server refused with these words.
pub(super) fn fix_for_refusal(words: &str) -> Option<ShapeFix> {
    let words = words.to_lowercase();
    let says = |row: &&RefusalRow| row.says.iter().any(|piece| words.contains(piece.as_str()));
    let row = SHIPPED.refusals.iter().find(says)?;
    let setting = |(key, value): (&String, &toml::Value)| {
        // The values are those whose JSON is their TOML.
        Some(format!("{key} = {}", serde_json::to_string(value).ok()?))
    };
    let settings: Vec<_> = row.set.iter().filter_map(setting).collect();
    let fields = row.set.clone().try_into().ok()?;
    Some(ShapeFix { settings: settings.join(", "), fields })
}

struct Server {
    host: String,
    port: Option<u16>,
    is_local: bool,
}

impl Server {
    fn read(base_url: &str) -> Self {
        let after_scheme = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
        let authority = after_scheme.split(['/', '?']).next().unwrap_or_default();
        let address = authority.rsplit('@').next().unwrap_or_default().to_lowercase();
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host.to_owned(), port.parse().ok()),
            _ => (address, None),
        };
        let is_local = matches!(host.as_str(), "localhost" | "[::1]" | "0.0.0.0")
            || host.starts_with("127.")
            || host == "host.docker.internal";
        Self { host, port, is_local }
    }
}

/// `mistralai/Mistral-Small-3.2:latest` is `mistral-small-3.2:latest`.
fn family_name(model: &str) -> String {
    model.rsplit('/').next().unwrap_or(model).to_lowercase()
}

/// Whether a text fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|start| text.strip_prefix(start)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests;
