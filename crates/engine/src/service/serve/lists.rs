//! What there is: threads, turns, items.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::params::{ItemsList, SortKey, ThreadList, ThreadRead, TurnsList};
use super::threads::birth_of;
use super::{Cx, Served, thread_id};
use crate::service::page::{Direction, Paging};
use crate::service::refused::Refused;
use crate::service::shapes;
use crate::service::store::Row;
use crate::service::threads::About;
use crate::thread::{Standing, ThreadView};
use crate::tokens::ThreadUsage;

/// `thread/loaded/list`.
pub(super) fn loaded(cx: &Cx, paging: &Paging) -> Served {
    let rows = cx.inner.threads.ids().into_iter().map(Value::from).collect();
    Ok(paging.cut(rows)?.into())
}

/// `thread/read`.
pub(super) async fn thread(cx: &Cx, params: &ThreadRead) -> Served {
    thread_id(&params.thread_id, "thread")?;
    let thread = match cx.inner.threads.get(&params.thread_id) {
        Some(loaded) => cx.shape(&loaded, &loaded.view().await, params.include_turns),
        None => {
            let id = params.thread_id.clone();
            let past = cx.on_store(move |store| store.read(&id)).await?;
            let turns = if params.include_turns { past.turns } else { Vec::new() };
            shape_of_row(&past.row, turns)
        }
    };
    Ok(json!({ "thread": thread }).into())
}

/// `thread/turns/list`: newest first, unless asked otherwise.
pub(super) async fn turns(cx: &Cx, params: &TurnsList) -> Served {
    let mut turns = cx.turns(&params.thread_id).await?;
    if params.paging.direction(Direction::Desc) == Direction::Desc {
        turns.reverse();
    }
    let view = params.items_view.unwrap_or_default();
    let rows = turns.into_iter().map(|turn| shapes::turn(turn, view)).collect();
    Ok(params.paging.cut(rows)?.into())
}

/// `thread/items/list`: oldest first, unless asked otherwise.
pub(super) async fn items(cx: &Cx, params: &ItemsList) -> Served {
    let turns = cx.turns(&params.thread_id).await?;
    let wanted = |turn: &&Value| params.turn_id.as_ref().is_none_or(|id| turn["id"] == **id);
    let mut rows: Vec<Value> = turns.iter().filter(wanted).flat_map(rows_of).collect();
    if params.paging.direction(Direction::Asc) == Direction::Desc {
        rows.reverse();
    }
    Ok(params.paging.cut(rows)?.into())
}

fn rows_of(turn: &Value) -> impl Iterator<Item = Value> + '_ {
    turn["items"].as_array().into_iter().flatten().map(|item| {
        json!({
            "turnId": turn["id"],
            "item": item,
            "startedAtMs": item["startedAtMs"],
            "completedAtMs": item["completedAtMs"],
        })
    })
}

/// `thread/list`: what is kept, and how what is loaded of it is now.
pub(super) async fn threads(cx: &Cx, params: ThreadList) -> Served {
    let archived = params.archived.unwrap_or(false);
    let mut rows = cx.on_store(move |store| store.list(archived)).await?;
    rows.retain(|row| fits(&params, row));
    let by_update = !matches!(params.sort_key.unwrap_or_default(), SortKey::CreatedAt);
    rows.sort_by(|a, b| {
        let key = |row: &Row| if by_update { row.updated_at } else { row.created_at };
        // Names of version 7 are in the order of their making.
        (key(a), &a.id).cmp(&(key(b), &b.id))
    });
    if params.paging.direction(Direction::Desc) == Direction::Desc {
        rows.reverse();
    }
    let shapes: Vec<Value> = rows.iter().map(|row| shape_of_row(row, Vec::new())).collect();
    let mut page = params.paging.cut(shapes)?;
    let mut live = HashMap::new();
    for loaded in cx.inner.threads.all() {
        live.insert(loaded.thread.id().to_owned(), loaded);
    }
    for row in page["data"].as_array_mut().into_iter().flatten() {
        if let Some(loaded) = row["id"].as_str().and_then(|id| live.get(id)) {
            row["status"] = loaded.crowd.status();
        }
    }
    page["readStates"] = json!({});
    Ok(page.into())
}

fn fits(params: &ThreadList, row: &Row) -> bool {
    let in_folder = params.cwd.as_ref().is_none_or(|cwd| cwd.hold(&row.cwd.to_string_lossy()));
    let providers = params.model_providers.as_ref().filter(|names| !names.is_empty());
    let of_provider = providers
        .is_none_or(|names| row.provider.as_ref().is_none_or(|provider| names.contains(provider)));
    let term = params.search_term.as_ref().map(|term| term.to_lowercase());
    let name = row.name.as_deref().unwrap_or_default().to_lowercase();
    let spoken =
        term.is_none_or(|term| row.preview.to_lowercase().contains(&term) || name.contains(&term));
    in_folder && of_provider && spoken
}

/// A thread that is not loaded.
pub(super) fn shape_of_row(row: &Row, turns: Vec<Value>) -> Value {
    let model = row.model.clone().unwrap_or_default();
    let mut standing = Standing::new(model, row.cwd.clone());
    standing.effort = row.effort.clone();
    let view = ThreadView {
        id: row.id.clone(),
        status: json!({ "type": "notLoaded" }),
        turns,
        active_turn: None,
        usage: ThreadUsage::default(),
        window: 0,
        usage_turn: None,
        standing,
    };
    let about =
        About { name: row.name.clone(), preview: row.preview.clone(), updated_at: row.updated_at };
    let provider = row.provider.clone().unwrap_or_default();
    shapes::thread(&view, &birth_of(row.clone(), provider, Vec::new()), &about, true)
}

impl Cx {
    /// The turns of a thread, loaded or not, oldest first.
    async fn turns(&self, id: &str) -> Result<Vec<Value>, Refused> {
        thread_id(id, "thread")?;
        if let Some(loaded) = self.inner.threads.get(id) {
            return Ok(loaded.view().await.turns);
        }
        let id = id.to_owned();
        Ok(self.on_store(move |store| store.read(&id)).await?.turns)
    }
}
