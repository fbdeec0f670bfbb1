//! Tenants' settings are sealed: they hold keys of models and secrets of webhooks.

use std::path::Path;

use rusqlite::{Connection, params};

use super::row;
use crate::seal::{StoreKey, is_sealed};
use crate::store::StoreError;

/// The key of this store. What an older version wrote in clear is sealed now.
pub(super) fn key(db: &mut Connection, file: &Path) -> Result<StoreKey, StoreError> {
    let step = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let rows = {
        let mut statement = step.prepare("SELECT * FROM tenant")?;
        let rows = statement.query_map([], row::tenant)?;
        rows.collect::<rusqlite::Result<Vec<_>>>()?
    };
    let sealed = rows.iter().find(|row| is_sealed(&row.settings));
    let key = match sealed {
        // A new key would not open what is there.
        Some(row) => {
            let missing = || StoreError::Key {
                path: file.to_owned(),
                why: "it is not there, and secrets in the store are sealed with it".to_owned(),
            };
            let key = StoreKey::read(file)?.ok_or_else(missing)?;
            key.unseal(&row.id, &row.settings)?;
            key
        }
        None => StoreKey::read_or_make(file)?,
    };
    let clear: Vec<_> = rows.iter().filter(|row| !is_sealed(&row.settings)).collect();
    for row in &clear {
        let sealed = key.seal(&row.id, &row.settings)?;
        step.execute("UPDATE tenant SET settings = ?2 WHERE id = ?1", params![row.id, sealed])?;
    }
    step.commit()?;
    if !clear.is_empty() {
        erase(db)?;
        tracing::info!(tenants = clear.len(), "their settings are sealed now");
    }
    Ok(key)
}

/// What was overwritten is still in free pages and in the log: both are written anew.
fn erase(db: &Connection) -> Result<(), StoreError> {
    db.pragma_update(None, "secure_delete", "ON")?;
    checkpoint(db)?;
    db.execute_batch("VACUUM")?;
    checkpoint(db)?;
    db.pragma_update(None, "secure_delete", "OFF")?;
    Ok(())
}

fn checkpoint(db: &Connection) -> Result<(), StoreError> {
    let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy != 0 {
        let why = "another program reads the store, so that old secrets cannot be erased from it";
        return Err(StoreError::Database(why.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::schema;

    #[test]
    fn what_was_in_clear_is_sealed_and_gone_from_all_files() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) = (folder.path().join("store"), folder.path().join("key"));
        let open = || {
            let db = Connection::open(&path).unwrap();
            db.pragma_update(None, "journal_mode", "WAL").unwrap();
            db
        };
        let mut db = open();
        schema::migrate(&mut db).unwrap();
        // Long enough for pages of their own, and changed once.
        for (id, secret) in [("ten_1", "sk-first"), ("ten_2", "sk-second")] {
            let long = format!("{{\"env\":\"{secret}{}\"}}", "-".repeat(20_000));
            db.execute("INSERT INTO tenant VALUES (?1, ?1, ?2, 0)", params![id, long]).unwrap();
            let short = format!("{{\"env\":\"{secret}\"}}");
            db.execute("UPDATE tenant SET settings = ?2 WHERE id = ?1", params![id, short])
                .unwrap();
        }
        let found = |secret: &str| {
            let files = std::fs::read_dir(folder.path()).unwrap().flatten();
            let mut bytes = files.map(|file| std::fs::read(file.path()).unwrap());
            bytes.any(|bytes| bytes.windows(secret.len()).any(|part| part == secret.as_bytes()))
        };
        assert!(found("sk-first") && found("sk-second"));
        let key = super::key(&mut db, &file).unwrap();
        assert!(!found("sk-first") && !found("sk-second"));
        let row = db.query_row("SELECT * FROM tenant WHERE id = 'ten_2'", [], row::tenant).unwrap();
        assert_eq!(key.unseal("ten_2", &row.settings).unwrap(), "{\"env\":\"sk-second\"}");
        drop(db);
        super::key(&mut open(), &file).unwrap();
        // Without its key, nothing is overwritten and no other key is made.
        std::fs::rename(&file, folder.path().join("elsewhere")).unwrap();
        let told = super::key(&mut open(), &file).unwrap_err().to_string();
        assert!(told.contains("it is not there"), "{told}");
        assert!(!file.exists());
        StoreKey::read_or_make(&file).unwrap();
        let told = super::key(&mut open(), &file).unwrap_err().to_string();
        assert!(told.contains("sealed with another key"), "{told}");
    }
}
