//! A line's envelope: when it was written, what it says it is, and its payload, unread.
//!
//! The five generations of the format differ line by line, not file by file: a file begun by an
//! old Codex and resumed by a new one holds both.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::record::Record;

/// What stands around a payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Envelope<'a> {
    /// When the line was written, as it stands there; lines of 0.29 and older do not say.
    pub timestamp: Option<&'a str>,
    /// Its number in the thread (0.150 and newer).
    pub ordinal: Option<u64>,
    /// The line's own type: `response_item`, `event_msg` …; empty for a bare line.
    pub kind: &'a str,
    /// The payload's type, empty where it has none.
    pub inner: &'a str,
    /// The payload, followed by what ends the line.
    payload: &'a str,
    /// Something may follow the payload.
    open_ended: bool,
    /// Codex's notes on the line (0.156 and newer).
    metadata: Option<&'a str>,
}

/// The generations of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// 0.29 and older: response items without an envelope.
    Bare,
    /// 0.34 to 0.147: an envelope with a time and a type.
    Enveloped,
    /// 0.150 and newer: numbered lines.
    Numbered,
}

/// Why a line is not one of Codex's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Nothing in it.
    Blank,
    /// Bytes that are no text, or NULs.
    Binary,
    /// The last line, and not (yet) whole.
    Partial,
    /// A line that was never finished: the next one was begun after it.
    Torn,
    /// Too long to be kept, even with its strings cut.
    TooLong,
    /// JSON, but not an object with a type.
    Foreign,
}

impl Broken {
    /// A word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Blank => "blank line",
            Self::Binary => "binary line",
            Self::Partial => "partial line",
            Self::Torn => "torn line",
            Self::TooLong => "over-long line",
            Self::Foreign => "foreign line",
        }
    }
}

impl<'a> Envelope<'a> {
    /// Reads the envelope of a record.
    pub fn read(record: &Record<'a>) -> Result<Self, Broken> {
        if record.raw.iter().all(u8::is_ascii_whitespace) {
            return Err(Broken::Blank);
        }
        let text = std::str::from_utf8(record.raw).map_err(|_| Broken::Binary)?;
        if let Some(envelope) = fast(text) {
            return Ok(envelope);
        }
        Self::slow(text).map_err(|broken| match broken {
            _ if text.contains('\0') => Broken::Binary,
            Broken::Torn if record.shortened.text_bytes > 0 => Broken::TooLong,
            Broken::Torn if !record.ended => Broken::Partial,
            broken => broken,
        })
    }

    /// The same without relying on the order in which Codex writes keys.
    fn slow(text: &'a str) -> Result<Self, Broken> {
        let probe: Probe<'a> = serde_json::from_str(text)
            .map_err(|error| if error.is_data() { Broken::Foreign } else { Broken::Torn })?;
        let timestamp = probe.timestamp.map(|at| text_in(at).ok_or(Broken::Foreign)).transpose()?;
        let word = |raw: Option<&'a RawValue>| raw.map(known_word).transpose();
        let kind = word(probe.kind)?;
        if let (Some(kind), Some(payload)) = (kind, probe.payload) {
            return Ok(Self {
                timestamp,
                ordinal: probe.ordinal,
                kind,
                inner: if TYPELESS.contains(&kind) { "" } else { inner_of(payload.get()) },
                payload: payload.get(),
                open_ended: false,
                metadata: probe.metadata.map(RawValue::get),
            });
        }
        let inner = match (kind, word(probe.record_type)?, &probe.id) {
            (Some(kind), ..) => kind,
            (None, Some(kind), _) => kind,
            (None, None, Some(_)) if timestamp.is_some() => "header",
            _ => return Err(Broken::Foreign),
        };
        Ok(Self {
            timestamp: if inner == "header" { timestamp } else { None },
            ordinal: None,
            kind: "",
            inner,
            payload: text,
            open_ended: false,
            metadata: None,
        })
    }

    /// When the line was written, in milliseconds since 1970.
    pub fn time_ms(&self) -> Option<i64> {
        let text = self.timestamp?;
        if !text.contains('\\') {
            return crate::clock::millis(text);
        }
        let text: String = serde_json::from_str(&format!("\"{text}\"")).ok()?;
        crate::clock::millis(&text)
    }

    /// The generation of the line.
    pub fn generation(&self) -> Generation {
        match (self.kind, self.ordinal) {
            ("", _) => Generation::Bare,
            (_, None) => Generation::Enveloped,
            (_, Some(_)) => Generation::Numbered,
        }
    }

    /// The line's type and the payload's: `event_msg/token_count`.
    pub fn tag(&self) -> String {
        match (self.kind, self.inner) {
            ("", inner) => format!("bare/{inner}"),
            (kind, "") => kind.to_owned(),
            (kind, inner) => format!("{kind}/{inner}"),
        }
    }

    /// The tag, and for an item its type.
    pub(crate) fn full_tag(&self) -> String {
        let tag = self.tag();
        match (self.kind, self.inner) {
            ("event_msg", "item_completed") => match crate::normalise::item_kind(self) {
                Ok(kind) => format!("{tag}/{kind}"),
                Err(_) => tag,
            },
            _ => tag,
        }
    }

    /// The payload and what follows it.
    pub(crate) fn payload_text(&self) -> &'a str {
        self.payload
    }

    /// Reads the payload, and hands out the metadata of the line.
    pub fn payload<T: Deserialize<'a>>(&self) -> Result<(T, Option<&'a str>), String> {
        let mut deserializer = serde_json::Deserializer::from_str(self.payload);
        let value = T::deserialize(&mut deserializer).map_err(|error| error.to_string())?;
        if !self.open_ended {
            deserializer.end().map_err(|error| error.to_string())?;
            return Ok((value, self.metadata));
        }
        // The only way to ask a deserializer how far it has come.
        let offset = deserializer.into_iter::<IgnoredAny>().byte_offset();
        let rest = self.payload[offset..].trim();
        if rest == "}" {
            return Ok((value, None));
        }
        let metadata = rest.strip_prefix(",\"metadata\":").and_then(|rest| rest.strip_suffix('}'));
        match metadata {
            Some(metadata) if is_object(metadata) => Ok((value, Some(metadata))),
            _ => self.tail(rest).map(|metadata| (value, metadata)),
        }
    }

    /// Keys after the payload that are not the usual ones; the metadata may be among them.
    fn tail(&self, rest: &'a str) -> Result<Option<&'a str>, String> {
        let (mut rest, mut metadata) = (rest, None);
        while let Some(more) = rest.strip_prefix(',') {
            let (key, after) = first_value(more)?;
            let after = after.strip_prefix(':').ok_or("a key without a value")?;
            let (value, after) = first_value(after)?;
            let key: String = serde_json::from_str(key).map_err(|error| error.to_string())?;
            if key == "metadata" && value.starts_with('{') {
                metadata = metadata.or(Some(value));
            }
            rest = after;
        }
        match rest {
            "}" => Ok(metadata),
            _ => Err("the line goes on after its payload".to_owned()),
        }
    }
}

/// The first value of a text, and what follows it and the white space behind it.
fn first_value(text: &str) -> Result<(&str, &str), String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let value = values.next().ok_or("the line breaks off")?.map_err(|error| error.to_string())?;
    Ok((value.get(), text[values.byte_offset()..].trim_start()))
}

/// A string as it stands there, without its quotes.
fn text_in(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

/// A word that may be spelt with escapes; one that we do not know stays as it is spelt.
fn known_word(raw: &RawValue) -> Result<&str, Broken> {
    let text = text_in(raw).ok_or(Broken::Foreign)?;
    if !text.contains('\\') {
        return Ok(text);
    }
    let word: String = serde_json::from_str(raw.get()).map_err(|_| Broken::Foreign)?;
    Ok(crate::schema::tag_word(&word).unwrap_or(text))
}

#[derive(Deserialize)]
struct Probe<'a> {
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(default)]
    ordinal: Option<u64>,
    #[serde(borrow, rename = "type", default)]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    record_type: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<IgnoredAny>,
}

/// All of the text is one object.
fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The records of a line that holds several: a writer died before it could end its line, or two
/// wrote at once. Empty unless each of them is a whole object.
pub(crate) fn split<'a>(record: &Record<'a>) -> Vec<Record<'a>> {
    let Ok(text) = std::str::from_utf8(record.raw) else { return Vec::new() };
    let values = serde_json::Deserializer::from_str(text).into_iter::<&'a RawValue>();
    let Ok(values) = values.collect::<Result<Vec<_>, _>>() else { return Vec::new() };
    if values.len() < 2 || !values.iter().all(|value| value.get().starts_with('{')) {
        return Vec::new();
    }
    values.into_iter().map(|value| Record { raw: value.get().as_bytes(), ..*record }).collect()
}

/// Reads an envelope in the order in which every Codex since 0.34 has written it.
fn fast(text: &str) -> Option<Envelope<'_>> {
    let rest = text.strip_prefix("{\"timestamp\":\"")?;
    let (timestamp, rest) = word(rest)?;
    let (ordinal, rest) = match rest.strip_prefix(",\"ordinal\":") {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            (Some(rest[..end].parse().ok()?), &rest[end..])
        }
        None => (None, rest),
    };
    let (kind, rest) = word(rest.strip_prefix(",\"type\":\"")?)?;
    let payload = rest.strip_prefix(",\"payload\":")?;
    if kind.is_empty() || !payload.starts_with('{') || !payload.ends_with('}') {
        return None;
    }
    let inner = match payload.strip_prefix("{\"type\":\"") {
        // These have no type of their own, and none is looked for in their long payloads.
        _ if TYPELESS.contains(&kind) => "",
        Some(rest) => word(rest)?.0,
        None => return None,
    };
    let timestamp = Some(timestamp);
    Some(Envelope { timestamp, ordinal, kind, inner, payload, open_ended: true, metadata: None })
}

const TYPELESS: &[&str] = &[
    "session_meta",
    "turn_context",
    "compacted",
    "world_state",
    "token_usage_record",
    "inter_agent_communication_metadata",
];

/// A string without escapes, and what follows it.
pub(crate) fn word(text: &str) -> Option<(&str, &str)> {
    let end = memchr::memchr2(b'"', b'\\', text.as_bytes())?;
    (text.as_bytes()[end] == b'"').then(|| (&text[..end], &text[end + 1..]))
}

fn inner_of(payload: &str) -> &str {
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow, rename = "type", default)]
        inner: Option<&'a RawValue>,
    }
    let inner = serde_json::from_str::<Inner<'_>>(payload).ok().and_then(|inner| inner.inner);
    inner.and_then(|inner| known_word(inner).ok()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(raw: &[u8], ended: bool) -> String {
        let record = Record {
            line: 1,
            offset: 0,
            length: 0,
            raw,
            shortened: crate::record::Shortened::default(),
            ended,
        };
        match Envelope::read(&record) {
            Ok(envelope) => format!("{:?} {}", envelope.generation(), envelope.tag()),
            Err(broken) => broken.word().to_owned(),
        }
    }

    #[test]
    fn every_generation_is_told_by_its_line() {
        #[rustfmt::skip]
        let table: &[(&[u8], &str)] = &[
            (br#"{"timestamp":"t","ordinal":3,"type":"event_msg","payload":{"type":"x"}}"#, "Numbered event_msg/x"),
            (br#"{"timestamp":"t","type":"event_msg","payload":{"type":"x"},"metadata":{}}"#, "Enveloped event_msg/x"),
            (br#"{"type":"event_msg","payload":{"a":1,"type":"x"},"timestamp":"t"}"#, "Enveloped event_msg/x"),
            (br#"{"timestamp":"t","type":"turn_context","payload":{"cwd":"/"}}"#, "Enveloped turn_context"),
            (br#"{"type":"message","role":"user","content":[]}"#,  "Bare bare/message"),
            (br#"{"record_type":"state"}"#,                        "Bare bare/state"),
            (br#"{"id":"a","timestamp":"t","instructions":null}"#, "Bare bare/header"),
            (br#"{"a":1}"#,                                        "foreign line"),
            (br#"[1]"#,                                            "foreign line"),
            (br#"{"timestamp":"t","type":"ev"#,                    "torn line"),
            (b"  ",                                                "blank line"),
            (b"\xff\xfe{}",                                        "binary line"),
            (b"\0\0\0",                                            "binary line"),
        ];
        for (raw, want) in table {
            assert_eq!(sketch(raw, true), *want, "{}", String::from_utf8_lossy(raw));
        }
        assert_eq!(sketch(br#"{"timestamp":"t","type":"ev"#, false), "partial line");
    }

    #[test]
    fn a_payload_is_read_with_whatever_follows_it() {
        let read = |text: &str| -> Result<Option<String>, String> {
            let envelope = fast(text).unwrap();
            let (value, metadata) = envelope.payload::<serde_json::Value>()?;
            assert_eq!(value["type"], "x");
            Ok(metadata.map(str::to_owned))
        };
        let head = r#"{"timestamp":"t","type":"event_msg","payload":{"type":"x"}"#;
        assert_eq!(read(&format!("{head}}}")), Ok(None));
        assert_eq!(
            read(&format!(r#"{head},"metadata":{{"a":1}}}}"#)),
            Ok(Some(r#"{"a":1}"#.into()))
        );
        assert_eq!(read(&format!(r#"{head},"new":{{"a":1}}}}"#)), Ok(None));
        assert!(read(&format!(r#"{head},"new":}}"#)).is_err());
        assert!(read(&format!("{head} {{}}}}")).is_err());
    }
}
