//! File contents as the AI SDK passes them: bytes, an address, a reference or plain text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Where a file's content is.
///
/// Serialises in the tagged V4 form; decodes that form, the V3 forms (base64 text, address, bytes)
/// and the byte objects that `JSON.stringify` makes of a `Uint8Array` or a Node `Buffer`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FileData {
    /// Content as base64.
    Data {
        /// Standard base64, padded.
        data: String,
    },
    /// An address: `data:`, `http(s):` or `file:`.
    Url {
        /// The address.
        url: String,
    },
    /// A provider's own handle for the file.
    Reference {
        /// The handle as it came.
        reference: Value,
    },
    /// Content as text.
    Text {
        /// The text.
        text: String,
    },
}

impl FileData {
    /// Content from bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::Data { data: STANDARD.encode(bytes) }
    }

    /// The bytes, where the value holds them (base64, base64 data URL, or text).
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Data { data } => STANDARD.decode(data).ok(),
            Self::Url { url } => {
                STANDARD.decode(url.strip_prefix("data:")?.split_once(";base64,")?.1).ok()
            }
            Self::Text { text } => Some(text.clone().into_bytes()),
            Self::Reference { .. } => None,
        }
    }

    /// The V3 form: base64 text or an address; other kinds did not exist then.
    pub fn to_v3(&self) -> Value {
        match self {
            Self::Data { data } => Value::from(data.as_str()),
            Self::Url { url } => Value::from(url.as_str()),
            Self::Text { text } => Value::from(STANDARD.encode(text)),
            Self::Reference { reference } => reference.clone(),
        }
    }
}

/// The tagged form, as serde reads it.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Tagged {
    Data { data: Value },
    Url { url: String },
    Reference { reference: Value },
    Text { text: String },
}

impl<'de> Deserialize<'de> for FileData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Value::deserialize(deserializer)?;
        untagged(&raw).map_or_else(|| tagged(raw), Ok).map_err(serde::de::Error::custom)
    }
}

fn tagged(raw: Value) -> Result<FileData, serde_json::Error> {
    Ok(match Tagged::deserialize(raw)? {
        Tagged::Data { data } => untagged(&data).ok_or_else(|| {
            <serde_json::Error as serde::de::Error>::custom("file data is neither base64 nor bytes")
        })?,
        Tagged::Url { url } => FileData::Url { url },
        Tagged::Reference { reference } => FileData::Reference { reference },
        Tagged::Text { text } => FileData::Text { text },
    })
}

/// Text or bytes without a tag: the V3 forms.
fn untagged(raw: &Value) -> Option<FileData> {
    if let Some(text) = raw.as_str() {
        let is_address = ["data:", "http://", "https://", "file:"]
            .iter()
            .any(|scheme| text.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)));
        return Some(match is_address {
            true => FileData::Url { url: text.to_owned() },
            false => FileData::Data { data: text.to_owned() },
        });
    }
    json_bytes(raw).map(|bytes| FileData::from_bytes(&bytes))
}

/// Bytes written as `[1,2]`, `{"0":1,"1":2}` or `{"type":"Buffer","data":[1,2]}`.
fn json_bytes(raw: &Value) -> Option<Vec<u8>> {
    let byte = |value: &Value| value.as_u64().and_then(|n| u8::try_from(n).ok());
    match raw {
        Value::Array(values) => values.iter().map(byte).collect(),
        Value::Object(map) if map.get("type").is_some_and(|t| t == "Buffer") => {
            json_bytes(map.get("data")?)
        }
        Value::Object(map) => (0..map.len()).map(|i| byte(map.get(&i.to_string())?)).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_file_data_is_read() {
        let hi = FileData::from_bytes(b"hi");
        #[rustfmt::skip]
        let table = [
            (json!("aGk="),                                    hi.clone()),
            (json!([104, 105]),                                hi.clone()),
            (json!({"0": 104, "1": 105}),                      hi.clone()),
            (json!({"type": "Buffer", "data": [104, 105]}),    hi.clone()),
            (json!({"type": "data", "data": "aGk="}),          hi.clone()),
            (json!({"type": "data", "data": {"0": 104, "1": 105}}), hi.clone()),
            (json!("HTTPS://a/b.png"), FileData::Url { url: "HTTPS://a/b.png".into() }),
            (json!({"type": "url", "url": "file:///a"}), FileData::Url { url: "file:///a".into() }),
            (json!({"type": "text", "text": "t"}), FileData::Text { text: "t".into() }),
            (json!({"type": "reference", "reference": {"x": 1}}),
                FileData::Reference { reference: json!({"x": 1}) }),
        ];
        for (raw, want) in table {
            assert_eq!(serde_json::from_value::<FileData>(raw.clone()).unwrap(), want, "{raw}");
        }
    }

    #[test]
    fn what_is_no_file_is_an_error_and_not_a_guess() {
        for raw in [json!(7), json!([1, 300]), json!({"0": 1, "2": 2}), json!({"type": "moon"})] {
            assert!(serde_json::from_value::<FileData>(raw.clone()).is_err(), "{raw}");
        }
    }

    #[test]
    fn bytes_come_out_of_every_kind_that_holds_them() {
        let url = FileData::Url { url: "data:image/png;base64,aGk=".into() };
        assert_eq!(url.bytes().as_deref(), Some(&b"hi"[..]));
        assert_eq!(FileData::Text { text: "hi".into() }.bytes().as_deref(), Some(&b"hi"[..]));
        assert_eq!(FileData::Url { url: "https://a".into() }.bytes(), None);
    }
}
