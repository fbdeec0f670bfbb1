//! What a tenant's Codex home must not be for commands that may not leave their sandbox.
//!
//! Codex obeys its home: its rules let commands out, its settings choose the sandbox. Settings are
//! told to Codex in full and so decided by us; rules cannot be, and a home that commands can write
//! is whatever they make of it. A tenant without full access is not served from such homes.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::Tenant;
use crate::error::Error;

/// The error of a home that may let commands out.
pub const HOME_UNBOUNDED: &str = "home_unbounded";

/// Whether workers of Codex with this tenant's home hold its commands to their sandbox.
pub fn check_codex_home(tenant: &Tenant) -> Result<(), Error> {
    let settings = &tenant.settings;
    if settings.policy.full_access {
        return Ok(());
    }
    let home = real(&settings.codex_home);
    if home.starts_with(real(&settings.root)) {
        return Err(unbounded(format!(
            "the Codex home `{}` lies in the tenant's root, where its commands write; \
             choose another `codex_home`",
            home.display()
        )));
    }
    match first_rules(&home.join("rules")) {
        Ok(None) => Ok(()),
        Ok(Some(file)) => Err(unbounded(format!(
            "`{}` may let commands out of the sandbox, which this tenant may not leave; \
             move it out of the Codex home",
            file.display()
        ))),
        Err(err) => Err(unbounded(format!(
            "`{}` cannot be looked into for rules: {err}",
            home.join("rules").display()
        ))),
    }
}

/// The first file of rules, by name.
fn first_rules(folder: &Path) -> io::Result<Option<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err),
    };
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let is_rules = |path: &PathBuf| path.extension() == Some(OsStr::new("rules"));
    Ok(files.into_iter().find(is_rules))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn unbounded(message: String) -> Error {
    Error::Conflict { code: HOME_UNBOUNDED, message }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tenant::TenantSettings;

    #[test]
    fn a_home_with_rules_or_in_the_root_is_refused_without_full_access() {
        let outer = tempfile::tempdir().unwrap();
        let (root, home) = (outer.path().join("root"), outer.path().join("home"));
        fs::create_dir_all(root.join("home/rules")).unwrap();
        fs::create_dir_all(home.join("rules")).unwrap();
        let settings = TenantSettings::new(home.clone(), root.clone());
        let mut tenant = Tenant { id: "t".into(), name: "t".into(), settings, created: 0 };
        let refused = |tenant: &Tenant| check_codex_home(tenant).err().map(|err| err.to_string());
        assert_eq!(refused(&tenant), None);
        fs::write(home.join("rules/README.md"), "").unwrap();
        assert_eq!(refused(&tenant), None);
        fs::write(home.join("rules/mine.rules"), "").unwrap();
        assert!(refused(&tenant).unwrap().contains("mine.rules"));
        tenant.settings.policy.full_access = true;
        assert_eq!(refused(&tenant), None);
        tenant.settings.policy.full_access = false;
        // What is no folder cannot be read for its rules.
        fs::remove_dir_all(home.join("rules")).unwrap();
        fs::write(home.join("rules"), "").unwrap();
        assert!(refused(&tenant).unwrap().contains("cannot be looked into"));
        tenant.settings.codex_home = root.join("home");
        assert!(refused(&tenant).unwrap().contains("lies in the tenant's root"));
        let link = outer.path().join("link");
        std::os::unix::fs::symlink(root.join("home"), &link).unwrap();
        tenant.settings.codex_home = link;
        assert!(refused(&tenant).unwrap().contains("lies in the tenant's root"));
    }
}
