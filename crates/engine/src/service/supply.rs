//! What threads are made from: configuration, models, prompts. The seam behind the service.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::bound::SandboxBound;
use super::refused::Refused;
use crate::guard::Guard;
use crate::mcp::ServerSettings;
use crate::model::Model;
use crate::prompter::Prompter;
use crate::sandbox::environment::EnvironmentPolicy;
use crate::thread::{Approval, ApprovalsReviewer, Sandbox, Standing};

/// Provides what threads are made from.
pub trait Supply: Send + Sync {
    /// The folder that holds configuration and sessions.
    fn home(&self) -> &Path;

    /// Everything for one thread.
    fn thread(&self, wish: &Wish) -> Result<Supplied, Refused>;

    /// The most that a client may ask for; none if it may ask for everything.
    fn bound(&self) -> Option<&SandboxBound> {
        None
    }

    /// Models to choose from, as `model/list` tells them. A server may have to be asked, for a
    /// second at most.
    fn models(&self) -> BoxFuture<'_, Vec<Value>>;

    /// The configuration in force in a folder, as `config/read` tells it.
    fn config(&self, cwd: &Path) -> Result<Value, Refused>;
}

/// What a client wants of a thread; nothing said leaves it to the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    /// The folder to work in; none takes the server's own.
    pub cwd: Option<PathBuf>,
    /// The model.
    pub model: Option<String>,
    /// Its provider.
    pub provider: Option<String>,
    /// When the person is asked.
    pub approval: Option<Approval>,
    /// Who answers then.
    pub reviewer: Option<ApprovalsReviewer>,
    /// What commands can reach: a mode by name, of which the configuration has the details.
    pub sandbox: Option<Sandbox>,
    /// Overrides of `config.toml`, by dotted key.
    pub config: Map<String, Value>,
    /// Replaces the base prompt.
    pub base_instructions: Option<String>,
    /// Follows the base prompt.
    pub developer_instructions: Option<String>,
}

/// Everything for one thread.
#[derive(Clone)]
pub struct Supplied {
    /// What is in force.
    pub standing: Standing,
    /// The name of the provider.
    pub provider: String,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// MCP servers.
    pub mcp: Vec<ServerSettings>,
    /// Which variables commands get.
    pub environment: EnvironmentPolicy,
    /// Who decides about commands.
    pub guard: Arc<dyn Guard>,
    /// What it is told around the user's words.
    pub prompter: Arc<dyn Prompter>,
    /// Files whose words it is told.
    pub sources: Vec<String>,
    /// Things the user should know.
    pub warnings: Vec<String>,
}
