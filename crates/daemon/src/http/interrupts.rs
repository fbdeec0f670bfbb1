//! Questions: listed, read, answered, asked again.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bindery_core::interrupt::Answer;
use serde::Deserialize;
use utoipa::IntoParams;

use super::ai_sdk;
use super::app::App;
use super::body::{Body, NoFields, Perhaps, json};
use super::extract::{Path, Query};
use super::idempotency::Once;
use super::limits::room;
use super::openapi::shape;
use super::pages::{Limit, Page, limit, place_from_name, place_to_name};
use super::turns::TurnView;
use crate::error::Error;
use crate::interrupts::view;
use crate::store::{InterruptFilter, InterruptRow};
use crate::tenant::Caller;
use crate::turns::check_length;

/// Which interrupts to list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct InterruptQuery {
    /// Only those that wait for an answer; so if it does not say.
    pub open: Option<bool>,
    /// Of this thread.
    pub thread: Option<String>,
    /// Of this turn.
    pub turn: Option<String>,
    /// Of all tenants; needs an administrator's token.
    pub all: Option<bool>,
    /// At most so many; 50 if it does not say.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub limit: Option<Limit>,
    /// `next` of the page before.
    #[serde(alias = "before", alias = "after")]
    pub cursor: Option<String>,
}

/// Lists interrupts, oldest first.
#[utoipa::path(get, path = "/v1/interrupts", tag = "interrupts",
    operation_id = "list_interrupts",
    params(InterruptQuery), responses((status = 200, body = shape::InterruptPage)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<InterruptQuery>,
) -> Result<Response, Error> {
    let limit = limit(query.limit);
    let after = query.cursor.as_deref().map(place_from_name);
    let filter = InterruptFilter {
        tenant: None,
        turn: query.turn,
        thread: query.thread,
        open: query.open.unwrap_or(true),
        after: after.transpose()?,
        limit: Some(limit + 1),
    };
    let rows = app.desk.list(&caller, filter, query.all.unwrap_or(false)).await?;
    let place = |row: &InterruptRow| place_to_name(&(row.opened, row.token.clone()));
    let page = Page::of(rows, limit, place, |row| view(&row));
    Ok(json(StatusCode::OK, &page))
}

/// Reads an interrupt.
#[utoipa::path(get, path = "/v1/interrupts/{token}", tag = "interrupts",
    operation_id = "get_interrupt",
    responses((status = 200, body = shape::Interrupt)))]
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Path(token): Path,
) -> Result<Response, Error> {
    Ok(json(StatusCode::OK, &view(&app.desk.get(&caller, &token).await?)))
}

/// Answers an interrupt, once, with what was offered.
#[utoipa::path(post, path = "/v1/interrupts/{token}/answer", tag = "interrupts",
    operation_id = "answer_interrupt",
    request_body = shape::Answer,
    responses((status = 200, body = shape::Interrupt), (status = 204)))]
pub async fn answer(
    State(app): State<App>,
    caller: Caller,
    Path(token): Path,
    Body(answer): Body<Answer>,
) -> Result<Response, Error> {
    check_length("the answer", &answer)?;
    if let Some(told) = ai_sdk::answer(&app, &caller, &token, &answer) {
        return told;
    }
    let row = app.desk.answer(&caller, &token, answer).await?;
    Ok(json(StatusCode::OK, &view(&row)))
}

/// Starts a turn that takes up a question which its worker took with it.
#[utoipa::path(post, path = "/v1/interrupts/{token}/ask-again", tag = "interrupts",
    operation_id = "reask_interrupt",
    params(("idempotency-key" = Option<String>, Header)),
    responses((status = 201, body = TurnView), (status = 200, body = TurnView)))]
pub async fn ask_again(
    State(app): State<App>,
    caller: Caller,
    Path(token): Path,
    headers: HeaderMap,
    Perhaps(NoFields {}): Perhaps<NoFields>,
) -> Result<Response, Error> {
    let asked = (&*token, &b""[..]);
    let first = match Once::begin(&app, &caller, "reask_interrupt", &headers, asked).await? {
        Once::First(first) => first,
        Once::Made(response) => return Ok(response),
    };
    room(&app, &caller.tenant, 0).await?;
    let turn = TurnView::from(app.desk.ask_again(&caller, &token).await?);
    // A question is taken up once, so nothing is done twice if this is not kept.
    if let Some(keep) = first.keep(&turn)? {
        app.store.commit(vec![keep]).await?;
    }
    Ok(json(StatusCode::CREATED, &turn))
}
