//! What went wrong, from what a server says, and whether asking again may help.
//!
//! The table is Codex 0.166's, with three changes: 401 and 403 are final, so is every other 4xx
//! that names no time to wait, and a wait beyond [`PATIENCE`] is told instead of kept.

use std::time::Duration;

use serde_json::Value;

use super::chat_profiles::fix_for_refusal;
use super::words::{is_overflow, is_template_error, roughly, wait};
use super::{Fault, ModelError};

/// The longest wait a server may ask for before we give up instead.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// A body can be a whole web page.
const MAX_WORDS: usize = 2000;

/// Something went wrong.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    pub(super) again: Again,
}

/// Whether asking again may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// No.
    Never,
    /// Posting again; then beginning anew.
    Request,
    /// Posting again and nothing more.
    RequestOnly,
    /// Beginning anew.
    Stream,
    /// Beginning anew, after this time.
    After(Duration),
    /// The server wants fewer requests and names no time. Codex gives up then, and so does the
    /// Responses wire; the Chat wire, whose servers seldom name one, waits longer each time.
    Unspecified,
}

/// An error as a server tells it, in a body or in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    kind: String,
    code: String,
    message: String,
    resets_in: Option<Duration>,
}

impl Failure {
    pub(super) fn new(kind: Fault, again: Again, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { error: ModelError { kind, message, status: None }, again }
    }

    fn with_status(mut self, status: u16) -> Self {
        self.error.status = Some(status);
        self
    }
}

impl Told {
    /// Reads the shapes that are about: OpenAI's object, Ollama's string, vLLM's flat one,
    /// FastAPI's `detail`, Gemini's list of one, and plain text.
    pub(super) fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => Self::from_value(&value),
            Ok(Value::String(text)) => Self { message: text, ..Self::default() },
            _ => Self { message: body.trim().to_owned(), ..Self::default() },
        }
    }

    pub(super) fn from_value(value: &Value) -> Self {
        let value = value.get(0).unwrap_or(value);
        let error = match value.get("error") {
            Some(Value::String(text)) => {
                return Self { message: text.clone(), ..Self::default() };
            }
            Some(error @ Value::Object(_)) => error,
            _ => value,
        };
        let message = ["message", "detail", "msg"].iter().find_map(|key| match error.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        });
        let seconds = |key: &str| error.get(key).and_then(Value::as_u64);
        let at = seconds("resets_at").map(|at| at.saturating_sub(now()));
        Self {
            kind: word(error, "type"),
            code: word(error, "code"),
            message: message.unwrap_or_else(|| error.to_string()),
            resets_in: seconds("resets_in_seconds").or(at).map(Duration::from_secs),
        }
    }

    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.code == *name || self.kind == *name)
    }

    fn is_overflow(&self) -> bool {
        [&self.code, &self.kind, &self.message].into_iter().any(|text| is_overflow(text))
    }

    fn is_refused_shape(&self) -> bool {
        fix_for_refusal(&self.message).is_some() || is_template_error(&self.message)
    }

    /// The message, or what there is instead of one; never a whole page.
    fn words(&self) -> String {
        let text = match (self.message.as_str(), self.code.as_str()) {
            ("", "") => "no reason given",
            ("", code) => code,
            (message, _) => message,
        };
        match text.char_indices().nth(MAX_WORDS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        }
    }
}

const QUOTA: &[&str] = &[
    "insufficient_quota",
    "usage_limit_reached",
    "usage_not_included",
    "billing_hard_limit_reached",
    "credit_balance_exhausted",
];

const OVERLOAD: &[&str] = &["server_is_overloaded", "slow_down", "overloaded_error"];

const FINAL: &[&str] =
    &["invalid_prompt", "bio_policy", "cyber_policy", "invalid_request_error", "BadRequestError"];

/// An answer that is not 200.
pub(super) fn status(status: u16, retry_after: Option<Duration>, told: &Told) -> Failure {
    let words = told.words();
    let failure = match status {
        401 | 403 => Failure::new(
            Fault::Auth,
            Again::Never,
            format!("the model's server refuses the key ({status}): {words}"),
        ),
        402 => quota(told),
        429 => limited(retry_after, told),
        _ if told.is(QUOTA) => quota(told),
        _ if status == 413 || told.is_overflow() => overflow(told),
        // Local servers answer 500 where a template refuses the history; asking again is vain.
        500 | 400 | 422 if told.is_refused_shape() => {
            says(Fault::BadRequest, Again::Never, status, &words)
        }
        _ if status == 529 || told.is(OVERLOAD) => Failure::new(
            Fault::Overload,
            Again::RequestOnly,
            format!("the model's server is overloaded ({status}): {words}"),
        ),
        503 => says(Fault::Overload, Again::Request, status, &words),
        500.. => says(Fault::Transport, Again::Request, status, &words),
        408 => says(Fault::Transport, Again::Stream, status, &words),
        404 => Failure::new(
            Fault::BadRequest,
            Again::Never,
            format!("the model's server has no such model or address (404): {words}"),
        ),
        _ => says(Fault::BadRequest, Again::Never, status, &words),
    };
    failure.with_status(status)
}

/// An error inside a stream: `response.failed`, or an error object between chunks.
pub(super) fn failed(told: &Told) -> Failure {
    // OpenRouter and vLLM put a status there.
    if let Ok(code @ 400..600) = told.code.parse::<u16>() {
        let failure = status(code, None, told);
        let again = match failure.again {
            Again::Request | Again::RequestOnly => Again::Stream,
            again => again,
        };
        return Failure { again, ..failure };
    }
    let words = told.words();
    if told.is(&["rate_limit_exceeded"]) {
        let failure = limited(None, told);
        let again = match wait(&told.message) {
            None => Again::Stream,
            Some(_) => failure.again,
        };
        return Failure { again, ..failure };
    }
    if told.is(QUOTA) {
        return quota(told);
    }
    if told.is_overflow() {
        return overflow(told);
    }
    if told.is(OVERLOAD) {
        let words = format!("the model's server is overloaded: {words}");
        return Failure::new(Fault::Overload, Again::Never, words);
    }
    if told.is(&["invalid_api_key", "authentication_error", "permission_error"]) {
        let words = format!("the model's server refuses the key: {words}");
        return Failure::new(Fault::Auth, Again::Never, words);
    }
    if told.is(FINAL) {
        let words = format!("the model's server does not take the request: {words}");
        return Failure::new(Fault::BadRequest, Again::Never, words);
    }
    Failure::new(Fault::Transport, Again::Stream, format!("the model's server failed: {words}"))
}

fn says(kind: Fault, again: Again, status: u16, words: &str) -> Failure {
    Failure::new(kind, again, format!("the model's server answers {status}: {words}"))
}

fn overflow(told: &Told) -> Failure {
    let words = format!("the history is longer than the model's window: {}", told.words());
    Failure::new(Fault::ContextOverflow, Again::Never, words)
}

fn quota(told: &Told) -> Failure {
    let mut words = format!("the use you paid for is spent: {}", told.words());
    if let Some(wait) = told.resets_in {
        words.push_str(&format!("; come back in {}", roughly(wait)));
    }
    Failure::new(Fault::Quota, Again::Never, words)
}

fn limited(retry_after: Option<Duration>, told: &Told) -> Failure {
    if told.is(QUOTA) {
        return quota(told);
    }
    let words = told.words();
    let told_wait = retry_after.or_else(|| wait(&told.message));
    let (again, hint) = match told_wait {
        None => (Again::Unspecified, String::new()),
        Some(wait) if wait > PATIENCE => {
            (Again::Never, format!("; come back in {}", roughly(wait)))
        }
        Some(wait) => (Again::After(wait), String::new()),
    };
    let words = format!("too many requests for the model's server (429): {words}{hint}");
    Failure::new(Fault::RateLimit, again, words)
}

fn word(error: &Value, key: &str) -> String {
    match error.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests;
