//! JSON in which no object has a key twice.
//!
//! Readers differ in which of the two they take. A check that reads one and a worker that reads the
//! other would disagree about what was asked for.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Any JSON, read for its keys alone.
struct UniqueKeys;

/// Whether every object's keys are all different; in words what is wrong if not.
pub(super) fn check(json: &[u8]) -> Result<(), String> {
    // What is no JSON at all is told by whoever reads it for its content.
    match serde_json::from_slice::<UniqueKeys>(json) {
        Err(err) if err.is_data() => Err(err.to_string()),
        _ => Ok(()),
    }
}

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<UniqueKeys>()?;
            if seen.contains(&key) {
                let key: String = key.chars().take(64).collect();
                return Err(A::Error::custom(format_args!("the key `{key}` is there twice")));
            }
            seen.insert(key);
        }
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UniqueKeys, A::Error> {
        while list.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
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
            (r#"[{"a":[{"sandbox":1,"sandb\u006fx":2}]}]"#, "`sandbox`"),
        ] {
            let wrong = check(json.as_bytes()).unwrap_err();
            assert!(wrong.contains(key) && wrong.contains("twice"), "{wrong}");
        }
        for json in [r#"{"a":{"a":1},"b":[{"a":1},{"a":2.5}],"c":null,"d":-1,"e":"é"}"#, "1", "{"]
        {
            assert_eq!(check(json.as_bytes()), Ok(()), "{json}");
        }
    }
}
