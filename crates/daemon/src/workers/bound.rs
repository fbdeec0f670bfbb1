//! What holds a worker to its tenant's policy, whoever speaks to it: a bound on its sandbox, and a
//! secret without which nobody is let in.

use bindery_client::transport::stdio::Launch;

use super::Kind;
use crate::error::Error;
use crate::secret;
use crate::tenant::Tenant;

/// Random bytes per secret.
const SECRET_BYTES: usize = 32;

/// Workers that may do everything.
const FREE: &str = "free";

/// Workers of tenants without full access.
const BOUNDED: &str = "bounded";

/// Codex has no bound; where nothing else is said, its threads write nothing.
const CODEX_READ_ONLY: &str = "sandbox_mode=\"read-only\"";

/// Bounds the worker of a tenant without full access.
pub(super) fn apply(launch: &mut Launch, tenant: &Tenant, backend: &str) {
    if tenant.settings.policy.full_access {
        return;
    }
    if backend == "codex" {
        launch.args.extend(["-c".into(), CODEX_READ_ONLY.into()]);
        return;
    }
    launch.args.extend(["--max-sandbox".into(), "workspace-write".into()]);
    for folder in tenant.settings.writable_folders() {
        launch.args.extend(["--max-root".into(), folder.into()]);
    }
}

/// Whether a worker that is started so is bounded.
pub(super) fn bound_name(launch: &Launch) -> &'static str {
    let bounded = launch.args.iter().any(|arg| arg == "--max-sandbox" || arg == CODEX_READ_ONLY);
    if bounded { BOUNDED } else { FREE }
}

/// What the store calls a worker that is started so.
pub(super) fn worker_key(launch: &Launch) -> String {
    let hash = secret::hash(&format!("{:?}{:?}", launch.program, launch.args));
    format!("{}:{hash}", bound_name(launch))
}

/// Whether the worker of this key is bounded; those of earlier versions are not.
pub(super) fn bound_of(key: &str) -> &'static str {
    if key.starts_with(BOUNDED) { BOUNDED } else { FREE }
}

/// A secret for a worker of the built-in engine. Codex asks for none on its socket; it hides the
/// socket's folder from its commands instead.
pub(super) fn worker_secret(kind: &Kind) -> Result<Option<String>, Error> {
    let asks = kind.backend == "engine";
    asks.then(|| secret::random("", SECRET_BYTES)).transpose()
}
