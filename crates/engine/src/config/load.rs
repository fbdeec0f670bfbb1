//! From files and flags to one set of settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::catalogue::{ModelRow, ProviderRow};
use super::layer::{self, Layer};
use super::provider::{OPENAI, stored_key};
use super::reader::Reader;
use super::{
    ApprovalPolicy, Catalogue, ConfigError, Home, ModelEntry, ProjectSettings, ProviderEntry,
    SandboxMode, SandboxSettings, Truncation, Trust, WireApi, profile, project, shell,
};
use crate::model::ChatProfileRow;
use crate::sandbox::environment::EnvironmentPolicy;
use crate::thread::ApprovalsReviewer;

/// Everything the engine is told before it starts.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where settings were read, and the environment.
    pub home: Home,
    /// The folder they were read for.
    pub cwd: PathBuf,
    /// The model's name on the wire.
    pub model: String,
    /// What is known of it, with what the settings say over that.
    pub entry: ModelEntry,
    /// Who serves it.
    pub provider: ProviderEntry,
    /// The table both came from, to look up another model of the same thread.
    pub catalogue: Catalogue,
    /// When somebody is asked first.
    pub approval_policy: ApprovalPolicy,
    /// Who answers then.
    pub approvals_reviewer: ApprovalsReviewer,
    /// What commands may touch.
    pub sandbox: SandboxSettings,
    /// Whether commands with network access reach the services of this machine.
    pub loopback: bool,
    /// Whether the project around the folder is trusted.
    pub trust: Trust,
    /// How its documents are read.
    pub project: ProjectSettings,
    /// `low`, `medium`, `high` …; the entry's where nothing is said.
    pub effort: Option<String>,
    /// `auto`, `concise`, `detailed`; the entry's where nothing is said.
    pub summary: Option<String>,
    /// `low`, `medium`, `high`; the entry's where nothing is said.
    pub verbosity: Option<String>,
    /// `priority`, `flex` …; on the Responses wire alone.
    pub service_tier: Option<String>,
    /// Words of the application to the model, besides the base prompt.
    pub developer_instructions: Option<String>,
    /// A file that stands in for the base prompt.
    pub model_instructions_file: Option<PathBuf>,
    /// Stands in for our request to sum up a history.
    pub compact_prompt: Option<String>,
    /// The model that reviews, where it is another.
    pub review_model: Option<String>,
    /// `[mcp_servers.*]`, as they are written.
    pub mcp_servers: BTreeMap<String, Value>,
    /// `[tools]`, as it is written.
    pub tools: Table,
    /// `disabled`, `cached` or `live`.
    pub web_search: Option<String>,
    /// `[features]`: switches by name.
    pub features: BTreeMap<String, bool>,
    /// A program that is told of each finished turn.
    pub notify: Vec<String>,
    /// Which variables commands get.
    pub environment: EnvironmentPolicy,
    /// Whether the model is told of branch and changes; `git_context` in `bindery.toml`.
    pub git_context: bool,
    /// What the engine has no use for, as it is written.
    pub rest: Table,
    /// The keys of that, and of tables that are used in part.
    pub unused: Vec<String>,
    /// What the user should know about their settings.
    pub notices: Vec<String>,
}

impl Config {
    /// Reads the settings for a folder: Codex's `config.toml`, our `bindery.toml` over it, the
    /// profile that is named over both, and `overrides` over all.
    pub fn load(
        home: &Home,
        cwd: &Path,
        overrides: &[(String, Value)],
    ) -> Result<Self, ConfigError> {
        // Without a slash at its end, which would be told to the model.
        let cwd: PathBuf = cwd.components().collect();
        let layers = layers(home, overrides)?;
        let mut table = Table::new();
        layers.iter().for_each(|layer| layer::merge(&mut table, &layer.table));
        read(home, &cwd, Reader::new(table, &layers))
    }

    /// What is known of this or another model of the same provider.
    pub fn entry_of(&self, slug: &str) -> ModelEntry {
        match slug == self.model {
            true => self.entry.clone(),
            false => entry(&self.catalogue, slug, self.provider.wire_api),
        }
    }

    /// What the engine has no use for, in words. It is no warning: most homes are written for
    /// Codex, and to be told so with every turn teaches nobody anything.
    pub fn aside(&self) -> Option<String> {
        let keys: Vec<String> = self.unused.iter().map(|key| format!("`{key}`")).collect();
        let keys = keys.join(", ");
        let words = || format!("the engine has no use for {keys} of the configuration");
        (!keys.is_empty()).then(words)
    }

    /// Whether a feature is on; `usual` where nothing is said.
    pub fn feature(&self, name: &str, usual: bool) -> bool {
        self.features.get(name).copied().unwrap_or(usual)
    }
}

fn layers(home: &Home, overrides: &[(String, Value)]) -> Result<Vec<Layer>, ConfigError> {
    let ours = home.bindery.as_ref().map(|folder| folder.join("bindery.toml"));
    let mut layers = Vec::new();
    let files = std::iter::once(home.codex.join("config.toml")).chain(ours);
    for path in files.filter(|_| !home.without_settings) {
        layers.extend(Layer::read(path)?);
    }
    let flags = Layer::of(overrides);
    let mut topmost = std::iter::once(&flags).chain(layers.iter().rev());
    let named = topmost.find_map(|layer| layer.table.get("profile")?.as_str()).map(str::to_owned);
    if let Some(name) = named {
        layers.push(profile::read(home, &layers, &name)?);
    }
    layers.push(flags);
    Ok(layers)
}

fn read(home: &Home, cwd: &Path, mut reader: Reader<'_>) -> Result<Config, ConfigError> {
    let _ = (reader.table.remove("profile"), reader.table.remove("profiles"));
    let (mut notices, mut unused) = (Vec::new(), Vec::new());
    let catalogue = catalogue(&mut reader)?;
    let (model, provider) = chosen(home, &mut reader, &catalogue)?;
    let entry = adjusted(entry(&catalogue, &model, provider.wire_api), &mut reader)?;
    if !entry.known && provider.wire_api != WireApi::Demo {
        notices.push(format!("nothing is known of the model `{model}`; careful values are used"));
    }
    let project = ProjectSettings::take(&mut reader)?;
    let trust = take_trust(&mut reader, &project, cwd)?;
    let web_search = web_search(&mut reader)?;
    let notify: Vec<String> = reader.take("notify")?.unwrap_or_default();
    if web_search.as_deref().is_some_and(|mode| mode != "disabled") {
        notices.push("`web_search` has no effect: the engine searches nowhere".to_owned());
    }
    if !notify.is_empty() {
        notices.push("`notify` has no effect: the engine runs no program of its own".to_owned());
    }
    let (sandbox, loopback) = sandbox(&mut reader, trust, cwd)?;
    Ok(Config {
        approval_policy: approval(&mut reader, trust)?,
        approvals_reviewer: reader.take("approvals_reviewer")?.unwrap_or_default(),
        sandbox,
        loopback,
        effort: reader.take("model_reasoning_effort")?,
        summary: reader.take("model_reasoning_summary")?,
        verbosity: reader.take("model_verbosity")?,
        service_tier: service_tier(&mut reader, provider.wire_api, &mut notices)?,
        developer_instructions: reader.take("developer_instructions")?,
        model_instructions_file: reader
            .take::<PathBuf>("model_instructions_file")?
            .map(|path| home.codex.join(path)),
        compact_prompt: reader.take("compact_prompt")?,
        review_model: reader.take("review_model")?,
        mcp_servers: reader.take("mcp_servers")?.unwrap_or_default(),
        tools: reader.take_table("tools")?,
        web_search,
        features: features(&mut reader)?,
        notify,
        environment: shell::take(&mut reader, &mut unused, &mut notices)?,
        git_context: reader.take("git_context")?.unwrap_or(true),
        notices: told(notices, &project, home, cwd),
        unused: reader.table.keys().cloned().chain(unused).collect(),
        rest: reader.table,
        home: home.clone(),
        cwd: cwd.to_owned(),
        model,
        entry,
        provider,
        catalogue,
        trust,
        project,
    })
}

fn catalogue(reader: &mut Reader<'_>) -> Result<Catalogue, ConfigError> {
    let models: Vec<ModelRow> = reader.take("models")?.unwrap_or_default();
    let providers = reader.take_entries::<ProviderRow>("model_providers")?;
    let profiles: Vec<ChatProfileRow> = reader.take("chat_profiles")?.unwrap_or_default();
    Ok(Catalogue::with(models, providers.into_iter().collect(), profiles))
}

/// The model and who serves it. Without a key, a provider or a model, it is the demo: something
/// that works before anything is set up.
fn chosen(
    home: &Home,
    reader: &mut Reader<'_>,
    catalogue: &Catalogue,
) -> Result<(String, ProviderEntry), ConfigError> {
    let model: Option<String> = reader.take("model")?;
    let named: Option<String> = reader.take("model_provider")?;
    let has_key = || home.variable("OPENAI_API_KEY").is_some() || stored_key(home).is_some();
    let id = match (&named, &model) {
        (Some(id), _) => id.clone(),
        (None, None) if !has_key() => "demo".to_owned(),
        (None, _) => OPENAI.to_owned(),
    };
    let wire = model.as_deref().and_then(|model| catalogue.model(model).wire_api);
    let mut provider = catalogue.provider(&id, wire).ok_or_else(|| ConfigError::NoProvider {
        name: id.clone(),
        known: catalogue.provider_ids().collect::<Vec<_>>().join(", "),
    })?;
    // What Codex calls the address of its built-in provider.
    let openai: Option<String> = reader.take("openai_base_url")?;
    if let Some(url) = openai.filter(|url| id == OPENAI && !url.is_empty()) {
        provider.base_url = url;
    }
    if provider.base_url.is_empty() {
        let key = ["model_providers", id.as_str()];
        return Err(reader.wrong(&key, "it has no `base_url`"));
    }
    let missing = || ConfigError::NoModel { provider: id.clone() };
    let model = model.or_else(|| provider.default_model.clone()).ok_or_else(missing)?;
    Ok((model, provider))
}

/// What is known of a model. One that nobody has described and that speaks the Chat wire is
/// most likely on a machine nearby, where a window of 272,000 tokens would be a costly guess.
fn entry(catalogue: &Catalogue, slug: &str, wire: WireApi) -> ModelEntry {
    let entry = catalogue.model(slug);
    match wire {
        WireApi::Chat if !entry.known => {
            ModelEntry { slug: slug.to_owned(), known: false, ..catalogue.model("local") }
        }
        _ => entry,
    }
}

/// The entry with what the settings say of the model.
fn adjusted(mut entry: ModelEntry, reader: &mut Reader<'_>) -> Result<ModelEntry, ConfigError> {
    if let Some(window) = reader.take("model_context_window")? {
        entry.context_window = window;
    }
    if let Some(limit) = reader.take("model_auto_compact_token_limit")? {
        entry.auto_compact_limit = Some(limit);
    }
    if let Some(limit) = reader.take("tool_output_token_limit")? {
        entry.truncation = Truncation::Tokens(limit);
    }
    Ok(entry)
}

fn take_trust(
    reader: &mut Reader<'_>,
    settings: &ProjectSettings,
    cwd: &Path,
) -> Result<Trust, ConfigError> {
    let projects: Vec<(String, Value)> = reader.take_table("projects")?.into_iter().collect();
    project::trust(&projects, settings, cwd)
        .map_err(|(path, why)| reader.wrong(&["projects", &path], why))
}

fn approval(reader: &mut Reader<'_>, trust: Trust) -> Result<ApprovalPolicy, ConfigError> {
    let said = match reader.table.remove("approval_policy") {
        None if trust == Trust::Untrusted => return Ok(ApprovalPolicy::Untrusted),
        None => return Ok(ApprovalPolicy::OnRequest),
        Some(said) => said,
    };
    match said.as_str() {
        Some("on-request" | "on-failure") => Ok(ApprovalPolicy::OnRequest),
        Some("never") => Ok(ApprovalPolicy::Never),
        Some("untrusted") => Ok(ApprovalPolicy::Untrusted),
        None if said.is_table() => {
            let kinds = said.get("granular").cloned().map(toml::Value::try_into);
            match kinds {
                Some(Ok(kinds)) => Ok(ApprovalPolicy::Granular(kinds)),
                Some(Err(err)) => Err(reader.wrong(&["approval_policy"], err.to_string())),
                None => Err(reader.wrong(&["approval_policy"], "a table has `granular` in it")),
            }
        }
        _ => {
            let why = "it is `on-request`, `never`, `untrusted` or a `granular` table";
            Err(reader.wrong(&["approval_policy"], why))
        }
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Writable {
    writable_roots: Vec<PathBuf>,
    network_access: bool,
    exclude_tmpdir_env_var: bool,
    exclude_slash_tmp: bool,
    loopback: bool,
}

/// The sandbox, and whether it leaves this machine's services open to commands with network access.
/// Where nobody has said anything about the project, nothing is written in it.
fn sandbox(
    reader: &mut Reader<'_>,
    trust: Trust,
    cwd: &Path,
) -> Result<(SandboxSettings, bool), ConfigError> {
    let writable: Writable = reader.take("sandbox_workspace_write")?.unwrap_or_default();
    let usual = match trust {
        Trust::Undecided => SandboxMode::ReadOnly,
        Trust::Trusted | Trust::Untrusted => SandboxMode::WorkspaceWrite,
    };
    let settings = SandboxSettings {
        mode: reader.take("sandbox_mode")?.unwrap_or(usual),
        writable_roots: writable.writable_roots.iter().map(|root| cwd.join(root)).collect(),
        network_access: writable.network_access,
        exclude_tmpdir_env_var: writable.exclude_tmpdir_env_var,
        exclude_slash_tmp: writable.exclude_slash_tmp,
    };
    Ok((settings, writable.loopback))
}

/// What Codex calls `fast` is `priority` to servers.
fn service_tier(
    reader: &mut Reader<'_>,
    wire: WireApi,
    notices: &mut Vec<String>,
) -> Result<Option<String>, ConfigError> {
    let said: Option<String> = reader.take("service_tier")?;
    if said.is_some() && wire != WireApi::Responses {
        notices.push("`service_tier` has no effect: only the Responses wire has it".to_owned());
    }
    Ok(said.map(|tier| if tier == "fast" { "priority".to_owned() } else { tier }))
}

/// `true` and `false` are what Codex used to have.
fn web_search(reader: &mut Reader<'_>) -> Result<Option<String>, ConfigError> {
    match reader.table.remove("web_search") {
        None => Ok(None),
        Some(Value::String(mode)) => Ok(Some(mode)),
        Some(Value::Boolean(on)) => Ok(Some(if on { "live" } else { "disabled" }.to_owned())),
        Some(_) => Err(reader.wrong(&["web_search"], "it is `disabled`, `cached` or `live`")),
    }
}

/// A feature is a switch, or a table with `enabled`.
fn features(reader: &mut Reader<'_>) -> Result<BTreeMap<String, bool>, ConfigError> {
    let switch = |(name, value): (String, Value)| {
        let on = value.as_bool().or_else(|| value.get("enabled")?.as_bool());
        match on {
            Some(on) => Ok((name, on)),
            None if value.is_table() => Ok((name, true)),
            None => Err(reader.wrong(&["features", &name], "it is `true` or `false`")),
        }
    };
    let table = reader.table.get("features").and_then(Value::as_table).cloned();
    let features = table.unwrap_or_default().into_iter().map(switch).collect();
    reader.table.remove("features");
    features
}

fn told(
    mut notices: Vec<String>,
    settings: &ProjectSettings,
    home: &Home,
    cwd: &Path,
) -> Vec<String> {
    let root = settings.root(cwd).unwrap_or_else(|| cwd.to_owned());
    let folders = cwd.ancestors().take_while(|folder| folder.starts_with(&root));
    let files = folders.map(|folder| folder.join(".codex/config.toml"));
    let of_project = |file: &PathBuf| !file.starts_with(&home.codex) && file.is_file();
    notices.extend(files.filter(of_project).map(|file| {
        format!("`{}` is not read: a project does not set up the engine", file.display())
    }));
    notices
}
