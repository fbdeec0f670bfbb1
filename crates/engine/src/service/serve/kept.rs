//! Threads are put away, taken out, named and removed.

use serde_json::{Value, json};

use super::lists::shape_of_row;
use super::params::{Name, OfThread};
use super::{Cx, Reply, Served, done, thread_id};

/// `thread/archive`.
pub(super) async fn archive(cx: &Cx, params: &OfThread) -> Served {
    thread_id(&params.thread_id, "session")?;
    put_away(cx, params, "thread/archived", |store, id| store.archive(id)).await
}

/// `thread/delete`.
pub(super) async fn delete(cx: &Cx, params: &OfThread) -> Served {
    thread_id(&params.thread_id, "session")?;
    put_away(cx, params, "thread/deleted", |store, id| store.delete(id)).await
}

type Step = fn(&dyn crate::service::store::Store, &str) -> Result<(), super::Refused>;

/// Ends the thread if it is loaded, so that nobody writes to the file while it moves.
async fn put_away(cx: &Cx, params: &OfThread, told: &'static str, step: Step) -> Served {
    let id = params.thread_id.clone();
    let loaded = cx.inner.threads.remove(&id);
    let was_loaded = loaded.is_some();
    if let Some(loaded) = loaded {
        cx.inner.unload(&loaded).await;
    }
    let wanted = id.clone();
    match cx.on_store(move |store| step(store, &wanted)).await {
        // One that was never written down is gone with its last breath.
        Err(_) if was_loaded => {}
        done => done?,
    }
    let ears = cx.inner.ears.clone();
    Ok(Reply::then(done(), move || ears.tell(told, &json!({ "threadId": id }))))
}

/// `thread/unarchive`.
pub(super) async fn unarchive(cx: &Cx, params: &OfThread) -> Served {
    let id = params.thread_id.clone();
    thread_id(&id, "session")?;
    let row = cx.on_store(move |store| store.unarchive(&id)).await?;
    let (ears, told) = (cx.inner.ears.clone(), json!({ "threadId": row.id }));
    let thread: Value = shape_of_row(&row, Vec::new());
    Ok(Reply::then(json!({ "thread": thread }), move || ears.tell("thread/unarchived", &told)))
}

/// `thread/name/set`.
pub(super) async fn name(cx: &Cx, params: Name) -> Served {
    let Name { thread_id: id, name } = params;
    thread_id(&id, "thread")?;
    let loaded = cx.inner.threads.get(&id);
    let (wanted, given) = (id.clone(), name.clone());
    match cx.on_store(move |store| store.rename(&wanted, &given)).await {
        // It is not written down yet, or never will be.
        Err(_) if loaded.is_some() => {}
        done => done?,
    }
    if let Some(loaded) = loaded {
        loaded.about().name = Some(name.clone());
    }
    let (ears, told) = (cx.inner.ears.clone(), json!({ "threadId": id, "threadName": name }));
    Ok(Reply::then(done(), move || ears.tell("thread/name/updated", &told)))
}
