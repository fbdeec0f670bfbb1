//! Why a turn ends before its time, in the protocol's words.

use std::time::Duration;

use serde_json::{Value, json};

use crate::model::{Fault, ModelError};
use crate::thread::JournalError;

/// Why a turn does not end well.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum TurnFault {
    /// Somebody stopped it.
    #[error("interrupted")]
    Interrupted,
    /// The model did not answer.
    #[error("{0}")]
    Model(ModelError),
    /// What happens cannot be written down.
    #[error("{0}; free some space or fix the folder, then ask again")]
    Journal(JournalError),
    /// What was asked for is not there.
    #[error("{0}")]
    Missing(String),
    /// A bound was reached.
    #[error("{0}")]
    Limit(String),
    /// We failed ourselves.
    #[error("{0}")]
    Internal(String),
}

impl TurnFault {
    pub(super) fn time(limit: Duration) -> Self {
        let seconds = limit.as_secs();
        Self::Limit(format!("the turn took longer than its {seconds} s; ask again to go on"))
    }

    pub(super) fn steps(limit: u32) -> Self {
        Self::Limit(format!(
            "the model was asked {limit} times in one turn without an end; ask again to go on"
        ))
    }

    pub(super) fn bytes(limit: usize) -> Self {
        Self::Limit(format!("the model wrote more than {limit} bytes in one response"))
    }

    pub(super) fn calls(limit: usize) -> Self {
        Self::Limit(format!("the model made more than {limit} calls in one response"))
    }

    /// As `error` and `turn/completed` carry it.
    pub(crate) fn value(&self) -> Value {
        let info = match self {
            Self::Model(error) => info(error),
            _ => json!("other"),
        };
        error_value(&self.to_string(), &info, None)
    }
}

/// The protocol's error.
pub(crate) fn error_value(message: &str, info: &Value, details: Option<&str>) -> Value {
    json!({
        "message": message,
        "codexErrorInfo": info,
        "additionalDetails": details,
        "misalignment": null,
    })
}

/// The protocol's word for a fault of a model.
fn info(error: &ModelError) -> Value {
    let status = json!({ "httpStatusCode": error.status });
    match error.kind {
        // Codex tells a refused key by its status.
        Fault::Auth if error.status.is_some() => json!({ "httpConnectionFailed": status }),
        Fault::Auth => json!("unauthorized"),
        Fault::Quota => json!("usageLimitExceeded"),
        Fault::RateLimit => json!({ "responseTooManyFailedAttempts": status }),
        Fault::Overload => json!("serverOverloaded"),
        Fault::ContextOverflow => json!("contextWindowExceeded"),
        Fault::BadRequest => json!("badRequest"),
        Fault::Transport if error.status.is_some_and(|status| status >= 500) => {
            json!("internalServerError")
        }
        Fault::Transport if error.status.is_some() => json!({ "httpConnectionFailed": status }),
        Fault::Transport | Fault::Idle => json!({ "responseStreamDisconnected": status }),
        Fault::Incomplete | Fault::Garbage => json!("other"),
    }
}
