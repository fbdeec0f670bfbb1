//! Threads: made, listed, read, named, forked, put away, made shorter, reviewed, deleted.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::app::App;
use super::body::{Body, NoFields, Perhaps, json};
use super::extract::{Path, Query};
use super::idempotency::{First, Once, turn_key};
use super::limits::room;
use super::openapi::shape;
use super::pages::{Limit, Page, PageQuery};
use super::sessions;
use super::turns::{TurnView, submit};
use super::uploads;
use crate::clock::{self, Millis};
use crate::error::{Error, THREAD_BUSY};
use crate::store::{Change, StoreError, ThreadRow, TurnKind};
use crate::tenant::{Caller, Contributor, ThreadFolder};
use crate::turns::{NewTurn, json_bytes};

/// A thread.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Thread)]
#[serde(rename_all = "camelCase")]
pub struct ThreadView {
    /// Its name.
    pub id: String,
    /// The backend's own name for it, once it has run: that of its session file.
    pub session_id: Option<String>,
    /// What runs it: `codex` or `engine`.
    pub backend: String,
    /// For people.
    pub title: Option<String>,
    /// The folder it works in.
    pub cwd: String,
    /// Settings of all its turns.
    #[schema(value_type = shape::Settings)]
    pub settings: Value,
    /// Tools that its callers run.
    #[schema(value_type = Vec<shape::Tool>)]
    pub tools: Value,
    /// Tokens it has used, as the backend counts.
    #[schema(value_type = Option<Object>)]
    pub usage: Option<Value>,
    /// Put away.
    pub archived: bool,
    /// When it was made, in milliseconds since 1970.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
}

impl From<ThreadRow> for ThreadView {
    fn from(row: ThreadRow) -> Self {
        Self {
            id: row.id,
            session_id: row.session,
            backend: row.backend,
            title: row.title,
            cwd: row.cwd,
            settings: row.settings,
            tools: row.tools,
            usage: row.usage,
            archived: row.archived,
            created_at: row.created,
            updated_at: row.updated,
        }
    }
}

/// A new thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewThread {
    /// For people.
    #[serde(default)]
    pub title: Option<String>,
    /// The folder it works in, below the tenant's root; the root itself if it does not say.
    #[serde(default)]
    pub cwd: Option<String>,
    /// `codex`, `engine` or `auto`.
    #[serde(default)]
    pub backend: Option<String>,
    /// Settings of all its turns: `model`, `effort`, `approvalPolicy`, `sandbox` …
    #[serde(default)]
    #[schema(value_type = shape::Settings)]
    pub settings: Map<String, Value>,
    /// Tools that its callers run, as the AI SDK declares them.
    #[serde(default)]
    #[schema(value_type = Vec<shape::Tool>)]
    pub tools: Vec<Value>,
    /// A session of the tenant's to go on with.
    #[serde(default)]
    pub session_id: Option<String>,
}

/// Makes a thread. Nothing is started before its first turn.
#[utoipa::path(post, path = "/v1/threads", tag = "threads",
    operation_id = "create_thread",
    params(("idempotency-key" = Option<String>, Header)),
    request_body = NewThread,
    responses((status = 201, body = ThreadView), (status = 200, body = ThreadView)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Perhaps(new): Perhaps<NewThread>,
) -> Result<Response, Error> {
    let asked = ("", &*json!(new).to_string().into_bytes());
    let first = match Once::begin(&app, &caller, "create_thread", &headers, asked).await? {
        Once::First(first) => first,
        Once::Made(response) => return Ok(response),
    };
    // Of a session that somebody else has begun, nobody knows who has had a part in it.
    let contributors = new.session_id.is_none().then(Vec::new);
    let row = make(&app, &caller, new, None, contributors)?;
    if let Some(session) = &row.session {
        sessions::refuse_linked(&caller, session).await?;
    }
    add(&app, &caller, row, &first).await
}

/// Keeps a new thread. A session has one thread only, or two lanes would write to it.
async fn add(app: &App, caller: &Caller, row: ThreadRow, first: &First) -> Result<Response, Error> {
    room(app, &caller.tenant, ROW).await?;
    let mut changes = vec![Change::AddThread(Box::new(row.clone()))];
    let view = ThreadView::from(row.clone());
    changes.extend(first.keep(&view)?);
    match app.store.commit(changes).await {
        Ok(_) => {
            app.used.add(&caller.tenant.id, ROW);
            Ok(json(StatusCode::CREATED, &view))
        }
        Err(StoreError::Conflict(_)) if row.session.is_some() => {
            let session = row.session.as_deref().unwrap_or_default();
            let message = format!("session `{session}` has a thread already");
            Err(Error::Conflict { code: "session_taken", message })
        }
        Err(err) => Err(err.into()),
    }
}

/// Bytes of a thread's settings and tools, which every list of threads shows.
const MAX_DECLARED: u64 = 1024 * 1024;

/// Letters of a title.
const MAX_TITLE: usize = 1000;

/// What a row is counted as besides what is in it.
const ROW: u64 = 1024;

/// Settings that the AI SDK's front has, and that are fields of a thread here.
const PLACED: &[(&str, &str)] = &[
    ("cwd", "the folder is a field of the thread: `cwd`"),
    ("threadId", "a session is taken up by a thread that names it: `sessionId`"),
    ("fork", "a thread is copied by `POST /v1/threads/{id}/fork`"),
];

/// Refuses settings that nobody would read.
pub fn check_placed(settings: &Map<String, Value>) -> Result<(), Error> {
    match PLACED.iter().find(|(name, _)| settings.contains_key(*name)) {
        Some((name, why)) => Err(Error::invalid(format!("settings.{name}"), *why)),
        None => Ok(()),
    }
}

fn check_title(title: Option<&str>) -> Result<(), Error> {
    if title.is_some_and(|title| title.chars().count() > MAX_TITLE) {
        return Err(Error::invalid("title", format!("use at most {MAX_TITLE} characters")));
    }
    Ok(())
}

/// A row for a new thread, checked. `contributors` are those before the caller; none if nobody
/// knows.
pub fn make(
    app: &App,
    caller: &Caller,
    new: NewThread,
    fork: Option<Value>,
    contributors: Option<Vec<Contributor>>,
) -> Result<ThreadRow, Error> {
    let settings = &caller.tenant.settings;
    settings.policy.check(&new.settings)?;
    check_placed(&new.settings)?;
    check_title(new.title.as_deref())?;
    let bytes = json_bytes(&new.settings).saturating_add(json_bytes(&new.tools));
    if bytes > MAX_DECLARED {
        let what = "the list of the thread's settings and tools";
        return Err(Error::TooLong { what, bytes, limit: MAX_DECLARED });
    }
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !new.session_id.iter().all(|id| !id.is_empty() && id.len() <= 64 && id.bytes().all(fine)) {
        return Err(Error::invalid("sessionId", "it is no name of a session"));
    }
    let folder = ThreadFolder::choose(&settings.root, new.cwd.as_deref())?;
    settings.policy.confine(settings, folder.path(), &mut new.settings.clone())?;
    let contributors = contributors.map(|mut all| {
        all.push(caller.as_contributor());
        all
    });
    let now = clock::now();
    Ok(ThreadRow {
        id: format!("thr_{}", Uuid::now_v7().simple()),
        tenant: caller.tenant.id.clone(),
        session: new.session_id,
        backend: app.runner.workers().backend(new.backend.as_deref())?.to_owned(),
        title: new.title,
        cwd: folder.path().display().to_string(),
        settings: Value::Object(new.settings),
        tools: Value::Array(new.tools),
        fork,
        contributors,
        usage: None,
        created: now,
        updated: now,
        archived: false,
    })
}

/// Which threads to list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ThreadQuery {
    /// At most so many; 50 if it does not say.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub limit: Option<Limit>,
    /// `next` of the page before.
    #[serde(alias = "before", alias = "after")]
    pub cursor: Option<String>,
    /// Those that are put away instead of those that are not.
    pub archived: Option<bool>,
}

/// Lists threads, newest first.
#[utoipa::path(get, path = "/v1/threads", tag = "threads",
    operation_id = "list_threads",
    params(ThreadQuery), responses((status = 200, body = shape::ThreadPage)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ThreadQuery>,
) -> Result<Response, Error> {
    let archived = query.archived.unwrap_or(false);
    let page = PageQuery { limit: query.limit, cursor: query.cursor };
    let rows = app.store.threads(&caller.tenant.id, archived, page.paging("thr_")?).await?;
    let page = Page::of(rows, page.limit(), |row| row.id.clone(), ThreadView::from);
    Ok(json(StatusCode::OK, &page))
}

/// The caller's thread of this name.
pub async fn find(app: &App, caller: &Caller, thread: &str) -> Result<ThreadRow, Error> {
    let row = app.store.thread(&caller.tenant.id, thread).await?;
    row.ok_or_else(|| Error::not_found("thread", thread))
}

/// Reads a thread.
#[utoipa::path(get, path = "/v1/threads/{thread}", tag = "threads",
    operation_id = "get_thread",
    responses((status = 200, body = ThreadView)))]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
) -> Result<Response, Error> {
    let row = find(&app, &caller, &thread).await?;
    Ok(json(StatusCode::OK, &ThreadView::from(row)))
}

/// A thread's new name.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// For people.
    pub title: String,
}

/// Names a thread.
#[utoipa::path(patch, path = "/v1/threads/{thread}", tag = "threads",
    operation_id = "rename_thread",
    request_body = Rename, responses((status = 200, body = ThreadView)))]
pub async fn rename(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
    Body(rename): Body<Rename>,
) -> Result<Response, Error> {
    let row = find(&app, &caller, &thread).await?;
    check_title(Some(&rename.title))?;
    let change = Change::NameThread { thread: row.id, title: rename.title, at: clock::now() };
    app.store.commit(vec![change]).await?;
    read(State(app), caller, Path(thread)).await
}

/// Copies a thread into a new one, which goes its own way from its first turn on.
#[utoipa::path(post, path = "/v1/threads/{thread}/fork", tag = "threads",
    operation_id = "fork_thread",
    params(("idempotency-key" = Option<String>, Header)),
    request_body = NewThread,
    responses((status = 201, body = ThreadView), (status = 200, body = ThreadView)))]
pub async fn fork(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
    headers: HeaderMap,
    Perhaps(new): Perhaps<NewThread>,
) -> Result<Response, Error> {
    let asked = (&*thread, &*json!(new).to_string().into_bytes());
    let first = match Once::begin(&app, &caller, "fork_thread", &headers, asked).await? {
        Once::First(first) => first,
        Once::Made(response) => return Ok(response),
    };
    let row = find(&app, &caller, &thread).await?;
    let Some(session) = &row.session else {
        let message = format!("thread `{thread}` has not run yet");
        return Err(Error::Conflict { code: "thread_empty", message });
    };
    let mut settings = row.settings.as_object().cloned().unwrap_or_default();
    // Earlier versions took them, and passed over them.
    PLACED.iter().for_each(|(name, _)| drop(settings.remove(*name)));
    settings.extend(new.settings);
    let tools = if new.tools.is_empty() {
        row.tools.as_array().cloned().unwrap_or_default()
    } else {
        new.tools
    };
    let new = NewThread {
        title: new.title.or(row.title),
        cwd: new.cwd.or(Some(row.cwd)),
        backend: new.backend.or(Some(row.backend)),
        settings,
        tools,
        session_id: None,
    };
    let fork = json!({ "session": session, "thread": row.id });
    let copy = make(&app, &caller, new, Some(fork), row.contributors)?;
    add(&app, &caller, copy, &first).await
}

/// What goes with a thread.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RemoveQuery {
    /// Its session file, too; it stays if it does not say.
    pub sessions: Option<bool>,
}

/// Deletes a thread with its turns, their events and questions. One whose turns are not all over is
/// refused.
#[utoipa::path(delete, path = "/v1/threads/{thread}", tag = "threads",
    operation_id = "delete_thread",
    params(RemoveQuery), responses((status = 204)))]
pub async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
    Query(query): Query<RemoveQuery>,
) -> Result<StatusCode, Error> {
    let row = find(&app, &caller, &thread).await?;
    let change = Change::RemoveThread { thread: row.id.clone() };
    if app.store.commit(vec![change]).await? != [true] {
        // Somebody else may have been quicker.
        find(&app, &caller, &thread).await?;
        let message = format!("thread `{thread}` has turns that wait or run");
        return Err(Error::Conflict { code: THREAD_BUSY, message });
    }
    if let Some(session) = &row.session {
        // Where the backend is gone, nothing of the thread is loaded.
        let _ = app.runner.workers().unload(&caller.tenant, &row.backend, session);
        if query.sessions.unwrap_or(false) {
            sessions::remove(&caller, session).await?;
        }
    }
    uploads::leave(&app, &caller.tenant, &thread).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Puts a thread away.
#[utoipa::path(post, path = "/v1/threads/{thread}/archive", tag = "threads",
    operation_id = "archive_thread",
    responses((status = 200, body = ThreadView)))]
pub async fn archive(
    state: State<App>,
    caller: Caller,
    path: Path,
    Perhaps(NoFields {}): Perhaps<NoFields>,
) -> Result<Response, Error> {
    set_archived(state, caller, path, true).await
}

/// Takes a thread out again.
#[utoipa::path(post, path = "/v1/threads/{thread}/unarchive", tag = "threads",
    operation_id = "unarchive_thread",
    responses((status = 200, body = ThreadView)))]
pub async fn unarchive(
    state: State<App>,
    caller: Caller,
    path: Path,
    Perhaps(NoFields {}): Perhaps<NoFields>,
) -> Result<Response, Error> {
    set_archived(state, caller, path, false).await
}

async fn set_archived(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
    archived: bool,
) -> Result<Response, Error> {
    let row = find(&app, &caller, &thread).await?;
    let id = row.id.clone();
    let change = Change::ArchiveThread { thread: id, archived, at: clock::now() };
    app.store.commit(vec![change]).await?;
    if archived {
        if let Some(session) = &row.session {
            // Where the backend is gone, nothing of the thread is loaded.
            let _ = app.runner.workers().unload(&caller.tenant, &row.backend, session);
        }
        uploads::leave(&app, &caller.tenant, &thread).await?;
    }
    read(State(app), caller, Path(thread)).await
}

/// Makes a thread's history shorter, as a turn.
#[utoipa::path(post, path = "/v1/threads/{thread}/compact", tag = "threads",
    operation_id = "compact_thread",
    params(("idempotency-key" = Option<String>, Header)),
    responses((status = 201, body = TurnView), (status = 200, body = TurnView)))]
pub async fn compact(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
    headers: HeaderMap,
    Perhaps(NoFields {}): Perhaps<NoFields>,
) -> Result<Response, Error> {
    let row = find(&app, &caller, &thread).await?;
    let key = turn_key("compact_thread", &headers)?;
    let new = NewTurn { kind: TurnKind::Compact, request: json!({}), key };
    submit(&app, &caller, &row, new).await
}

/// What to review.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReview {
    /// As Codex takes it: `{"type": "uncommittedChanges"}`, `{"type": "baseBranch", …}` …
    #[schema(value_type = shape::ReviewTarget)]
    pub target: Map<String, Value>,
}

/// Reviews changes, as a turn.
#[utoipa::path(post, path = "/v1/threads/{thread}/review", tag = "threads",
    operation_id = "review_thread",
    params(("idempotency-key" = Option<String>, Header)),
    request_body = NewReview,
    responses((status = 201, body = TurnView), (status = 200, body = TurnView)))]
pub async fn review(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
    headers: HeaderMap,
    Body(review): Body<NewReview>,
) -> Result<Response, Error> {
    let row = find(&app, &caller, &thread).await?;
    let (request, key) = (Value::Object(review.target), turn_key("review_thread", &headers)?);
    let new = NewTurn { kind: TurnKind::Review, request, key };
    submit(&app, &caller, &row, new).await
}
