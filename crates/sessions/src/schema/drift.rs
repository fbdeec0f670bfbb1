//! One line against what is known: fields, words and depths that nobody has told us of.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Free, Shape};

/// Something in a line that is not as we know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drift {
    pub(crate) oddity: Oddity,
    /// The tag and where in it: `response_item/message.content[].type`; a word with what it is.
    pub(crate) what: String,
}

/// What is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Oddity {
    /// A field that we need is not there.
    Missing,
    /// A type, status or role that we do not know.
    Word,
    /// A field that we do not know, or one that stands there twice.
    Field,
    /// A value that is known and not shown.
    Unshown,
}

/// More than this in one line is noise.
const MOST: usize = 32;

/// Compares a line with what is known of its tag.
pub(crate) fn check(line: &str, tag: &str, found: &mut Vec<Drift>) {
    let is_bare = tag.starts_with("bare/");
    let Some(shape) = super::shape(if is_bare { tag } else { "line" }) else { return };
    let payload = super::shape(tag);
    let mut walk = Walk { tag, is_bare, payload, path: Vec::new(), found };
    let mut json = serde_json::Deserializer::from_str(line);
    // The normaliser tells if it is JSON at all, and splits a line of several records.
    let _ = At { walk: &mut walk, shape }.deserialize(&mut json);
}

struct Walk<'a> {
    tag: &'a str,
    is_bare: bool,
    payload: Option<&'static Shape>,
    path: Vec<&'static str>,
    found: &'a mut Vec<Drift>,
}

const ITEM: &str = "event_msg/item_completed";

impl Walk<'_> {
    fn find(&mut self, oddity: Oddity, last: Option<&str>) {
        if self.found.len() >= MOST {
            return;
        }
        let path = self.path.as_slice();
        let (mut what, path) = match path {
            _ if self.is_bare => (self.tag.to_owned(), path),
            ["payload", "item", rest @ ..] if self.tag != ITEM => (self.tag.to_owned(), rest),
            ["payload", rest @ ..] if self.tag.starts_with(ITEM) => (ITEM.to_owned(), rest),
            ["payload", rest @ ..] => (self.tag.to_owned(), rest),
            path => ("line".to_owned(), path),
        };
        for step in path {
            if *step != ITEMS {
                what.push('.');
            }
            what.push_str(step);
        }
        if let Some(last) = last {
            what.push_str(if oddity == Oddity::Word { "=" } else { "." });
            what.push_str(name_of(last));
        }
        let drift = Drift { oddity, what };
        if !self.found.contains(&drift) {
            self.found.push(drift);
        }
    }
}

const ITEMS: &str = "[]";

/// A report holds names, and nothing that anybody wrote: a name is a word.
fn name_of(text: &str) -> &str {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    match !text.is_empty() && text.len() <= 64 && text.bytes().all(is_word) {
        true => text,
        false => "(no word)",
    }
}

/// A value that is being compared.
struct At<'w, 'a> {
    walk: &'w mut Walk<'a>,
    shape: &'static Shape,
}

impl<'de> DeserializeSeed<'de> for At<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.shape.free == Some(Free::Kept) {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if let Some(words) = &self.shape.words
            && !words.iter().any(|word| word == text)
        {
            self.walk.find(Oddity::Word, Some(text));
        }
        if self.shape.free == Some(Free::Named) && !text.is_empty() {
            self.walk.find(Oddity::Unshown, None);
        }
        // Among objects under names of their own, a text is something new.
        if self.walk.path.last() == Some(&"*") && !self.shape.fields.is_empty() {
            self.walk.find(Oddity::Field, None);
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if self.shape.free == Some(Free::Named) {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            self.walk.find(Oddity::Unshown, None);
            return Ok(());
        }
        let Some(shape) = self.shape.items.as_deref() else {
            let first = items.next_element::<IgnoredAny>()?;
            while items.next_element::<IgnoredAny>()?.is_some() {}
            if first.is_some() {
                self.walk.path.push(ITEMS);
                self.walk.find(Oddity::Field, None);
                self.walk.path.pop();
            }
            return Ok(());
        };
        self.walk.path.push(ITEMS);
        while items.next_element_seed(At { walk: &mut *self.walk, shape })?.is_some() {}
        self.walk.path.pop();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        if self.shape.free == Some(Free::Named) {
            while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            self.walk.find(Oddity::Unshown, None);
            return Ok(());
        }
        let mut seen = 0_u128;
        while let Some(name) = fields.next_key_seed(Name(self.shape))? {
            let (step, shape) = match name {
                Found::Known(at) if seen & (1 << at) == 0 => {
                    seen |= 1 << at;
                    let (name, field) = &self.shape.fields[at];
                    (name.as_str(), &field.shape)
                }
                Found::Known(at) => {
                    self.walk.find(Oddity::Field, Some(&self.shape.fields[at].0));
                    fields.next_value::<IgnoredAny>()?;
                    continue;
                }
                Found::Other(name) => match self.shape.any_field.as_deref() {
                    Some(shape) => ("*", shape),
                    None => {
                        self.walk.find(Oddity::Field, Some(&name));
                        fields.next_value::<IgnoredAny>()?;
                        continue;
                    }
                },
            };
            let is_payload = self.walk.path.is_empty() && !self.walk.is_bare && step == "payload";
            let shape = match is_payload {
                true => self.walk.payload.unwrap_or(shape),
                false => shape,
            };
            self.walk.path.push(step);
            fields.next_value_seed(At { walk: &mut *self.walk, shape })?;
            self.walk.path.pop();
        }
        for (at, (name, field)) in self.shape.fields.iter().enumerate() {
            if field.needed && seen & (1 << at) == 0 {
                self.walk.find(Oddity::Missing, Some(name));
            }
        }
        Ok(())
    }
}

/// The name of a field, looked up.
struct Name(&'static Shape);

enum Found {
    Known(usize),
    Other(String),
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Found, E> {
        let known = self.0.fields.iter().position(|(known, _)| known == name);
        Ok(known.map_or_else(|| Found::Other(name.to_owned()), Found::Known))
    }
}
