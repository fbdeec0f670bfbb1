//! Threads from the user's configuration: models, prompts, what may be done.

mod offered;

mod prompter;

mod provider;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use self::offered::Offered;
use self::prompter::HousePrompter;
use super::bound::SandboxBound;
use super::refused::Refused;
use super::supply::{Supplied, Supply, Wish};
use crate::config::{
    ApprovalPolicy, Config, ConfigError, Home, SandboxMode, SandboxSettings, WireApi,
};
use crate::exec::keeper;
use crate::guard::{Fenced, Guard, NoFence};
use crate::mcp;
use crate::model::{self, Clients, Provider};
use crate::prompt::agents_md;
use crate::sandbox::HiddenPaths;
use crate::thread::{Approval, Sandbox, Standing};

/// Makes threads from `config.toml`, ours and Codex's, and from what was said at the start.
#[derive(Clone, Debug)]
pub struct House {
    home: Home,
    overrides: Vec<(String, toml::Value)>,
    /// The program that puts commands into a sandbox.
    helper: Option<PathBuf>,
    /// Files and folders that neither commands see nor tools read for the model.
    hidden: HiddenPaths,
    without_rules: bool,
    bound: Option<SandboxBound>,
    clients: Clients,
    offered: Offered,
}

/// What the engine would run on, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outfit {
    /// The model.
    pub model: String,
    /// The provider's id.
    pub provider: String,
    /// The provider's name for people.
    pub name: String,
    /// Where it is; empty for the demo model.
    pub base_url: String,
    /// Nobody answers but the demo model.
    pub demo: bool,
    /// What should be known.
    pub notices: Vec<String>,
    /// Settings that nothing is done with.
    pub aside: Option<String>,
}

impl House {
    /// A house of this home, with settings over those of its files.
    pub fn new(home: Home, overrides: Vec<(String, toml::Value)>) -> Self {
        Self {
            home,
            overrides,
            helper: None,
            hidden: HiddenPaths::default(),
            without_rules: false,
            bound: None,
            clients: Clients::default(),
            offered: Offered::default(),
        }
    }

    /// Fences commands in with this program, which calls [`crate::sandbox::enter`] when it is told
    /// to, and ends them with it should this process be killed. Without one every command is asked
    /// for.
    pub fn with_helper(self, helper: PathBuf) -> Self {
        keeper::offer(&helper);
        Self { helper: Some(helper), ..self }
    }

    /// Hides files and folders from sandboxed commands and from the model's tools, such as the keys
    /// of whoever started this.
    #[must_use]
    pub fn hiding(self, hidden: impl Into<HiddenPaths>) -> Self {
        Self { hidden: hidden.into(), ..self }
    }

    /// Leaves the rules about commands unread, the user's own and Codex's.
    #[must_use]
    pub fn without_rules(self) -> Self {
        Self { without_rules: true, ..self }
    }

    /// Refuses threads and commands that reach further, whatever a client asks for.
    #[must_use]
    pub fn bounded(self, bound: SandboxBound) -> Self {
        // A rule that was saved once lets commands out, whatever the bound says now.
        Self { bound: Some(bound), without_rules: true, ..self }
    }

    /// Who decides about commands, and what of the rules could not be read.
    fn guard(&self, loopback: bool) -> (Arc<dyn Guard>, Vec<String>) {
        let homes = [Some(self.home.codex.clone()), self.home.bindery.clone()];
        let homes: Vec<PathBuf> = homes.into_iter().flatten().collect();
        match &self.helper {
            Some(helper) => {
                let guard = Fenced::new(helper.clone(), homes).hiding(self.hidden.clone());
                let guard = guard.with_loopback(loopback);
                match &self.home.bindery {
                    Some(own) if !self.without_rules => {
                        let codex = self.home.codex.join("rules");
                        let guard = guard.with_rules(own.join("rules.toml"), &codex);
                        let problems = guard.problems();
                        (Arc::new(guard), problems)
                    }
                    _ => (Arc::new(guard), Vec::new()),
                }
            }
            None => {
                let guard = NoFence::new(homes).hiding(self.hidden.clone());
                (Arc::new(guard), Vec::new())
            }
        }
    }

    /// The folder that holds configuration and sessions.
    pub fn codex_home(&self) -> &Path {
        &self.home.codex
    }

    /// What a thread in this folder would run on.
    pub fn outfit(&self, cwd: &Path) -> Result<Outfit, ConfigError> {
        let config = Config::load(&self.home, cwd, &self.overrides)?;
        Ok(Outfit {
            demo: config.provider.wire_api == WireApi::Demo,
            aside: config.aside(),
            model: config.model,
            provider: config.provider.id,
            name: config.provider.name,
            base_url: config.provider.base_url,
            notices: config.notices,
        })
    }

    /// Models besides the one in force. Our table knows what OpenAI serves; what another server
    /// does, it says itself.
    async fn other_models(&self, config: &Config) -> Vec<String> {
        match config.provider.wire_api {
            WireApi::Demo => Vec::new(),
            WireApi::Responses => config.catalogue.model_slugs().map(str::to_owned).collect(),
            WireApi::Chat => {
                let own = config.catalogue.own_model_slugs().map(str::to_owned);
                let offered = self.offered.models(&provider::plain(config)).await;
                own.chain(offered).collect()
            }
        }
    }

    fn load(&self, wish: &Wish) -> Result<Config, Refused> {
        let cwd = folder(wish.cwd.as_deref());
        let mut overrides = self.overrides.clone();
        let said = wish.config.iter().filter(|(_, value)| !value.is_null());
        for (key, value) in said {
            let value = toml::Value::try_from(value)
                .map_err(|err| Refused::invalid(format!("config.{key}: {err}")))?;
            overrides.push((key.clone(), value));
        }
        let named = [("model", &wish.model), ("model_provider", &wish.provider)];
        for (key, value) in named {
            overrides.extend(value.clone().map(|value| (key.to_owned(), value.into())));
        }
        let mut config = Config::load(&self.home, &cwd, &overrides).map_err(|err| {
            let cause = std::error::Error::source(&err).map(|cause| format!(": {cause}"));
            let cause = cause.unwrap_or_default();
            Refused::invalid(format!("failed to load configuration: {err}{cause}"))
        })?;
        config.hidden = self.hidden.clone();
        Ok(config)
    }
}

impl Supply for House {
    fn home(&self) -> &Path {
        &self.home.codex
    }

    fn bound(&self) -> Option<&SandboxBound> {
        self.bound.as_ref()
    }

    fn thread(&self, wish: &Wish) -> Result<Supplied, Refused> {
        if let Some(bound) = &self.bound {
            bound.check_config(&wish.config)?;
            wish.sandbox.as_ref().map_or(Ok(()), |sandbox| bound.check_sandbox(sandbox))?;
        }
        let config = self.load(wish)?;
        let mut standing = Standing::new(config.model.clone(), config.cwd.clone());
        standing.approval = wish.approval.unwrap_or_else(|| approval(&config.approval_policy));
        standing.reviewer = wish.reviewer.unwrap_or(config.approvals_reviewer);
        standing.sandbox = match &wish.sandbox {
            None => sandbox(&config.sandbox),
            // The client names a mode; what the mode comes with is in the settings.
            Some(Sandbox::WorkspaceWrite { .. }) => {
                let mode = SandboxMode::WorkspaceWrite;
                sandbox(&SandboxSettings { mode, ..config.sandbox.clone() })
            }
            Some(other) => other.clone(),
        };
        if let Some(bound) = &self.bound {
            bound.check_folder(&standing.cwd)?;
            standing.sandbox = bound.clamp(standing.sandbox);
        }
        standing.effort = config.effort.clone();
        standing.summary = config.summary.clone();
        standing.base_instructions = wish.base_instructions.clone();
        let developer = wish.developer_instructions.clone();
        standing.developer_instructions = developer.or(config.developer_instructions.clone());
        let provider = config.provider.id.clone();
        let model = model::open(&provider::plain(&config), &self.clients);
        let mut warnings = config.notices.clone();
        let (mcp, notices) = mcp::read(&config.mcp_servers, &self.home);
        warnings.extend(notices);
        let environment = config.environment.clone();
        let sources = sources(&config);
        let loopback = config.loopback;
        let prompter = Arc::new(HousePrompter::new(config));
        let (guard, problems) = self.guard(loopback);
        warnings.extend(problems);
        Ok(Supplied {
            standing,
            provider,
            model,
            mcp,
            environment,
            guard,
            prompter,
            sources,
            warnings,
        })
    }

    fn models(&self) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(async {
            let config = match self.load(&Wish::default()) {
                Ok(config) => config,
                Err(refused) => {
                    tracing::warn!(why = %refused.message, "no models are listed");
                    return Vec::new();
                }
            };
            let others = self.other_models(&config).await;
            let slugs = std::iter::once(config.model.clone()).chain(others);
            let mut seen = HashSet::new();
            let slugs = slugs.filter(|slug| seen.insert(slug.clone()));
            slugs.map(|slug| listed(&config, &slug)).collect()
        })
    }

    fn config(&self, cwd: &Path) -> Result<Value, Refused> {
        let config = self.load(&Wish { cwd: Some(cwd.to_owned()), ..Wish::default() })?;
        Ok(json!({
            "model": config.model,
            "review_model": config.review_model,
            "model_provider": config.provider.id,
            "model_context_window": config.entry.context_window,
            "approval_policy": config.approval_policy,
            "sandbox_mode": config.sandbox.mode,
            "sandbox_workspace_write": config.sandbox,
            "developer_instructions": config.developer_instructions,
            "compact_prompt": config.compact_prompt,
            "model_reasoning_effort": config.effort,
            "model_reasoning_summary": config.summary,
            "model_verbosity": config.verbosity,
            "web_search": config.web_search,
            "features": config.features,
        }))
    }
}

/// Whose words a thread in this folder is told.
fn sources(config: &Config) -> Vec<String> {
    let project = agents_md::gather(config, &config.cwd).section(&config.cwd);
    let paths = project.into_iter().flat_map(|section| section.sources);
    paths.map(|path| path.display().to_string()).collect()
}

/// The settings of a configuration's provider as a model's wire takes them, keys and all.
pub fn model_provider(config: &Config) -> Provider {
    provider::plain(config)
}

fn listed(config: &Config, slug: &str) -> Value {
    let entry = config.entry_of(slug);
    let reasoning = entry.reasoning.clone().unwrap_or_default();
    let efforts = reasoning.efforts.iter();
    let efforts = efforts.map(|effort| json!({ "reasoningEffort": effort, "description": "" }));
    let demo = config.provider.wire_api == WireApi::Demo;
    let description = match demo {
        true => "The demo model: no model answers, nothing is sent anywhere.",
        false => "",
    };
    json!({
        "id": slug,
        "model": slug,
        "upgrade": null,
        "displayName": slug,
        "description": description,
        "hidden": false,
        "supportedReasoningEfforts": efforts.collect::<Vec<_>>(),
        "defaultReasoningEffort": reasoning.effort.unwrap_or_else(|| "medium".to_owned()),
        "inputModalities": if entry.images { json!(["text", "image"]) } else { json!(["text"]) },
        "supportsPersonality": false,
        "isDefault": slug == config.model,
    })
}

fn folder(named: Option<&Path>) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    named.map_or(here.clone(), |path| here.join(path))
}

fn approval(policy: &ApprovalPolicy) -> Approval {
    match policy {
        ApprovalPolicy::OnRequest => Approval::OnRequest,
        ApprovalPolicy::Never => Approval::Never,
        ApprovalPolicy::Untrusted => Approval::Untrusted,
        ApprovalPolicy::Granular(kinds) => Approval::Granular(*kinds),
    }
}

fn sandbox(settings: &SandboxSettings) -> Sandbox {
    match settings.mode {
        SandboxMode::ReadOnly => Sandbox::ReadOnly { network_access: false },
        SandboxMode::DangerFullAccess => Sandbox::DangerFullAccess,
        SandboxMode::WorkspaceWrite => Sandbox::WorkspaceWrite {
            writable_roots: settings.writable_roots.clone(),
            network_access: settings.network_access,
            exclude_tmpdir_env_var: settings.exclude_tmpdir_env_var,
            exclude_slash_tmp: settings.exclude_slash_tmp,
        },
    }
}
