//! Tenants: who may speak, where their Codex lives, how much they may use.

mod access;

mod folder;

mod home;

mod paths;

mod escalation;

mod policy;

mod roles;

mod sandbox;

mod settings;

mod trust;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::access::{Caller, Tenants};
pub use self::escalation::{Escalation, check_answer};
pub use self::folder::{FOLDER_MOVED, ThreadFolder};
pub use self::home::{HOME_UNBOUNDED, check_codex_home};
use self::paths::confined;
pub use self::paths::open_file;
pub use self::policy::{Policy, invalid, roots_of};
pub use self::roles::{Contributor, Role, Roles};
pub use self::settings::SettingsFile;
pub use self::trust::bound_codex;
use crate::clock::Millis;

/// A user of the daemon, apart from all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    /// Our name for it.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Settings.
    pub settings: TenantSettings,
    /// When it was made.
    pub created: Millis,
}

/// Settings of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantSettings {
    /// The home of its Codex: configuration, credentials, sessions.
    pub codex_home: PathBuf,
    /// The folder that all its threads work in.
    pub root: PathBuf,
    /// How much it may use.
    #[serde(default)]
    pub limits: Limits,
    /// What its callers may ask Codex for.
    #[serde(default)]
    pub policy: Policy,
    /// Who is told when something happens.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// Tools that are served by a webhook.
    #[serde(default)]
    pub tools: Vec<HookTool>,
    /// Added to the environment of its workers.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl TenantSettings {
    /// A home and a root, and what is usual.
    pub fn new(codex_home: PathBuf, root: PathBuf) -> Self {
        Self {
            codex_home,
            root,
            limits: Limits::default(),
            policy: Policy::default(),
            webhooks: Vec::new(),
            tools: Vec::new(),
            env: BTreeMap::new(),
        }
    }
}

/// How much a tenant may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Turns that run at a time.
    pub turns: usize,
    /// Turns that wait, in all threads.
    pub queue: usize,
    /// Turns that wait in one thread.
    #[serde(alias = "thread_queue")]
    pub thread_queue: usize,
    /// Requests a minute.
    #[serde(alias = "requests_per_minute")]
    pub requests_per_minute: u32,
    /// Bytes of uploads, prompts and events on disk.
    pub disk: u64,
    /// Requests at a time, streams included.
    pub requests: usize,
    /// Bytes of requests in memory at a time; further ones wait.
    #[serde(alias = "request_bytes")]
    pub request_bytes: u64,
    /// Bytes of the turns that wait.
    #[serde(alias = "queue_bytes")]
    pub queue_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 16,
            queue: 256,
            thread_queue: 16,
            requests_per_minute: 6000,
            disk: 4 << 30,
            requests: 512,
            request_bytes: 32 << 20,
            queue_bytes: 64 << 20,
        }
    }
}

/// Who is told when something happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    /// Where to.
    pub url: String,
    /// What its calls are signed with; `whsec_` and base64, or any text.
    pub secret: String,
    /// What it is told of.
    #[serde(default = "HookEvent::usual")]
    pub events: Vec<HookEvent>,
}

/// What a webhook can be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookEvent {
    /// A question was asked.
    #[serde(rename = "interrupt.opened")]
    InterruptOpened,
    /// A turn waits for an answer.
    #[serde(rename = "turn.waiting")]
    TurnWaiting,
    /// A turn ended well.
    #[serde(rename = "turn.completed")]
    TurnCompleted,
    /// A turn ended with an error.
    #[serde(rename = "turn.failed")]
    TurnFailed,
    /// Somebody stopped a turn.
    #[serde(rename = "turn.interrupted")]
    TurnInterrupted,
}

impl HookEvent {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::InterruptOpened => "interrupt.opened",
            Self::TurnWaiting => "turn.waiting",
            Self::TurnCompleted => "turn.completed",
            Self::TurnFailed => "turn.failed",
            Self::TurnInterrupted => "turn.interrupted",
        }
    }

    /// Of a webhook that does not say.
    fn usual() -> Vec<Self> {
        vec![Self::InterruptOpened]
    }
}

/// A tool that is served by a webhook instead of a waiting client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookTool {
    /// Its name for the model.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// JSON Schema of its input.
    #[serde(alias = "input_schema")]
    pub input_schema: Value,
    /// Who runs it.
    pub url: String,
    /// What the calls are signed with.
    pub secret: String,
    /// How long it may take, in seconds.
    #[serde(default = "half_a_minute", alias = "timeout_seconds")]
    pub timeout_seconds: u64,
}

fn half_a_minute() -> u64 {
    30
}
