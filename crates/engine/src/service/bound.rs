//! The most that a client may ask for: a bound on the sandbox, given when the server starts.
//!
//! Whoever starts a server for somebody that must stay in a sandbox gives it one. Then no request
//! starts a thread, turn or command beyond it, and none does by itself what a sandboxed command
//! could not: write files, start programs, call tools.

use std::path::{Path, PathBuf};

use bindery_core::settings::bounded::{self, config_value};
use serde_json::{Map, Value};

use super::refused::Refused;
use crate::thread::{Overrides, Sandbox};

/// The most that commands may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxBound {
    /// Whether the workspace may be written.
    pub writable: bool,
    /// Folders that workspaces and writable roots must lie in; none leaves it to the client.
    pub roots: Vec<PathBuf>,
}

impl SandboxBound {
    /// The bound of a mode's name. No bound is called `danger-full-access`: leave it out instead.
    pub fn of_mode(mode: &str, roots: Vec<PathBuf>) -> Result<Self, String> {
        match mode {
            "read-only" => Ok(Self { writable: false, roots }),
            "workspace-write" => Ok(Self { writable: true, roots }),
            _ => Err(format!("`{mode}` is no bound; use `read-only` or `workspace-write`")),
        }
    }

    /// Refuses a sandbox that reaches further.
    pub(crate) fn check_sandbox(&self, sandbox: &Sandbox) -> Result<(), Refused> {
        match sandbox {
            Sandbox::ReadOnly { .. } => Ok(()),
            Sandbox::WorkspaceWrite { writable_roots, .. } if self.writable => {
                writable_roots.iter().try_for_each(|root| self.check_folder(root))
            }
            _ => Err(beyond("this sandbox")),
        }
    }

    /// Refuses a folder that lies elsewhere when all links are resolved.
    pub(crate) fn check_folder(&self, folder: &Path) -> Result<(), Refused> {
        if self.roots.is_empty() {
            return Ok(());
        }
        let real = folder.canonicalize().map_err(|_| beyond("a folder that is not there"))?;
        let mut roots = self.roots.iter().filter_map(|root| root.canonicalize().ok());
        if roots.any(|root| real.starts_with(root)) { Ok(()) } else { Err(beyond("this folder")) }
    }

    /// Refuses changes of a thread that reach further.
    pub(crate) fn check_overrides(&self, overrides: &Overrides) -> Result<(), Refused> {
        overrides.sandbox.as_ref().map_or(Ok(()), |sandbox| self.check_sandbox(sandbox))?;
        overrides.cwd.as_ref().map_or(Ok(()), |cwd| self.check_folder(cwd))
    }

    /// Refuses settings that reach further, or may.
    pub(crate) fn check_config(&self, config: &Map<String, Value>) -> Result<(), Refused> {
        bounded::check_config(config).map_err(|err| Refused::invalid(err.to_string()))?;
        if let Some(mode) = config.get("sandbox_mode") {
            let sandbox = mode.as_str().and_then(Sandbox::of_mode);
            self.check_sandbox(&sandbox.ok_or_else(|| beyond("this sandbox"))?)?;
        }
        let roots = config_value(config, "sandbox_workspace_write.writable_roots");
        let roots = roots.and_then(Value::as_array).into_iter().flatten();
        roots.filter_map(Value::as_str).try_for_each(|root| self.check_folder(Path::new(root)))
    }

    /// What nobody asked for, but the configuration says, is as much as may be had.
    pub(crate) fn clamp(&self, sandbox: Sandbox) -> Sandbox {
        match sandbox {
            within if self.check_sandbox(&within).is_ok() => within,
            _ if self.writable => Sandbox::workspace(),
            _ => Sandbox::default(),
        }
    }

    /// Refuses methods that act on the machine by themselves.
    pub(crate) fn check_method(&self, method: &str) -> Result<(), Refused> {
        let reads = ["fs/readFile", "fs/getMetadata", "fs/readDirectory"].contains(&method);
        let acts = method.starts_with("fs/") && !reads || method == "mcpServer/tool/call";
        if acts { Err(beyond(method)) } else { Ok(()) }
    }
}

fn beyond(what: &str) -> Refused {
    let message = format!("{what} is beyond the sandbox that this server was started with");
    Refused::invalid(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    #[cfg(unix)]
    fn nothing_beyond_the_bound_is_let_through() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::os::unix::fs::symlink("/", root.join("out")).unwrap();
        let bound = SandboxBound::of_mode("workspace-write", vec![root.clone()]).unwrap();
        let write = |roots: Vec<PathBuf>| {
            serde_json::from_value(json!({ "type": "workspaceWrite", "writableRoots": roots }))
                .unwrap()
        };
        let external = Sandbox::ExternalSandbox { network_access: None };
        for (sandbox, fits) in [
            (Sandbox::default(), true),
            (Sandbox::workspace(), true),
            (write(vec![root.join("in")]), true),
            (write(vec!["/".into()]), false),
            (write(vec![root.join("out")]), false),
            (write(vec![root.join("in/../..")]), false),
            (external, false),
            (Sandbox::DangerFullAccess, false),
        ] {
            assert_eq!(bound.check_sandbox(&sandbox).is_ok(), fits, "{sandbox:?}");
            assert!(bound.check_sandbox(&bound.clamp(sandbox)).is_ok());
        }
        for (config, fits) in [
            (json!({ "sandbox_mode": "read-only" }), true),
            (json!({ "sandbox_mode": "danger-full-access" }), false),
            (json!({ "sandbox_mode": 1 }), false),
            (json!({ "sandbox_workspace_write.writable_roots": ["/"] }), false),
            (json!({ "mcp_servers.x.command": "sh" }), false),
        ] {
            let checked = bound.check_config(config.as_object().unwrap());
            assert_eq!(checked.is_ok(), fits, "{config}");
        }
        for (method, fits) in [
            ("fs/readFile", true),
            ("thread/start", true),
            ("fs/writeFile", false),
            ("fs/newInSomeVersion", false),
            ("mcpServer/tool/call", false),
        ] {
            assert_eq!(bound.check_method(method).is_ok(), fits, "{method}");
        }
        let reading = SandboxBound::of_mode("read-only", Vec::new()).unwrap();
        assert!(reading.check_sandbox(&Sandbox::workspace()).is_err());
        assert!(SandboxBound::of_mode("danger-full-access", Vec::new()).is_err());
    }
}
