//! Paths and queries, told as problems when they are wrong.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::app::App;
use crate::error::Error;

/// The longest name in a path.
const NAME: usize = 128;

/// The name in a path. What no name of ours could be is not found.
#[derive(Clone, Debug)]
pub struct Path(pub String);

impl FromRequestParts<App> for Path {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let found = axum::extract::Path::<String>::from_request_parts(parts, app).await;
        let fine = |name: &String| {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            !name.is_empty() && name.len() <= NAME && name.bytes().all(letter)
        };
        match found {
            Ok(axum::extract::Path(name)) if fine(&name) => Ok(Self(name)),
            _ => Err(Error::not_found("thing", "of this name")),
        }
    }
}

/// A query.
#[derive(Clone, Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        match axum::extract::Query::<T>::from_request_parts(parts, app).await {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(err) => Err(wrong(&err.body_text())),
        }
    }
}

/// What is wrong with a query, named by its field: that is how the reader's words begin.
fn wrong(told: &str) -> Error {
    let told = told.strip_prefix("Failed to deserialize query string: ").unwrap_or(told);
    match told.split_once(": ") {
        Some((field, why)) if !field.contains([' ', '`']) => Error::invalid(field, why),
        _ => Error::invalid("query", told),
    }
}
