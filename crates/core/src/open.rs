//! Total decoding: a value we know, or the raw JSON with the reason why we do not.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A foreign value that is either understood or kept as it came.
#[derive(Clone, Debug, PartialEq)]
pub enum Open<T> {
    /// A kind and shape we know.
    Known(T),
    /// A newer or broken value; nothing of it is lost.
    Unknown {
        /// The value as it came.
        raw: Value,
        /// What the decoder stumbled over.
        why: String,
    },
}

impl<T> Open<T> {
    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }
}

impl<T: DeserializeOwned> Open<T> {
    /// Reads a JSON value. Never fails, never drops.
    pub fn from_value(raw: Value) -> Self {
        match T::deserialize(&raw) {
            Ok(value) => Self::Known(value),
            Err(err) => Self::Unknown { raw, why: err.to_string() },
        }
    }
}

impl<T> From<T> for Open<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Serialize> Serialize for Open<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Unknown { raw, .. } => raw.serialize(serializer),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Open<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from_value)
    }
}

/// The `type` (or other tag) of a raw value, for messages; empty where there is none.
pub fn tag_of<'a>(raw: &'a Value, key: &str) -> &'a str {
    raw.get(key).and_then(Value::as_str).unwrap_or_default()
}
