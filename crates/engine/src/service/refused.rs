//! Why a request is refused, in Codex's codes and words where it has some.

use bindery_core::wire::rpc::OVERLOADED;
use serde_json::Value;

/// Nearly every fault of a client's has this code.
const INVALID: i64 = -32600;

/// Codex knows the method, this server does not serve it.
const NOT_SERVED: i64 = -32601;

/// A fault of ours, or of the machine's.
const INTERNAL: i64 = -32603;

/// A request that got no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// JSON-RPC's code.
    pub code: i64,
    /// Why, in words.
    pub message: String,
    /// Why, for programs.
    pub data: Option<Value>,
}

impl Refused {
    /// The client's fault.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { code: INVALID, message: message.into(), data: None }
    }

    /// Our fault, or the machine's.
    pub(crate) fn internal(message: impl ToString) -> Self {
        Self { code: INTERNAL, message: message.to_string(), data: None }
    }

    /// Parameters that cannot be read.
    pub(crate) fn unreadable(err: &impl ToString) -> Self {
        Self::invalid(format!("Invalid request: {}", err.to_string()))
    }

    /// A method that Codex serves and we do not.
    pub(crate) fn not_served(method: &str) -> Self {
        let message = format!("{method} is not served by the built-in engine");
        Self { code: NOT_SERVED, message, data: None }
    }

    /// Something that needs the experimental capability.
    pub(crate) fn experimental(what: &str) -> Self {
        Self::invalid(format!("{what} requires experimentalApi capability"))
    }

    /// A thread that is not loaded, for what needs it so.
    pub(crate) fn no_thread(id: &str) -> Self {
        Self::invalid(format!("thread not found: {id}"))
    }

    /// A thread that is neither loaded nor on disk.
    pub(crate) fn no_rollout(id: &str) -> Self {
        Self::invalid(format!("no rollout found for thread id {id}"))
    }

    /// A thread to be read that is nowhere.
    pub(crate) fn not_loaded(id: &str) -> Self {
        Self::invalid(format!("thread not loaded: {id}"))
    }

    /// Too much is asked at once.
    pub(crate) fn overloaded() -> Self {
        let message = "Server overloaded; retry later.".to_owned();
        Self { code: OVERLOADED, message, data: None }
    }
}
