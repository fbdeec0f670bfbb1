//! What the commands of a tenant's workers have no business with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bindery_client::transport::stdio::Launch;

use crate::config::Config;
use crate::tenant::Tenant;

/// The paths to hide. A folder that holds something of the tenant's own cannot be hidden whole, so
/// what lies in it is listed instead.
fn paths(config: &Config, tenant: &Tenant, all: &[Tenant]) -> Vec<PathBuf> {
    let settings = &tenant.settings;
    let home = |kind: &str| config.data.join(kind).join(&tenant.id);
    let own =
        [settings.root.clone(), settings.codex_home.clone(), home("homes"), home("temporary")];
    // A root that holds the data folder gives no right to what is in it.
    let inside = |path: &PathBuf| path.starts_with(&config.data) && *path != config.data;
    let own: Vec<PathBuf> = own.into_iter().filter(inside).collect();
    let mut hidden = Vec::new();
    hide(&config.data, &own, &mut hidden);
    hidden.extend(config.store.key_file.clone());
    hidden.extend(folders_of_others(config, tenant, all));
    #[cfg(unix)]
    {
        hidden.push(super::folder::far_sockets());
        hidden.push(super::folder::codex_sockets());
    }
    hidden
}

/// Roots and homes of other tenants outside of the data folder. Not where tenants share a folder,
/// or one has been given the folder of another within its own.
fn folders_of_others(config: &Config, tenant: &Tenant, all: &[Tenant]) -> Vec<PathBuf> {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let folders = |tenant: &Tenant| {
        [&tenant.settings.root, &tenant.settings.codex_home].map(real).into_iter()
    };
    let (own, data) = (folders(tenant).collect::<Vec<_>>(), real(&config.data));
    let overlaps =
        |path: &PathBuf| own.iter().any(|own| own.starts_with(path) || path.starts_with(own));
    let others = all.iter().filter(|other| other.id != tenant.id).flat_map(folders);
    let others = others.filter(|path| !overlaps(path) && !path.starts_with(&data) && path.exists());
    others.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// Hides them from the commands of a worker of the engine. Codex has no such option.
///
/// Added when the worker is started and no sooner: the list changes with what lies in the data
/// folder, and a worker that is started otherwise would count as one of another kind.
pub(crate) fn hide_from_engine(
    launch: &mut Launch,
    engine: &Path,
    config: &Config,
    tenant: &Tenant,
    all: &[Tenant],
) {
    if !config.exit_with_parent && launch.program == engine {
        launch.args.extend(arguments(&paths(config, tenant, all)));
    }
}

fn arguments(paths: &[PathBuf]) -> Vec<OsString> {
    paths.iter().flat_map(|path| ["--hide".into(), path.as_os_str().to_owned()]).collect()
}

fn hide(folder: &Path, own: &[PathBuf], hidden: &mut Vec<PathBuf>) {
    if own.iter().any(|own| own == folder) {
        return;
    }
    if !own.iter().any(|own| own.starts_with(folder)) {
        hidden.push(folder.to_owned());
        return;
    }
    let mut inside: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    inside.sort();
    inside.iter().for_each(|path| hide(path, own, hidden));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::TenantSettings;

    #[test]
    fn all_that_is_not_the_tenants_own_is_hidden() {
        let data = tempfile::tempdir().unwrap();
        let at = |path: &str| data.path().join(path);
        let folders = [
            "uploads",
            "workers",
            "homes/ten_1",
            "homes/ten_2",
            "temporary/ten_1",
            "tenants/acme/work",
            "tenants/acme/codex",
            "tenants/other/work",
        ];
        folders.iter().for_each(|folder| std::fs::create_dir_all(at(folder)).unwrap());
        std::fs::write(at("bindery.sqlite"), "").unwrap();
        let mut config = Config { data: data.path().to_owned(), ..Config::default() };
        config.store.key_file = Some("/keys/store.key".into());
        let settings = TenantSettings::new(at("tenants/acme/codex"), at("tenants/acme/work"));
        let mut tenant =
            Tenant { id: "ten_1".to_owned(), name: "acme".to_owned(), settings, created: 0 };
        let hidden = paths(&config, &tenant, &[]);
        for path in ["bindery.sqlite", "uploads", "workers", "homes/ten_2", "tenants/other"] {
            assert!(hidden.contains(&at(path)), "{path}: {hidden:?}");
        }
        assert!(hidden.contains(&"/keys/store.key".into()));
        for own in ["tenants/acme/work", "tenants/acme/codex", "homes/ten_1", "temporary/ten_1"] {
            assert!(!hidden.iter().any(|path| at(own).starts_with(path)), "{own}: {hidden:?}");
        }
        // Also where the data folder lies in the root.
        tenant.settings.root = data.path().parent().unwrap().to_owned();
        assert!(paths(&config, &tenant, &[]).contains(&at("bindery.sqlite")));
        let arguments = arguments(&["/a".into(), "/b".into()]);
        assert_eq!(arguments, ["--hide", "/a", "--hide", "/b"]);
    }
    #[test]
    fn folders_of_other_tenants_are_hidden_unless_they_are_shared() {
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        let at = |path: &str| outer.join(path);
        let tenant = |id: &str, root: &str, home: &str| {
            for folder in [root, home] {
                std::fs::create_dir_all(at(folder)).unwrap();
            }
            let settings = TenantSettings::new(at(home), at(root));
            Tenant { id: id.to_owned(), name: id.to_owned(), settings, created: 0 }
        };
        let config = Config { data: at("data"), ..Config::default() };
        let own = tenant("acme", "srv/acme", "home/acme");
        let all = [
            own.clone(),
            tenant("other", "srv/other", "home/other"),
            tenant("shares", "srv/shares", "home/acme"),
            tenant("above", "srv", "home/above"),
            tenant("inside", "srv/acme/inside", "data/tenants/inside"),
        ];
        let hidden = folders_of_others(&config, &own, &all);
        let wanted = ["home/above", "home/other", "srv/other", "srv/shares"].map(at);
        assert_eq!(hidden, wanted);
        std::fs::remove_dir(at("srv/other")).unwrap();
        assert!(!folders_of_others(&config, &own, &all).contains(&at("srv/other")));
    }
}
