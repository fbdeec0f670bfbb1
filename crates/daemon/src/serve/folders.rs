//! The folders of tenants: whether their threads can work there.

use std::path::Path;

use crate::error::Error;
use crate::tenant::{Tenant, TenantSettings};

/// Whether a folder is there and can be written; with the cause if not.
pub fn check_folder(what: &str, path: &Path) -> Result<(), Error> {
    let refused = |why: String| Error::Config {
        what: format!("{what} `{}`", path.display()),
        why: format!("{why}; make it, or choose another"),
    };
    let meta = std::fs::metadata(path).map_err(|err| refused(err.to_string()))?;
    if !meta.is_dir() {
        return Err(refused("it is no folder".to_owned()));
    }
    #[cfg(unix)]
    {
        use rustix::fs::Access;
        let all = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::access(path, all)
            .map_err(|err| refused(format!("it cannot be used: {}", std::io::Error::from(err))))?;
    }
    Ok(())
}

/// Makes the folders of a tenant that are not there. One that is there is whoever's it is, and
/// stays as it is, but must be one that can be written.
pub fn prepare_folders(settings: &TenantSettings) -> Result<(), Error> {
    for (what, path) in folders(settings) {
        // A link that leads nowhere is there, and must not be made into a folder elsewhere.
        if !path.exists() && !path.is_symlink() {
            super::make_data(path)?;
        }
        check_folder(what, path)?;
    }
    Ok(())
}

/// What is wrong with the folders of a tenant, in words.
pub(super) fn problems(tenant: &Tenant) -> Vec<String> {
    let checked = folders(&tenant.settings).into_iter();
    let wrong = checked.filter_map(|(what, path)| check_folder(what, path).err());
    wrong.map(|err| format!("tenant `{}`: {err}", tenant.name)).collect()
}

fn folders(settings: &TenantSettings) -> [(&'static str, &Path); 2] {
    [("root", &settings.root), ("codex_home", &settings.codex_home)]
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_are_made_or_refused_with_the_cause() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().join(name);
        let settings = |root: &str| TenantSettings::new(at("home"), at(root));
        prepare_folders(&settings("deep/root")).unwrap();
        assert!(at("deep/root").is_dir() && at("home").is_dir());
        std::fs::write(at("file"), "").unwrap();
        symlink(at("nowhere"), at("broken")).unwrap();
        for (root, why) in
            [("file", "no folder"), ("file/below", "Not a directory"), ("broken", "No such file")]
        {
            let told = prepare_folders(&settings(root)).unwrap_err();
            let source = std::error::Error::source(&told).map(ToString::to_string);
            let told = format!("{told} {}", source.unwrap_or_default());
            assert!(told.contains(why) && told.contains(root), "{root}: {told}");
        }
        assert!(!at("nowhere").exists());
        let tenant =
            Tenant { id: "t".into(), name: "acme".into(), settings: settings("gone"), created: 0 };
        let told = problems(&tenant);
        assert!(told.len() == 1 && told[0].starts_with("tenant `acme`: root `"), "{told:?}");
    }
}
