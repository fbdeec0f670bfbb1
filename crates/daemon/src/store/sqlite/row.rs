//! Rows to values and back.

use rusqlite::types::Type;
use rusqlite::{Row, RowIndex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::clock::Millis;
use crate::seal::StoreKey;
use crate::store::{
    AnswerRow, Chunk, Delivery, InterruptRow, StoreError, ThreadRow, TokenRow, TurnRow, WorkerRow,
};
use crate::tenant::{Roles, Tenant};

/// A value as JSON text.
pub(super) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|err| StoreError::Damaged(err.to_string()))
}

/// A unit variant as its bare word.
pub(super) fn word(value: &impl Serialize) -> Result<String, StoreError> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Ok(word),
        _ => Err(StoreError::Damaged("a word was expected".to_owned())),
    }
}

/// A column of JSON text.
fn read<T: DeserializeOwned>(row: &Row<'_>, at: &str) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    parse(row, at, &text)
}

fn read_if<T: DeserializeOwned>(row: &Row<'_>, at: &str) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(at)?;
    text.map(|text| parse(row, at, &text)).transpose()
}

fn parse<T: DeserializeOwned>(row: &Row<'_>, at: &str, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|err| damaged(row, at, err))
}

fn read_word<T: DeserializeOwned>(row: &Row<'_>, at: &str) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    serde_json::from_value(Value::String(text)).map_err(|err| damaged(row, at, err))
}

fn damaged(row: &Row<'_>, at: &str, err: serde_json::Error) -> rusqlite::Error {
    let column = at.idx(row.as_ref()).unwrap_or_default();
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(err))
}

pub(super) fn unsigned(row: &Row<'_>, at: &str) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or_default())
}

/// A tenant whose settings are sealed.
pub(super) struct SealedTenant {
    pub(super) id: String,
    name: String,
    pub(super) settings: String,
    created: Millis,
}

impl SealedTenant {
    pub(super) fn unsealed(self, key: &StoreKey) -> Result<Tenant, StoreError> {
        let settings = key.unseal(&self.id, &self.settings)?;
        let settings = serde_json::from_str(&settings);
        let settings = settings.map_err(|err| StoreError::Damaged(err.to_string()))?;
        Ok(Tenant { id: self.id, name: self.name, settings, created: self.created })
    }
}

pub(super) fn tenant(row: &Row<'_>) -> rusqlite::Result<SealedTenant> {
    Ok(SealedTenant {
        id: row.get("id")?,
        name: row.get("name")?,
        settings: row.get("settings")?,
        created: row.get("created")?,
    })
}

pub(super) fn token(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    Ok(TokenRow {
        id: row.get("id")?,
        tenant: row.get("tenant")?,
        name: row.get("name")?,
        hash: row.get("hash")?,
        roles: read_roles(row)?,
        created: row.get("created")?,
        revoked: row.get("revoked")?,
    })
}

/// A role that we do not know gives no right at all, rather than a wrong one.
fn read_roles(row: &Row<'_>) -> rusqlite::Result<Roles> {
    let words: String = row.get("roles")?;
    let column = "roles".idx(row.as_ref()).unwrap_or_default();
    words.parse().map_err(|why: String| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
    })
}

pub(super) fn thread(row: &Row<'_>) -> rusqlite::Result<ThreadRow> {
    Ok(ThreadRow {
        id: row.get("id")?,
        tenant: row.get("tenant")?,
        session: row.get("session")?,
        backend: row.get("backend")?,
        title: row.get("title")?,
        cwd: row.get("cwd")?,
        settings: read(row, "settings")?,
        tools: read(row, "tools")?,
        fork: read_if(row, "fork")?,
        contributors: read_if(row, "contributors")?,
        usage: read_if(row, "usage")?,
        created: row.get("created")?,
        updated: row.get("updated")?,
        archived: row.get("archived")?,
    })
}

pub(super) fn turn(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    Ok(TurnRow {
        id: row.get("id")?,
        thread: row.get("thread")?,
        tenant: row.get("tenant")?,
        kind: read_word(row, "kind")?,
        state: read_word(row, "state")?,
        request: read(row, "request")?,
        key: row.get("key")?,
        digest: row.get("digest")?,
        mark: row.get("mark")?,
        backend_turn: row.get("backend_turn")?,
        error: read_if(row, "error")?,
        resumable: row.get("resumable")?,
        usage: read_if(row, "usage")?,
        result: read_if(row, "result")?,
        last: unsigned(row, "last")?,
        created: row.get("created")?,
        started: row.get("started")?,
        ended: row.get("ended")?,
    })
}

pub(super) fn answer(row: &Row<'_>) -> rusqlite::Result<AnswerRow> {
    Ok(AnswerRow {
        tenant: row.get("tenant")?,
        operation: row.get("operation")?,
        key: row.get("key")?,
        digest: row.get("digest")?,
        body: row.get("body")?,
        at: row.get("at")?,
    })
}

pub(super) fn chunk(row: &Row<'_>) -> rusqlite::Result<Chunk> {
    Ok(Chunk { first: unsigned(row, "first")?, body: row.get("body")? })
}

pub(super) fn interrupt(row: &Row<'_>) -> rusqlite::Result<InterruptRow> {
    Ok(InterruptRow {
        token: row.get("token")?,
        tenant: row.get("tenant")?,
        thread: row.get("thread")?,
        turn: row.get("turn")?,
        request: read(row, "request")?,
        interrupt: read(row, "interrupt")?,
        state: read_word(row, "state")?,
        answer: read_if(row, "answer")?,
        answered_by: row.get("answered_by")?,
        why: row.get("why")?,
        opened: row.get("opened")?,
        deadline: row.get("deadline")?,
        closed: row.get("closed")?,
    })
}

pub(super) fn worker(row: &Row<'_>) -> rusqlite::Result<WorkerRow> {
    Ok(WorkerRow {
        id: row.get("id")?,
        tenant: row.get("tenant")?,
        backend: row.get("backend")?,
        key: row.get("key")?,
        socket: row.get("socket")?,
        secret: row.get("secret")?,
        started: row.get("started")?,
    })
}

pub(super) fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        id: row.get("id")?,
        tenant: row.get("tenant")?,
        url: row.get("url")?,
        event: row.get("event")?,
        body: row.get("body")?,
        attempts: row.get("attempts")?,
        due: row.get("due")?,
        why: row.get("why")?,
        given_up: row.get("given_up")?,
    })
}
