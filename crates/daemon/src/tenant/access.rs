//! Tokens and whom they speak for.

use std::sync::Arc;

use uuid::Uuid;

use super::{Contributor, Role, Roles, Tenant, TenantSettings};
use crate::clock;
use crate::error::{Error, TENANT_BUSY};
use crate::secret;
use crate::store::{Change, Store, StoreError, TokenRow};

/// Bytes of chance in a token.
const TOKEN: usize = 32;

/// Who makes a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// For whom.
    pub tenant: Arc<Tenant>,
    /// With which token, by its name in lists.
    pub token: String,
    /// What the token is for, in words.
    pub name: String,
    /// What it may be used for.
    pub roles: Roles,
}

impl Caller {
    /// The caller as somebody who has a part in a thread.
    pub fn as_contributor(&self) -> Contributor {
        Contributor { token: self.token.clone(), name: self.name.clone() }
    }

    /// Refuses whoever lacks a role.
    pub fn must_have(&self, role: Role) -> Result<(), Error> {
        if self.roles.has(role) { Ok(()) } else { Err(Error::RoleMissing(role)) }
    }
}

/// The tenants of a store; clones share them.
#[derive(Clone)]
pub struct Tenants {
    store: Arc<dyn Store>,
}

impl Tenants {
    /// The tenants of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Who a token speaks for.
    ///
    /// Looked up in the store each time: one that was revoked, by whichever process, is void at
    /// once.
    pub async fn caller(&self, token: &str) -> Result<Caller, Error> {
        let hash = secret::hash(token);
        let found = self.store.token(&hash).await?;
        let known = |row: &TokenRow| row.revoked.is_none() && secret::same(&row.hash, &hash);
        let (row, tenant) = found.filter(|(row, _)| known(row)).ok_or(Error::Unauthorized)?;
        Ok(Caller { tenant: Arc::new(tenant), token: row.id, name: row.name, roles: row.roles })
    }

    /// Whether there can be a new tenant of this name.
    pub async fn check_new(&self, name: &str) -> Result<(), Error> {
        check_name(name)?;
        match self.list().await?.iter().any(|tenant| tenant.name == name) {
            true => Err(taken(name)),
            false => Ok(()),
        }
    }

    /// A new tenant.
    pub async fn add(&self, name: &str, settings: TenantSettings) -> Result<Tenant, Error> {
        check_name(name)?;
        let id = format!("ten_{}", Uuid::now_v7().simple());
        let tenant = Tenant { id, name: name.to_owned(), settings, created: clock::now() };
        match self.store.commit(vec![Change::AddTenant(Box::new(tenant.clone()))]).await {
            Ok(_) => Ok(tenant),
            Err(StoreError::Conflict(_)) => Err(taken(name)),
            Err(err) => Err(err.into()),
        }
    }

    /// Other settings for a tenant, from its next request on.
    pub async fn set(&self, tenant: &Tenant) -> Result<(), Error> {
        match self.store.commit(vec![Change::SetTenant(Box::new(tenant.clone()))]).await?[..] {
            [true] => Ok(()),
            _ => Err(Error::not_found("tenant", tenant.name.as_str())),
        }
    }

    /// Removes a tenant with everything that is kept of it but its files. One whose turns are not
    /// all over is refused unless it is forced, which needs a server that is stopped.
    pub async fn remove(&self, tenant: &Tenant, forced: bool) -> Result<(), Error> {
        let change = Change::RemoveTenant { tenant: tenant.id.clone(), forced };
        if self.store.commit(vec![change]).await? == [true] {
            return Ok(());
        }
        // Somebody else may have been quicker.
        self.find(&tenant.id).await?;
        let message = format!("tenant `{}` has turns that wait or run", tenant.name);
        Err(Error::Conflict { code: TENANT_BUSY, message })
    }

    /// All tenants.
    pub async fn list(&self) -> Result<Vec<Tenant>, Error> {
        Ok(self.store.tenants().await?)
    }

    /// The tenant of this name or id.
    pub async fn find(&self, name: &str) -> Result<Tenant, Error> {
        let tenants = self.store.tenants().await?;
        let found = tenants.into_iter().find(|tenant| tenant.name == name || tenant.id == name);
        found.ok_or_else(|| Error::not_found("tenant", name))
    }

    /// The tenants' tokens, without the tokens themselves.
    pub async fn tokens(&self, tenant: &Tenant) -> Result<Vec<TokenRow>, Error> {
        Ok(self.store.tokens(&tenant.id).await?)
    }

    /// A new token; what is given is shown once and kept nowhere.
    pub async fn token(&self, tenant: &Tenant, name: &str, roles: Roles) -> Result<String, Error> {
        let token = secret::random("bnd_", TOKEN)?;
        let row = TokenRow {
            id: format!("tok_{}", Uuid::now_v7().simple()),
            tenant: tenant.id.clone(),
            name: name.to_owned(),
            hash: secret::hash(&token),
            roles,
            created: clock::now(),
            revoked: None,
        };
        self.store.commit(vec![Change::AddToken(row)]).await?;
        Ok(token)
    }

    /// Gives a token other roles, from its next request on; streams that need a role which it has
    /// no longer end.
    pub async fn set_roles(&self, id: &str, roles: Roles) -> Result<(), Error> {
        let change = Change::SetTokenRoles { id: id.to_owned(), roles };
        match self.store.commit(vec![change]).await?.first() {
            Some(true) => Ok(()),
            _ => Err(Error::not_found("token", id)),
        }
    }

    /// Makes a token void, by its name in lists.
    pub async fn revoke(&self, id: &str) -> Result<(), Error> {
        let change = Change::RevokeToken { id: id.to_owned(), at: clock::now() };
        match self.store.commit(vec![change]).await?.first() {
            Some(true) => Ok(()),
            _ => Err(Error::not_found("token", id)),
        }
    }
}

fn taken(name: &str) -> Error {
    let message = format!("there is a tenant `{name}` already");
    Error::Conflict { code: "tenant_taken", message }
}

/// Names are parts of paths and of command lines.
fn check_name(name: &str) -> Result<(), Error> {
    let fine = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if !name.is_empty() && name.len() <= 64 && name.chars().all(fine) {
        return Ok(());
    }
    Err(Error::invalid("name", "use up to 64 letters, digits, `-` and `_`"))
}
