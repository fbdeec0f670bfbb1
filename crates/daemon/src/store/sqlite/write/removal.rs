//! What goes for good, with everything that hangs on it.

use rusqlite::{Connection, params};

use super::run_one;
use crate::store::StoreError;

/// A thread; nothing if one of its turns is not over.
pub(super) fn thread(db: &Connection, thread: &str) -> Result<bool, StoreError> {
    let busy = "SELECT EXISTS (SELECT 1 FROM turn WHERE thread = ?1 AND ended IS NULL)";
    if db.prepare_cached(busy)?.query_row([thread], |row| row.get(0))? {
        return Ok(false);
    }
    for sql in [
        "DELETE FROM event WHERE turn IN (SELECT id FROM turn WHERE thread = ?1)",
        "DELETE FROM interrupt WHERE turn IN (SELECT id FROM turn WHERE thread = ?1)",
        "DELETE FROM turn WHERE thread = ?1",
    ] {
        run_one(db, sql, [thread])?;
    }
    run_one(db, "DELETE FROM thread WHERE id = ?1", [thread])
}

/// A tenant; nothing if one of its turns is not over, unless it is forced.
pub(super) fn tenant(db: &Connection, tenant: &str, forced: bool) -> Result<bool, StoreError> {
    let busy = "SELECT EXISTS (SELECT 1 FROM turn WHERE tenant = ?1 AND ended IS NULL)";
    let busy: bool = db.prepare_cached(busy)?.query_row(params![tenant], |row| row.get(0))?;
    if busy && !forced {
        return Ok(false);
    }
    for sql in [
        "DELETE FROM event WHERE turn IN (SELECT id FROM turn WHERE tenant = ?1)",
        "DELETE FROM interrupt WHERE tenant = ?1",
        "DELETE FROM turn WHERE tenant = ?1",
        "DELETE FROM thread WHERE tenant = ?1",
        "DELETE FROM token WHERE tenant = ?1",
        "DELETE FROM delivery WHERE tenant = ?1",
        "DELETE FROM answer WHERE tenant = ?1",
        // A worker that nobody comes back to is ended by its guard.
        "DELETE FROM worker WHERE tenant = ?1",
    ] {
        run_one(db, sql, [tenant])?;
    }
    run_one(db, "DELETE FROM tenant WHERE id = ?1", [tenant])
}
