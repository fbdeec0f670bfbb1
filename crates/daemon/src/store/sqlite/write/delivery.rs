//! Deliveries: written down, given up, and never more than so many.

use rusqlite::{Connection, params};

use super::run_one;
use crate::clock::Millis;
use crate::store::{DELIVERIES, Delivery, StoreError};

/// One more; the oldest of the same receiver makes room for it.
pub(super) fn add(db: &Connection, delivery: &Delivery) -> Result<bool, StoreError> {
    let Delivery { id, tenant, url, event, body, attempts, due, why, given_up } = delivery;
    run_one(
        db,
        "INSERT INTO delivery (id, tenant, url, event, body, attempts, due, why, given_up)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![id, tenant, url, event, body, attempts, due, why, given_up],
    )?;
    let crowded = "SELECT id FROM delivery WHERE tenant = ?1 AND url = ?2 AND given_up IS NULL
         ORDER BY id DESC LIMIT -1 OFFSET ?3";
    let old = db
        .prepare_cached(crowded)?
        .query_map(params![tenant, url, DELIVERIES], |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    for id in old {
        tracing::warn!(id, "a webhook is given up: too many wait for its receiver");
        give_up(db, &id, "too many were waiting for this receiver", *due, false)?;
    }
    Ok(true)
}

/// Not called any more; of what a tenant has lost, the oldest is forgotten.
pub(super) fn give_up(
    db: &Connection,
    id: &str,
    why: &str,
    at: Millis,
    tried: bool,
) -> Result<bool, StoreError> {
    let given_up = run_one(
        db,
        "UPDATE delivery SET attempts = attempts + ?4, given_up = ?3, why = ?2
         WHERE id = ?1 AND given_up IS NULL",
        params![id, why, at, tried],
    )?;
    run_one(
        db,
        "DELETE FROM delivery WHERE id IN (
             SELECT id FROM delivery WHERE given_up IS NOT NULL
                 AND tenant = (SELECT tenant FROM delivery WHERE id = ?1)
             ORDER BY id DESC LIMIT -1 OFFSET ?2)",
        params![id, DELIVERIES],
    )?;
    Ok(given_up)
}
