//! Turns: started, listed, read, followed, steered, stopped.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bindery_core::call::CallOptions;
use bindery_core::item::FileChange;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use super::access::Access;
use super::app::App;
use super::body::{Body, NoFields, Perhaps, json};
use super::extract::{Path, Query};
use super::idempotency::turn_key;
use super::limits::room;
use super::openapi::shape;
use super::pages::{Page, PageQuery, Within};
use super::sse;
use super::threads::{check_placed, find as find_thread};
use super::uploads;
use crate::clock::Millis;
use crate::error::{Error, FORGOTTEN};
use crate::files::TenantFiles;
use crate::store::{Change, ThreadRow, TurnKind, TurnRow, TurnState};
use crate::tenant::Caller;
use crate::turns::{NewTurn, check_files, check_length, json_bytes, steering};

/// A turn.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Turn)]
#[serde(rename_all = "camelCase")]
pub struct TurnView {
    /// Its name.
    pub id: String,
    /// Its thread.
    pub thread_id: String,
    /// What it does.
    pub kind: TurnKind,
    /// How it stands.
    pub state: TurnState,
    /// Why it failed: `{code, message}`.
    #[schema(value_type = Option<shape::TurnError>)]
    pub error: Option<Value>,
    /// The thread can go on after it although it did not end well.
    pub resumable: bool,
    /// Tokens it used, or has so far.
    #[schema(value_type = Option<shape::Usage>)]
    pub usage: Option<Value>,
    /// Its last words: the final answer, or what was said last. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Files that it changed, so far. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<shape::FileChange>>)]
    pub changes: Option<Vec<FileChange>>,
    /// Of some of `changes` the diff was too long to be kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub diffs_left_out: bool,
    /// The number of its last event.
    pub last_event: u64,
    /// When it was asked for, in milliseconds since 1970.
    pub created_at: Millis,
    /// When it began.
    pub started_at: Option<Millis>,
    /// When it ended.
    pub ended_at: Option<Millis>,
}

impl From<TurnRow> for TurnView {
    fn from(row: TurnRow) -> Self {
        Self {
            id: row.id,
            thread_id: row.thread,
            kind: row.kind,
            state: row.state,
            error: row.error,
            resumable: row.resumable,
            usage: row.usage,
            text: None,
            changes: None,
            diffs_left_out: false,
            last_event: row.last,
            created_at: row.created,
            started_at: row.started,
            ended_at: row.ended,
        }
    }
}

/// What to run.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPrompt {
    /// Text, or parts as a user message of the AI SDK has them: text and files.
    #[schema(value_type = shape::Input)]
    pub input: Value,
    /// Settings of this turn and those after it: `model`, `effort`, `summary` …
    #[serde(default)]
    #[schema(value_type = shape::Settings)]
    pub settings: Map<String, Value>,
    /// Tools that the caller runs, as the AI SDK declares them; fixed at a thread's first turn.
    #[serde(default)]
    #[schema(value_type = Option<Vec<shape::Tool>>)]
    pub tools: Option<Vec<Value>>,
    /// JSON Schema of the answer.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Value>,
}

impl NewPrompt {
    /// The call of the AI SDK that it is.
    pub fn call(self) -> Result<CallOptions, Error> {
        let content = match self.input {
            Value::String(text) => text_parts(text),
            Value::Array(parts) if !parts.is_empty() => Value::Array(parts),
            _ => return Err(Error::invalid("input", "it must be text or a list of parts")),
        };
        let mut call = json!({
            "prompt": [{ "role": "user" }],
            "providerOptions": { "codex": self.settings },
        });
        // Moved, not copied: it may be long.
        call["prompt"][0]["content"] = content;
        if let Some(tools) = self.tools {
            call["tools"] = Value::Array(tools);
        }
        if let Some(schema) = self.output_schema {
            call["responseFormat"] = json!({ "type": "json" });
            call["responseFormat"]["schema"] = schema;
        }
        serde_json::from_value(call).map_err(|err| Error::invalid("body", err.to_string()))
    }
}

fn text_parts(text: String) -> Value {
    let mut part = json!({ "type": "text" });
    part["text"] = Value::String(text);
    Value::Array(vec![part])
}

/// Puts a turn into the queue of its thread. With an `Idempotency-Key`, twice is once.
#[utoipa::path(post, path = "/v1/threads/{thread}/turns", tag = "turns",
    operation_id = "create_turn",
    params(("idempotency-key" = Option<String>, Header)),
    request_body = NewPrompt,
    responses((status = 201, body = TurnView), (status = 200, body = TurnView)))]
pub async fn start(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
    headers: HeaderMap,
    Body(new): Body<NewPrompt>,
) -> Result<Response, Error> {
    let row = find_thread(&app, &caller, &thread).await?;
    let settings = new.settings.clone();
    caller.tenant.settings.policy.check(&settings)?;
    let call = checked(&app, &caller, &row.id, new)?;
    // What cannot be run is told now, not by a turn that fails.
    check_files(&steering(&call)?)?;
    let key = turn_key("create_turn", &headers)?;
    let new = NewTurn { kind: TurnKind::Prompt, request: json!(call), key };
    // One that was asked for before changes nothing, the thread's settings neither.
    if let Some(known) = app.runner.known(&caller, &row, &new).await? {
        return Ok(json(StatusCode::OK, &TurnView::from(known)));
    }
    let row = check_settings(&app, &caller, row, &settings).await?;
    submit(&app, &caller, &row, new).await
}

/// Holds a turn's settings, and what they make of the thread's, to the tenant's policy. The sandbox
/// that a turn chooses stays for those after it.
async fn check_settings(
    app: &App,
    caller: &Caller,
    mut thread: ThreadRow,
    new: &Map<String, Value>,
) -> Result<ThreadRow, Error> {
    let policy = &caller.tenant.settings.policy;
    policy.check(new)?;
    check_placed(new)?;
    let mut merged = thread.settings.as_object().cloned().unwrap_or_default();
    let chosen = ["sandbox", "sandboxPolicy"];
    if chosen.iter().any(|name| new.contains_key(*name)) {
        // One of them is what counts; the thread's own other one would be stronger.
        chosen.iter().for_each(|name| drop(merged.remove(*name)));
        let chosen = new.iter().filter(|(name, _)| chosen.contains(&name.as_str()));
        merged.extend(chosen.map(|(name, value)| (name.clone(), value.clone())));
    }
    let settings = Value::Object(merged.clone());
    merged.extend(new.clone());
    policy.confine(&caller.tenant.settings, thread.cwd.as_ref(), &mut merged)?;
    if settings != thread.settings {
        let change = Change::SetThread { thread: thread.id.clone(), settings: settings.clone() };
        app.store.commit(vec![change]).await?;
        thread.settings = settings;
    }
    Ok(thread)
}

/// The call of a prompt that names no files but the tenant's own and those it has sent.
fn checked(
    app: &App,
    caller: &Caller,
    thread: &str,
    mut new: NewPrompt,
) -> Result<CallOptions, Error> {
    check_length("the prompt", &new.input)?;
    if !app.config.exit_with_parent {
        // Before uploads stand for files of ours.
        let before = NewPrompt { settings: Map::new(), tools: None, ..new.clone() };
        TenantFiles::new(&app.config, &caller.tenant).check(&before.call()?)?;
    }
    uploads::resolve(app, &caller.tenant, thread, &mut new.input)?;
    new.call()
}

/// Submits a turn: 201 for a new one, 200 for one whose key was known.
pub async fn submit(
    app: &App,
    caller: &Caller,
    thread: &ThreadRow,
    new: NewTurn,
) -> Result<Response, Error> {
    room(app, &caller.tenant, json_bytes(&new.request)).await?;
    let (turn, new) = app.runner.submit(caller, thread, new).await?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &TurnView::from(turn)))
}

/// Lists the turns of a thread, newest first.
#[utoipa::path(get, path = "/v1/threads/{thread}/turns", tag = "turns",
    operation_id = "list_turns",
    params(PageQuery), responses((status = 200, body = shape::TurnPage)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path,
    Query(query): Query<PageQuery>,
) -> Result<Response, Error> {
    let row = find_thread(&app, &caller, &thread).await?;
    let rows = app.store.turns(&caller.tenant.id, &row.id, query.paging("turn_")?).await?;
    let page = Page::of(rows, query.limit(), |row| row.id.clone(), TurnView::from);
    Ok(json(StatusCode::OK, &page))
}

/// The caller's turn of this name.
pub async fn find(app: &App, caller: &Caller, turn: &str) -> Result<TurnRow, Error> {
    let row = app.store.turn(&caller.tenant.id, turn).await?;
    row.ok_or_else(|| Error::not_found("turn", turn))
}

/// Reads a turn, with what has come of it so far.
#[utoipa::path(get, path = "/v1/turns/{turn}", tag = "turns",
    operation_id = "get_turn",
    responses((status = 200, body = TurnView)))]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Path(turn): Path,
) -> Result<Response, Error> {
    let row = find(&app, &caller, &turn).await?;
    let result = app.runner.result(&row).await?;
    let mut view = TurnView::from(row);
    (view.text, view.changes) = (result.text, result.changes);
    view.diffs_left_out = result.diffs_left_out;
    view.usage = view.usage.or_else(|| result.usage.map(|usage| json!(usage)));
    Ok(json(StatusCode::OK, &view))
}

/// Where to begin.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// The number of the last event that is known; `Last-Event-ID` is stronger.
    #[param(value_type = Option<u64>)]
    pub after: Option<Within<0, { u64::MAX }>>,
}

/// Follows a turn from any event to its end, as SSE.
#[utoipa::path(get, path = "/v1/turns/{turn}/events", tag = "turns",
    operation_id = "stream_turn_events",
    params(EventQuery, ("last-event-id" = Option<String>, Header)),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 204)))]
pub async fn events(
    State(app): State<App>,
    caller: Caller,
    Path(turn): Path,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, Error> {
    // Before the row is read: a turn that ends in between is then over in both.
    let after = sse::last_event_id(&headers, query.after.map(|after| after.0))?;
    let row = find(&app, &caller, &turn).await?;
    if row.state.is_over() && after >= row.last {
        // Nothing more will come; this keeps a browser from asking for ever.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    if row.state.is_over() && app.store.events(&row.id, after, 1).await?.is_empty() {
        let message = format!("the events of turn `{turn}` are kept no longer");
        return Err(Error::Conflict { code: FORGOTTEN, message });
    }
    let reader = app.runner.read(&row.id, after);
    let quiet = Duration::from_secs(app.config.http.keep_alive_seconds.max(1));
    let watched = app.token_watch.watch(&caller, Access::Read);
    Ok(sse::respond(reader, quiet, watched))
}

/// What to add to a turn that runs.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Steer {
    /// Text, or parts as a user message of the AI SDK has them.
    #[schema(value_type = shape::Input)]
    pub input: Value,
}

/// Adds to a turn while it runs.
#[utoipa::path(post, path = "/v1/turns/{turn}/steer", tag = "turns",
    operation_id = "steer_turn",
    request_body = Steer, responses((status = 202, body = shape::TurnRef)))]
pub async fn steer(
    State(app): State<App>,
    caller: Caller,
    Path(turn): Path,
    Body(steer): Body<Steer>,
) -> Result<Response, Error> {
    let row = find(&app, &caller, &turn).await?;
    let settings = Map::new();
    let prompt = NewPrompt { input: steer.input, settings, tools: None, output_schema: None };
    let call = checked(&app, &caller, &row.thread, prompt)?;
    let mut input = steering(&call)?;
    check_files(&input)?;
    if !app.config.exit_with_parent {
        input = TenantFiles::new(&app.config, &caller.tenant).take(input).await?;
    }
    app.runner.steer(&caller, &row, input).await?;
    Ok(json(StatusCode::ACCEPTED, &json!({ "turnId": row.id })))
}

/// Stops a turn that waits or runs.
#[utoipa::path(post, path = "/v1/turns/{turn}/interrupt", tag = "turns",
    operation_id = "interrupt_turn",
    responses((status = 202, body = shape::TurnRef)))]
pub async fn interrupt(
    State(app): State<App>,
    caller: Caller,
    Path(turn): Path,
    Perhaps(NoFields {}): Perhaps<NoFields>,
) -> Result<Response, Error> {
    let row = find(&app, &caller, &turn).await?;
    app.runner.interrupt(&row).await?;
    Ok(json(StatusCode::ACCEPTED, &json!({ "turnId": row.id })))
}
