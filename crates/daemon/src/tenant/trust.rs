//! What a project's own files may set for Codex: nothing, unless the tenant may do everything.
//!
//! Codex takes a folder in which a thread may write for one that its user trusts, writes that down,
//! and then obeys the project's `.codex/config.toml`, whose MCP servers run outside of the sandbox.
//! A folder that the settings of the thread itself call untrusted is not taken so, whatever the
//! tenant's `config.toml` says of it.

use std::path::{Path, PathBuf};

use bindery_core::settings::bounded::config_value;
use serde_json::{Map, Value, json};

use super::Tenant;

/// Adds to settings that were held to the policy what Codex must be told besides: that it obeys no
/// file of the project, and its sandbox once more, for turns that are told none of their own. None
/// for a tenant that may do everything itself.
pub fn bound_codex(tenant: &Tenant, cwd: &Path, options: &mut Map<String, Value>) {
    let policy = &tenant.settings.policy;
    if policy.config && policy.full_access {
        return;
    }
    let mut config = match options.remove("config") {
        Some(Value::Object(config)) if policy.config => config,
        _ => Map::new(),
    };
    let untrusted = |folder: PathBuf| {
        (folder.to_string_lossy().into_owned(), json!({ "trust_level": "untrusted" }))
    };
    let folders: Map<String, Value> = projects(cwd).into_iter().map(untrusted).collect();
    config.insert("projects".to_owned(), Value::Object(folders));
    for (name, value) in defaults(&tenant.settings.codex_home) {
        if config_value(&config, &name).is_none() {
            config.insert(name, value);
        }
    }
    if !policy.full_access {
        keep_home_closed(&tenant.settings.codex_home, options);
        config.extend(options.get("sandboxPolicy").and_then(workspace_table));
    }
    options.insert("config".to_owned(), Value::Object(config));
}

/// A sandbox lets commands write `/tmp`; not so where the home lies there, which would then be what
/// they make of it.
fn keep_home_closed(home: &Path, options: &mut Map<String, Value>) {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let policy = options.get_mut("sandboxPolicy").and_then(Value::as_object_mut);
    if let Some(policy) = policy.filter(|policy| policy.get("type") == Some(&json!(WORKSPACE)))
        && real(home).starts_with(real(Path::new("/tmp")))
    {
        policy.insert("excludeSlashTmp".to_owned(), json!(true));
    }
}

/// The type of a policy that lets a workspace be written.
const WORKSPACE: &str = "workspaceWrite";

/// A policy of a turn as a thread is told it.
fn workspace_table(policy: &Value) -> Option<(String, Value)> {
    if policy["type"] != WORKSPACE {
        return None;
    }
    let table = json!({
        "writable_roots": policy["writableRoots"],
        "network_access": policy["networkAccess"],
        "exclude_tmpdir_env_var": policy["excludeTmpdirEnvVar"],
        "exclude_slash_tmp": policy["excludeSlashTmp"],
    });
    Some(("sandbox_workspace_write".to_owned(), table))
}

/// Every folder that Codex may take for the project: those above, because a `.git` may come to be
/// in any of them later, and for a worktree the repository it belongs to.
fn projects(cwd: &Path) -> Vec<PathBuf> {
    let above: Vec<PathBuf> = cwd.ancestors().map(Path::to_owned).collect();
    let repositories = above.iter().filter_map(|folder| repository(folder)).collect::<Vec<_>>();
    let around = repositories.iter().flat_map(|folder| folder.ancestors().map(Path::to_owned));
    let around: Vec<PathBuf> = around.collect();
    above.into_iter().chain(around).collect()
}

/// The repository that a `.git` file names: `gitdir: REPOSITORY/.git/worktrees/NAME`.
fn repository(folder: &Path) -> Option<PathBuf> {
    let file = bindery_sessions::plain::open_file(folder, Path::new(".git")).ok()?;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::io::Read::take(file, 4096), &mut text).ok()?;
    let named = folder.join(text.strip_prefix("gitdir:")?.trim());
    named.canonicalize().ok().or(Some(named))
}

/// Codex has other defaults for a folder that is called untrusted than for one it knows nothing of:
/// it may then write. What nobody has set stays as it is in an unknown folder.
fn defaults(codex_home: &Path) -> Map<String, Value> {
    let text = std::fs::read_to_string(codex_home.join("config.toml")).unwrap_or_default();
    let set: toml::Table = toml::from_str(&text).unwrap_or_default();
    let profile = set.get("profile").and_then(toml::Value::as_str);
    let profile = profile.and_then(|name| set.get("profiles")?.get(name)?.as_table());
    let says = |name: &str| {
        set.contains_key(name) || profile.is_some_and(|profile| profile.contains_key(name))
    };
    let mut config = Map::new();
    if !says("sandbox_mode") && !says("default_permissions") {
        config.insert("sandbox_mode".to_owned(), json!("read-only"));
    }
    if !says("approval_policy") {
        config.insert("approval_policy".to_owned(), json!("on-request"));
    }
    config
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tenant::{Policy, TenantSettings};

    fn tenant(home: &Path, policy: Policy) -> Tenant {
        let mut settings = TenantSettings::new(home.to_owned(), home.to_owned());
        settings.policy = policy;
        Tenant { id: "ten_1".to_owned(), name: "acme".to_owned(), settings, created: 0 }
    }

    #[test]
    fn every_folder_that_may_be_the_project_is_called_untrusted() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        let (cwd, main) = (outer.join("tree/in"), outer.join("main/.git/worktrees/tree"));
        fs::create_dir_all(&cwd).unwrap();
        fs::create_dir_all(&main).unwrap();
        fs::write(outer.join("tree/.git"), format!("gitdir: {}\n", main.display())).unwrap();
        let bound = |policy: Policy, options: Value| {
            let mut options = options.as_object().unwrap().clone();
            bound_codex(&tenant(&outer, policy), &cwd, &mut options);
            Value::Object(options)
        };
        let config = &bound(Policy::default(), json!({}))["config"];
        for folder in [&cwd, &outer.join("tree"), &outer, &outer.join("main"), Path::new("/")] {
            let trust = &config["projects"][folder.to_str().unwrap()]["trust_level"];
            assert_eq!(trust, "untrusted", "{}", folder.display());
        }
        assert_eq!(config["sandbox_mode"], "read-only");
        let free = Policy { config: true, full_access: true, ..Policy::default() };
        assert_eq!(bound(free, json!({ "model": "m" })), json!({ "model": "m" }));
        // What a tenant may override itself stays.
        let own = Policy { config: true, ..Policy::default() };
        let config = &bound(own, json!({ "config": { "model": "m", "approval_policy": "never" } }))
            ["config"];
        assert_eq!((&config["model"], &config["approval_policy"]), (&json!("m"), &json!("never")));
        assert_eq!(config["projects"]["/"]["trust_level"], "untrusted");
        // A sandbox is told to the thread as it is to the turn; the home here lies below `/tmp`.
        let policy = json!({ "type": "workspaceWrite", "writableRoots": ["/a"],
            "networkAccess": true, "excludeTmpdirEnvVar": false, "excludeSlashTmp": false });
        let bound = bound(Policy::default(), json!({ "sandboxPolicy": policy }));
        let table = &bound["config"]["sandbox_workspace_write"];
        let closed = outer.starts_with("/tmp");
        assert_eq!(
            *table,
            json!({ "writable_roots": ["/a"], "network_access": true,
            "exclude_tmpdir_env_var": false, "exclude_slash_tmp": closed })
        );
        assert_eq!(bound["sandboxPolicy"]["excludeSlashTmp"], closed);
    }

    #[test]
    fn what_the_tenants_own_file_sets_stays() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        let keys = |text: &str| {
            fs::write(&file, text).unwrap();
            let config = defaults(home.path());
            config.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(""), ["approval_policy", "sandbox_mode"]);
        assert_eq!(keys("sandbox_mode = 'workspace-write'"), ["approval_policy"]);
        assert_eq!(keys("approval_policy = 'never'"), ["sandbox_mode"]);
        let profile = "profile = 'x'\n[profiles.x]\nsandbox_mode = 'workspace-write'";
        assert_eq!(keys(profile), ["approval_policy"]);
        assert_eq!(keys("this is no TOML"), ["approval_policy", "sandbox_mode"]);
    }
}
