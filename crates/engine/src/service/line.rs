//! Lines as the service writes them: Codex's envelope, which is JSON-RPC without its `jsonrpc`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bindery_core::wire::rpc::RequestId;
use serde_json::{Value, json};

use super::refused::Refused;

/// One line without its line feed; clones share it.
pub type Line = Arc<str>;

/// The answer to a request.
pub(crate) fn reply(id: &RequestId, result: &Value) -> Line {
    line(&json!({ "id": id, "result": result }))
}

/// The refusal of a request.
pub(crate) fn refusal(id: &RequestId, refused: &Refused) -> Line {
    let mut error = json!({ "code": refused.code, "message": refused.message });
    if let Some(data) = &refused.data {
        error["data"] = data.clone();
    }
    line(&json!({ "error": error, "id": id }))
}

/// Something told; every notification carries the time.
pub(crate) fn notice(method: &str, params: &Value) -> Line {
    line(&json!({ "method": method, "params": params, "emittedAtMs": now_ms() }))
}

/// Something asked.
pub(crate) fn question(id: i64, method: &str, params: &Value) -> Line {
    line(&json!({ "method": method, "id": id, "params": params }))
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// JSON of `serde_json` has no line feed outside strings, and none unescaped inside.
fn line(value: &Value) -> Line {
    value.to_string().into()
}
