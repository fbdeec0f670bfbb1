//! The writer: one thread, one transaction for all that waits.

mod delivery;

mod removal;

use rusqlite::{Connection, OptionalExtension as _, Params, params};
use tokio::sync::{mpsc, oneshot};

use super::row::{json, word};
use crate::clock::Millis;
use crate::seal::StoreKey;
use crate::store::{
    AnswerRow, Change, InterruptRow, InterruptState, StoreError, ThreadRow, TokenRow, TurnEnd,
    TurnRow, TurnState, WorkerRow,
};
use crate::tenant::{Contributor, Role, Tenant};

/// Changes that go together, and who waits for them.
pub(super) struct Job {
    pub(super) changes: Vec<Change>,
    pub(super) reply: oneshot::Sender<Result<Vec<bool>, StoreError>>,
}

/// Jobs in one transaction, at most.
const BATCH: usize = 256;

/// Writes until nobody can send jobs any more.
pub(super) fn run(mut db: Connection, mut jobs: mpsc::Receiver<Job>, key: &StoreKey) {
    while let Some(first) = jobs.blocking_recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(next) = jobs.try_recv()
        {
            batch.push(next);
        }
        write(&mut db, batch, key);
    }
}

/// Replies only when the transaction is through: what is confirmed is kept.
fn write(db: &mut Connection, batch: Vec<Job>, key: &StoreKey) {
    let (jobs, replies): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|job| (job.changes, job.reply)).unzip();
    let outcomes = transact(db, &jobs, key);
    match outcomes {
        Ok(outcomes) => {
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                // Who does not wait any more does not want to know.
                let _ = reply.send(outcome);
            }
        }
        Err(err) => {
            tracing::error!(%err, "the store failed");
            for reply in replies {
                let _ = reply.send(Err(err.again()));
            }
        }
    }
}

type Outcome = Result<Vec<bool>, StoreError>;

fn transact(
    db: &mut Connection,
    jobs: &[Vec<Change>],
    key: &StoreKey,
) -> Result<Vec<Outcome>, StoreError> {
    let mut all = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    for changes in jobs {
        // One job's conflict must not undo another's work.
        let mut one = all.savepoint()?;
        let outcome: Outcome = changes.iter().map(|change| apply(&one, change, key)).collect();
        match &outcome {
            Ok(_) => one.commit()?,
            Err(_) => one.rollback()?,
        }
        outcomes.push(outcome);
    }
    all.commit()?;
    Ok(outcomes)
}

fn apply(db: &Connection, change: &Change, key: &StoreKey) -> Result<bool, StoreError> {
    match change {
        Change::AddTenant(tenant) => add_tenant(db, tenant, key),
        Change::SetTenant(tenant) => run_one(
            db,
            "UPDATE tenant SET settings = ?2 WHERE id = ?1",
            params![tenant.id, sealed(tenant, key)?],
        ),
        Change::AddToken(token) => add_token(db, token),
        Change::RevokeToken { id, at } => run_one(
            db,
            "UPDATE token SET revoked = ?2 WHERE id = ?1 AND revoked IS NULL",
            params![id, at],
        ),
        Change::SetTokenRoles { id, roles } => run_one(
            db,
            "UPDATE token SET roles = ?2, admin = ?3 WHERE id = ?1 AND revoked IS NULL",
            params![id, roles.to_string(), roles.has(Role::Admin)],
        ),
        Change::AddThread(thread) => add_thread(db, thread),
        Change::BindThread { thread, session, at } => run_one(
            db,
            "UPDATE thread SET session = ?2, updated = ?3 WHERE id = ?1",
            params![thread, session, at],
        ),
        Change::UnbindThread { thread, at } => run_one(
            db,
            "UPDATE thread SET session = NULL, updated = ?2 WHERE id = ?1",
            params![thread, at],
        ),
        Change::NameThread { thread, title, at } => run_one(
            db,
            "UPDATE thread SET title = ?2, updated = ?3 WHERE id = ?1",
            params![thread, title, at],
        ),
        Change::ArchiveThread { thread, archived, at } => run_one(
            db,
            "UPDATE thread SET archived = ?2, updated = ?3 WHERE id = ?1",
            params![thread, archived, at],
        ),
        Change::CountThread { thread, usage, at } => run_one(
            db,
            "UPDATE thread SET usage = ?2, updated = ?3 WHERE id = ?1",
            params![thread, json(usage)?, at],
        ),
        Change::AddContributor { thread, contributor } => add_contributor(db, thread, contributor),
        Change::SetThread { thread, settings } => run_one(
            db,
            "UPDATE thread SET settings = ?2 WHERE id = ?1",
            params![thread, json(settings)?],
        ),
        other => apply_to_turn(db, other, key),
    }
}

fn apply_to_turn(db: &Connection, change: &Change, key: &StoreKey) -> Result<bool, StoreError> {
    match change {
        Change::AddTurn(turn) => add_turn(db, turn),
        Change::StartTurn { turn, at } => run_one(
            db,
            "UPDATE turn SET state = 'running', started = ?2 WHERE id = ?1 AND state = 'queued'",
            params![turn, at],
        ),
        Change::MarkTurn { turn, mark } => {
            run_one(db, "UPDATE turn SET mark = ?2 WHERE id = ?1", params![turn, mark])
        }
        Change::BindTurn { turn, backend_turn } => run_one(
            db,
            "UPDATE turn SET backend_turn = ?2 WHERE id = ?1",
            params![turn, backend_turn],
        ),
        Change::EndTurn(end) => end_turn(db, end),
        Change::Append { turn, chunk, last } => append(db, turn, chunk.first, &chunk.body, *last),
        other => apply_more(db, other, key),
    }
}

fn apply_more(db: &Connection, change: &Change, key: &StoreKey) -> Result<bool, StoreError> {
    match change {
        Change::OpenInterrupt(interrupt) => open_interrupt(db, interrupt),
        Change::AnswerInterrupt { token, answer, by, at } => run_one(
            db,
            "UPDATE interrupt SET state = 'answered', answer = ?2, answered_by = ?3, closed = ?4
             WHERE token = ?1 AND state = 'open' AND deadline > ?4",
            params![token, json(answer)?, by, at],
        ),
        Change::DeliverInterrupt { token } => run_one(
            db,
            "UPDATE interrupt SET state = 'delivered' WHERE token = ?1 AND state = 'answered'",
            params![token],
        ),
        Change::CloseInterrupt { token, state, why, at } => close(db, token, *state, why, *at),
        Change::CloseInterrupts { turn, why, at } => run_one(
            db,
            "UPDATE interrupt SET state = 'over', why = ?2, closed = ?3
             WHERE turn = ?1 AND state = 'open'",
            params![turn, why, at],
        ),
        Change::KeepResult { turn, result } => {
            run_one(db, "UPDATE turn SET result = ?2 WHERE id = ?1", params![turn, json(result)?])
        }
        Change::RemoveThread { thread } => removal::thread(db, thread),
        Change::RemoveTenant { tenant, forced } => removal::tenant(db, tenant, *forced),
        Change::KeepAnswer(answer) => keep_answer(db, answer),
        Change::AddWorker(worker) => add_worker(db, worker, key),
        Change::RemoveWorker { id } => run_one(db, "DELETE FROM worker WHERE id = ?1", params![id]),
        Change::AddDelivery(delivery) => delivery::add(db, delivery),
        Change::RemoveDelivery { id } => {
            run_one(db, "DELETE FROM delivery WHERE id = ?1", params![id])
        }
        Change::RetryDelivery { id, due, why } => run_one(
            db,
            "UPDATE delivery SET attempts = attempts + 1, due = ?2, why = ?3
             WHERE id = ?1 AND given_up IS NULL",
            params![id, due, why],
        ),
        Change::GiveUpDelivery { id, why, at, tried } => {
            delivery::give_up(db, id, why, *at, *tried)
        }
        Change::Probe { at } => {
            run_one(db, "INSERT OR REPLACE INTO probe (id, at) VALUES (1, ?1)", [at])
        }
        Change::Forget { before } => {
            let events = "DELETE FROM event WHERE turn IN (SELECT id FROM turn WHERE ended < ?1)";
            let deliveries = "DELETE FROM delivery WHERE given_up < ?1";
            let answers = "DELETE FROM answer WHERE at < ?1";
            let old = [events, deliveries, answers];
            old.iter().try_fold(false, |any, sql| Ok(any | run_one(db, sql, [before])?))
        }
        _ => Err(StoreError::Database("a change has no arm".to_owned())),
    }
}

fn keep_answer(db: &Connection, answer: &AnswerRow) -> Result<bool, StoreError> {
    let AnswerRow { tenant, operation, key, digest, body, at } = answer;
    run_one(
        db,
        "INSERT INTO answer (tenant, operation, key, digest, body, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![tenant, operation, key, digest, body, at],
    )
}

fn run_one(db: &Connection, sql: &str, params: impl Params) -> Result<bool, StoreError> {
    Ok(db.prepare_cached(sql)?.execute(params)? > 0)
}

fn sealed(tenant: &Tenant, key: &StoreKey) -> Result<String, StoreError> {
    key.seal(&tenant.id, &json(&tenant.settings)?)
}

fn add_tenant(db: &Connection, tenant: &Tenant, key: &StoreKey) -> Result<bool, StoreError> {
    run_one(
        db,
        "INSERT INTO tenant (id, name, settings, created) VALUES (?1, ?2, ?3, ?4)",
        params![tenant.id, tenant.name, sealed(tenant, key)?, tenant.created],
    )
}

fn add_token(db: &Connection, token: &TokenRow) -> Result<bool, StoreError> {
    let TokenRow { id, tenant, name, hash, roles, created, revoked } = token;
    run_one(
        db,
        "INSERT INTO token (id, tenant, name, hash, admin, created, revoked, roles)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            id,
            tenant,
            name,
            hash,
            roles.has(Role::Admin),
            created,
            revoked,
            roles.to_string()
        ],
    )
}

fn add_thread(db: &Connection, thread: &ThreadRow) -> Result<bool, StoreError> {
    run_one(
        db,
        "INSERT INTO thread (id, tenant, session, backend, title, cwd, settings, tools, fork,
            usage, created, updated, archived, contributors)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        params![
            thread.id,
            thread.tenant,
            thread.session,
            thread.backend,
            thread.title,
            thread.cwd,
            json(&thread.settings)?,
            json(&thread.tools)?,
            thread.fork.as_ref().map(json).transpose()?,
            thread.usage.as_ref().map(json).transpose()?,
            thread.created,
            thread.updated,
            thread.archived,
            thread.contributors.as_ref().map(json).transpose()?,
        ],
    )
}

fn add_contributor(
    db: &Connection,
    thread: &str,
    contributor: &Contributor,
) -> Result<bool, StoreError> {
    let sql = "SELECT contributors FROM thread WHERE id = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let known = statement.query_row([thread], |row| row.get::<_, Option<String>>(0)).optional()?;
    // A thread that is gone meanwhile has no list. Where nobody knows who has had a part, one more
    // name does not make it known.
    let Some(known) = known.flatten() else { return Ok(false) };
    let mut all: Vec<Contributor> =
        serde_json::from_str(&known).map_err(|err| StoreError::Damaged(err.to_string()))?;
    if all.contains(contributor) {
        return Ok(false);
    }
    all.push(contributor.clone());
    let sql = "UPDATE thread SET contributors = ?2 WHERE id = ?1";
    run_one(db, sql, params![thread, json(&all)?])
}

fn add_turn(db: &Connection, turn: &TurnRow) -> Result<bool, StoreError> {
    run_one(
        db,
        "INSERT INTO turn (id, thread, tenant, kind, state, request, key, digest, resumable,
            last, created)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, ?9)",
        params![
            turn.id,
            turn.thread,
            turn.tenant,
            word(&turn.kind)?,
            word(&TurnState::Queued)?,
            json(&turn.request)?,
            turn.key,
            turn.digest,
            turn.created,
        ],
    )
}

fn end_turn(db: &Connection, end: &TurnEnd) -> Result<bool, StoreError> {
    run_one(
        db,
        "UPDATE turn SET state = ?2, error = ?3, resumable = ?4, usage = ?5, ended = ?6
         WHERE id = ?1 AND ended IS NULL",
        params![
            end.turn,
            word(&end.state)?,
            end.error.as_ref().map(json).transpose()?,
            end.resumable,
            end.usage.as_ref().map(json).transpose()?,
            end.at,
        ],
    )
}

fn append(
    db: &Connection,
    turn: &str,
    first: u64,
    body: &str,
    last: u64,
) -> Result<bool, StoreError> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let (first, last) = (number(first), number(last));
    run_one(
        db,
        "INSERT INTO event (turn, first, last, body) VALUES (?1, ?2, ?3, ?4)",
        params![turn, first, last, body],
    )?;
    run_one(db, "UPDATE turn SET last = ?2 WHERE id = ?1", params![turn, last])
}

fn open_interrupt(db: &Connection, row: &InterruptRow) -> Result<bool, StoreError> {
    run_one(
        db,
        "INSERT OR IGNORE INTO interrupt (token, tenant, thread, turn, request, interrupt, state,
            opened, deadline)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'open', ?7, ?8)",
        params![
            row.token,
            row.tenant,
            row.thread,
            row.turn,
            json(&row.request)?,
            json(&row.interrupt)?,
            row.opened,
            row.deadline,
        ],
    )
}

fn close(
    db: &Connection,
    token: &str,
    state: InterruptState,
    why: &str,
    at: Millis,
) -> Result<bool, StoreError> {
    run_one(
        db,
        "UPDATE interrupt SET state = ?2, why = ?3, closed = ?4
         WHERE token = ?1 AND state = 'open'",
        params![token, word(&state)?, why, at],
    )
}

fn add_worker(
    db: &Connection,
    worker: &WorkerRow,
    store_key: &StoreKey,
) -> Result<bool, StoreError> {
    let WorkerRow { id, tenant, backend, key, socket, secret, started } = worker;
    let secret = secret.as_ref().map(|secret| store_key.seal(id, secret)).transpose()?;
    run_one(
        db,
        "INSERT INTO worker (id, tenant, backend, key, socket, started, secret)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![id, tenant, backend, key, socket, started, secret],
    )
}
