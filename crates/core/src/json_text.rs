//! A string on its way from JSON to JSON: still escaped where nobody looks inside.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A string that is written to JSON as it was read, or a plain one.
///
/// Copying the token instead of unescaping and escaping again is what makes long outputs cheap.
#[derive(Clone, Debug)]
pub enum JsonText<'a> {
    /// A JSON string token, quotes and escapes included.
    Token(&'a RawValue),
    /// Text of our own.
    Plain(Cow<'a, str>),
}

impl<'a> JsonText<'a> {
    /// Takes a JSON value; none if it is no string.
    pub fn of(raw: &'a RawValue) -> Option<Self> {
        raw.get().starts_with('"').then_some(Self::Token(raw))
    }

    /// The text itself.
    pub fn decode(&self) -> Cow<'_, str> {
        match self {
            Self::Token(raw) => decode(raw.get()),
            Self::Plain(text) => Cow::Borrowed(text),
        }
    }

    /// There is no text.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Token(raw) => raw.get().len() == 2,
            Self::Plain(text) => text.is_empty(),
        }
    }

    /// The text begins so; the beginning must need no escapes.
    pub fn starts_with(&self, beginning: &str) -> bool {
        match self {
            Self::Token(raw) => raw.get()[1..].starts_with(beginning),
            Self::Plain(text) => text.starts_with(beginning),
        }
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> JsonText<'static> {
        JsonText::Plain(Cow::Owned(self.decode().into_owned()))
    }
}

/// Most tokens hold no escape, and are then the text between the quotes.
fn decode(token: &str) -> Cow<'_, str> {
    let inner = token.get(1..token.len().saturating_sub(1)).unwrap_or_default();
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    // Half a surrogate pair is the one escape that JSON allows and text cannot hold.
    let text = serde_json::from_str::<String>(token);
    Cow::Owned(text.unwrap_or_else(|_| inner.to_owned()))
}

impl<'a> From<&'a str> for JsonText<'a> {
    fn from(text: &'a str) -> Self {
        Self::Plain(Cow::Borrowed(text))
    }
}

impl From<String> for JsonText<'_> {
    fn from(text: String) -> Self {
        Self::Plain(Cow::Owned(text))
    }
}

impl PartialEq for JsonText<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Token(a), Self::Token(b)) if a.get() == b.get() => true,
            _ => self.decode() == other.decode(),
        }
    }
}

impl Serialize for JsonText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Token(raw) => raw.serialize(serializer),
            Self::Plain(text) => serializer.serialize_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_token_is_written_as_it_was_read() {
        let table =
            [(r#""plain""#, "plain"), (r#""a\nb \u00e4 \"q\"""#, "a\nb ä \"q\""), (r#""""#, "")];
        for (token, want) in table {
            let text = JsonText::of(raw(token)).unwrap();
            assert_eq!(text.decode(), want);
            assert_eq!(serde_json::to_string(&text).unwrap(), token);
            assert_eq!(text, JsonText::from(want));
            assert_eq!(text.is_empty(), want.is_empty());
        }
        assert!(JsonText::of(raw("12")).is_none());
        assert!(JsonText::of(raw(r#""Reconnecting... 1/2""#)).unwrap().starts_with("Reconn"));
    }
}
