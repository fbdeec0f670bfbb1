//! Lists in pages.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::clock::Millis;
use crate::error::Error;
use crate::store::{Following, Paging};

/// A page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// What is on this page.
    pub data: Vec<T>,
    /// Give it as `before` (of a list that is newest first) or `after` (oldest first) for the next
    /// page; none on the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page of up to `limit`, read with one more to see whether there is a next.
    pub fn of<R>(
        mut rows: Vec<R>,
        limit: usize,
        name: impl Fn(&R) -> String,
        view: impl Fn(R) -> T,
    ) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(name);
        Self { data: rows.into_iter().map(view).collect(), next }
    }
}

/// Where a row stands in a list by time. It holds even when the row is forgotten meanwhile.
pub(super) type Place = (Millis, String);

/// A place as `next` has it.
pub(super) fn place_to_name((at, name): &Place) -> String {
    format!("{at}.{name}")
}

/// The place that `next` named; `what` is the field that gave it back.
pub(super) fn place_from_name(what: &str, next: &str) -> Result<Place, Error> {
    let place = next.split_once('.').and_then(|(at, name)| {
        let at = at.parse().ok()?;
        Some((at, name.to_owned()))
    });
    place.ok_or_else(|| Error::invalid(what, "it must be `next` of the page before"))
}

/// How many of a list that is oldest first, within bounds.
pub(super) fn following_limit(limit: Option<u32>) -> usize {
    limit.unwrap_or(200).clamp(1, 1000) as usize
}

/// Which page of a list, newest first.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// At most so many; 50 if it does not say, 200 at most.
    pub limit: Option<u32>,
    /// Only what is older than this.
    pub before: Option<String>,
    /// Those that are put away instead of those that are not.
    pub archived: Option<bool>,
}

impl PageQuery {
    /// How many, within bounds.
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(50).clamp(1, 200) as usize
    }

    /// The page to read, with one more.
    pub fn paging(&self) -> Paging {
        Paging { before: self.before.clone(), limit: self.limit() + 1 }
    }
}

/// Which page of a list, oldest first.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FollowingQuery {
    /// At most so many; 200 if it does not say, 1,000 at most.
    pub limit: Option<u32>,
    /// Only what comes after this.
    pub after: Option<String>,
}

impl FollowingQuery {
    /// How many, within bounds.
    pub fn limit(&self) -> usize {
        following_limit(self.limit)
    }

    /// The page to read, with one more.
    pub fn following(&self) -> Following {
        Following { after: self.after.clone(), limit: Some(self.limit() + 1) }
    }
}
