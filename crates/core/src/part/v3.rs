//! Parts in the words of `LanguageModelV3`.

use serde_json::{Value, json};

use super::{Part, Source, Warning, as_value};
use crate::file::FileData;
use crate::spec::{Metadata, Spec};

/// A part as V3 writes it; none for `ping`, which V3 lacks.
pub(super) fn to_json(part: &Part) -> Option<Value> {
    Some(match part {
        Part::StreamStart { warnings } => stream_start(warnings),
        Part::TextEnd { id, provider_metadata, .. } => as_value(&Part::TextEnd {
            id: id.clone(),
            citations: None,
            provider_metadata: provider_metadata.clone(),
        }),
        Part::File { media_type, data, provider_metadata }
        | Part::ReasoningFile { media_type, data, provider_metadata } => {
            file(media_type, data, provider_metadata.as_ref())
        }
        // V3 has no custom part; `raw` reaches the callers who ask for raw chunks.
        Part::Custom { kind, provider_metadata } => json!({
            "type": "raw",
            "rawValue": { "type": "custom", "kind": kind, "providerMetadata": provider_metadata },
        }),
        Part::Finish { usage, finish_reason, provider_metadata } => as_value(&Part::Finish {
            usage: usage.clone(),
            finish_reason: finish_reason.for_spec(Spec::V3),
            provider_metadata: provider_metadata.clone(),
        }),
        Part::Ping => return None,
        other => as_value(other),
    })
}

/// V3 knows no `deprecated` warning.
fn stream_start(warnings: &[Warning]) -> Value {
    let warnings: Vec<Value> = warnings
        .iter()
        .map(|warning| match warning {
            Warning::Deprecated { setting, message } => as_value(&Warning::Other {
                message: format!("`{setting}` is deprecated: {message}"),
            }),
            other => as_value(other),
        })
        .collect();
    json!({ "type": "stream-start", "warnings": warnings })
}

/// V3 files hold bytes only, so an address becomes a source.
fn file(media_type: &str, data: &FileData, metadata: Option<&Metadata>) -> Value {
    if let FileData::Url { url } = data
        && !url.starts_with("data:")
    {
        return as_value(&Part::Source(Source::Url {
            id: url.clone(),
            url: url.clone(),
            title: None,
            provider_metadata: metadata.cloned(),
        }));
    }
    let data = match data {
        FileData::Url { url } => {
            url.split_once(";base64,").map_or_else(|| data.to_v3(), |(_, b64)| Value::from(b64))
        }
        _ => data.to_v3(),
    };
    let mut part = json!({ "type": "file", "mediaType": media_type, "data": data });
    if let Some(metadata) = metadata {
        part["providerMetadata"] = Value::Object(metadata.clone());
    }
    part
}
