//! What Codex has written down of a tenant's sessions, its own and those of other programs.

use std::path::PathBuf;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bindery_sessions::catalogue::Catalogue;
use bindery_sessions::find::{self, SessionFile};
use bindery_sessions::normalise::Options;
use bindery_sessions::session;
use bindery_sessions::summary::{Reader, Summary};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::app::App;
use super::body::json;
use super::extract::{Path, Query};
use super::openapi::shape;
use super::pages::{Limit, Page, Place, limit, place_from_name, place_to_name};
use crate::error::Error;
use crate::tenant::Caller;

/// Which sessions to list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SessionQuery {
    /// At most so many; 50 if it does not say.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub limit: Option<Limit>,
    /// Those that are put away, too.
    pub archived: Option<bool>,
    /// `next` of the page before.
    #[serde(alias = "before", alias = "after")]
    pub cursor: Option<String>,
}

/// Lists sessions, newest first.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions",
    operation_id = "list_sessions",
    params(SessionQuery),
    responses((status = 200, body = shape::SessionPage)))]
pub async fn list(
    State(_): State<App>,
    caller: Caller,
    Query(query): Query<SessionQuery>,
) -> Result<Response, Error> {
    let limit = limit(query.limit);
    let archived = query.archived.unwrap_or(false);
    let home = home(&caller);
    let before = query.cursor.as_deref().map(place_from_name);
    let before = before.transpose()?;
    let mut listed = blocking(move || match home {
        Some(home) => Catalogue::default().list_within(&home),
        None => Ok(Vec::new()),
    })
    .await?;
    listed.retain(|summary| archived || !summary.archived);
    listed.retain(|summary| before.as_ref().is_none_or(|before| place(summary) < *before));
    listed.sort_by_cached_key(|summary| std::cmp::Reverse(place(summary)));
    let page =
        Page::of(listed, limit, |summary| place_to_name(&place(summary)), |summary| view(&summary));
    Ok(json(StatusCode::OK, &page))
}

/// Where a session stands in the list: when it was last written, and the name of its file.
fn place(summary: &Summary) -> Place {
    let file = summary.path.file_name().unwrap_or_default();
    (summary.updated_ms.unwrap_or_default(), file.to_string_lossy().into_owned())
}

/// Reads what a list shows of a session.
#[utoipa::path(get, path = "/v1/sessions/{session}", tag = "sessions",
    operation_id = "get_session",
    responses((status = 200, body = shape::Session)))]
pub async fn read(State(_): State<App>, caller: Caller, Path(id): Path) -> Result<Response, Error> {
    let file = resolve(&caller, id).await?.0;
    let summary = blocking(move || Reader::default().summary(&file, true)).await?;
    Ok(json(StatusCode::OK, &view(&summary)))
}

/// Reads all that was said and done in a session.
#[utoipa::path(get, path = "/v1/sessions/{session}/transcript", tag = "sessions",
    operation_id = "get_transcript",
    responses((status = 200, body = shape::Transcript)))]
pub async fn transcript(
    State(_): State<App>,
    caller: Caller,
    Path(id): Path,
) -> Result<Response, Error> {
    let (file, all) = resolve(&caller, id).await?;
    let load = move || {
        let chain = session::chain(&file.path, &all);
        session::load_chain(&chain, Options::default())
    };
    let session = blocking(load).await?;
    Ok(json(StatusCode::OK, &session.transcript))
}

/// The tenant's home. One that is not there yet has no sessions.
fn home(caller: &Caller) -> Option<PathBuf> {
    let home = &caller.tenant.settings.codex_home;
    home.is_dir().then(|| home.clone())
}

/// The file of the session of exactly this name, among all of the tenant's.
async fn resolve(caller: &Caller, id: String) -> Result<(SessionFile, Vec<SessionFile>), Error> {
    let home = home(caller);
    let files = move || home.map_or(Ok(Vec::new()), |home| find::files_within(&home));
    let all = blocking(files).await?;
    let current = find::current(all.clone());
    let named =
        |file: &SessionFile| file.thread_id.as_ref().is_some_and(|known| known.as_str() == id);
    let found = current.into_iter().rfind(named);
    Ok((found.ok_or_else(|| Error::not_found("session", &id))?, all))
}

/// Refuses a session whose file is a link or has a second name: a worker would follow it to
/// wherever it leads. One that is not there is the worker's to tell.
pub(super) async fn refuse_linked(caller: &Caller, id: &str) -> Result<(), Error> {
    let Some(home) = home(caller) else { return Ok(()) };
    let id = id.to_owned();
    let named = move |files: &[SessionFile]| {
        files.iter().any(|file| file.thread_id.as_ref().is_some_and(|known| known.as_str() == id))
    };
    let linked = blocking(move || {
        let all = find::files(std::slice::from_ref(&home))?;
        Ok(named(&all) && !named(&find::files_within(&home)?))
    });
    match linked.await? {
        true => Err(Error::invalid("sessionId", "its file is a link, or has another name")),
        false => Ok(()),
    }
}

/// Deletes the files of the session of exactly this name: regular ones of the tenant's home alone.
pub(super) async fn remove(caller: &Caller, id: &str) -> Result<(), Error> {
    let (home, id) = (home(caller), id.to_owned());
    let named =
        |file: &SessionFile| file.thread_id.as_ref().is_some_and(|known| known.as_str() == id);
    let files = home.map_or(Ok(Vec::new()), |home| find::files_within(&home));
    let files = files.map_err(|err| Error::Internal(err.to_string()))?;
    for file in files.iter().filter(|file| named(file)) {
        match tokio::fs::remove_file(&file.path).await {
            Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&file.path, err));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where its file is, is nobody's business.
fn view(summary: &Summary) -> Value {
    let mut view = json!(summary);
    if let Some(view) = view.as_object_mut() {
        view.remove("path");
    }
    view
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, bindery_sessions::Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|err| Error::Internal(err.to_string()))?;
    done.map_err(|err| Error::Internal(format!("a session cannot be read: {err}")))
}
