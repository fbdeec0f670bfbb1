//! The reads.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::row;
use crate::clock::Millis;
use crate::seal::StoreKey;
use crate::shelf;
use crate::store::{
    AnswerRow, Chunk, Delivery, DeliveryCounts, Following, InterruptFilter, InterruptRow, Paging,
    StoreError, ThreadRow, TokenRow, TurnRow, UnfinishedTurn, WorkerRow,
};
use crate::tenant::Tenant;

type Mapped<T> = fn(&Row<'_>) -> rusqlite::Result<T>;

fn all<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    map: Mapped<T>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map(params, map)?;
    Ok(rows.collect::<rusqlite::Result<Vec<T>>>()?)
}

fn one<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    map: Mapped<T>,
) -> Result<Option<T>, StoreError> {
    Ok(db.prepare_cached(sql)?.query_row(params, map).optional()?)
}

pub(super) fn tenants(db: &Connection, key: &StoreKey) -> Result<Vec<Tenant>, StoreError> {
    let rows = all(db, "SELECT * FROM tenant ORDER BY name", [], row::tenant)?;
    rows.into_iter().map(|row| row.unsealed(key)).collect()
}

pub(super) fn tenant(
    db: &Connection,
    id: &str,
    key: &StoreKey,
) -> Result<Option<Tenant>, StoreError> {
    let row = one(db, "SELECT * FROM tenant WHERE id = ?1", [id], row::tenant)?;
    row.map(|row| row.unsealed(key)).transpose()
}

pub(super) fn token(
    db: &Connection,
    hash: &str,
    key: &StoreKey,
) -> Result<Option<(TokenRow, Tenant)>, StoreError> {
    let sql = "SELECT * FROM token WHERE hash = ?1";
    let Some(token) = one(db, sql, [hash], row::token)? else { return Ok(None) };
    Ok(tenant(db, &token.tenant, key)?.map(|tenant| (token, tenant)))
}

pub(super) fn tokens(db: &Connection, tenant: &str) -> Result<Vec<TokenRow>, StoreError> {
    let sql = "SELECT * FROM token WHERE tenant = ?1 ORDER BY created, id";
    all(db, sql, [tenant], row::token)
}

pub(super) fn thread(
    db: &Connection,
    tenant: &str,
    id: &str,
) -> Result<Option<ThreadRow>, StoreError> {
    let sql = "SELECT * FROM thread WHERE id = ?1 AND tenant = ?2";
    one(db, sql, [id, tenant], row::thread)
}

pub(super) fn thread_of_session(
    db: &Connection,
    tenant: &str,
    session: &str,
) -> Result<Option<ThreadRow>, StoreError> {
    let sql = "SELECT * FROM thread WHERE tenant = ?1 AND session = ?2";
    one(db, sql, [tenant, session], row::thread)
}

/// Names are made from the time, so newest first is by name.
pub(super) fn threads(
    db: &Connection,
    tenant: &str,
    archived: bool,
    page: &Paging,
) -> Result<Vec<ThreadRow>, StoreError> {
    let sql = "SELECT * FROM thread WHERE tenant = ?1 AND archived = ?2
        AND (?3 IS NULL OR id < ?3) ORDER BY id DESC LIMIT ?4";
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    all(db, sql, params![tenant, archived, page.before, limit], row::thread)
}

pub(super) fn turn(db: &Connection, tenant: &str, id: &str) -> Result<Option<TurnRow>, StoreError> {
    one(db, "SELECT * FROM turn WHERE id = ?1 AND tenant = ?2", [id, tenant], row::turn)
}

pub(super) fn turn_of_key(
    db: &Connection,
    tenant: &str,
    key: &str,
) -> Result<Option<TurnRow>, StoreError> {
    one(db, "SELECT * FROM turn WHERE tenant = ?1 AND key = ?2", [tenant, key], row::turn)
}

pub(super) fn turns(
    db: &Connection,
    tenant: &str,
    thread: &str,
    page: &Paging,
) -> Result<Vec<TurnRow>, StoreError> {
    // Without what they ask for, which may be long and is shown nowhere.
    let sql =
        "SELECT 'null' AS request, NULL AS result, * FROM turn WHERE thread = ?1 AND tenant = ?2
        AND (?3 IS NULL OR id < ?3) ORDER BY id DESC LIMIT ?4";
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    all(db, sql, params![thread, tenant, page.before, limit], row::turn)
}

pub(super) fn turns_without_result(
    db: &Connection,
    before: Millis,
    limit: usize,
) -> Result<Vec<TurnRow>, StoreError> {
    let sql = "SELECT 'null' AS request, * FROM turn
        WHERE ended < ?1 AND result IS NULL ORDER BY ended LIMIT ?2";
    all(db, sql, params![before, limit_or_all(Some(limit))], row::turn)
}

pub(super) fn answer_of_key(
    db: &Connection,
    tenant: &str,
    operation: &str,
    key: &str,
) -> Result<Option<AnswerRow>, StoreError> {
    let sql = "SELECT * FROM answer WHERE tenant = ?1 AND operation = ?2 AND key = ?3";
    one(db, sql, [tenant, operation, key], row::answer)
}

pub(super) fn unfinished(db: &Connection) -> Result<Vec<UnfinishedTurn>, StoreError> {
    let sql = "SELECT 'null' AS request, length(CAST(request AS BLOB)) AS request_bytes, *
        FROM turn WHERE ended IS NULL ORDER BY id";
    all(db, sql, [], |row| {
        let request_bytes = row::unsigned(row, "request_bytes")?;
        Ok(UnfinishedTurn { turn: row::turn(row)?, request_bytes })
    })
}

/// One request is looked at after the other, and none is kept.
pub(super) fn needed_uploads(db: &Connection) -> Result<HashSet<String>, StoreError> {
    let sql = "SELECT request FROM turn WHERE ended IS NULL AND instr(request, ?1) > 0";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([shelf::NAME_IN_PATH])?;
    let mut names = HashSet::new();
    while let Some(row) = rows.next()? {
        let request = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        names.extend(shelf::names_in(request));
    }
    Ok(names)
}

pub(super) fn events(
    db: &Connection,
    turn: &str,
    after: u64,
    bytes: usize,
) -> Result<Vec<Chunk>, StoreError> {
    let sql = "SELECT first, body FROM event WHERE turn = ?1 AND last > ?2 ORDER BY last";
    let mut statement = db.prepare_cached(sql)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![turn, after])?;
    let (mut chunks, mut size) = (Vec::new(), 0);
    while size < bytes
        && let Some(row) = rows.next()?
    {
        let chunk = row::chunk(row)?;
        size += chunk.body.len();
        chunks.push(chunk);
    }
    Ok(chunks)
}

pub(super) fn bytes(db: &Connection, tenant: &str) -> Result<u64, StoreError> {
    // A row is counted as 1 KiB besides what is in it.
    let sql = "SELECT
        (SELECT coalesce(sum(octet_length(event.body)), 0) FROM turn
            JOIN event ON event.turn = turn.id WHERE turn.tenant = ?1)
        + (SELECT coalesce(sum(octet_length(request) + 1024), 0) FROM turn WHERE tenant = ?1)
        + (SELECT coalesce(sum(octet_length(settings) + octet_length(tools) + 1024), 0)
            FROM thread WHERE tenant = ?1)";
    let bytes: i64 = db.prepare_cached(sql)?.query_row([tenant], |row| row.get(0))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

pub(super) fn interrupt(db: &Connection, token: &str) -> Result<Option<InterruptRow>, StoreError> {
    one(db, "SELECT * FROM interrupt WHERE token = ?1", [token], row::interrupt)
}

pub(super) fn interrupts(
    db: &Connection,
    filter: &InterruptFilter,
) -> Result<Vec<InterruptRow>, StoreError> {
    let sql = "SELECT * FROM interrupt WHERE (?1 IS NULL OR tenant = ?1)
        AND (?2 IS NULL OR turn = ?2) AND (?3 IS NULL OR thread = ?3)
        AND (NOT ?4 OR state = 'open')
        AND (?5 IS NULL OR (opened, token) > (?5, ?6)) ORDER BY opened, token LIMIT ?7";
    let InterruptFilter { tenant, turn, thread, open, after, limit } = filter;
    let (opened, token) = after.as_ref().map(|(opened, token)| (opened, token)).unzip();
    let params = params![tenant, turn, thread, open, opened, token, limit_or_all(*limit)];
    all(db, sql, params, row::interrupt)
}

pub(super) fn workers(db: &Connection, key: &StoreKey) -> Result<Vec<WorkerRow>, StoreError> {
    let rows = all(db, "SELECT * FROM worker ORDER BY started, id", [], row::worker)?;
    let unsealed = |mut row: WorkerRow| {
        let sealed = row.secret.take();
        row.secret = sealed.map(|sealed| key.unseal(&row.id, &sealed)).transpose()?;
        Ok(row)
    };
    rows.into_iter().map(unsealed).collect()
}

/// What a receiver is told next; the rest of what waits for it waits for that.
const HEADS: &str = "SELECT * FROM delivery AS head WHERE given_up IS NULL AND NOT EXISTS (
    SELECT 1 FROM delivery AS older WHERE older.given_up IS NULL
        AND older.tenant = head.tenant AND older.url = head.url AND older.id < head.id)";

pub(super) fn due(
    db: &Connection,
    now: Millis,
    limit: usize,
    of_tenant: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let sql = format!(
        "SELECT * FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY tenant ORDER BY due, id) AS place
            FROM ({HEADS}) WHERE due <= ?1
        ) WHERE place <= ?3 ORDER BY place, due, id LIMIT ?2"
    );
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    all(db, &sql, params![now, number(limit), number(of_tenant)], row::delivery)
}

pub(super) fn next_due(db: &Connection, now: Millis) -> Result<Option<Millis>, StoreError> {
    let sql = format!("SELECT MIN(due) FROM ({HEADS}) WHERE due > ?1");
    Ok(db.query_row(&sql, [now], |row| row.get(0))?)
}

pub(super) fn deliveries(
    db: &Connection,
    tenant: &str,
    page: &Following,
) -> Result<Vec<Delivery>, StoreError> {
    let sql = "SELECT * FROM delivery WHERE tenant = ?1 AND (?2 IS NULL OR id > ?2)
        ORDER BY id LIMIT ?3";
    all(db, sql, params![tenant, page.after, limit_or_all(page.limit)], row::delivery)
}

/// As SQLite has it: no limit is a negative one.
fn limit_or_all(limit: Option<usize>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

pub(super) fn delivery_counts(db: &Connection) -> Result<DeliveryCounts, StoreError> {
    let sql = "SELECT COUNT(*) - COUNT(given_up), COUNT(given_up) FROM delivery";
    let (waiting, given_up) = db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(DeliveryCounts { waiting, given_up })
}
