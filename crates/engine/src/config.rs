//! What the engine is told before it starts: which model, where it is, and what may be done.
//!
//! Models and providers are data (`catalogue.toml`), the rest comes from Codex's own
//! `config.toml`, from our `bindery.toml` over it, and from what the command line says over both.

mod error;

mod home;

mod model;

mod provider;

mod policy;

mod catalogue;

mod layer;

mod reader;

mod shell;

mod profile;

mod project;

mod load;

mod edit;

pub use catalogue::Catalogue;
pub use edit::{edit_settings_file, save_project_trust};
pub use error::ConfigError;
pub use home::Home;
pub use layer::{endpoint, parse_override};
pub use load::Config;
pub use model::{
    BaseKind, ExecTool, ModelEntry, PatchTool, Placement, ReasoningSettings, ToolSet, Truncation,
};
pub use policy::{ApprovalPolicy, SandboxMode, SandboxSettings, Trust};
pub use profile::profile_overrides;
pub use project::ProjectSettings;
pub use provider::{ProviderEntry, WireApi};
