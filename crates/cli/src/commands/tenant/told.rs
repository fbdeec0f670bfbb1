//! What `bindery tenant` tells, as text or JSON. Secrets of webhooks are told in neither, nor
//! the parts of their addresses that may hold one.

use bindery_daemon::secret::origin;
use bindery_daemon::store::TokenRow;
use bindery_daemon::tenant::{Role, Roles, Tenant};
use serde_json::{Value, json};

/// What was done, or is there.
pub(super) enum Told {
    /// A tenant is added, with its first token.
    Added {
        /// The tenant.
        tenant: Box<Tenant>,
        /// Shown once.
        token: String,
    },
    /// Its settings are changed.
    Set(Box<Tenant>),
    /// Tenants and their tokens.
    List(Vec<(Tenant, Vec<TokenRow>)>),
    /// A new token.
    Token {
        /// Whose.
        tenant: String,
        /// Shown once.
        token: String,
    },
    /// A token has other roles.
    Roles {
        /// Its name in lists.
        token: String,
        /// All that it has.
        roles: Roles,
    },
    /// A token is void.
    Revoked(String),
    /// A tenant is gone.
    Removed(Box<Tenant>),
}

impl Told {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Added { token, .. } | Self::Token { token, .. } => format!("{token}\n"),
            Self::Set(tenant) => format!("changed {}\n", tenant.name),
            Self::List(all) => all.iter().map(|(tenant, tokens)| listed(tenant, tokens)).collect(),
            Self::Roles { token, roles } => format!("{token} may {roles}\n"),
            Self::Revoked(token) => format!("revoked {token}\n"),
            Self::Removed(tenant) => format!(
                "removed {}; `{}` and `{}` stay\n",
                tenant.name,
                tenant.settings.root.display(),
                tenant.settings.codex_home.display(),
            ),
        }
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Self::Added { tenant, token } => json!({ "tenant": view(tenant), "token": token }),
            Self::Set(tenant) => json!({ "tenant": view(tenant) }),
            Self::List(all) => {
                let all = all.iter().map(|(tenant, tokens)| {
                    let mut tenant = view(tenant);
                    tenant["tokens"] = tokens.iter().map(token_view).collect();
                    tenant
                });
                json!({ "tenants": all.collect::<Vec<_>>() })
            }
            Self::Token { tenant, token } => json!({ "tenant": tenant, "token": token }),
            Self::Roles { token, roles } => json!({ "token": token, "roles": roles }),
            Self::Revoked(token) => json!({ "revoked": token }),
            Self::Removed(tenant) => json!({ "removed": view(tenant) }),
        }
    }
}

fn listed(tenant: &Tenant, tokens: &[TokenRow]) -> String {
    let settings = &tenant.settings;
    let (home, root) = (settings.codex_home.display(), settings.root.display());
    let mut text = format!("{}  home {home}  root {root}\n", tenant.name);
    for token in tokens {
        let state = if token.revoked.is_some() { "  revoked" } else { "" };
        text.push_str(&format!("  {}  {}  {}{state}\n", token.id, token.name, token.roles));
    }
    text
}

fn view(tenant: &Tenant) -> Value {
    let settings = &tenant.settings;
    json!({
        "id": tenant.id,
        "name": tenant.name,
        "createdAt": tenant.created,
        "codexHome": settings.codex_home,
        "root": settings.root,
        "limits": settings.limits,
        "policy": settings.policy,
        "webhooks": settings.webhooks.iter().map(|hook| origin(&hook.url)).collect::<Vec<_>>(),
        "tools": settings.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        "env": settings.env.keys().collect::<Vec<_>>(),
    })
}

fn token_view(token: &TokenRow) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "admin": token.roles.has(Role::Admin),
        "roles": token.roles,
        "createdAt": token.created,
        "revokedAt": token.revoked,
    })
}
