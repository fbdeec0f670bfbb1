//! Which fields a payload has, without building anything of it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Kind;
use crate::line::Envelope;
use crate::schema::{self, Row};

const ITEM: &str = "event_msg/item_completed";

/// The findings of a line whose tag is known.
pub(super) fn check(line: &Envelope<'_>, row: &'static Row) -> Result<Vec<(Kind, String)>, String> {
    let mut found = Vec::new();
    let is_item = row.0.starts_with(ITEM) && row.0 != ITEM;
    let outer = if is_item { schema::row(ITEM).unwrap_or(row) } else { row };
    let inner = is_item.then_some(row);
    let seen = line.payload_with(Fields { outer, inner, found: &mut found })?;
    report_missing(outer, seen.outer, &mut found);
    if let Some(row) = inner {
        report_missing(row, seen.inner, &mut found);
    }
    Ok(found)
}

/// Bits of the needed fields that were there.
#[derive(Default)]
pub(super) struct Seen {
    outer: u32,
    inner: u32,
}

struct Fields<'f> {
    outer: &'static Row,
    inner: Option<&'static Row>,
    found: &'f mut Vec<(Kind, String)>,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Seen;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Seen, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Seen, A::Error> {
        let mut seen = Seen::default();
        while let Some(Key(key)) = map.next_key()? {
            note(self.outer, &key, &mut seen.outer, self.found);
            match self.inner {
                Some(row) if key == "item" => {
                    let fields = Fields { outer: row, inner: None, found: self.found };
                    seen.inner = map.next_value_seed(fields)?.outer;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(seen)
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

fn note(row: &Row, key: &str, seen: &mut u32, found: &mut Vec<(Kind, String)>) {
    let (tag, needed, others) = row;
    if let Some(place) = needed.iter().position(|known| *known == key) {
        *seen |= 1 << place;
    } else if !others.contains(&key) {
        found.push((Kind::UnknownField, format!("{tag}.{key}")));
    }
}

fn report_missing((tag, needed, _): &Row, seen: u32, found: &mut Vec<(Kind, String)>) {
    for (place, field) in needed.iter().enumerate() {
        if seen & (1 << place) == 0 {
            found.push((Kind::MissingField, format!("{tag}.{field}")));
        }
    }
}
