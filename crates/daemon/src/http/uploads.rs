//! Images, sent once and spoken of by name in prompts: `upload:upl_…`.

use std::path::{Path, PathBuf};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::app::App;
use super::body::{bytes, json};
use super::limits::room;
use super::problem::respond;
use super::security::kind;
use crate::error::Error;
use crate::tenant::{Caller, Tenant};

/// The route.
pub const ROUTE: &str = "/v1/uploads";

/// Types that Codex reads, how such files begin, and how we call them.
const KINDS: [(&str, &[u8], &str); 4] = [
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
    request_body(content = String, content_type = "image/png"),
    responses((status = 201, body = Upload)))]
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
    let bytes = bytes(request, &app).await?;
    if !bytes.starts_with(begins) {
        return Err(told(Error::invalid("body", "it is no image of the type that it says")));
    }
    let size = bytes.len() as u64;
    room(&app, &caller.tenant, size).await.map_err(told)?;
    let id = format!("upl_{}", Uuid::now_v7().simple());
    let folder = folder(&app, &caller.tenant);
    let path = folder.join(format!("{id}.{ending}"));
    let written = async {
        tokio::fs::create_dir_all(&folder).await?;
        tokio::fs::write(&path, &bytes).await
    };
    written.await.map_err(|err| told(Error::io(&path, err)))?;
    app.used.add(&caller.tenant.id, size);
    let data = format!("{SCHEME}{id}");
    Ok(json(StatusCode::CREATED, &Upload { id, data, size }))
}

fn folder(app: &App, tenant: &Tenant) -> PathBuf {
    app.config.data.join("uploads").join(&tenant.id)
}

/// Bytes of a tenant's uploads.
pub(super) async fn kept(app: &App, tenant: &Tenant) -> u64 {
    let folder = folder(app, tenant);
    let counted = tokio::task::spawn_blocking(move || {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
    });
    counted.await.unwrap_or(0)
}

/// Puts the files of uploads in the place of their names.
pub(super) fn resolve(app: &App, tenant: &Tenant, input: &mut Value) -> Result<(), Error> {
    let folder = folder(app, tenant);
    for part in input.as_array_mut().into_iter().flatten() {
        let Some(id) = part["data"].as_str().and_then(|data| data.strip_prefix(SCHEME)) else {
            continue;
        };
        let found = find(&folder, id).ok_or_else(|| Error::not_found("upload", id))?;
        part["data"] = Value::from(format!("file://{}", found.display()));
    }
    Ok(())
}

/// Only names that we gave: they are letters and digits, and lead nowhere else.
fn find(folder: &Path, id: &str) -> Option<PathBuf> {
    let digits = id.strip_prefix("upl_")?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut places = KINDS.iter().map(|(.., ending)| folder.join(format!("{id}.{ending}")));
    places.find(|path| path.is_file())
}
