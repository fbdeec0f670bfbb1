//! What holds a worker to its tenant's policy, whoever speaks to it: a bound on its sandbox, and a
//! secret without which nobody is let in.

use bindery_client::transport::stdio::Launch;

use super::Kind;
use super::login::expects_key;
use super::tenant_watch::folders_hash;
use crate::error::Error;
use crate::secret;
use crate::tenant::Tenant;

/// Random bytes per secret.
const SECRET_BYTES: usize = 32;

/// Workers that may do everything.
const FREE: &str = "free";

/// Workers of tenants without full access.
const BOUNDED: &str = "bounded";

/// Workers that are told the key of their model. A login of the home would be written over where
/// another kind is told one.
const TOLD_KEY: &str = "+key";

/// The folders that may be written are told with every thread and turn; the home adds none.
const CODEX_NO_ROOTS: &str = "sandbox_workspace_write.writable_roots=[]";

/// Codex has no bound; where nothing else is said, its threads write nothing.
const CODEX_READ_ONLY: &str = "sandbox_mode=\"read-only\"";

/// Bounds the worker of a tenant without full access.
pub(super) fn apply(launch: &mut Launch, tenant: &Tenant, backend: &str) {
    if tenant.settings.policy.full_access {
        return;
    }
    if backend == "codex" {
        for setting in [CODEX_READ_ONLY, CODEX_NO_ROOTS] {
            launch.args.extend(["-c".into(), setting.into()]);
        }
        return;
    }
    launch.args.extend(["--max-sandbox".into(), "workspace-write".into()]);
    launch.args.extend(["--max-root".into(), tenant.settings.root.clone().into()]);
}

/// Whether a worker that is started so is bounded, and whether it is told a key.
fn bound_name(launch: &Launch) -> String {
    let bounded = launch.args.iter().any(|arg| arg == "--max-sandbox" || arg == CODEX_READ_ONLY);
    let bound = if bounded { BOUNDED } else { FREE };
    let told = if expects_key(launch) { TOLD_KEY } else { "" };
    format!("{bound}{told}")
}

/// What the store calls a worker of this tenant that is started so, among all these.
pub(super) fn worker_key(launch: &Launch, tenant: &Tenant, all: &[Tenant]) -> String {
    let hash = secret::hash(&format!("{:?}{:?}", launch.program, launch.args));
    let (environment, folders) = (environment_hash(tenant), folders_hash(all));
    format!("{}:{hash}:{environment}:{folders}", bound_name(launch))
}

/// Whether the worker that the store calls so was started when tenants had other folders; those of
/// earlier versions do not say.
pub(super) fn hides_too_little(key: &str, all: &[Tenant]) -> bool {
    key.split(':').nth(3).is_some_and(|folders| folders != folders_hash(all))
}

/// Whether the worker that the store calls so is one that the tenant would be given now: with the
/// same bound and the same variables of its own. What the daemon gives to all does not count.
pub(super) fn still_fits(key: &str, launch: &Launch, tenant: &Tenant) -> bool {
    let environment = key.split(':').nth(2);
    bound_of(key) == bound_name(launch)
        && environment.is_none_or(|hash| hash == environment_hash(tenant))
}

fn environment_hash(tenant: &Tenant) -> String {
    secret::hash(&format!("{:?}", tenant.settings.env))
}

/// The same of a worker that the store calls so; those of the first versions are free.
fn bound_of(key: &str) -> &str {
    match key.split_once(':') {
        Some((bound, _)) if bound.starts_with(BOUNDED) || bound.starts_with(FREE) => bound,
        _ => FREE,
    }
}

/// A secret for a worker of the built-in engine. Codex asks for none on its socket; it hides the
/// socket's folder from its commands instead.
pub(super) fn worker_secret(kind: &Kind) -> Result<Option<String>, Error> {
    let asks = kind.backend == "engine";
    asks.then(|| secret::random("", SECRET_BYTES)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::TenantSettings;

    #[test]
    fn a_worker_fits_as_long_as_bound_and_environment_of_its_tenant_stay() {
        let settings = TenantSettings::new("/codex".into(), "/root".into());
        let mut tenant = Tenant { id: "t".into(), name: "t".into(), settings, created: 0 };
        let launch = |tenant: &Tenant| {
            let mut launch = Launch::new("codex");
            apply(&mut launch, tenant, "codex");
            launch
        };
        let (bounded, key) = (launch(&tenant), worker_key(&launch(&tenant), &tenant, &[]));
        assert!(still_fits(&key, &bounded, &tenant));
        assert!(still_fits("bounded:0123", &bounded, &tenant), "of an earlier version");
        assert!(!still_fits("0123", &bounded, &tenant), "of the first versions");
        assert!(!hides_too_little(&key, &[]) && hides_too_little(&key, &[tenant.clone()]));
        assert!(!hides_too_little("bounded:0123", &[tenant.clone()]));
        tenant.settings.env.insert("A".to_owned(), "1".to_owned());
        assert!(!still_fits(&key, &bounded, &tenant));
        let key = worker_key(&bounded, &tenant, &[]);
        tenant.settings.policy.full_access = true;
        assert!(!still_fits(&key, &launch(&tenant), &tenant));
    }
}
