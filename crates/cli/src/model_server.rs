//! The server that settings lead to: how it is named on the command line, and what to do when it
//! does not answer.

use bindery::engine::config::{Config, ConfigError, Home, ProviderEntry, WireApi, parse_override};
use bindery::engine::server_models::ListFault;

use crate::config_flags::setting;
use crate::global_flags::CommandSettings;

/// Stands for the model where a provider names none and none is needed.
const UNNAMED: &str = "unnamed";

/// Which server is meant.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ServerFlags {
    /// Who serves the model: one of `[model_providers]`, or one that is built in
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// Lay `NAME.config.toml` of the Codex home over the settings
    #[arg(long, short, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// A setting over those of `config.toml`: TOML, or else text; may be given several times
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,
}

impl ServerFlags {
    /// What flags before the command may add to.
    pub(crate) fn settings(&mut self) -> CommandSettings<'_> {
        CommandSettings { config: &mut self.config, profile: Some(&mut self.profile) }
    }

    /// Whether any was given.
    pub(crate) fn is_given(&self) -> bool {
        self.provider.is_some() || self.profile.is_some() || !self.config.is_empty()
    }

    /// Reads the settings of this folder, with the flags over them.
    pub(crate) fn load(&self, model: Option<&str>) -> anyhow::Result<Config> {
        let named = [
            ("profile", self.profile.as_deref()),
            ("model_provider", self.provider.as_deref()),
            ("model", model),
        ];
        let named = named.into_iter().filter_map(|(key, value)| Some(setting(key, value?)));
        let said = self.config.iter().cloned().chain(named).map(|said| parse_override(&said));
        let said = said.collect::<Result<Vec<_>, _>>()?;
        let here = std::env::current_dir()?.canonicalize()?;
        Ok(Config::load(&Home::here()?, &here, &said)?)
    }

    /// The same where no model need be named; none stands for a name that nobody said.
    pub(crate) fn load_server(&self) -> anyhow::Result<(Config, Option<String>)> {
        match self.load(None) {
            Ok(config) => {
                let model = config.model.clone();
                Ok((config, Some(model)))
            }
            Err(err) => match err.downcast_ref::<ConfigError>() {
                Some(ConfigError::NoModel { .. }) => Ok((self.load(Some(UNNAMED))?, None)),
                _ => Err(err),
            },
        }
    }
}

/// How a wire is called in the settings.
pub(crate) fn wire_name(wire: WireApi) -> &'static str {
    match wire {
        WireApi::Responses => "responses",
        WireApi::Chat => "chat",
        WireApi::Demo => "demo",
    }
}

/// The address without the name and the password that it may hold.
pub(crate) fn shown_address(entry: &ProviderEntry) -> String {
    match entry.base_url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.find('/').unwrap_or(rest.len());
            let begin = rest[..host].rfind('@').map_or(0, |at| at + 1);
            let end = rest.find(['?', '#']).unwrap_or(rest.len());
            format!("{scheme}://{}", &rest[begin..end.max(begin)])
        }
        None => entry.base_url.clone(),
    }
}

/// What to do about a server that does not tell what it offers.
pub(crate) fn list_hint(fault: ListFault, entry: &ProviderEntry) -> String {
    match fault {
        ListFault::Unreachable => start_hint(entry),
        ListFault::Unauthorized => key_hint(entry),
        ListFault::Slow => "it may still be loading a model; try again".to_owned(),
        ListFault::Address | ListFault::Garbage => address_hint(entry),
        ListFault::NotServed => {
            let address = address_hint(entry);
            format!("the server may have no list; a model can be named all the same, or {address}")
        }
        ListFault::Refused => "`bindery doctor --model NAME` tries the server itself".to_owned(),
    }
}

/// How to start a server that does not run.
pub(crate) fn start_hint(entry: &ProviderEntry) -> String {
    match start_command(entry) {
        Some(command) => format!("start it with `{command}`, or {}", address_hint(entry)),
        None => format!("start it, or {}", address_hint(entry)),
    }
}

/// Which key is missing or wrong.
pub(crate) fn key_hint(entry: &ProviderEntry) -> String {
    let id = &entry.id;
    let variable = match (&entry.bearer_token, &entry.env_key) {
        (Some(_), _) => format!("correct `experimental_bearer_token` of `[model_providers.{id}]`"),
        (None, Some(variable)) => format!("set `{variable}` to a key that the server takes"),
        (None, None) => {
            format!("name the variable with the key: `env_key` of `[model_providers.{id}]`")
        }
    };
    match &entry.env_key_instructions {
        Some(more) => format!("{variable}; {more}"),
        None => variable,
    }
}

fn address_hint(entry: &ProviderEntry) -> String {
    format!("correct `base_url` of `[model_providers.{}]`", entry.id)
}

/// By the provider's name, else by the port that a server of this machine has by default.
fn start_command(entry: &ProviderEntry) -> Option<&'static str> {
    let id = entry.id.to_lowercase();
    let address = shown_address(entry);
    let is_here = ["://localhost", "://127.", "://[::1]"].iter().any(|host| address.contains(host));
    let known = [
        (&["ollama"][..], ":11434", "ollama serve"),
        (&["lmstudio", "lm-studio", "lm_studio"], ":1234", "lms server start"),
        (&["vllm"], ":8000", "vllm serve MODEL"),
        (&["llamacpp", "llama-cpp", "llama.cpp", "llama_cpp"], ":8080", "llama-server -m FILE"),
        (&["litellm"], ":4000", "litellm --config FILE"),
        (&["sglang"], ":30000", "python -m sglang.launch_server --model-path MODEL"),
    ];
    let found = known.iter().find(|(names, ..)| names.contains(&id.as_str()));
    let found = found.or_else(|| known.iter().find(|(_, port, _)| is_here && has(&address, port)));
    found.map(|(.., command)| *command)
}

fn has(address: &str, port: &str) -> bool {
    let rest = address.split_once(port).map(|(_, rest)| rest);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use bindery::engine::config::Catalogue;

    use super::*;

    fn entry(id: &str, base_url: &str) -> ProviderEntry {
        let known = Catalogue::default().provider("vllm", None).unwrap();
        ProviderEntry { id: id.to_owned(), base_url: base_url.to_owned(), ..known }
    }

    #[test]
    fn a_server_is_known_by_its_name_and_by_its_port() {
        for (id, url, want) in [
            ("ollama", "http://far.example:1/v1", Some("ollama serve")),
            ("mine", "http://127.0.0.1:8080/v1", Some("llama-server -m FILE")),
            ("mine", "http://localhost:4000", Some("litellm --config FILE")),
            ("mine", "http://localhost:40001/v1", None),
            ("mine", "https://far.example:8000/v1", None),
        ] {
            assert_eq!(start_command(&entry(id, url)), want, "{id} {url}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (url, want) in [
            ("http://me:secret@host:1/v1", "http://host:1/v1"),
            ("http://host/v1?key=secret", "http://host/v1"),
            ("http://host/a@b", "http://host/a@b"),
            ("demo:", "demo:"),
        ] {
            assert_eq!(shown_address(&entry("mine", url)), want);
        }
    }
}
