//! What a project's own files may set for Codex: nothing, unless the tenant may set everything.
//!
//! Codex takes a folder in which a thread may write for one that its user trusts, writes that down,
//! and then obeys the project's `.codex/config.toml`, whose MCP servers run outside of the sandbox.
//! A folder that the settings of the thread itself call untrusted is not taken so, whatever the
//! tenant's `config.toml` says of it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::Tenant;

/// Overrides for Codex that make a thread in this folder obey no file of its project; none for a
/// tenant that may override everything itself.
pub fn distrust(tenant: &Tenant, cwd: &Path) -> Option<Map<String, Value>> {
    if tenant.settings.policy.config {
        return None;
    }
    let untrusted = |folder: PathBuf| {
        (folder.to_string_lossy().into_owned(), json!({ "trust_level": "untrusted" }))
    };
    let folders: Map<String, Value> = projects(cwd).into_iter().map(untrusted).collect();
    let mut config = Map::from_iter([("projects".to_owned(), Value::Object(folders))]);
    config.extend(defaults(&tenant.settings.codex_home));
    Some(config)
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
        let config = distrust(&tenant(&outer, Policy::default()), &cwd).unwrap();
        for folder in [&cwd, &outer.join("tree"), &outer, &outer.join("main"), Path::new("/")] {
            let trust = &config["projects"][folder.to_str().unwrap()]["trust_level"];
            assert_eq!(trust, "untrusted", "{}", folder.display());
        }
        assert_eq!(config["sandbox_mode"], "read-only");
        let free = Policy { config: true, ..Policy::default() };
        assert_eq!(distrust(&tenant(&outer, free), &cwd), None);
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
