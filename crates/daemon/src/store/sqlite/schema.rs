//! The tables, one migration after the other; a migration that was released is never changed.

use rusqlite::Connection;

use crate::store::StoreError;

/// Each brings the store from its place in the list to the next.
const MIGRATIONS: &[&str] = &[FIRST, DELIVERIES, ROLES, MARKS, RESULTS];

const FIRST: &str = "
CREATE TABLE tenant (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL,
    created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE token (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenant(id), name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE, admin INTEGER NOT NULL, created INTEGER NOT NULL, revoked INTEGER
) WITHOUT ROWID;
CREATE INDEX token_tenant ON token(tenant, created);
CREATE TABLE thread (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenant(id), session TEXT,
    backend TEXT NOT NULL, title TEXT, cwd TEXT NOT NULL, settings TEXT NOT NULL,
    tools TEXT NOT NULL, fork TEXT, usage TEXT, created INTEGER NOT NULL,
    updated INTEGER NOT NULL, archived INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX thread_tenant ON thread(tenant, archived, id);
CREATE UNIQUE INDEX thread_session ON thread(tenant, session) WHERE session IS NOT NULL;
CREATE TABLE turn (
    id TEXT PRIMARY KEY, thread TEXT NOT NULL REFERENCES thread(id), tenant TEXT NOT NULL,
    kind TEXT NOT NULL, state TEXT NOT NULL, request TEXT NOT NULL, key TEXT, digest TEXT,
    backend_turn TEXT, error TEXT, resumable INTEGER NOT NULL, usage TEXT, last INTEGER NOT NULL,
    created INTEGER NOT NULL, started INTEGER, ended INTEGER
) WITHOUT ROWID;
CREATE INDEX turn_thread ON turn(thread, id);
CREATE INDEX turn_unfinished ON turn(id) WHERE ended IS NULL;
CREATE INDEX turn_ended ON turn(ended) WHERE ended IS NOT NULL;
CREATE UNIQUE INDEX turn_key ON turn(tenant, key) WHERE key IS NOT NULL;
CREATE TABLE event (
    turn TEXT NOT NULL REFERENCES turn(id), first INTEGER NOT NULL, last INTEGER NOT NULL,
    body TEXT NOT NULL, PRIMARY KEY (turn, last)
) WITHOUT ROWID;
CREATE TABLE interrupt (
    token TEXT PRIMARY KEY, tenant TEXT NOT NULL, thread TEXT NOT NULL,
    turn TEXT NOT NULL REFERENCES turn(id), request TEXT NOT NULL, interrupt TEXT NOT NULL,
    state TEXT NOT NULL, answer TEXT, answered_by TEXT, why TEXT, opened INTEGER NOT NULL,
    deadline INTEGER NOT NULL, closed INTEGER
) WITHOUT ROWID;
CREATE INDEX interrupt_tenant ON interrupt(tenant, opened);
CREATE INDEX interrupt_turn ON interrupt(turn);
CREATE INDEX interrupt_open ON interrupt(opened) WHERE state = 'open';
CREATE TABLE worker (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, backend TEXT NOT NULL, key TEXT NOT NULL,
    socket TEXT NOT NULL, started INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE delivery (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, url TEXT NOT NULL, event TEXT NOT NULL,
    body TEXT NOT NULL, attempts INTEGER NOT NULL, due INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX delivery_due ON delivery(due);
";

/// Deliveries that were given up stay, and those of a receiver are told in their order.
const DELIVERIES: &str = "
ALTER TABLE delivery ADD COLUMN why TEXT;
ALTER TABLE delivery ADD COLUMN given_up INTEGER;
DROP INDEX delivery_due;
CREATE INDEX delivery_waiting ON delivery(tenant, url, id) WHERE given_up IS NULL;
CREATE INDEX delivery_given_up ON delivery(tenant, id) WHERE given_up IS NOT NULL;
";

/// Tokens have roles: those that there are could run turns and answer. Of threads that there are
/// nobody knows who has had a part in them.
const ROLES: &str = "
ALTER TABLE token ADD COLUMN roles TEXT NOT NULL DEFAULT '';
UPDATE token SET roles = CASE WHEN admin THEN 'run answer admin' ELSE 'run answer' END;
ALTER TABLE thread ADD COLUMN contributors TEXT;
ALTER TABLE worker ADD COLUMN secret TEXT;
";

/// A turn is marked before the backend is asked for it. Of those that were being started nobody
/// knows whether they run.
const MARKS: &str = "
ALTER TABLE turn ADD COLUMN mark TEXT;
UPDATE turn SET mark = '' WHERE state = 'running' AND backend_turn IS NULL;
CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), at INTEGER NOT NULL);
";

/// What came of a turn is kept when its events are forgotten, and requests are answered once.
const RESULTS: &str = "
ALTER TABLE turn ADD COLUMN result TEXT;
CREATE INDEX turn_without_result ON turn(ended) WHERE ended IS NOT NULL AND result IS NULL;
CREATE TABLE answer (
    tenant TEXT NOT NULL, operation TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL,
    body TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (tenant, operation, key)
) WITHOUT ROWID;
";

/// Brings a store up to date, in one transaction for each step.
pub(super) fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    let known = MIGRATIONS.len() as i64;
    loop {
        // Taken before the version is read: two programs may be started at the same moment.
        let step = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let found: i64 = step.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if found > known {
            return Err(StoreError::Newer { found, known });
        }
        let Some(migration) = usize::try_from(found).ok().and_then(|at| MIGRATIONS.get(at)) else {
            return Ok(());
        };
        step.execute_batch(migration)?;
        step.pragma_update(None, "user_version", found + 1)?;
        step.commit()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_version_kept_is_there_in_the_newest() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(FIRST).unwrap();
        db.pragma_update(None, "user_version", 1).unwrap();
        let delivery = "INSERT INTO delivery VALUES ('d1', 'a', 'http://x', 'e', '{}', 3, 7)";
        db.execute(delivery, []).unwrap();
        db.execute_batch(
            "INSERT INTO tenant VALUES ('a', 'a', '{}', 0);
             INSERT INTO token VALUES ('t1', 'a', 'ci', 'h1', 0, 0, NULL);
             INSERT INTO token VALUES ('t2', 'a', 'me', 'h2', 1, 0, NULL);",
        )
        .unwrap();
        migrate(&mut db).unwrap();
        let roles = |id: &str| -> String {
            db.query_row("SELECT roles FROM token WHERE id = ?1", [id], |row| row.get(0)).unwrap()
        };
        assert_eq!((roles("t1"), roles("t2")), ("run answer".into(), "run answer admin".into()));
        let sql = "SELECT attempts FROM delivery WHERE given_up IS NULL AND why IS NULL";
        let attempts: i64 = db.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(attempts, 3);
        migrate(&mut db).unwrap();
    }
}
