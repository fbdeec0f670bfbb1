//! Webhook deliveries that wait or were given up, for those they belong to.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::app::App;
use super::body::json;
use super::extract::Query;
use super::openapi::shape;
use super::pages::{Page, PageQuery};
use crate::error::Error;
use crate::secret;
use crate::store::Delivery;
use crate::tenant::Caller;

/// Lists webhook deliveries that wait or were given up, oldest first.
#[utoipa::path(get, path = "/v1/deliveries", tag = "deliveries",
    operation_id = "list_deliveries",
    params(PageQuery), responses((status = 200, body = shape::DeliveryPage)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Response, Error> {
    let rows = app.store.deliveries(&caller.tenant.id, query.following("evt_")?).await?;
    let page = Page::of(rows, query.limit(), |row| row.id.clone(), |row| view(&row));
    Ok(json(StatusCode::OK, &page))
}

fn view(row: &Delivery) -> Value {
    json!({
        "id": row.id,
        "event": row.event,
        "receiver": secret::origin(&row.url),
        "state": if row.given_up.is_some() { "given_up" } else { "waiting" },
        "attempts": row.attempts,
        "why": row.why,
        "dueAt": row.given_up.is_none().then_some(row.due),
        "givenUpAt": row.given_up,
    })
}
