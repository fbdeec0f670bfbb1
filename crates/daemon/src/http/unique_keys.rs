//! JSON bodies that can be read in one way only: no object has a key twice, and no list stands
//! where an object must be.
//!
//! Readers differ in which of two keys they take. A check that reads one and a worker that reads
//! the other would disagree about what was asked for. A list would be read as an object's fields in
//! the order in which our code happens to have them.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Where in a body a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// All of it.
    Body,
    /// A part of it that has fields of ours.
    Section,
    /// A list of such parts.
    Entries,
    /// One of them.
    Entry,
    /// Somebody else's: a schema, a result, a setting.
    Foreign,
}

impl Place {
    /// Where the value of this key is.
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Body, "input") => Self::Entries,
            (
                Self::Body | Self::Section,
                "settings" | "options" | "target" | "thread" | "appServer" | "toolChoice"
                | "responseFormat" | "providerOptions",
            ) => Self::Section,
            (Self::Body | Self::Section, "prompt" | "tools" | "content") => Self::Entries,
            (Self::Entry, "content") => Self::Entries,
            _ => Self::Foreign,
        }
    }
}

/// A value of this name that is read for its keys and its shape alone.
struct Checked<'a> {
    name: &'a str,
    place: Place,
}

/// Whether every object's keys are all different and objects are where they must be; in words what
/// is wrong if not.
pub(super) fn check(json: &[u8]) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let body = Checked { name: "the body", place: Place::Body };
    match body.deserialize(&mut reader) {
        Err(err) if err.is_data() => Err(err.to_string()),
        // What is no JSON at all is told by whoever reads it for its content.
        _ => Ok(()),
    }
}

impl Checked<'_> {
    /// Something that is no object.
    fn plain<E: Error>(&self, what: &str) -> Result<(), E> {
        match self.place {
            Place::Body | Place::Entry => Err(self.no_object(what)),
            _ => Ok(()),
        }
    }

    fn no_object<E: Error>(&self, what: &str) -> E {
        E::custom(format_args!("{} must be an object, and it is {what}", self.name))
    }
}

impl<'de> DeserializeSeed<'de> for Checked<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let short: String = key.chars().take(64).collect();
            let name = format!("`{short}`");
            map.next_value_seed(Checked { name: &name, place: self.place.below(&key) })?;
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("the key {name} is there twice")));
            }
            seen.insert(key);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let place = match self.place {
            Place::Entries => Place::Entry,
            Place::Foreign => Place::Foreign,
            _ => return Err(self.no_object("a list")),
        };
        let name = format!("each of {}", self.name);
        while list.next_element_seed(Checked { name: &name, place })?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.plain("true or false")
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.plain("a number")
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.plain("a number")
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.plain("a number")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.plain("a text")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.plain("null")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_twice_is_named_however_deep_and_however_written() {
        for (json, key) in [
            (r#"{"a":1,"a":1}"#, "`a`"),
            (r#"{"x":{"sandbox":"read-only","b":2,"sandbox":"danger-full-access"}}"#, "`sandbox`"),
            (r#"{"x":[{"a":[{"sandbox":1,"sandb\u006fx":2}]}]}"#, "`sandbox`"),
        ] {
            let wrong = check(json.as_bytes()).unwrap_err();
            assert!(wrong.contains(key) && wrong.contains("twice"), "{wrong}");
        }
        let fine = r#"{"a":{"a":1},"b":[{"a":1},{"a":2.5}],"c":null,"d":-1,"e":"é"}"#;
        for json in [fine, "{", ""] {
            assert_eq!(check(json.as_bytes()), Ok(()), "{json}");
        }
    }

    #[test]
    fn what_must_be_an_object_is_no_list_and_nothing_plain() {
        for (json, told) in [
            ("[]", "the body must be an object, and it is a list"),
            ("1", "the body must be an object, and it is a number"),
            ("-1.5", "it is a number"),
            ("null", "it is null"),
            ("true", "it is true or false"),
            (r#""text""#, "it is a text"),
            (r#"{"settings":[]}"#, "`settings` must be an object"),
            (r#"{"options":[[]]}"#, "`options` must be an object"),
            (r#"{"options":{"prompt":[["user","hi"]]}}"#, "each of `prompt` must be an object"),
            (r#"{"options":{"prompt":[{"content":[["text"]]}]}}"#, "each of `content`"),
            (r#"{"options":{"responseFormat":["json"]}}"#, "`responseFormat`"),
            (r#"{"settings":{"tools":[["name"]]}}"#, "each of `tools`"),
            (r#"{"settings":{"appServer":["ws://h"]}}"#, "`appServer`"),
            (r#"{"input":["text"]}"#, "each of `input`"),
            (r#"{"target":["uncommittedChanges"]}"#, "`target`"),
        ] {
            let wrong = check(json.as_bytes()).unwrap_err();
            assert!(wrong.contains(told), "{json}: {wrong}");
        }
        for json in [
            r#"{"input":"hi","settings":{"config":{"notify":["a",["b"]]}}}"#,
            r#"{"options":{"prompt":[{"role":"user","content":"hi"},{"content":[{"input":[1]}]}]}}"#,
            r#"{"content":{"any":[1]},"tools":null,"outputSchema":{"enum":[[1]]}}"#,
        ] {
            assert_eq!(check(json.as_bytes()), Ok(()), "{json}");
        }
    }
}
