//! Lists in pages.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::IntoParams;

use crate::clock::Millis;
use crate::error::Error;
use crate::store::{Following, Paging};

/// A page of a list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// What is on this page.
    pub data: Vec<T>,
    /// Give it as `cursor` for the next page; none on the last.
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

/// The place that `next` named.
pub(super) fn place_from_name(next: &str) -> Result<Place, Error> {
    let place = next.split_once('.').and_then(|(at, name)| {
        let at = at.parse().ok()?;
        Some((at, name.to_owned()))
    });
    place.ok_or_else(unknown_place)
}

fn unknown_place() -> Error {
    Error::invalid("cursor", "it must be `next` of the page before")
}

/// A whole number of a query, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within<const MIN: u64, const MAX: u64>(pub u64);

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
        let told = || match MAX {
            u64::MAX => format!("it must be a whole number from {MIN} on, and it is `{text}`"),
            _ => format!("it must be a whole number from {MIN} to {MAX}, and it is `{text}`"),
        };
        number.map(Self).ok_or_else(|| D::Error::custom(told()))
    }
}

/// How many things are on a page.
pub type Limit = Within<1, { MAX_LIMIT as u64 }>;

/// The most on a page.
pub const MAX_LIMIT: usize = 1000;

/// How many if it does not say.
pub const LIMIT: usize = 50;

/// Which page of a list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// At most so many; 50 if it does not say.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub limit: Option<Limit>,
    /// `next` of the page before.
    #[serde(alias = "before", alias = "after")]
    pub cursor: Option<String>,
}

/// How many, of a query that may say so.
pub(super) fn limit(limit: Option<Limit>) -> usize {
    limit.and_then(|limit| usize::try_from(limit.0).ok()).unwrap_or(LIMIT)
}

impl PageQuery {
    /// How many.
    pub fn limit(&self) -> usize {
        limit(self.limit)
    }

    /// The page to read of a list that is newest first, with one more. All names in the list begin
    /// with `prefix`.
    pub fn paging(&self, prefix: &str) -> Result<Paging, Error> {
        Ok(Paging { before: self.name(prefix)?, limit: self.limit() + 1 })
    }

    /// The page to read of a list that is oldest first, with one more. All names in the list begin
    /// with `prefix`.
    pub fn following(&self, prefix: &str) -> Result<Following, Error> {
        Ok(Following { after: self.name(prefix)?, limit: Some(self.limit() + 1) })
    }

    /// The name that `next` of a list of such names told; the row itself may be gone.
    fn name(&self, prefix: &str) -> Result<Option<String>, Error> {
        let is_name = |cursor: &str| {
            let rest = cursor.strip_prefix(prefix).unwrap_or_default();
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        match &self.cursor {
            Some(cursor) if !is_name(cursor) => Err(unknown_place()),
            cursor => Ok(cursor.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_out_of_bounds_is_told_with_the_bounds() {
        let read = |text: &str| serde_json::from_value::<Limit>(json!(text));
        assert_eq!(read("1000").unwrap(), Within(1000));
        for wrong in ["0", "1001", "-1", "1.5", "", "many", "99999999999999999999"] {
            let told = read(wrong).unwrap_err().to_string();
            let bounds = format!("a whole number from 1 to 1000, and it is `{wrong}`");
            assert!(told.contains(&bounds), "{told}");
        }
    }
}
