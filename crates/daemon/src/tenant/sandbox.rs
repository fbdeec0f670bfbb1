//! The sandbox that a turn would really run in, for tenants that may not leave it.

use std::path::{Path, PathBuf};

use bindery_core::settings::bounded::config_value;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::confined;
use crate::error::Error;

/// A sandbox without a way out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effective {
    /// Nothing is written.
    ReadOnly {
        /// Whether commands reach the network.
        network: bool,
    },
    /// The workspace is written.
    WorkspaceWrite(Writable),
}

/// What a writable workspace has besides, in the words of `config.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Writable {
    writable_roots: Vec<PathBuf>,
    network_access: bool,
    exclude_tmpdir_env_var: bool,
    exclude_slash_tmp: bool,
}

/// What the home's own `config.toml` says where a call says nothing. It is the operator's.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HomeDefaults {
    /// The mode, if it is one of those without a way out.
    mode: Option<&'static str>,
    writable: Writable,
}

impl HomeDefaults {
    /// Reads them. Where nothing can be read, nothing is written.
    pub(super) fn read(home: &Path, cwd: &Path) -> Self {
        let text = std::fs::read_to_string(home.join("config.toml")).unwrap_or_default();
        Self::parse(&text, cwd)
    }

    fn parse(text: &str, cwd: &Path) -> Self {
        let Ok(table) = text.parse::<toml::Table>() else { return Self::default() };
        let profile = table.get("profile").and_then(toml::Value::as_str);
        let profile = profile.and_then(|name| table.get("profiles")?.get(name)?.as_table());
        let said = profile.and_then(|profile| profile.get("sandbox_mode"));
        let mode = match said.or_else(|| table.get("sandbox_mode")).map(|mode| mode.as_str()) {
            Some(Some("read-only")) => Some("read-only"),
            // The most that a tenant without full access can have.
            Some(Some("workspace-write" | "danger-full-access")) => Some("workspace-write"),
            Some(_) => None,
            None => is_trusted(&table, cwd).then_some("workspace-write"),
        };
        let writable = table.get("sandbox_workspace_write").cloned();
        let writable = writable.and_then(|writable| writable.try_into().ok()).unwrap_or_default();
        Self { mode, writable }
    }
}

/// Whether the operator trusts the folder, or one that it lies in.
fn is_trusted(table: &toml::Table, cwd: &Path) -> bool {
    let projects = table.get("projects").and_then(toml::Value::as_table).into_iter().flatten();
    let mut projects: Vec<(&Path, bool)> = projects
        .filter(|(folder, _)| cwd.starts_with(folder))
        .map(|(folder, project)| {
            let level = project.get("trust_level").and_then(toml::Value::as_str);
            (Path::new(folder.as_str()), level == Some("trusted"))
        })
        .collect();
    // The nearest is the one that counts.
    projects.sort_by_key(|(folder, _)| folder.components().count());
    projects.last().is_some_and(|(_, trusted)| *trusted)
}

impl Effective {
    /// What these settings amount to; refused if any of them names a way out, even where another
    /// would be stronger.
    pub(super) fn of(
        options: &Map<String, Value>,
        config: &Map<String, Value>,
        home: &HomeDefaults,
        root: &Path,
    ) -> Result<Self, Error> {
        let asked = options.get("sandbox").map(|mode| mode_of("sandbox", mode)).transpose()?;
        let configured = config.get("sandbox_mode");
        let configured = configured.map(|mode| mode_of("config.sandbox_mode", mode)).transpose()?;
        let writable = writable_of(config, &home.writable, root)?;
        if let Some(policy) = options.get("sandboxPolicy") {
            return policy_of(policy, root);
        }
        Ok(match asked.or(configured).or(home.mode) {
            Some("workspace-write") => Self::WorkspaceWrite(writable),
            _ => Self::ReadOnly { network: false },
        })
    }

    /// The word for it that threads take.
    pub(super) fn mode(&self) -> &'static str {
        match self {
            Self::ReadOnly { .. } => "read-only",
            Self::WorkspaceWrite(_) => "workspace-write",
        }
    }

    /// The object for it that turns take.
    pub(super) fn policy(&self) -> Value {
        match self {
            Self::ReadOnly { network } => json!({ "type": "readOnly", "networkAccess": network }),
            Self::WorkspaceWrite(writable) => json!({
                "type": "workspaceWrite",
                "writableRoots": writable.writable_roots,
                "networkAccess": writable.network_access,
                "excludeTmpdirEnvVar": writable.exclude_tmpdir_env_var,
                "excludeSlashTmp": writable.exclude_slash_tmp,
            }),
        }
    }
}

fn no_full_access(name: &str) -> Error {
    Error::Forbidden(format!("`settings.{name}`: full access is not allowed for this tenant"))
}

fn mode_of(name: &str, mode: &Value) -> Result<&'static str, Error> {
    match mode.as_str() {
        Some("read-only") => Ok("read-only"),
        Some("workspace-write") => Ok("workspace-write"),
        _ => Err(no_full_access(name)),
    }
}

fn policy_of(policy: &Value, root: &Path) -> Result<Effective, Error> {
    let flag = |name: &str| policy.get(name).and_then(Value::as_bool).unwrap_or(false);
    match policy["type"].as_str() {
        Some("readOnly") => Ok(Effective::ReadOnly { network: flag("networkAccess") }),
        Some("workspaceWrite") => Ok(Effective::WorkspaceWrite(Writable {
            writable_roots: roots_of(policy.get("writableRoots"), root)?,
            network_access: flag("networkAccess"),
            exclude_tmpdir_env_var: flag("excludeTmpdirEnvVar"),
            exclude_slash_tmp: flag("excludeSlashTmp"),
        })),
        _ => Err(no_full_access("sandboxPolicy")),
    }
}

/// The home's writable workspace with what a call's `config` changes of it.
fn writable_of(
    config: &Map<String, Value>,
    home: &Writable,
    root: &Path,
) -> Result<Writable, Error> {
    let said = |name: &str| config_value(config, &format!("sandbox_workspace_write.{name}"));
    let flag = |name: &str, usual: bool| said(name).and_then(Value::as_bool).unwrap_or(usual);
    let roots = match said("writable_roots") {
        Some(roots) => roots_of(Some(roots), root)?,
        None => below(root, &home.writable_roots),
    };
    Ok(Writable {
        writable_roots: roots,
        network_access: flag("network_access", home.network_access),
        exclude_tmpdir_env_var: flag("exclude_tmpdir_env_var", home.exclude_tmpdir_env_var),
        exclude_slash_tmp: flag("exclude_slash_tmp", home.exclude_slash_tmp),
    })
}

/// Folders of the home's that are the tenant's own. Others are left out: a home may be whoever's,
/// and one that is used by people has roots for them.
fn below(root: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let own = roots.iter().filter_map(|path| confined(root, path.to_str()).ok());
    own.collect()
}

/// Folders that a call wants to be writable must be the tenant's own.
fn roots_of(roots: Option<&Value>, root: &Path) -> Result<Vec<PathBuf>, Error> {
    let roots = roots.and_then(Value::as_array).into_iter().flatten();
    let outside = || {
        let why = "writable roots must be folders below the tenant's root".to_owned();
        Error::Forbidden(why)
    };
    roots.map(|path| confined(root, path.as_str()).map_err(|_| outside())).collect()
}
