//! What has no shape in the contract: notices, and words we do not know.

use serde_json::{Value, json};

use crate::part::Part;
use crate::spec::codex_metadata;

/// The longest raw value that is passed on whole inside an unknown part.
const RAW_LIMIT: usize = 64 * 1024;

/// A `custom` part of ours.
pub(super) fn custom(kind: &str, details: Value) -> Part {
    Part::Custom { kind: kind.to_owned(), provider_metadata: codex_metadata(details) }
}

/// Something to tell the user: `{topic, level, text, data}`.
pub(super) fn notice(method: &str, params: &Value) -> Part {
    let details = json!({
        "topic": method,
        "level": level(method),
        "text": text(method, params),
        "data": params,
    });
    custom("codex.notice", details)
}

/// Something we do not understand, kept (bounded) with the reason: `{tag, why, raw}`.
pub(super) fn unknown(tag: &str, why: &str, raw: &Value) -> Part {
    custom("codex.unknown", json!({ "tag": tag, "why": why, "raw": bounded(raw) }))
}

fn bounded(raw: &Value) -> Value {
    let text = raw.to_string();
    if text.len() <= RAW_LIMIT {
        return raw.clone();
    }
    let cut = text.floor_char_boundary(RAW_LIMIT);
    json!({ "truncated": text[..cut], "bytes": text.len() })
}

fn level(method: &str) -> &'static str {
    match method {
        "warning" | "guardianWarning" | "configWarning" | "deprecationNotice" => "warning",
        "model/rerouted" | "autoApprovalReview/strictReviewRequired" => "warning",
        _ => "info",
    }
}

fn text(method: &str, params: &Value) -> String {
    let word = |key: &str| params.get(key).and_then(Value::as_str);
    if let Some(message) = word("message") {
        return message.to_owned();
    }
    if let Some(summary) = word("summary") {
        return match word("details") {
            Some(details) => format!("{summary}\n{details}"),
            None => summary.to_owned(),
        };
    }
    if let (Some(from), Some(to)) = (word("fromModel"), word("toModel")) {
        return format!("the model was changed from {from} to {to}");
    }
    if let (Some(name), Some(status)) = (word("name"), word("status")) {
        let error = word("error").map(|error| format!(": {error}")).unwrap_or_default();
        return format!("{name} {status}{error}");
    }
    method.rsplit_once('/').map_or(method, |(_, last)| last).to_owned()
}
