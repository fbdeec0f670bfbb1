//! Installs exactly what a lock file pins, with our own package from its tarball.
//!
//! `npm ci` refuses a lock file that lacks anything, and writes none. The tarball stands in the
//! lock file as `file:bindery-ai-sdk.tgz`, so installing it cannot move another package.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::copy;
use crate::{need, step};

/// The packed provider, as the apps' `package.json` names it.
pub(super) const TARBALL: &str = "bindery-ai-sdk.tgz";

/// How long npm may take, over a slow line.
const NPM_LIMIT: Duration = Duration::from_mins(10);

const STAMP: &str = "node_modules/.pinned";

/// Installs what the lock file in `source` pins into `folder`, unless that is there already; then
/// compares what is installed with the lock file.
pub(super) fn install(source: &Path, folder: &Path, tarball: Option<&Path>) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let lock = fs::read_to_string(source.join("package-lock.json"))?;
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        copy(&source.join(name), &folder.join(name))?;
    }
    let packed = tarball.map(fs::read).transpose()?;
    let installed = packed.as_ref().is_none_or(|packed| {
        fs::read(folder.join(TARBALL)).is_ok_and(|installed| installed == *packed)
    });
    let stamp = folder.join(STAMP);
    if !(installed && fs::read_to_string(&stamp).is_ok_and(|pinned| pinned == lock)) {
        if let Some(packed) = packed {
            fs::write(folder.join(TARBALL), packed)?;
        }
        let name = format!("npm ci in {}", shown(folder));
        let hint = "is the registry of `npm config get registry` reachable?";
        npm(&name, &["ci", "--prefer-offline"], folder, hint)?;
        fs::write(stamp, &lock)?;
    }
    check_tree(folder, &[])
}

/// Adds the package of this platform beside the provider, from its tarball and nothing else.
pub(super) fn add_platform(tarball: &Path, folder: &Path) -> anyhow::Result<()> {
    let name = format!("npm install of the platform package in {}", shown(folder));
    let path = tarball.to_str().context("the path of the tarball is no text")?;
    // A new tarball of the same version would not replace one that is installed.
    let added = installed_packages(folder)?;
    for key in added.keys().filter(|key| key.starts_with(PLATFORM_PACKAGES)) {
        fs::remove_dir_all(folder.join(key))?;
    }
    let arguments = ["install", "--no-save", "--offline", path];
    npm(&name, &arguments, folder, "does the tarball fit this platform?")?;
    check_tree(folder, &[PLATFORM_PACKAGES])
}

const PLATFORM_PACKAGES: &str = "node_modules/@bindery/bin-";

fn npm(name: &str, arguments: &[&str], folder: &Path, hint: &str) -> anyhow::Result<()> {
    let mut command = Command::new(need::npm());
    command
        .args(arguments)
        .args(["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"])
        .current_dir(folder);
    step::command_within(name, command, NPM_LIMIT, hint, &mut |_| ())
}

/// Says what is installed otherwise than the lock file pins. Packages whose place begins with one
/// of `added` may be there besides.
fn check_tree(folder: &Path, added: &[&str]) -> anyhow::Result<()> {
    let lock = fs::read_to_string(folder.join("package-lock.json"))?;
    let lock: Value = serde_json::from_str(&lock)?;
    let pinned = lock["packages"].as_object().context("the lock file has no `packages`")?;
    let mut installed = installed_packages(folder)?;
    let mut faults = Vec::new();
    for (place, entry) in pinned.iter().filter(|(place, _)| !place.is_empty()) {
        let wanted = entry["version"].as_str().unwrap_or_default();
        match installed.remove(place) {
            Some(version) if version == wanted => {}
            Some(version) => faults.push(format!("{place} is {version}, pinned is {wanted}")),
            // Packages of other platforms.
            None if entry["optional"] == true || entry["devOptional"] == true => {}
            None => faults.push(format!("{place} {wanted} is not installed")),
        }
    }
    let extra = installed.iter().filter(|(place, _)| !added.iter().any(|a| place.starts_with(a)));
    faults.extend(extra.map(|(place, version)| format!("{place} {version} is not pinned")));
    if faults.is_empty() {
        return Ok(());
    }
    // The next run installs it anew.
    let _ = fs::remove_file(folder.join(STAMP));
    bail!(
        "what is installed in {} is not what is pinned:\n  {}",
        shown(folder),
        faults.join("\n  ")
    )
}

/// Each installed package by its place in the folder, with its version.
fn installed_packages(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut places = vec![String::new()];
    while let Some(place) = places.pop() {
        let modules = format!("{place}{}node_modules", if place.is_empty() { "" } else { "/" });
        for name in package_names(&folder.join(&modules)) {
            let place = format!("{modules}/{name}");
            let manifest = folder.join(&place).join("package.json");
            let manifest = fs::read_to_string(&manifest)
                .with_context(|| format!("cannot read `{}`", manifest.display()))?;
            let manifest: Value = serde_json::from_str(&manifest)?;
            let version = manifest["version"].as_str().unwrap_or_default().to_owned();
            found.insert(place.clone(), version);
            places.push(place);
        }
    }
    Ok(found)
}

fn package_names(modules: &Path) -> Vec<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.path().is_dir());
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with('.')).collect()
    };
    let (scopes, mut packages): (Vec<_>, Vec<_>) =
        names(modules).into_iter().partition(|name| name.starts_with('@'));
    for scope in scopes {
        let scoped = names(&modules.join(&scope));
        packages.extend(scoped.into_iter().map(|name| format!("{scope}/{name}")));
    }
    packages
}

pub(super) fn shown(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().display().to_string()
}

/// Says what would keep `npm ci` from installing the same on every machine.
pub fn check_lock(manifest: &Value, lock: &Value) -> anyhow::Result<()> {
    let packages = lock["packages"].as_object().context("the lock file has no `packages`")?;
    let mut faults = Vec::new();
    for kind in ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"] {
        if manifest[kind] != lock["packages"][""][kind] {
            faults.push(format!("`{kind}` of package.json and of the lock file differ"));
        }
    }
    for (place, entry) in packages {
        for kind in ["dependencies", "optionalDependencies"] {
            let names = entry[kind].as_object().into_iter().flatten().map(|(name, _)| name);
            for name in names.filter(|name| !resolves(packages, place, name)) {
                faults.push(format!("`{place}` needs {name}, which is not pinned"));
            }
        }
        let ours = place.starts_with("node_modules/@bindery/") && !place[22..].contains('/');
        if !place.is_empty() && !ours && !entry["integrity"].is_string() {
            faults.push(format!("`{place}` has no integrity"));
        }
        let resolved = entry["resolved"].as_str();
        if let Some(address) = resolved.filter(|address| !address.starts_with("file:")) {
            faults.push(format!("`{place}` names a registry: {address}"));
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// Whether Node, looking from `place` upwards, finds a package.
fn resolves(packages: &serde_json::Map<String, Value>, place: &str, name: &str) -> bool {
    let mut place = place;
    loop {
        let separator = if place.is_empty() { "" } else { "/" };
        if packages.contains_key(&format!("{place}{separator}node_modules/{name}")) {
            return true;
        }
        if place.is_empty() {
            return false;
        }
        place = place.rfind("/node_modules/").map_or("", |end| &place[..end]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(folder: &Path, place: &str, version: &str) {
        let folder = folder.join(place);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("package.json"), json!({ "version": version }).to_string()).unwrap();
    }

    #[test]
    fn a_package_that_moved_was_added_or_is_gone_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let lock = json!({"packages": {
            "": {},
            "node_modules/a": {"version": "1.0.0"},
            "node_modules/@s/b": {"version": "1.0.0"},
            "node_modules/@s/b/node_modules/a": {"version": "2.0.0"},
            "node_modules/elsewhere": {"version": "1.0.0", "optional": true},
        }});
        fs::write(folder.path().join("package-lock.json"), lock.to_string()).unwrap();
        write(folder.path(), "node_modules/a", "1.0.0");
        write(folder.path(), "node_modules/@s/b", "1.0.0");
        write(folder.path(), "node_modules/@s/b/node_modules/a", "2.0.0");
        check_tree(folder.path(), &[]).unwrap();

        write(folder.path(), "node_modules/a", "1.0.1");
        write(folder.path(), "node_modules/c", "3.0.0");
        fs::remove_dir_all(folder.path().join("node_modules/@s/b/node_modules")).unwrap();
        let error = check_tree(folder.path(), &[]).unwrap_err().to_string();
        let (_, faults) = error.split_once('\n').unwrap();
        assert_eq!(
            faults,
            "  node_modules/@s/b/node_modules/a 2.0.0 is not installed\n  \
             node_modules/a is 1.0.1, pinned is 1.0.0\n  \
             node_modules/c 3.0.0 is not pinned"
        );
        let error = check_tree(folder.path(), &["node_modules/c"]).unwrap_err().to_string();
        assert!(!error.contains("node_modules/c"), "{error}");
    }

    #[test]
    fn a_lock_file_that_lacks_something_or_names_a_registry_is_refused() {
        let manifest = json!({"dependencies": {"a": "1"}});
        let lock = json!({"packages": {
            "": {"dependencies": {"a": "2"}},
            "node_modules/a": {"resolved": "https://x/a.tgz", "optionalDependencies": {"b": "1"}},
        }});
        let error = check_lock(&manifest, &lock).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 4, "{error}");
    }
}
