//! Requests that are made once, however often they come: the caller's `Idempotency-Key`.
//!
//! A key is bound to the tenant and the operation. What the first request made is kept in the same
//! commit that makes it; a second one waits for the first and is told the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use tokio::sync::OwnedMutexGuard;

use super::app::App;
use super::body::json;
use crate::clock;
use crate::error::Error;
use crate::secret;
use crate::store::{AnswerRow, Change};
use crate::tenant::Caller;

/// Keys in memory at which those that nobody holds are let go.
const MANY: usize = 1024;

type Held = tokio::sync::Mutex<()>;

/// Keys whose requests are under way; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    held: Arc<Mutex<HashMap<String, Weak<Held>>>>,
}

impl Keys {
    fn of(&self, name: String) -> Arc<Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MANY {
            held.retain(|_, lock| lock.strong_count() > 0);
        }
        if let Some(lock) = held.get(&name).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(Held::default());
        held.insert(name, Arc::downgrade(&lock));
        lock
    }
}

/// The caller's name for a request.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let Some(header) = headers.get("idempotency-key") else { return Ok(None) };
    let text = header.to_str().ok().filter(|text| !text.is_empty() && text.len() <= 255);
    match text {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(Error::invalid("Idempotency-Key", "use 1 to 255 printable characters")),
    }
}

/// The key of a request that starts a turn: the turn itself keeps it.
pub fn turn_key(operation: &str, headers: &HeaderMap) -> Result<Option<String>, Error> {
    Ok(key(headers)?.map(|key| format!("{operation} {key}")))
}

/// A request that is to be made once, or was made before.
pub enum Once {
    /// It has no key, or is the first of its key.
    First(First),
    /// It was made, and this was made by it.
    Made(Response),
}

/// The first request of its key; the others wait while this is there.
pub struct First {
    row: Option<AnswerRow>,
    _held: Option<OwnedMutexGuard<()>>,
}

impl Once {
    /// Begins a request: `path` and `body` are what makes two requests the same.
    pub async fn begin(
        app: &App,
        caller: &Caller,
        operation: &str,
        headers: &HeaderMap,
        request: (&str, &[u8]),
    ) -> Result<Self, Error> {
        let Some(key) = key(headers)? else {
            return Ok(Self::First(First { row: None, _held: None }));
        };
        let (path, body) = request;
        let tenant = &caller.tenant.id;
        let held = app.keys.of(format!("{tenant} {operation} {key}")).lock_owned().await;
        let digest = secret::hash(&format!("{path} {}", secret::hash_bytes(body)));
        match app.store.answer_of_key(tenant, operation, &key).await? {
            Some(known) if known.digest == digest => {
                let made: serde_json::Value = serde_json::from_str(&known.body)
                    .map_err(|err| Error::Internal(err.to_string()))?;
                Ok(Self::Made(json(StatusCode::OK, &made)))
            }
            Some(_) => Err(Error::KeyReused(key)),
            None => {
                let row = AnswerRow {
                    tenant: tenant.clone(),
                    operation: operation.to_owned(),
                    key,
                    digest,
                    body: String::new(),
                    at: clock::now(),
                };
                Ok(Self::First(First { row: Some(row), _held: Some(held) }))
            }
        }
    }
}

impl First {
    /// The change that keeps what the request has made; none if it has no key.
    pub fn keep(&self, made: &impl Serialize) -> Result<Option<Change>, Error> {
        let Some(row) = &self.row else { return Ok(None) };
        let body = serde_json::to_string(made).map_err(|err| Error::Internal(err.to_string()))?;
        Ok(Some(Change::KeepAnswer(Box::new(AnswerRow { body, ..row.clone() }))))
    }
}
