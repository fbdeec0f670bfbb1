//! What the commands of a tenant's workers have no business with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bindery_client::transport::stdio::Launch;

use crate::config::Config;
use crate::tenant::Tenant;

/// What a worker of the engine is told to hide, and what in it to show.
struct Visibility {
    hidden: Vec<PathBuf>,
    shown: Vec<PathBuf>,
}

/// The data folder is hidden as a whole, so that what is made in it later is hidden too.
fn visibility(config: &Config, tenant: &Tenant, all: &[Tenant]) -> Visibility {
    let settings = &tenant.settings;
    let home = |kind: &str| config.data.join(kind).join(&tenant.id);
    let own =
        [settings.root.clone(), settings.codex_home.clone(), home("homes"), home("temporary")];
    // A root that holds the data folder gives no right to what is in it.
    let inside = |path: &PathBuf| path.starts_with(&config.data) && *path != config.data;
    let shown = own.into_iter().filter(inside).collect();
    let mut hidden = vec![config.data.clone()];
    hidden.extend(config.store.key_file.clone());
    hidden.extend(folders_of_others(config, tenant, all));
    #[cfg(unix)]
    {
        hidden.push(super::folder::far_sockets());
        hidden.push(super::folder::codex_sockets());
    }
    Visibility { hidden, shown }
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
/// Added when the worker is started and no sooner: a worker that is started with other arguments
/// would count as one of another kind.
pub(crate) fn hide_from_engine(
    launch: &mut Launch,
    engine: &Path,
    config: &Config,
    tenant: &Tenant,
    all: &[Tenant],
) {
    if !config.exit_with_parent && launch.program == engine {
        launch.args.extend(visibility(config, tenant, all).arguments());
    }
}

impl Visibility {
    fn arguments(self) -> impl Iterator<Item = OsString> {
        let named = |flag: &'static str, paths: Vec<PathBuf>| {
            paths.into_iter().flat_map(move |path| [flag.into(), path.into_os_string()])
        };
        named("--hide", self.hidden).chain(named("--show", self.shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::TenantSettings;

    #[test]
    fn the_data_folder_is_hidden_but_for_the_tenants_own() {
        let at = |path: &str| PathBuf::from("/data").join(path);
        let mut config = Config { data: "/data".into(), ..Config::default() };
        config.store.key_file = Some("/keys/store.key".into());
        let settings = TenantSettings::new(at("tenants/acme/codex"), at("tenants/acme/work"));
        let mut tenant =
            Tenant { id: "ten_1".to_owned(), name: "acme".to_owned(), settings, created: 0 };
        let told = visibility(&config, &tenant, &[]);
        let own =
            ["tenants/acme/work", "tenants/acme/codex", "homes/ten_1", "temporary/ten_1"].map(at);
        assert_eq!(told.shown, own);
        for hidden in ["/data", "/keys/store.key"] {
            assert!(told.hidden.contains(&hidden.into()), "{:?}", told.hidden);
        }
        #[cfg(unix)]
        for sockets in [super::super::folder::far_sockets(), super::super::folder::codex_sockets()]
        {
            assert!(told.hidden.contains(&sockets), "{:?}", told.hidden);
        }
        // Also where the data folder lies in the root, or is the root.
        for root in ["/", "/data"] {
            tenant.settings.root = root.into();
            let told = visibility(&config, &tenant, &[]);
            assert!(told.hidden.contains(&"/data".into()) && !told.shown.contains(&root.into()));
        }
        let (hidden, shown) = (vec!["/a".into(), "/b".into()], vec!["/a/c".into()]);
        let arguments: Vec<_> = Visibility { hidden, shown }.arguments().collect();
        assert_eq!(arguments, ["--hide", "/a", "--hide", "/b", "--show", "/a/c"]);
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
