//! What session files of the versions we know hold, at every depth: `schema/known.txt`, and the
//! comparison of a line with it.

mod drift;

use std::collections::HashMap;
use std::sync::OnceLock;

pub(crate) use self::drift::{Drift, Oddity, check};

/// What is known of a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    fields: Vec<(String, Field)>,
    /// The shape of every field, where names are the data's own.
    any_field: Option<Box<Shape>>,
    items: Option<Box<Shape>>,
    /// The words it may be; none if it may be anything.
    words: Option<Vec<String>>,
    free: Option<Free>,
}

/// A field of an object.
#[derive(Clone, Debug)]
struct Field {
    shape: Shape,
    needed: bool,
}

/// JSON of any shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Free {
    /// The item has all of it.
    Kept,
    /// It is not shown.
    Named,
}

/// The shape of payloads with this tag.
pub(crate) fn shape(tag: &str) -> Option<&'static Shape> {
    known().get(tag)
}

/// The word of a line's or a payload's type that is this text, if we know it.
pub(crate) fn tag_word(text: &str) -> Option<&'static str> {
    let words = known().keys().flat_map(|tag| tag.split('/'));
    words.map(|word| -> &'static str { word }).find(|word| *word == text)
}

fn known() -> &'static HashMap<String, Shape> {
    static KNOWN: OnceLock<HashMap<String, Shape>> = OnceLock::new();
    KNOWN.get_or_init(|| read(include_str!("schema/known.txt")))
}

/// Reads the table. Entries with a `$` may stand in any order.
fn read(text: &str) -> HashMap<String, Shape> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let text: String = lines.collect::<Vec<_>>().join("\n");
    let entries: Vec<(&str, &str)> =
        text.split("\n\n").filter_map(|entry| entry.trim().split_once(' ')).collect();
    let named = entries.iter().copied().filter(|(name, _)| name.starts_with('$')).collect();
    let tags = entries.into_iter().filter(|(name, _)| !name.starts_with('$'));
    let read = |text| Reader { rest: text, named: &named }.shape();
    let mut known: HashMap<String, Shape> =
        tags.map(|(tag, text)| (tag.to_owned(), read(text))).collect();
    let Some(outer) = known.get(ITEM).cloned() else { return known };
    for (_, shape) in known.iter_mut().filter(|(tag, _)| tag.starts_with(ITEM) && *tag != ITEM) {
        let mut whole = outer.clone();
        if let Some((_, field)) = whole.fields.iter_mut().find(|(name, _)| name == "item") {
            field.shape = std::mem::take(shape);
        }
        *shape = whole;
    }
    known
}

/// What stands around an item; entries with an item's type are of the item.
const ITEM: &str = "event_msg/item_completed";

/// Reads one entry.
struct Reader<'a> {
    rest: &'a str,
    named: &'a HashMap<&'a str, &'a str>,
}

impl<'a> Reader<'a> {
    fn shape(&mut self) -> Shape {
        let mut shape = Shape::default();
        match self.rest.chars().next() {
            Some('{') => {
                self.rest = &self.rest[1..];
                self.fields(&mut shape);
            }
            Some('[') => {
                self.rest = &self.rest[2..];
                shape.items = Some(Box::new(self.shape()));
            }
            Some('=') => {
                self.rest = &self.rest[1..];
                shape.words = Some(self.word().split('|').map(str::to_owned).collect());
            }
            Some('$') => {
                let text = self.named.get(self.word()).copied().unwrap_or_default();
                return Reader { rest: text, named: self.named }.shape();
            }
            Some(sign @ ('~' | '^')) => {
                self.rest = &self.rest[1..];
                shape.free = Some(if sign == '~' { Free::Kept } else { Free::Named });
            }
            _ => {}
        }
        shape
    }

    fn fields(&mut self, shape: &mut Shape) {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return;
            }
            if let Some(rest) = self.rest.strip_prefix('*') {
                self.rest = rest;
                shape.any_field = Some(Box::new(self.shape()));
                continue;
            }
            let name = self.word().to_owned();
            if name.is_empty() {
                return;
            }
            let needed = self.rest.starts_with('!');
            self.rest = self.rest.strip_prefix('!').unwrap_or(self.rest);
            shape.fields.push((name, Field { shape: self.shape(), needed }));
        }
    }

    fn word(&mut self) -> &'a str {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_-|$".contains(c);
        let from = usize::from(self.rest.starts_with('$'));
        let end = self.rest[from..].find(|c: char| !is_word(c) || c == '$');
        let (word, rest) = self.rest.split_at(end.map_or(self.rest.len(), |end| from + end));
        self.rest = rest;
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_whole() {
        let known = known();
        assert!(known.len() > 80, "{}", known.len());
        let message = &known["response_item/message"];
        let field = |name: &str| &message.fields.iter().find(|(n, _)| n == name).unwrap().1;
        assert!(field("role").needed && field("role").shape.words.as_ref().unwrap().len() == 4);
        let blocks = field("content").shape.items.as_ref().unwrap();
        assert!(blocks.fields.iter().any(|(name, _)| name == "image_url"));
        let text = include_str!("schema/known.txt");
        let references = text.match_indices('$').filter(|(at, _)| !text[..*at].ends_with('`'));
        let open = text.matches('{').count();
        assert!(references.count() > 100 && open == text.matches('}').count());
        assert!(shape("moon").is_none());
    }
}
