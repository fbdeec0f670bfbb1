//! Images, sent once and spoken of by name in prompts: `upload:upl_…`.

use std::time::SystemTime;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::app::App;
use super::body::{bytes, json};
use super::extract::Path;
use super::idempotency::Once;
use super::limits::room;
use super::problem::respond;
use super::security::kind;
use crate::error::{Error, UPLOAD_NEEDED};
use crate::shelf::Shelf;
use crate::tenant::{Caller, Tenant};

/// The route.
pub const ROUTE: &str = "/v1/uploads";

/// Types that Codex reads, how such files begin, and how we call them.
pub(crate) const KINDS: [(&str, &[u8], &str); 4] = [
    ("image/png", b"\x89PNG\r\n\x1a\n", "png"),
    ("image/jpeg", b"\xff\xd8\xff", "jpg"),
    ("image/gif", b"GIF8", "gif"),
    ("image/webp", b"RIFF", "webp"),
];

/// Before the name of an upload in a prompt.
const SCHEME: &str = "upload:";

/// Whether this is an upload.
pub(super) fn takes(path: &str, headers: &HeaderMap) -> bool {
    path == ROUTE && kind(headers).is_some_and(|kind| known(kind).is_some())
}

fn known(kind: &str) -> Option<(&'static [u8], &'static str)> {
    let found = KINDS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(kind));
    found.map(|(_, begins, ending)| (*begins, *ending))
}

/// An image that is kept.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Upload {
    /// Its name.
    pub id: String,
    /// What stands for it as the `data` of a file part.
    pub data: String,
    /// Bytes.
    pub size: u64,
}

/// Keeps an image.
#[utoipa::path(post, path = "/v1/uploads", tag = "uploads",
    operation_id = "create_upload",
    params(("idempotency-key" = Option<String>, Header)),
    request_body(content((Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"),
        (Vec<u8> = "image/gif"), (Vec<u8> = "image/webp"))),
    responses((status = 201, body = Upload), (status = 200, body = Upload)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, Response> {
    let told = |err: Error| axum::response::IntoResponse::into_response(err);
    let Some((begins, ending)) = kind(request.headers()).and_then(known) else {
        let detail = "send an image: png, jpeg, gif or webp";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(respond(status, "unsupported_media_type", detail, None));
    };
    let headers = request.headers().clone();
    let bytes = bytes(request, &app).await?;
    if !bytes.starts_with(begins) {
        return Err(told(Error::invalid("body", "it is no image of the type that it says")));
    }
    let asked = (ending, &*bytes);
    let once = Once::begin(&app, &caller, "create_upload", &headers, asked).await;
    let first = match once.map_err(told)? {
        Once::First(first) => first,
        Once::Made(response) => return Ok(response),
    };
    let size = bytes.len() as u64;
    room(&app, &caller.tenant, size).await.map_err(told)?;
    let id = format!("upl_{}", Uuid::now_v7().simple());
    let (shelf, name) = (shelf(&app, &caller.tenant), id.clone());
    let written = tokio::task::spawn_blocking(move || shelf.put(&name, ending, &bytes)).await;
    let failed = |err| told(Error::io(&Shelf::all(&app.config.data), err));
    written.map_err(|err| told(Error::Internal(err.to_string())))?.map_err(failed)?;
    app.used.add(&caller.tenant.id, size);
    let data = format!("{SCHEME}{id}");
    let upload = Upload { id, data, size };
    // One that is written and not kept under its key is written again, and the first swept away.
    if let Some(keep) = first.keep(&upload).map_err(told)? {
        app.store.commit(vec![keep]).await.map_err(|err| told(err.into()))?;
    }
    Ok(json(StatusCode::CREATED, &upload))
}

/// Deletes an image. One that a turn which waits or runs still has to read is refused.
#[utoipa::path(delete, path = "/v1/uploads/{upload}", tag = "uploads",
    operation_id = "delete_upload", responses((status = 204)))]
pub async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path(upload): Path,
) -> Result<StatusCode, Error> {
    let shelf = shelf(&app, &caller.tenant);
    if shelf.find(&upload).is_none() {
        return Err(Error::not_found("upload", upload));
    }
    if app.store.needed_uploads().await?.contains(&upload) {
        let message = format!("a turn that waits or runs has to read upload `{upload}`");
        return Err(Error::Conflict { code: UPLOAD_NEEDED, message });
    }
    let name = upload.clone();
    let removed = tokio::task::spawn_blocking(move || shelf.remove(&name)).await;
    let failed = |err: std::io::Error| Error::io(&Shelf::all(&app.config.data), err);
    removed.map_err(|err| Error::Internal(err.to_string()))?.map_err(failed)?;
    app.used.recount(&caller.tenant.id);
    Ok(StatusCode::NO_CONTENT)
}

fn shelf(app: &App, tenant: &Tenant) -> Shelf {
    Shelf::new(&app.config.data, &tenant.id)
}

/// Bytes of a tenant's uploads.
pub(super) async fn kept(app: &App, tenant: &Tenant) -> u64 {
    let shelf = shelf(app, tenant);
    tokio::task::spawn_blocking(move || shelf.bytes()).await.unwrap_or(0)
}

/// Puts the files of uploads in the place of their names, for a turn of this thread.
pub(super) fn resolve(
    app: &App,
    tenant: &Tenant,
    thread: &str,
    input: &mut Value,
) -> Result<(), Error> {
    let shelf = shelf(app, tenant);
    for part in input.as_array_mut().into_iter().flatten() {
        let Some(id) = part["data"].as_str().and_then(|data| data.strip_prefix(SCHEME)) else {
            continue;
        };
        let found = shelf.find(id).ok_or_else(|| Error::not_found("upload", id))?;
        shelf.used(id, thread).map_err(|err| Error::io(&found, err))?;
        part["data"] = Value::from(format!("file://{}", found.display()));
    }
    Ok(())
}

/// A thread is put away, and with it what it alone used.
pub(super) async fn leave(app: &App, tenant: &Tenant, thread: &str) -> Result<(), Error> {
    let needed = app.store.needed_uploads().await?;
    let (shelf, name) = (shelf(app, tenant), thread.to_owned());
    let left = tokio::task::spawn_blocking(move || shelf.leave(&name, &needed)).await;
    let failed = |err: std::io::Error| Error::io(&Shelf::all(&app.config.data), err);
    left.map_err(|err| Error::Internal(err.to_string()))?.map_err(failed)?;
    app.used.recount(&tenant.id);
    Ok(())
}

/// Removes what no tenant has used since then.
pub async fn sweep(app: &App, before: SystemTime) -> Result<(), Error> {
    let needed = app.store.needed_uploads().await?;
    for tenant in app.tenants.list().await? {
        let (shelf, needed) = (shelf(app, &tenant), needed.clone());
        let swept = tokio::task::spawn_blocking(move || shelf.sweep(before, &needed)).await;
        let failed = |err: std::io::Error| Error::io(&Shelf::all(&app.config.data), err);
        let gone = swept.map_err(|err| Error::Internal(err.to_string()))?.map_err(failed)?;
        if gone > 0 {
            tracing::info!(tenant = tenant.id, files = gone, "old uploads are removed");
            app.used.recount(&tenant.id);
        }
    }
    Ok(())
}
