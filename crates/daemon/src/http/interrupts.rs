//! Questions: listed, read, answered, asked again.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use bindery_core::interrupt::Answer;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::ai_sdk;
use super::app::App;
use super::body::{Body, json};
use super::turns::TurnView;
use crate::error::Error;
use crate::interrupts::view;
use crate::store::InterruptFilter;
use crate::tenant::Caller;

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
}

/// Lists interrupts, oldest first.
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<InterruptQuery>,
) -> Result<Response, Error> {
    let filter = InterruptFilter {
        tenant: None,
        turn: query.turn,
        thread: query.thread,
        open: query.open.unwrap_or(true),
    };
    let rows = app.desk.list(&caller, filter, query.all.unwrap_or(false)).await?;
    let data: Vec<Value> = rows.iter().map(view).collect();
    Ok(json(StatusCode::OK, &json!({ "data": data })))
}

/// Reads an interrupt.
pub async fn read(
    State(app): State<App>,
    caller: Caller,
    Path(token): Path<String>,
) -> Result<Response, Error> {
    Ok(json(StatusCode::OK, &view(&app.desk.get(&caller, &token).await?)))
}

/// Answers an interrupt, once, with what was offered.
pub async fn answer(
    State(app): State<App>,
    caller: Caller,
    Path(token): Path<String>,
    Body(answer): Body<Answer>,
) -> Result<Response, Error> {
    if let Some(told) = ai_sdk::answer(&app, &caller, &token, &answer) {
        return told;
    }
    let row = app.desk.answer(&caller, &token, answer).await?;
    Ok(json(StatusCode::OK, &view(&row)))
}

/// Starts a turn that takes up a question which its worker took with it.
pub async fn ask_again(
    State(app): State<App>,
    caller: Caller,
    Path(token): Path<String>,
) -> Result<Response, Error> {
    let turn = app.desk.ask_again(&caller, &token).await?;
    Ok(json(StatusCode::CREATED, &TurnView::from(turn)))
}
