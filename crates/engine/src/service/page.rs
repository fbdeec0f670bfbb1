//! Lists in pages: a cursor is the place of the next row, counted from the list's beginning.

use serde::Deserialize;
use serde_json::{Value, json};

use super::refused::Refused;

/// Rows of a page when nobody says how many.
const USUAL: usize = 25;

/// Rows of a page at most.
const MOST: usize = 1000;

/// Which page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Paging {
    cursor: Option<String>,
    limit: Option<u32>,
    sort_direction: Option<Direction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Direction {
    Asc,
    Desc,
}

impl Paging {
    /// Which way, where nothing is said.
    pub(crate) fn direction(&self, usual: Direction) -> Direction {
        self.sort_direction.unwrap_or(usual)
    }

    /// Takes the page out of all rows, which are in order already.
    pub(crate) fn cut(&self, rows: Vec<Value>) -> Result<Value, Refused> {
        let begin = match &self.cursor {
            None => 0,
            Some(text) => text
                .parse::<usize>()
                .map_err(|_| Refused::invalid(format!("invalid cursor: {text}")))?,
        };
        let limit = self.limit.map_or(USUAL, |limit| (limit as usize).clamp(1, MOST));
        let end = begin.saturating_add(limit);
        let next = (end < rows.len()).then(|| end.to_string());
        let data: Vec<Value> = rows.into_iter().skip(begin).take(limit).collect();
        Ok(json!({ "data": data, "nextCursor": next, "backwardsCursor": null }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(cursor: Option<&str>, limit: Option<u32>) -> Value {
        let paging = Paging { cursor: cursor.map(str::to_owned), limit, ..Paging::default() };
        paging.cut((0..5).map(Value::from).collect()).unwrap_or_else(|err| json!(err.message))
    }

    #[test]
    fn pages_follow_each_other_and_end() {
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = page(cursor.as_deref(), Some(2));
            seen.extend(page["data"].as_array().expect("rows").clone());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(seen, (0..5).map(Value::from).collect::<Vec<_>>());
    }

    #[test]
    fn a_cursor_that_is_none_is_refused_and_one_behind_the_end_is_empty() {
        assert_eq!(page(Some("x"), None), json!("invalid cursor: x"));
        assert_eq!(page(Some("99"), None)["data"], json!([]));
        assert_eq!(page(None, Some(0))["data"], json!([0]));
    }
}
